"""What a worker does with a batch is what the run's own Translator and Scorer do."""

import functools

import pytest
from sacrebleu import sentence_chrf

from cluster.engines import GraphEngine, LiteEngine
from cluster.errors import ClusterError
from cluster.works import Clean, Nearest, Score, Translate
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.scorer import Scorer
from keras_transformer.translator import Translator
from tests.support.exports import OPTIONS, write_version
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


def text_and_score(outputs):
    return [(row["translation"], pytest.approx(row["score"], abs=2e-4)) for row in outputs]


@pytest.mark.slow
def test_a_text_is_translated_as_by_the_run(engine, translator):
    expected = [(each.text, each.score) for each in translator().translate([text for (text,) in ROWS])]
    outputs = Translate().on(engine)(ROWS)
    assert text_and_score(outputs) == expected
    assert all(set(row) == set(Translate().outputs) for row in outputs)


@pytest.mark.slow
def test_options_of_the_search_reach_the_export(engine, translator):
    work = Translate((("beam_size", 2), ("length_penalty", 1.5)), tag="<bt>")
    expected = translator(beam_size=2, length_penalty=1.5).translate([text for (text,) in ROWS])
    outputs = work.on(engine)(ROWS)
    assert text_and_score(outputs) == [(f"<bt> {each.text}".rstrip(), each.score) for each in expected]
    assert all(list(row) == list(work.outputs) for row in outputs)


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


@pytest.mark.slow
def test_what_an_export_cannot_do_is_one_sentence(engine):
    with pytest.raises(ClusterError, match="has no input beem_size; it has .*beam_size"):
        Translate((("beem_size", 2),)).on(engine)
    with pytest.raises(ClusterError, match="no signature explain with the outputs a; it has the signatures score, "):
        engine.require("explain", ["a"])
    with pytest.raises(ClusterError, match="A LiteRT model translates in the one way"):
        Score().on(LiteEngine.__new__(LiteEngine))
