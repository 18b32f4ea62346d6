"""What an export is asked for, and what is made of its outputs, with a table of answers in place of a graph."""

import pytest

from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.asks import NOTHING
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.marks import with_signs
from keras_transformer.text.placeholders import MOST_PLACEHOLDERS, symbols_of
from keras_transformer.text.road import Candidates
from keras_transformer.text.signatures import as_texts
from keras_transformer.text.spans import Protection
from tests.support.engines import Table

NO_HYPOTHESIS = -1e9
SERVED = {"translation": ["ein Hund", "früh"], "score": [-0.5, NO_HYPOTHESIS]}
BEAM = {
    "translations": [["ein Hund", "der Hund"], ["", ""]],
    "scores": [[-0.5, -1.0], [NO_HYPOTHESIS, NO_HYPOTHESIS]],
    "is_cut": [[False, True], [False, False]],
    "truncated": [True, False],
    "alignments": [["0-0 1-1", "1-1"], ["", ""]],
}
TEXT_INPUTS = {"target_prefix": "", "required": "", "forbidden": "", "beam_size": 3, "n_best": 1}


def found(engine, *lines):
    return engine.search(list(lines), [NOTHING] * len(lines), 1)


def test_lines_that_ask_for_nothing_are_translated_as_the_export_was_made():
    graph = Table(serving_default=SERVED | {"is_cut": [True, False], "confidence": [0.5, 0.25]}, translate=BEAM)
    assert graph.translate(["a dog", "early"]) == [
        Translation("ein Hund", -0.5, is_cut=True, confidence=0.5),
        Translation("früh", 0.0, is_cut=False, confidence=0.25),
    ]
    assert graph.calls == [("serving_default", {"text": ["a dog", "early"]})]


def test_what_an_older_export_does_not_tell_is_unknown():
    [first, _] = found(Table(serving_default=SERVED), "a dog", "early")
    assert first == Candidates([Translation("ein Hund", -0.5, is_cut=None, confidence=None)], (), None)


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"n_best": 3}, {"n_best": [3, 3]}),
        ({"beam_size": 5}, {"beam_size": [5, 5], "n_best": [1, 1]}),
    ],
)
def test_options_are_inputs_of_the_signature_translate(options, asked, caplog):
    graph = Table(translate=BEAM).with_options(options)
    first, second = found(graph, "a dog", " ")
    assert graph.calls == [("translate", {"text": ["a dog", " "], **asked})]
    translations = [Translation("ein Hund", -0.5), Translation("der Hund", -1.0, is_cut=True)]
    assert first == Candidates(translations, [[(0, 0), (1, 1)], [(1, 1)]], True)
    assert second.translations == [Translation("", 0.0)] and second.truncated is False
    assert caplog.messages == ["line 1 is longer than this export reads; only its beginning is used"]
    assert (Table(translate=BEAM).beam_size, graph.beam_size) == (3, options.get("beam_size", 3))


def test_what_lines_ask_for_are_inputs_with_a_value_per_line():
    graph = Table(TEXT_INPUTS, translate=BEAM | {"is_forced": [[True, False], [False, False]]})
    protection = Protection(forbidden=Glossary([Term("cat", "-"), Term("hen", "-")]))
    asked = {"prefixes": ["ein", ""], "required": [["Hund", "ein"], []], "protect": protection}
    assert graph.translate(["a dog", " "], **asked)[0].is_forced
    assert graph.calls[-1][1] == {
        "text": ["a dog", " "],
        "target_prefix": ["ein", ""],
        "required": ["Hund\nein", ""],
        "forbidden": ["cat\nhen"] * 2,
        "n_best": [1, 1],
    }


def test_a_protected_span_is_put_where_its_words_are_aligned_and_an_older_export_has_no_alignment():
    answer = {name: values[:1] for name, values in BEAM.items()}
    protection = Protection((), Glossary([Term("dog", "Köter")]))
    assert Table(translate=answer).translate(["a dog"], protect=protection)[0].text == "ein Köter"
    older = Table(serving_default={"translation": ["ein Hund"], "score": [-1.0]})
    [best] = older.translate(["a dog"], protect=protection)
    assert (best.text, best.unplaced) == ("ein Hund", ("Köter",))


def test_signs_of_tags_in_a_line_need_an_alignment_and_a_line_without_them_does_not():
    answer = {name: values[:1] for name, values in BEAM.items()}
    graph = Table(translate=answer, serving_default={name: values[:1] for name, values in SERVED.items()})
    marks = Protection(has_marks=True)
    for line in ("a dog", with_signs("a dog", [(2, "<b>"), (5, "</b>")])):
        graph.translate([line], protect=marks)
    assert [name for name, _ in graph.calls if name != "tokenize"] == ["serving_default", "translate"]


def test_a_line_without_a_translation_is_refused_and_a_blank_one_is_not():
    with pytest.raises(UserError, match="'a cat' has no translation: the model's probabilities are NaN"):
        found(Table(translate=BEAM).with_options({"n_best": 2}), "a dog", "a cat")


def test_what_an_export_has_no_input_for_is_refused_by_the_sentence_of_all_engines():
    graph, sentence = Table(translate=BEAM, serving_default=SERVED), "it takes beam_size, glossary, keep, n_best, pro"
    for asked in (
        {"prefixes": ["a"]},
        {"required": [["a"]]},
        {"protect": Protection(forbidden=Glossary.of_words("a", ""))},
    ):
        with pytest.raises(ConfigError, match=f"This export does not take .*; {sentence}"):
            graph.translate(["a"], **asked)
    with pytest.raises(ConfigError, match=f"This export does not take beem_size; {sentence}"):
        graph.with_options({"beem_size": 3})


@pytest.mark.parametrize(("pieces", "known"), [(" ".join(symbols_of(100)), MOST_PLACEHOLDERS), ("\u27e6 1 \u27e7", 0)])
def test_an_export_tells_by_its_pieces_which_placeholders_its_model_knows(pieces, known):
    assert Table(tokenize={"pieces": [pieces]}).placeholders == known
    assert Table().placeholders == 0


@pytest.mark.parametrize("name", ["tokenize", "serving_default"])
def test_a_line_is_too_long_as_the_tokenizer_tells_or_else_the_translation(name):
    assert Table(**{name: {"truncated": [True, False]}}).are_too_long(["a", "b"]) == [True, False]


@pytest.mark.parametrize(
    ("defaults", "options", "is_searched"),
    [({}, {}, False), ({"keep_letterless": 1}, {}, False), ({"keep_letterless": 0}, {}, True)]
    + [({"keep_letterless": 1}, {"keep_letterless": 0}, True), ({"keep_letterless": 0}, {"keep_letterless": 1}, False)],
)
def test_a_line_without_a_letter_comes_back_as_it_is_unless_the_export_or_its_options_read_digits(
    defaults, options, is_searched
):
    answer = {name: values[:1] for name, values in BEAM.items()}
    graph = Table(
        {"n_best": 1} | defaults, translate=answer, serving_default={"translation": ["ein Hund"], "score": [0]}
    )
    [best] = graph.with_options(options).translate(["12345"])
    assert best.text == ("ein Hund" if is_searched else "12345")
    assert graph.calls[-1][1]["text"] == ["12345" if is_searched else ""]


def test_bytes_are_texts_however_deep():
    assert as_texts([[b"a\xff"], 1, "b"]) == [["a\ufffd"], 1, "b"]
