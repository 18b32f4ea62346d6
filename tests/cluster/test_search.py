"""What an export is asked for, and what is made of its outputs: the three roads, with a graph that keeps its calls."""

import dataclasses

import pytest

from cluster.engines import GraphEngine, Refused
from cluster.errors import ClusterError
from cluster.search import Candidates, best_of, candidates_of, protecting
from cluster.works import Nearest, Score, Translate
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.spans import Protection
from tests.cluster.test_works import Capitals, lite_engine

NO_HYPOTHESIS = -1e9


class Graph(GraphEngine):
    """A SavedModel that answers from a table, whose beam has 3 hypotheses as it was exported."""

    def __init__(self, **answers):
        self.answers, self.calls, self.required = answers, [], []

    def require(self, name, outputs, inputs=()):
        self.required.append((name, tuple(outputs), tuple(inputs)))

    def has(self, name):
        return name in self.answers

    def default(self, name, key):
        return {"beam_size": 3}[key]

    def call(self, name, **columns):
        self.calls.append((name, columns))
        return self.answers[name]


SERVED = {"translation": [b"ein Hund", "früh".encode()], "score": [-0.5, NO_HYPOTHESIS]}


def test_the_best_translation_is_that_of_the_export_as_it_was_made():
    graph = Graph(serving_default=SERVED | {"is_cut": [True, False], "confidence": [0.5, 0.25]})
    assert best_of(graph)(["a dog", "early"]) == [
        Candidates([Translation("ein Hund", -0.5, is_cut=True, confidence=0.5)]),
        Candidates([Translation("früh", 0.0, is_cut=False, confidence=0.25)]),
    ]
    assert graph.required == [("serving_default", ("translation", "score"), ())]
    assert graph.calls == [("serving_default", {"text": ["a dog", "early"]})]


def test_what_an_older_export_does_not_tell_is_unknown():
    [first, _] = best_of(Graph(serving_default=SERVED))(["a dog", "early"])
    assert first == Candidates([Translation("ein Hund", -0.5, is_cut=None, confidence=None)])


BEAM = {
    "translations": [[b"ein Hund", b"der Hund"], [b"", b""]],
    "scores": [[-0.5, -1.0], [NO_HYPOTHESIS, NO_HYPOTHESIS]],
    "is_cut": [[False, True], [False, False]],
    "truncated": [True, False],
    "alignments": [[b"0-0 1-1", b"1-1"], [b"", b""]],
}


@pytest.mark.parametrize(
    ("inputs", "n_best", "asked"),
    [
        ((), None, {"n_best": [3]}),  # as many as the beam has
        ((("beam_size", 5),), None, {"beam_size": [5], "n_best": [5]}),
        ((("beam_size", 5), ("max_length", 9)), 1, {"beam_size": [5], "max_length": [9], "n_best": [1]}),
    ],
)
def test_candidates_are_asked_for_with_the_inputs_that_were_given(inputs, n_best, asked):
    graph = Graph(translate=BEAM)
    first, second = candidates_of(graph, inputs, n_best)(["a dog", " "])
    assert graph.calls == [("translate", {"text": ["a dog", " "], **asked})]
    assert [(name, set(given)) for name, _, given in graph.required] == [("translate", set(dict(inputs)))]
    translations = [Translation("ein Hund", -0.5), Translation("der Hund", -1.0, is_cut=True)]
    assert first == Candidates(translations, True, ("0-0 1-1", "1-1"))
    assert second.translations == [Translation("", 0.0)] and second.truncated is False


def test_a_text_without_a_translation_is_refused_and_a_blank_one_is_not():
    with pytest.raises(Refused, match="NaN"):
        candidates_of(Graph(translate=BEAM), ())(["a dog", "a cat"])


