"""Texts of a program in one JSON object, nested or not, as i18next, Vue, Angular and Flutter (ARB) have them.

What is said about each text, as in messages.json of Chrome's extensions and what FormatJS extracts, is none:
https://developer.chrome.com/docs/extensions/reference/api/i18n,
https://formatjs.github.io/docs/getting-started/message-extraction.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import BYTE_ORDER_MARK, read_whole_lines
from keras_transformer.text.formats.entries import KEPT, Entries, field_of, why_left
from keras_transformer.text.formats.parts import Part
from keras_transformer.text.formats.plurals import divided
from keras_transformer.text.formats.records import JSON, check_whole

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+"(\s*+:)?+|[\[\]{},]|[^"\[\]{},]++')
ABOUT = "@"  # begins the names of what ARB says about texts: @@locale, @greeting
DESCRIBED = {  # under which name an object has its text, and under which others what is said about it
    "message": {"description", "placeholders", "comment", "hash"},  # Chrome, VS Code, Crowdin
    "defaultMessage": {"description", "id", "file", "start", "end", "line", "col"},  # FormatJS
    "string": {"developer_comment", "context", "character_limit"},  # Transifex
    "translation": {"notes", "context", "limit"},  # Lokalise
}
MOST_NAMED = 60  # characters of the name of a text, for logs


def json_parts(stream: Iterable[bytes], name: str, fields: Sequence[str]) -> Iterator[Part]:
    """Yield the parts of a JSON file: a field for each text in it, or for each form of one that has forms, a|b.

    Names stay, and so do what is under a name with @ and what is said about a text. A text whose translation lacks what
    a program fills in stays as it is, and is logged. What was left, and why, is logged at the end.

    Raises InputError for what is no JSON, no object, or has half of a character.
    """
    text = "".join(read_whole_lines(stream, name))
    try:
        content = json.loads(text.removeprefix(BYTE_ORDER_MARK), parse_int=len)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{name} is not JSON: {error}. If each line is an object, give --format jsonl.") from None
    if not isinstance(content, dict):
        raise InputError(f"{name} is JSON, but not an object with texts: it begins with {text.strip()[:40]!r}.")
    entries, of_texts = Entries(name), name_of_texts(content)
    names: list[str] = [""]  # of what each object or list that is open stands under, and of the value that follows
    for found in TOKEN.finditer(text):
        token = found[0]
        if token[0] == '"' and found[1]:
            names[-1] = json.loads(token[: -len(found[1])])
        elif token in ("{", "["):
            names.append("")
        elif token in ("}", "]"):
            names.pop()
        elif token[0] == '"':
            is_about = any(each.startswith(ABOUT) for each in names) or (of_texts and names[2:] not in ([], [of_texts]))
            where = f"{name}, {'.'.join(filter(None, names))[-MOST_NAMED:] or 'a text'}"
            value = json.loads(token)
            if not is_about:
                check_whole(value, where)
            if not entries.is_left(value, KEPT if is_about else ""):
                yield '"'
                for form in divided(token[1:-1]):
                    is_text = not why_left(JSON.text(form))
                    yield from field_of(JSON.passage(form), JSON.text, where) if is_text else [form]
                yield '"'
                continue
        yield token
    entries.report()


def name_of_texts(content: Mapping[str, object]) -> str:
    """Return under which name each object in a file has its text, if what else it has is about that; "" if none."""
    objects = [set(value) for key, value in content.items() if isinstance(value, dict) and not key.startswith(ABOUT)]
    told = (text for text, about in DESCRIBED.items() if all(text in each <= {text, *about} for each in objects))
    return next(told, "") if objects else ""
