"""Texts and small files of every format, and translators that are easy to foresee."""

from keras_transformer.pieces.translation import Translation
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.formats import parts_of_format
from keras_transformer.text.formats.parts import Field

LETTERS = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def translator(of_line, language="en", are_too_long=None):
    """A DocumentTranslator that translates each line by a function."""
    return DocumentTranslator(
        lambda lines: [Translation(of_line(line), -0.5) for line in lines], language, are_too_long
    )


def capitals(line):
    """As long as the line, so that everything keeps its place."""
    return line.translate(LETTERS)


def translated(parts, of_line):
    """What is written for the parts of a file."""
    parts = list(parts)
    documents = iter(translator(of_line).documents(part.passage for part in parts if isinstance(part, Field)))
    return "".join(part.laid_out(next(documents).text) if isinstance(part, Field) else part for part in parts)


def through(name, text, of_line, fields=("text",), target_language="", **options):
    """What is written for a file of a format; options: those of the format."""
    import io

    return translated(
        parts_of_format(name, io.BytesIO(text.encode()), "file", fields, target_language, **options), of_line
    )


def texts_of(name, text, fields=("text",)):
    """The sentences of a file, as a model reads them."""
    seen = []
    through(name, text, lambda line: seen.append(line) or line, fields)
    return seen
