"""Tags inside of sentences stand around the same words in a request for a text of a format as in Python."""

import functools
import io

import numpy as np
import pytest

from export.server.paragraphs import FORMAT, LANGUAGE, OUTPUT_LANGUAGE, PARAGRAPHS, run_paragraphs
from export.server.protection import GLOSSARY, INPUTS, PROTECT, UNPLACED, Traits, run_protected
from export.server.version import Version
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.parts import Field
from keras_transformer.text.spans import LEFT, RIGHT, Protection
from tests.library.test_marks import XLIFF, backwards, opposite, translated
from tests.support.exports import write_version

TEXTS = {
    "html": [
        "<p>A <b>big dog</b> runs.</p>\n<p><i>Note</i> the dog. A <b>dog runs. The</b> cat sleeps.</p>",
        "a <i>very <b>big</b> dog</i> &amp; a <a href='x'>cat</a>! <img alt='the dog'>",
        f"a <b>dog</b> and {LEFT}b 0{RIGHT} text",
        "<p>I see {n, plural, one {<b># dog</b>} other {# dogs}}.</p>",
        "<p>12</p>",
    ],
    "xliff": [XLIFF.format('A <g id="1">big dog</g> runs <x id="2"/>now.')],
    "srt": ["1\n00:00:01,000 --> 00:00:02,000\nA <i>big\ndog</i> runs.\n"],
    "vtt": ["WEBVTT\n\n00:01.000 --> 00:02.000\nA <c.yellow>big dog</c> <00:01.500>runs.\n"],
}
CASES = [(format, text) for format, texts in TEXTS.items() for text in texts]


def inputs_of(text, format, **asked):
    given = {"text": text, LANGUAGE: "en", FORMAT: format, OUTPUT_LANGUAGE: ""}
    given |= {**{each.name: "" for each in INPUTS}, **asked}
    return {name: np.array([value.encode()], object) for name, value in given.items()} | {PARAGRAPHS: np.array([True])}


class Graph:
    """Writes the words of a sentence in capitals and backwards, in two ranks; reads five words; counts its lines."""

    def __init__(self):
        self.lines = 0

    def __call__(self, names, inputs):
        lines = [text.decode() for text in inputs["text"]]
        self.lines += len(lines)
        assert not any(LEFT in line and "text" not in line for line in lines)
        aligned = [" ".join(f"{one}-{other}" for one, other in opposite(line)) for line in lines]
        columns = {"translations": [backwards(line) for line in lines], "alignments": aligned}
        found = {n: np.array([[v.encode(), b""] for v in c] + [[b"", b""]], object)[:-1] for n, c in columns.items()}
        found["scores"] = np.full((len(lines), 2), -1.0)
        found["truncated"] = np.array([len(line.split()) > 9 for line in lines], bool)
        return {name: found[name] for name in names}


def answered(text, format, graph=None, **asked):
    """What a graph answers for a text: it, and what has no place in it."""
    compute = functools.partial(run_protected, graph or Graph(), traits=Traits())
    found = run_paragraphs(
        lambda names, inputs: compute(names, inputs), ("translations", UNPLACED), inputs_of(text, format, **asked)
    )
    return [found[name][0][0].decode() for name in ("translations", UNPLACED)]


@pytest.mark.parametrize(("format", "text"), CASES)
def test_a_text_is_what_python_makes_of_it(format, text):
    parts = functools.partial(FORMATS[format])
    expected = translated(text, lambda file, name, _: parts(file, name, ()))
    assert answered(text, format) == [expected, ""]


def test_tags_go_with_their_words_and_terms_and_what_is_protected_come_too():
    text = "<p>A <b>big dog</b> runs to {x}.</p>"
    assert answered(text, "html") == ["<p>{X} TO RUNS <b>DOG BIG</b> A.</p>", ""]
    asked = {PROTECT.name: "placeholders", GLOSSARY.name: "dog\tKöter"}
    assert answered(text, "html", **asked) == ["<p>{x} TO RUNS <b>Köter BIG</b> A.</p>", ""]


def test_a_long_sentence_is_divided_between_its_tags_and_every_sentence_is_searched_at_most_twice():
    graph = Graph()
    text = "<p>" + "a <b>dog</b> runs; " * 12 + "</p>"
    found, _ = answered(text, "html", graph)
    assert found.count("<b>DOG</b>") == 12 and graph.lines < 60


def test_a_line_that_is_no_text_of_a_format_has_no_tags():
    """Of a plain text, and of a line that is none, the characters of our signs are its own."""
    line = f"a {LEFT}b 0{RIGHT} text"
    for format, is_text in (("text", True), ("html", False)):
        inputs = inputs_of(line, format) | {PARAGRAPHS: np.array([is_text])}
        compute = functools.partial(run_protected, Graph(), traits=Traits())
        found = run_paragraphs(lambda names, of: compute(names, of), ("translations",), inputs)  # noqa: B023
        assert found["translations"][0][0].decode() == backwards(line)


@pytest.fixture(scope="module")
def of_run(tmp_path_factory, random_folder):
    """A Translator, and a version of the same run."""
    folder = tmp_path_factory.mktemp("marks") / "1"
    translator = write_version(
        random_folder, folder, SearchOptions(beam_size=2, extra_length=8), 40, ("serving_default", "translate")
    )
    version = Version(folder)
    yield translator, version
    version.close()


@pytest.mark.nightly
def test_a_version_places_tags_as_the_translator_of_its_run(of_run):
    translator, version = of_run
    signature = version.signatures["translate"]
    through = functools.partial(translator.translate, protect=Protection(has_marks=True))
    moved = 0
    for format, text in CASES:
        inputs = signature.complete(inputs_of(text, format))
        found = version.run(signature, ("translations",), inputs)["translations"][0][0].decode()
        assert found == translated_by(DocumentTranslator(through, "en", translator.are_too_long, True), text, format)
        moved += found != translated_by(DocumentTranslator(translator.translate, "en"), text, format)
    assert moved  # not in proportion


def translated_by(documents, text, format):
    return "".join(
        part.laid_out(documents.documents([part.passage])[0].text) if isinstance(part, Field) else part
        for part in FORMATS[format](io.BytesIO(text.encode()), "text", ())
    )