@pytest.mark.parametrize(
    "work", [Nearest(), Score(), Translate((("beam_size", 2),))], ids=lambda work: type(work).__name__
)
def test_what_a_litert_model_cannot_do_is_refused(work):
    for each in (
        work,
        dataclasses.replace(work, protection=Protection(("urls",))) if "protection" in vars(work) else work,
    ):
        with pytest.raises(ClusterError, match="A LiteRT model translates in the one way"):
            each.on(lite_engine(Capitals()))


def test_a_protected_span_is_put_where_its_words_are_aligned():
    answer = BEAM | {name: [BEAM[name][0][:1]] for name in ("translations", "scores", "is_cut")}
    answer |= {"truncated": [True], "alignments": [[b"0-0 1-1"]]}
    graph = Graph(translate=answer)
    search = protecting(graph, (("beam_size", 2),), Protection((), Glossary([Term("dog", "Köter")])))
    [found] = search(["a dog"])
    assert found.translations[0].text == "ein Köter" and found.truncated is True
    assert graph.calls == [("translate", {"text": ["a dog"], "beam_size": [2], "n_best": [1]})]


SPANS = Protection(("urls",))


@pytest.mark.parametrize(
    ("work", "more", "signature"),
    [
        (Translate(), [], "serving_default"),
        (Translate((("beam_size", 2),)), ["truncated"], "translate"),
        (Translate(protection=SPANS), ["truncated", "unplaced"], "translate"),
        (Translate((("beam_size", 2),), protection=SPANS), ["truncated", "unplaced"], "translate"),
    ],
)
def test_a_translation_has_the_columns_of_its_work(work, more, signature):
    answer = {name: values[:1] for name, values in BEAM.items()}
    graph = Graph(serving_default={name: values[:1] for name, values in SERVED.items()}, translate=answer)
    [row] = work.on(graph)([("a dog",)])
    assert list(row) == list(work.outputs) == ["translation", "score", "is_cut", *more]
    assert (row["translation"], row["score"], row.get("truncated", True)) == ("ein Hund", -0.5, True)
    [(name, columns)] = graph.calls
    assert name == signature and columns.get("n_best", [1]) == [1]


def test_a_pair_is_scored_by_the_signature_score():
    graph = Graph(score={"score": [-0.123456], "log_probability": [-1.0], "truncated": [False]})
    assert Score().on(graph)([("a dog", "ein Hund")]) == [
        {"score": -0.1235, "log_probability": -1.0, "truncated": False}
    ]
    assert graph.calls == [("score", {"text": ["a dog"], "translation": ["ein Hund"]})]
    assert graph.required == [("score", ("score", "log_probability", "truncated"), ())]


def test_of_the_whole_beam_the_nearest_to_the_reference_is_taken_and_of_equals_the_first():
    beam = {"translations": [[b"ein Hund", b"der Hund", b"der Hund"]], "scores": [[-0.5, -1.0, -2.0]]}
    rest = {"is_cut": [[False, True, False]], "truncated": [True], "alignments": [[b""] * 3]}
    graph = Graph(translate=beam | rest)
    [found] = Nearest().on(graph)([("a dog", "der Hund")])
    assert found == {"translation": "der Hund", "score": -1.0, "is_cut": True, "truncated": True, "chrf": 100.0}
    assert graph.calls == [("translate", {"text": ["a dog"], "n_best": [3]})]


@pytest.mark.parametrize(
    ("tag", "text", "written"), [("<bt>", "Hund", "<bt> Hund"), ("<bt>", "", "<bt>"), ("", "Hund ", "Hund ")]
)
def test_a_tag_stands_before_a_translation_and_alone_without_one(tag, text, written):
    assert Translate((), tag).written(Candidates([Translation(text, -0.5)]))["translation"] == written


@pytest.mark.parametrize(("unplaced", "written"), [((), None), (("a b",), "a b"), (("a b", "c"), "a b\nc")])
def test_each_span_that_is_missing_has_a_line(unplaced, written):
    row = Translate(protection=SPANS).written(Candidates([Translation("x", -0.5, unplaced=unplaced)]))
    assert row["unplaced"] == written
