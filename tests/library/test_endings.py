"""The name of a file tells its format, and no file is read as one that it is not."""

import pathlib

import pytest

from keras_transformer.commands.files import file_arguments
from keras_transformer.ground.errors import ConfigError
from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.endings import LINES, ON_REQUEST, USUAL, why_not


def format_for(input, output, format=None, paragraphs=False, fields=()):
    paths = [None if path is None else pathlib.Path(path) for path in (input, output)]
    return file_arguments(paragraphs, format, fields, "en", *paths).format


@pytest.mark.parametrize(
    "input, output, format",
    [
        ("film.srt", "x.srt", "srt"),
        ("FILM.SRT", None, "srt"),
        ("film.en.vtt", None, "vtt"),
        ("-", "x.srt", "srt"),
        ("page.htm", "x", "html"),
        ("messages.xlf", None, "xliff"),
        ("a.sdlxliff", "b.xlf", "xliff"),
        ("letter.txt", "letter.de.txt", LINES),
        ("corpus.en", "corpus.de", LINES),
        (".srt", None, LINES),  # no ending, but a hidden file
        (None, None, LINES),
    ],
)
def test_the_names_of_files_tell_the_format_unless_somebody_asks_for_one(input, output, format):
    assert format_for(input, output) == format


def test_records_need_their_fields_whoever_tells_the_format():
    assert format_for("a.jsonl", None, fields=("text",)) == "jsonl"
    assert format_for("a.json", None, "jsonl", fields=("text",)) == "jsonl"


@pytest.mark.parametrize("format, paragraphs", [(LINES, False), ("text", False), (None, True), ("html", False)])
@pytest.mark.parametrize("paths", [("film.srt", None), ("-", "film.srt"), ("film.srt", "other.txt")])
def test_a_file_of_another_name_is_refused(paths, format, paragraphs):
    with pytest.raises(ConfigError, match="film.srt ends in .srt, and is not read as --format .*: give --format srt"):
        format_for(*paths, format, paragraphs)


@pytest.mark.parametrize("paths", [("film.srt", "film.vtt"), ("page.html", "page.xlf")])
def test_the_output_has_the_format_of_the_input(paths):
    with pytest.raises(ConfigError, match=r"\.(vtt|xlf), and is not read as --format (srt|html)"):
        format_for(*paths)


@pytest.mark.parametrize("ending", ON_REQUEST)
def test_what_would_lose_its_markup_is_refused_unless_somebody_says_that_lines_are_sentences(ending):
    name = f"doc.{ending}"
    for format, paragraphs in ((None, False), (None, True), ("text", False)):
        with pytest.raises(ConfigError, match=rf"doc\.{ending} ends in \.{ending}, (and is not|which no format)"):
            format_for(name, None, format, paragraphs)
    for format in ON_REQUEST[ending]:
        assert format_for(name, None, format) == format


@pytest.mark.parametrize(
    ("name", "way"), [("film.ass", "save it as HTML, text or SRT"), ("Localizable.xcstrings", "export it as XLIFF")]
)
@pytest.mark.parametrize("format", [None, "json", LINES])
def test_what_no_format_reads_is_refused_with_a_way_out(name, way, format):
    with pytest.raises(ConfigError, match=rf"{name} ends in .*, which no format reads: {way} first"):
        format_for(name, None, format)


def test_every_ending_leads_to_a_format_that_exists():
    for formats in ((format,) for format in USUAL.values()):
        assert set(formats) <= set(FORMATS)
    for formats in ON_REQUEST.values():
        assert set(formats) <= {*FORMATS, LINES}
    assert why_not("README", "html", is_asked=True) is None
