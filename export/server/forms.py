"""What a request says by name, in JSON, as a form of a web page, or in parts with files (multipart/form-data)."""

import email.message
import urllib.parse
from collections.abc import Iterator
from typing import Any, NamedTuple

from starlette.datastructures import Headers

from .errors import Code, RequestError, invalid, shown
from .json_codec import parsed

JSON, FORM, PARTS = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
MOST_FIELDS = 2000  # of a form: each text of `q` is one
PART_HEADER_BYTES = 2048
MOST_OF_TYPE = 1024  # characters of a content-type that are read: Python reads it in quadratic time


class File(NamedTuple):
    """A file that a form holds."""

    name: str
    content: bytes


class Fields(NamedTuple):
    """What a request says: `values` by name, of a form a text or a list of texts; `files` by name."""

    values: dict[str, Any]
    files: dict[str, File]

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text. Raises RequestError if it is none, or missing without a default."""
        value = self.values.get(name)
        if value is None or value == "":
            if default is None:
                raise missing(name)
            return default
        if not isinstance(value, str):
            raise invalid(f"Invalid request: {name} must be a text.")
        return value


def missing(name: str) -> RequestError:
    """Return the error of a request without something that it needs."""
    return invalid(f"Invalid request: missing {name} parameter")


def fields_of(headers: Headers, query: str, body: bytes) -> Fields:
    """Return what a body says; of a form, the query of its address counts too. Raises RequestError."""
    kind = header_of(headers.get("content-type", JSON)[:MOST_OF_TYPE])
    form = kind.get_content_type()
    if form == PARTS:
        values, files = in_parts(str(kind.get_param("boundary", "")), body)
    elif form == FORM:
        values, files = gathered(pairs_of(body)), {}
    elif form == JSON or form.endswith("+json"):
        values = parsed(body)
        if not isinstance(values, dict):
            raise invalid("Invalid JSON format")
        return Fields(values, {})
    else:
        raise RequestError(
            Code.INVALID_ARGUMENT, f"The content-type is {shown(form)!a}; it may be {JSON}, {FORM} or {PARTS}.", 415
        )
    return Fields(gathered(pairs_of(query.encode())) | values, files)


def pairs_of(body: bytes) -> list[tuple[str, str]]:
    """Return the names and values of a form. Raises RequestError."""
    try:
        return urllib.parse.parse_qsl(
            body.decode(), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
        )
    except UnicodeDecodeError:
        raise invalid("The form is not UTF-8.") from None
    except ValueError:
        raise invalid(f"The form has more than {MOST_FIELDS} fields.") from None


def gathered(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Return values by name, several of one name as a list. A line break of a form is \\r\\n, and becomes \\n."""
    values: dict[str, Any] = {}
    for name, value in pairs:
        text = value.replace("\r\n", "\n")
        if name not in values:
            values[name] = text
        elif isinstance(values[name], list):
            values[name].append(text)
        else:
            values[name] = [values[name], text]
    return values


def in_parts(boundary: str, body: bytes) -> tuple[dict[str, Any], dict[str, File]]:
    """Return the values and the files of multipart/form-data (RFC 7578). Raises RequestError if it is damaged."""
    pairs, files = [], {}
    for head, content in parts_between(boundary, body):
        names = header_of(head.decode(errors="replace"), "content-disposition")
        name = names.get_param("name", None, "content-disposition")
        filename = names.get_filename()
        if not isinstance(name, str):
            raise invalid("A part of the form has no name.")
        if filename is not None:
            files[name] = File(filename, content)
            continue
        try:
            pairs.append((name, content.decode()))
        except UnicodeDecodeError:
            raise invalid(f"The field {shown(name)!a} of the form is not UTF-8.") from None
    return gathered(pairs), files


def parts_between(boundary: str, body: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the Content-Disposition and the content of each part between boundaries. Raises RequestError."""
    line = b"\r\n--" + boundary.encode("latin-1", "replace")
    _, *parts = (b"\r\n" + body).split(line, MOST_FIELDS + 1)
    if not boundary or not parts or not parts[-1].startswith(b"--"):
        raise invalid(f"The form does not end with its boundary, or has more than {MOST_FIELDS} fields.")
    for part in parts[:-1]:
        head, gap, content = part.partition(b"\r\n\r\n")
        if not gap or len(head) > PART_HEADER_BYTES:
            raise invalid("A part of the form has no end of its headers.")
        lines = head.split(b"\r\n")
        found = [each for each in lines if each.lower().startswith(b"content-disposition:")]
        if len(found) != 1:
            raise invalid("A part of the form has no name.")
        yield found[0].partition(b":")[2].strip(), content


def header_of(value: str, name: str = "content-type") -> email.message.Message:
    """Return a message with one header, whose parameters it reads."""
    message = email.message.Message()
    message[name] = value.replace("\r", " ").replace("\n", " ")
    return message
