"""What a worker does with a batch is what the run's own Translator and Scorer do."""

import functools
import random
import time

import pytest
from sacrebleu import sentence_chrf

from cluster.duplicates import REPEATED, MarkedRows, marked, part_of_hash, unique
from cluster.engines import GraphEngine, Refused
from cluster.errors import ClusterError
from cluster.formats import JsonLines, TabLines
from cluster.works import Clean, Nearest, Score, Translate
from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.asks import Ask
from keras_transformer.text.cleaning import Cleaner
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.road import Candidates
from keras_transformer.text.spans import Protection
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.engines import Table, Writer
from tests.support.exports import OPTIONS, write_version
from tests.support.local_spark import Parts
from tests.support.runs import SENTENCES, random_run

ROWS = [(text,) for text in [*SENTENCES, " "]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    write_version(random_run(folder / "run"), folder / "version", names=("serving_default", "translate", "score"))
    return folder


@pytest.fixture(scope="module")
def engine(folder):
    return GraphEngine(str(folder / "version"), threads=1)


@pytest.fixture(scope="module")
def translator(folder):
    def with_options(**changes):
        options = SearchOptions(**{"extra_length": OPTIONS.extra_length, **changes})
        return Translator.load(folder / "run", options)

    return functools.cache(with_options)


def test_a_pair_has_the_first_rule_that_drops_it():
    work = Clean((("identical", True), ("length_ratio", 2.0), ("numbers", True)))
    rows = [("Yes.", "yes."), ("One", "Ein sehr langer Satz, viel länger"), ("in 1999", "in 1998"), ("Yes.", "Ja.")]
    reasons = [row["dropped"] for row in work.on(None)(rows)]
    assert reasons == ["identical", "of very different lengths", "with different numbers", None]


def test_a_pair_that_came_before_is_dropped_unless_another_rule_drops_it():
    """As a Cleaner says that remembers all pairs."""
    pairs = [("Yes.", "Ja."), ("Yes.", "yes."), ("No.", "Nein."), ("Yes.", "Ja."), ("Yes.", "yes."), ("Yes.", "Nein.")]
    work = Clean((("identical", True), ("duplicates", True)))
    rows = [(*pair, "repeated" if pair in pairs[:number] else "") for number, pair in enumerate(pairs)]
    cleaner = Cleaner(dict(work.settings))
    assert [row["dropped"] for row in work.on(None)(rows)] == [cleaner.reason_to_drop(*pair) for pair in pairs]
    assert len(work.example) == 3 and work.on(None)([work.example])


class Detector:
    """Knows English by its article; that of py3langid takes two seconds to load."""

    labels = ["de", "en"]

    def classify(self, text):
        return ("en" if "The " in text else "de"), 1.0


def test_a_pair_in_another_language_is_dropped_and_an_unknown_language_is_named(monkeypatch):
    for place in ("cluster.works.detector", "keras_transformer.text.cleaning.detector"):
        monkeypatch.setattr(place, Detector)
    english, german = "The weather in the mountains was cold.", "Das Wetter in den Bergen war sehr kalt."
    work = Clean((("languages", ("en", "de")),))
    assert [row["dropped"] for row in work.on(None)([(english, german), (german, english)])] == [
        None,
        "in another language",
    ]
    with pytest.raises(ClusterError, match="has 'xx', which the detector does not know; it knows .*de, .*en"):
        Clean((("languages", ("en", "xx")),)).on(None)


def capitals(line):
    return " ".join(word if "{" in word else word.upper() for word in line.split(" "))


class Calibrated(Writer):
    def search(self, lines, asks, first_line):
        found = super().search(lines, asks, first_line)
        return [Candidates([best._replace(confidence=self.confidence)]) for [best], *_ in found]


def test_what_has_no_place_is_named_in_a_column():
    protection = Protection(("placeholders", "tags"), Glossary([Term("dog", "Köter")]))
    work = Translate(ask=Ask(protection=protection))
    rows = work.on(Writer(capitals))([("<b>see {x}</b>",), ("a dog",), ("{x}",), ("nothing",)])
    assert [(row["translation"], row["unplaced"]) for row in rows] == [
        ("<b>SEE {x}</b>", None),
        ("A DOG", "Köter"),
        ("{x}", None),
        ("NOTHING", None),
    ]
    assert list(rows[0]) == list(work.outputs)


def test_a_confidence_is_a_column_if_it_is_asked_for_and_the_export_has_it():
    assert "confidence" not in Translate().on(Calibrated(capitals, confidence=0.25))([("a",)])[0]
    work = Translate(confidence=True)
    (row,) = work.on(Calibrated(capitals, confidence=0.123456))([("a",)])
    assert row["confidence"] == 0.1235 and list(row) == list(work.outputs)
    assert work.on(Calibrated(capitals, confidence=0.0))([("a",)])[0]["confidence"] == 0
    with pytest.raises(ClusterError, match="has no confidences, since its run was not calibrated"):
        work.on(Writer(capitals))([("a",)])


def test_a_glossary_that_takes_too_long_for_a_line_refuses_that_line(monkeypatch):
    monkeypatch.setattr(time, "monotonic", iter(range(99)).__next__)
    glossary = Glossary([Term("(a+)+b", "x", ("regex", "part"))])
    with pytest.raises(Refused, match="Term 1: the regular expression .* took longer"):
        Translate(ask=Ask(protection=Protection((), glossary))).on(Writer(capitals))([("a" * 40 + " " + "aa" * 4900,)])


def test_another_glossary_is_another_work_and_the_same_one_is_the_same():
    def work(target):
        return repr(Translate(ask=Ask(protection=Protection((), Glossary([Term("dog", target)])))))

    assert work("Hund") == work("Hund") != work("Köter")


BEAM = {
    "translations": [["ein Hund", "der Hund", "der Hund"]],
    "scores": [[-0.5, -1.0, -2.0]],
    "is_cut": [[False, True, False]],
    "truncated": [True],
    "alignments": [[""] * 3],
}
SPANS = Protection(("urls",))
FRENCH = Ask(source_language="en", target_language="fr")


@pytest.mark.parametrize(
    ("work", "more", "signature"),
    [
        (Translate(), [], "serving_default"),
        (Translate((("beam_size", 2),)), ["truncated"], "translate"),
        (Translate(ask=Ask(protection=SPANS)), ["truncated", "unplaced"], "translate"),
        (Translate((("beam_size", 2),), ask=Ask(protection=SPANS)), ["truncated", "unplaced"], "translate"),
    ],
)
def test_a_translation_has_the_columns_of_its_work(work, more, signature):
    graph = Table(serving_default={"translation": ["ein Hund"], "score": [-0.5]}, translate=BEAM)
    [row] = work.on(graph)([("a dog",)])
    assert list(row) == list(work.outputs) == ["translation", "score", "is_cut", *more]
    assert (row["translation"], row["score"], row.get("truncated", True)) == ("ein Hund", -0.5, True)
    [(name, columns)] = graph.calls
    assert name == signature and columns.get("n_best", [1]) == [1]


def test_a_pair_is_scored_by_the_signature_score():
    graph = Table(score={"score": [-0.123456], "log_probability": [-1.0], "truncated": [False]})
    assert Score().on(graph)([("a dog", "ein Hund")]) == [
        {"score": -0.1235, "log_probability": -1.0, "truncated": False}
    ]
    assert graph.calls == [("score", {"text": ["a dog"], "translation": ["ein Hund"]})]


def test_of_the_whole_beam_the_nearest_to_the_reference_is_taken_and_of_equals_the_first():
    graph = Table(translate=BEAM)
    [found] = Nearest().on(graph)([("a dog", "der Hund")])
    assert found == {"translation": "der Hund", "score": -1.0, "is_cut": True, "truncated": True, "chrf": 100.0}
    assert graph.calls == [("translate", {"text": ["a dog"], "n_best": [3]})]


@pytest.mark.parametrize("work", [Translate((), "<bt>", FRENCH), Nearest((), FRENCH), Score(FRENCH)])
def test_every_work_asks_for_its_languages(work):
    defaults = {"source_language": "", "target_language": "", "n_best": 1, "beam_size": 3}
    score = {"score": [-0.1], "log_probability": [-1.0], "truncated": [False]}
    graph = Table(defaults, translate=BEAM, score=score)
    work.on(graph)([("a dog", "ein Hund")[: len(work.example)]])
    [(_, columns)] = graph.calls
    assert (columns["source_language"], columns["target_language"]) == (["en"], ["fr"])


@pytest.mark.parametrize(
    ("tag", "text", "written"), [("<bt>", "Hund", "<bt> Hund"), ("<bt>", "", "<bt>"), ("", "Hund ", "Hund ")]
)
def test_a_tag_stands_before_a_translation_and_alone_without_one(tag, text, written):
    assert Translate((), tag).written(Candidates([Translation(text, -0.5)]))["translation"] == written


@pytest.mark.parametrize(("unplaced", "written"), [((), None), (("a b",), "a b"), (("a b", "c"), "a b\nc")])
def test_each_span_that_is_missing_has_a_line(unplaced, written):
    row = Translate(ask=Ask(protection=SPANS)).written(Candidates([Translation("x", -0.5, unplaced=unplaced)]))
    assert row["unplaced"] == written


@pytest.mark.parametrize(
    ("work", "asked"), [(Translate((("beem_size", 2),)), "beem_size"), (Score(), "score"), (Nearest(), "n_best")]
)
def test_what_an_export_is_not_able_to_do_is_refused_before_a_line_is_read(work, asked):
    with pytest.raises(ConfigError, match=f"This writer does not take {asked}; it takes forbidden, glossary"):
        work.on(Writer(capitals))


def text_and_score(outputs):
    return [(row["translation"], pytest.approx(row["score"], abs=2e-4)) for row in outputs]


@pytest.mark.slow
def test_a_text_is_translated_as_by_the_run(engine, translator):
    expected = [(each.text, each.score) for each in translator().translate([text for (text,) in ROWS])]
    outputs = Translate().on(engine)(ROWS)
    assert text_and_score(outputs) == expected
    assert all(set(row) == set(Translate().outputs) for row in outputs)


@pytest.mark.nightly
def test_options_of_the_search_reach_the_export(engine, translator):
    work = Translate((("beam_size", 2), ("length_penalty", 1.5)), tag="<bt>")
    expected = translator(beam_size=2, length_penalty=1.5).translate([text for (text,) in ROWS])
    outputs = work.on(engine)(ROWS)
    assert text_and_score(outputs) == [(f"<bt> {each.text}".rstrip(), each.score) for each in expected]
    assert all(list(row) == list(work.outputs) for row in outputs)


@pytest.mark.slow
def test_what_is_protected_comes_through_as_by_the_run(engine, translator):
    protection = Protection(("urls", "placeholders", "tags"), Glossary([Term("dog", "Köter"), Term("cat", "Katze")]))
    lines = ["see {x} at https://a.org/b .", "<b>the dog</b> and <i>the cat</i>", "{y}", "kochen"]
    expected = translator().translate(lines, protect=protection)
    outputs = Translate(ask=Ask(protection=protection)).on(engine)([(line,) for line in lines])
    assert [row["translation"] for row in outputs] == [each.text for each in expected]
    assert [row["unplaced"] for row in outputs] == ["\n".join(each.unplaced) or None for each in expected]
    assert "https://a.org/b" in outputs[0]["translation"] and "Köter" in outputs[1]["translation"]


@pytest.mark.slow
def test_a_pair_has_the_log_probability_that_the_run_gives_it(engine, folder):
    pairs = list(zip(SENTENCES, SENTENCES[1:], strict=False))
    expected = Scorer.load(folder / "run").score(*map(list, zip(*pairs, strict=True)))
    outputs = Score().on(engine)(pairs)
    assert [row["log_probability"] for row in outputs] == pytest.approx(
        [each.log_probability for each in expected], abs=2e-3
    )
    assert all(list(row) == list(Score().outputs) for row in outputs)


@pytest.mark.slow
def test_the_nearest_of_the_beam_has_the_highest_chrf(engine, translator):
    references = ["der Küche", *SENTENCES[:-1]]
    outputs = Nearest().on(engine)(list(zip(SENTENCES, references, strict=True)))
    beams = translator(n_best=4).translate_n_best(SENTENCES)
    best = [
        max((candidate.text for candidate in beam), key=lambda text: round(sentence_chrf(text, [reference]).score, 2))
        for beam, reference in zip(beams, references, strict=True)
    ]
    assert [row["translation"] for row in outputs] == best
    assert best != [beam[0].text for beam in beams]  # not simply the first ones
    assert all(list(row) == list(Nearest().outputs) for row in outputs)


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_a_line_is_marked_if_its_texts_came_before_in_any_part(parts):
    draw = random.Random(parts)
    lines = [f"{draw.randrange(9)}\t{draw.randrange(9)}\t{number}" for number in range(200)] + ["no tab", "no tab"]
    bounds = [0, *sorted(draw.choices(range(len(lines)), k=parts - 1)), len(lines)]
    divided = Parts([lines[first:end] for first, end in zip(bounds, bounds[1:], strict=False)])
    rows = [pair for part in marked(divided, TabLines((1, 2))).parts for pair in part]
    assert [line for line, _ in rows] == lines
    texts = [line.split("\t")[:2] for line in lines]
    has_texts = [len(each) == 2 for each in texts]  # what cannot be read is no duplicate
    assert [mark for _, mark in rows] == [
        has_texts[number] and texts[number] in texts[:number] for number in range(len(lines))
    ]


def test_texts_that_look_the_same_when_joined_are_not():
    lines = [
        '{"a": "x\\n", "b": "y"}',
        '{"a": "x", "b": "\\ny"}',
        '{"b": "y", "a": "x\\n"}',
        '{"a": "\\ud800", "b": ""}',
    ]
    rows = marked(Parts([lines]), JsonLines(("a", "b"))).parts[0]
    assert [mark for _, mark in rows] == [False, False, True, False]


def test_a_marked_line_is_written_as_an_unmarked_one():
    plain, both = TabLines((1,)), MarkedRows(TabLines((1,)))
    assert both.read(("one\ttwo", True)) == ("one", REPEATED) and both.read(("one", False)) == ("one", "")
    assert both.write(("one", True), {"dropped": "x"}) == plain.write("one", {"dropped": "x"})
    refused = both.refuse(("one", False), ["dropped"], "No.")
    assert refused == plain.refuse("one", ["dropped"], "No.") and both.is_refused(refused)


def test_no_two_lines_without_texts_are_one():
    assert len({unique(part, place) for part in range(30) for place in range(30)}) == 900
    assert {part_of_hash((unique(3, place), 3, place)) % 7 for place in range(90)} == set(range(7))  # nor in one part
