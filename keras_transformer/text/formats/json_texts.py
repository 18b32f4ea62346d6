"""Texts of a program in one JSON object, nested or not, as i18next, Vue, Angular and Flutter (ARB) have them."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import BYTE_ORDER_MARK, read_whole_lines
from keras_transformer.text.formats.entries import field_of
from keras_transformer.text.formats.parts import Part
from keras_transformer.text.formats.records import JSON, check_whole

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*+:)?+|[\[\]{},]|[^"\[\]{},]++')
ABOUT = "@"  # begins the names of what ARB says about texts: @@locale, @greeting
MOST_NAMED = 60  # characters of the name of a text, for logs


def json_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of a JSON file: a field for each text in it. Names stay, and what is under a name with @.

    A text whose translation lacks what a program fills in stays as it is, and is logged.

    Raises InputError for what is no JSON, no object, or has half of a character.
    """
    text = "".join(read_whole_lines(stream, name))
    try:
        content = json.loads(text.removeprefix(BYTE_ORDER_MARK), parse_int=len)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}. If each line is an object, give --format jsonl.") from None
    if not isinstance(content, dict):
        raise InputError(f"{name} is JSON, but not an object with texts: it begins with {text.strip()[:40]!r}.")
    names: list[str] = [""]  # of what each object or list that is open stands under, and of the value that follows
    for found in TOKEN.finditer(text):
        token = found[0]
        if token[0] == '"' and found[1]:
            names[-1] = json.loads(token[: -len(found[1])])
        elif token in ("{", "["):
            names.append("")
        elif token in ("}", "]"):
            names.pop()
        elif token[0] == '"' and not any(each.startswith(ABOUT) for each in names):
            where = f"{name}, {'.'.join(filter(None, names))[-MOST_NAMED:] or 'a text'}"
            check_whole(json.loads(token), where)
            yield '"'
            yield from field_of(JSON.passage(token[1:-1]), JSON.text, where)
            yield '"'
            continue
        yield token
