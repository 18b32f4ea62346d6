"""Documents that say in which encoding they are: read by that, and rewritten to say UTF-8, which the output is."""

import codecs
import re
from collections.abc import Iterable, Iterator

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import MARKED, bounded_lines, read_whole_lines
from keras_transformer.text.formats.parts import Field, Part

# A declaration, in the first bytes of a document: its groups are what stands before the name, and the name
XML = re.compile(rb"(<\?xml\b[^>]*?\sencoding\s*=\s*[\"'])([\w.:-]+)")
META = re.compile(
    rb"(<meta\b[^>]*?\b(?:charset\s*=\s*[\"']?\s*|content\s*=\s*[\"'][^\"'>]*?charset\s*=\s*))([\w.:-]+)", re.IGNORECASE
)
PRELUDE = 1024  # bytes in which HTML looks for its declaration
WIDER = {  # what a label means in HTML: https://encoding.spec.whatwg.org/#names-and-labels
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "euc_kr": "cp949",
    "big5": "big5hkscs",
}
SEVEN_BITS = ("iso2022", "hz", "utf-7")  # encodings whose bytes look like ASCII


def declared_text(stream: Iterable[bytes], name: str, *declarations: re.Pattern[bytes], head: int = PRELUDE) -> str:
    """Return the text of a document, which then says that it is UTF-8 if it said something else.

    Its mark or else its declaration, in the first `head` bytes, tells the encoding, unless its bytes are UTF-8: such a
    declaration was left behind when it was converted. Raises InputError if it is not in the encoding that it tells.
    """
    lines = list(bounded_lines(stream))
    content = b"".join(lines)
    for encoding, marks in MARKED.items():
        if content.startswith(marks):
            return rewritten(decoded(content, encoding, name).removeprefix("\ufeff"), declarations, head)
    found = next((found for each in declarations if (found := each.search(content[:head]))), None)
    encoding = found[2].decode("ascii", "replace") if found else "utf-8"
    codec = codec_of(encoding)
    if codec == "utf-8":
        return "".join(read_whole_lines(lines, name))
    if is_utf_8(content) and not codec.startswith(SEVEN_BITS):
        return rewritten(content.decode(), declarations, head)
    return rewritten(decoded(content, encoding, name), declarations, head)


def codec_of(encoding: str) -> str:
    """Return the name of an encoding in Python; "" for one that it does not know."""
    try:
        return codecs.lookup(encoding).name
    except LookupError:
        return ""


def is_utf_8(content: bytes) -> bool:
    try:
        content.decode()
    except UnicodeDecodeError:
        return False
    return True


def decoded(content: bytes, encoding: str, name: str) -> str:
    """Return the text of bytes. Raises InputError if they are not in this encoding, or if it is not known."""
    codec = codec_of(encoding)
    try:
        return content.decode(WIDER.get(codec, codec))
    except (UnicodeError, LookupError) as error:  # LookupError: of "", or of a codec that is none of text
        place = f", but its byte {error.start + 1:,} is not" if isinstance(error, UnicodeDecodeError) else ""
        raise InputError(f"{name} says that it is {encoding}{place}: convert it to UTF-8 first.") from None


def rewritten(text: str, declarations: Iterable[re.Pattern[bytes]], length: int) -> str:
    """Return a text whose declarations, in its first characters, say UTF-8."""
    head, rest = text[:length].encode("utf-8", "surrogatepass"), text[length:]
    for each in declarations:
        head = each.sub(rb"\1UTF-8", head)
    return head.decode("utf-8", "surrogatepass") + rest


def in_encoding(parts: Iterable[Part], encoding: str) -> Iterator[Part]:
    """Yield parts whose output is in another encoding than UTF-8: see `bytes_of`."""

    def encoded(text: str) -> str:
        return text.encode(encoding).decode("utf-8", "surrogateescape")

    for part in parts:
        if isinstance(part, Field):
            yield part._replace(laid_out=lambda text, laid_out=part.laid_out: encoded(laid_out(text)))  # type: ignore[misc]
        else:
            yield encoded(part)
