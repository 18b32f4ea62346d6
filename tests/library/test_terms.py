"""Soft terms: how they stand in a source, and who may have them."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.ground.errors import InputError
from keras_transformer.runs.inference import Inference
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.protected import ProtectedLine
from keras_transformer.text.spans import KINDS, Protection
from keras_transformer.text.terms import AFTER, BEFORE, check_soft, has_terms, with_terms, without_terms
from keras_transformer.translation.translator import Translator

SOFT = Glossary(
    [Term("dog", "Hund", ("soft",)), Term("fig (\\d+)", "Abb. \\1", ("regex", "soft")), Term("cat", "Mieze")]
)
PROTECTION = Protection(KINDS, SOFT)


def test_a_term_stands_behind_its_word_and_the_rest_is_as_it_was():
    assert with_terms("A dog runs.", [(2, 5, "Hund")]) == f"A dog{BEFORE} Hund{AFTER} runs."
    assert with_terms("a b", []) == "a b"
    assert has_terms(with_terms("x", [(0, 1, "y z")])) and not has_terms("a dog¦runs¬ ¦")


@settings(max_examples=100, deadline=None)
@given(st.text(st.sampled_from("ab ¦¬"), max_size=12), st.text(st.sampled_from("xy ¦¬"), min_size=1, max_size=4))
def test_what_was_written_into_a_text_can_be_taken_out_whatever_signs_it_has(text, target):
    written = with_terms(text, [(len(text) // 2, len(text), target)])
    assert written.count(BEFORE) == written.count(AFTER) == 1
    assert without_terms(written) == text.replace("¦", "|").replace("¬", "-")


@pytest.mark.parametrize(
    "line, source",
    [
        ("A Dog runs.", "A Dog¦ Hund¬ runs."),
        ("see fig 3, dog", "see fig 3¦ Abb. 3¬, dog¦ Hund¬"),
        ("a ¦ b dog ¬", "a | b dog¦ Hund¬ -"),
        ("a ¦ b", "a ¦ b"),
        ("The <b>dog</b> and 3 cats", "The dog¦ Hund¬ and 3 cats"),
    ],
)
def test_a_model_reads_terms_beside_their_words(line, source):
    assert ProtectedLine.of(line, PROTECTION).source.text == source


def test_soft_terms_are_no_spans_so_nothing_is_put_back():
    line = ProtectedLine.of("A dog.", PROTECTION)
    assert line.source.spans == () and line.has_spans and line.source.has_text
    assert not line.needs_alignment("Des Hundes.") and line.restored("Des Hundes.", []) == ("Des Hundes.", ())


def test_other_spans_keep_their_places_behind_a_term():
    """Words of the source as the model reads it: The dog¦ Hund¬ sees {x} and ⟦1⟧ for the cat."""
    line = ProtectedLine.of("The dog sees <i>{x}</i> and a cat", PROTECTION)
    assert [line.source.text[span.start : span.end] for span in line.source.spans] == ["{x}", "cat"]
    words = line.source.text.split()
    assert words == ["The", "dog¦", "Hund¬", "sees", "{x}", "and", "a", "cat"]
    text, missing = line.restored("Der Hund sieht das und eine Katze", [(0, 0), (2, 1), (3, 2), (4, 3), (5, 4), (7, 6)])
    assert (text, missing) == ("Der Hund sieht <i>{x}</i> und eine Mieze", ())
    with_symbols = ProtectedLine.of("The dog sees <i>{x}</i> and a cat", PROTECTION, placeholders=2)
    assert with_symbols.source.text == "The dog¦ Hund¬ sees ⟦1⟧ and a cat"
    assert with_symbols.restored("Der Hund sieht ⟦1⟧ und Mieze", [(n, n) for n in range(8)])[0].count("{x}") == 1


def test_a_tag_around_a_word_is_around_its_term_too():
    line = ProtectedLine.of("a <b>dog</b> runs", PROTECTION)
    assert line.restored("ein Hund läuft", [(0, 0), (2, 1), (3, 2)])[0] == "ein <b>Hund</b> läuft"
    assert line.restored("ein Hund läuft", [(0, 0), (1, 1), (3, 2)])[0] == "ein <b>Hund</b> läuft"


def test_a_protected_span_that_holds_a_term_is_left_alone():
    assert ProtectedLine.of("https://dog.org dog", PROTECTION).source.text == "https://dog.org dog¦ Hund¬"


def test_a_model_that_has_not_learned_terms_refuses_them(pair):
    translator = Translator(*pair)
    with pytest.raises(InputError, match="soft terms, which this model has not learned to read: leave out the flag"):
        translator.translate([""], protect=PROTECTION)
    check_soft(False, False)


@pytest.mark.slow
def test_a_model_that_has_learned_terms_translates_with_them(pair):
    translator = Translator(*pair)
    translator._inference = Inference(terms=True)
    assert len(translator.translate(["a dog", "the fox"], protect=PROTECTION)) == 2


def test_a_list_of_words_has_no_soft_terms():
    with pytest.raises(InputError, match="keep, line 2 has the flag 'soft', which is for terms with a translation"):
        Glossary.of_words(["x", "dog\tsoft"], "keep")


def test_a_text_without_terms_keeps_its_signs_and_one_with_terms_loses_them_everywhere():
    text = f"a{BEFORE}b dog{AFTER} c{BEFORE}"
    assert with_terms(text, []) == text
    assert with_terms(text, [(4, 7, f"H{AFTER}d")]) == f"a|b dog{BEFORE} H-d{AFTER}- c|"
    check_soft(True, True)
    check_soft(False, False)
