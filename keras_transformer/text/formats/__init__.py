"""The formats of files that `keras-transformer translate --format` reads and writes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from keras_transformer.text.formats.android import android_parts
from keras_transformer.text.formats.docx import docx_parts, packed
from keras_transformer.text.formats.html import html_parts
from keras_transformer.text.formats.json_texts import json_parts
from keras_transformer.text.formats.markdown import markdown_parts
from keras_transformer.text.formats.message_forms import with_forms
from keras_transformer.text.formats.parts import Part
from keras_transformer.text.formats.plain import text_parts
from keras_transformer.text.formats.po import po_parts
from keras_transformer.text.formats.properties import properties_parts
from keras_transformer.text.formats.qt import ts_parts
from keras_transformer.text.formats.records import jsonl_parts, tsv_parts
from keras_transformer.text.formats.strings import strings_parts
from keras_transformer.text.formats.subtitles import srt_parts, vtt_parts
from keras_transformer.text.formats.xliff import xliff_parts

# Each is a function of a stream of bytes, its name for errors, the names of the fields that are translated, and options
FORMATS: dict[str, Callable[..., Iterator[Part]]] = {
    "text": text_parts,
    "jsonl": jsonl_parts,
    "tsv": tsv_parts,
    "srt": srt_parts,
    "vtt": vtt_parts,
    "html": html_parts,
    "xliff": xliff_parts,
    "po": po_parts,
    "json": json_parts,
    "android": android_parts,
    "strings": strings_parts,
    "properties": properties_parts,
    "ts": ts_parts,
    "markdown": markdown_parts,
    "docx": docx_parts,
}
PACKED: dict[str, Callable[[bytes], bytes]] = {"docx": packed}  # what makes a file of what is written for its parts
WITH_FIELDS = "jsonl", "tsv"
WITH_STATES = "xliff", "po", "ts"  # whose translations are in the file, and have states
TOLD_LANGUAGE = "xliff", "json", "android", "ts"  # whose functions are told that of the output
WITH_MESSAGES = "xliff", "json", "android", "po", "strings", "properties", "jsonl", "tsv"  # of ICU, by numbers
WITH_LANGUAGE = tuple(dict.fromkeys((*TOLD_LANGUAGE, *WITH_MESSAGES)))  # what the language of the output concerns


def parts_of_format(
    format: str, stream: Iterable[bytes], name: str, fields: Sequence[str], target_language: str = "", **options: Any
) -> Iterator[Part]:
    """Return the parts of a file of a format, with the forms of numbers of a language, "" for one that is not known."""
    told = {"target_language": target_language} if format in TOLD_LANGUAGE else {}
    parts = FORMATS[format](stream, name, fields, **told, **options)
    return with_forms(parts, name, target_language) if format in WITH_MESSAGES else parts
