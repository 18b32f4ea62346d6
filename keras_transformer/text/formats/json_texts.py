"""Texts of a program in one JSON object, nested or not, as i18next, Vue, Angular and Flutter (ARB) have them.

What is said about each text, as in messages.json of Chrome's extensions and what FormatJS extracts, is none:
https://developer.chrome.com/docs/extensions/reference/api/i18n,
https://formatjs.github.io/docs/getting-started/message-extraction.
"""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import BYTE_ORDER_MARK, read_whole_lines
from keras_transformer.text.formats.entries import KEPT, Entries, field_of, why_left
from keras_transformer.text.formats.json_forms import by_number, names_of, tokens_of
from keras_transformer.text.formats.parts import Part
from keras_transformer.text.formats.plurals import divided
from keras_transformer.text.formats.records import JSON, check_whole

log = logging.getLogger("keras_transformer")

ABOUT = "@"  # begins the names of what ARB says about texts: @@locale, @greeting
DESCRIBED = {  # under which name an object has its text, and under which others what is said about it
    "message": {"description", "placeholders", "comment", "hash"},  # Chrome, VS Code, Crowdin
    "defaultMessage": {"description", "id", "file", "start", "end", "line", "col"},  # FormatJS
    "string": {"developer_comment", "context", "character_limit"},  # Transifex
    "translation": {"notes", "context", "limit"},  # Lokalise
}
MOST_NAMED = 60  # characters of the name of a text, for logs


def json_parts(stream: Iterable[bytes], name: str, fields: Sequence[str], target_language: str = "") -> Iterator[Part]:
    """Yield the parts of a JSON file: a field for each text in it, or for each form of one that has forms, a|b.

    Names stay, and so do what is under a name with @ and what is said about a text. A text whose translation lacks what
    a program fills in stays as it is, and is logged. Keys of i18next for numbers are those of the target language, if
    it is told and known, beside those that are there. What was left, and why, is logged at the end.

    Raises InputError for what is no JSON, no object, or has half of a character.
    """
    text = "".join(read_whole_lines(stream, name))
    try:
        content = json.loads(text.removeprefix(BYTE_ORDER_MARK), parse_int=len)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}. If each line is an object, give --format jsonl.") from None
    if not isinstance(content, dict):
        raise InputError(f"{name} is JSON, but not an object with texts: it begins with {text.strip()[:40]!r}.")
    entries, of_texts, tokens = Entries(name), name_of_texts(content), tokens_of(text)

    def parts_of(value: str, names: list[str]) -> Iterator[Part]:
        """Yield the parts of a text under these names."""
        is_about = any(each.startswith(ABOUT) for each in names) or (of_texts and names[2:] not in ([], [of_texts]))
        where = f"{name}, {'.'.join(filter(None, names))[-MOST_NAMED:] or 'a text'}"
        text_of_value = json.loads(value)
        if not is_about:
            check_whole(text_of_value, where)
        if entries.is_left(text_of_value, KEPT if is_about else ""):
            yield value
            return
        yield '"'
        for form in divided(value[1:-1]):
            is_text = not why_left(JSON.text(form))
            yield from field_of(JSON.passage(form), JSON.text, where) if is_text else [form]
        yield '"'

    numbered = by_number(tokens, target_language)
    for number, token in enumerate(tokens):
        for key, value in numbered.new.get(number, ()):
            yield f"{json.dumps(key, ensure_ascii=text.isascii())}:{tokens[number + 1].space}"
            yield from parts_of(tokens[value].raw, [*names_of(tokens, number)[:-1], key])
            yield f",{tokens[number - 1].space}"
        if token.kind == "text":
            yield from parts_of(tokens[numbered.texts.get(number, number)].raw, names_of(tokens, number))
        else:
            yield token.raw
    if added := sum(map(len, numbered.new.values())):
        log.info("%s: %d keys added, for the numbers of %s", name, added, target_language)
    if numbered.are_left:
        log.warning("%s: texts by number keep their keys: tell the language with --target-language", name)
    entries.report()


def name_of_texts(content: Mapping[str, object]) -> str:
    """Return under which name each object in a file has its text, if what else it has is about that; "" if none."""
    objects = [set(value) for key, value in content.items() if isinstance(value, dict) and not key.startswith(ABOUT)]
    told = (text for text, about in DESCRIBED.items() if all(text in each <= {text, *about} for each in objects))
    return next(told, "") if objects else ""
