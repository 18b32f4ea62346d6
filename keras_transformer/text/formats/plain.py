"""Text: paragraphs between empty lines."""

from collections.abc import Iterable, Iterator

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import read_whole_lines
from keras_transformer.text.formats.parts import PLAIN, Field, Part

LONGEST = 1000  # lines of a paragraph, at most, so that a file of one paragraph does not have to fit into memory


def text_parts(stream: Iterable[bytes], name: str, fields: Iterable[str]) -> Iterator[Part]:
    """Yield the paragraphs of a text, each with its line breaks, and the empty lines."""
    paragraph, error = [], None
    lines = read_whole_lines(stream, name)
    while True:
        try:
            line = next(lines, "")
        except InputError as found:  # it takes nothing with it
            line, error = "", found
        if line.strip():
            paragraph.append(line)
        if paragraph and (not line.strip() or len(paragraph) == LONGEST):
            yield Field(PLAIN.passage("".join(paragraph)))
            paragraph = []
        if error:
            raise error
        if not line:
            return
        if not line.strip():
            yield line
