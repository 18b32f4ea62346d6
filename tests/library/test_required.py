"""Phrases that a translation must have: as a rule of the search, and as texts."""

import logging
import re

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import UserError
from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.model import Transformer
from keras_transformer.pieces.scripts import UNSPACED_CHARACTER
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.rules.required import Required
from keras_transformer.search.scores import NEVER
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.occurrences import is_apart
from keras_transformer.text.placeholders import symbols_of
from keras_transformer.text.required import Phrase, PhraseReader, has_phrase, loss_allowed, rule_of_required, word_edges
from keras_transformer.text.spans import Protection
from keras_transformer.translation.translator import Translator
from tests.support.models import as_numpy
from tests.support.runs import SENTENCES
from tests.support.searches import beam_search, state_of
from tests.support.tables import LENGTH, OUTPUTS, VOCABULARY, A, B, decoder_of, random_tables, ranked_outputs, tokens_of
from tests.support.text_rules import HAS_PHRASE

WIDE = len(OUTPUTS)  # a beam that holds every output
REQUIRED = [(), ((A,),), ((A, B),), ((A, A),), ((B, A, A),), ((A,), (B,)), ((B, B), (A,)), ((A, B, B),)]
OF_WORDS = [(), ((A,),), ((A, B),), ((A, A),), ((A, B, B),), ((A, B), (A,)), ((A, B, A),)]
NO_WORDS, SUFFIX_B = np.zeros((2, VOCABULARY), bool), np.zeros((2, VOCABULARY), bool)
SUFFIX_B[:, B] = SUFFIX_B[1, A] = True  # B goes on with the word that A begins


def rule_of(sentences, first=None, capitals=None):
    """The rule `required`; `first` has the other tokens of some phrases at the beginning of an output, `capitals` those
    with a capital letter there."""
    others = first or {}, capitals or {}
    return rule_of_required(
        [[Phrase("", each, *(of.get(each, ()) for of in others)) for each in of_line] for of_line in sentences]
    )


def outputs(tables, beam_size, required, word_edges=NO_WORDS, static=False, first=None, capitals=None, **rules):
    """Every sentence's outputs as a list of (score, tokens), best first."""
    rules = {name: np.full(len(tables), rule, "int32") for name, rule in ({"limits": LENGTH} | rules).items()}
    rules |= {"required": rule_of(required, first, capitals), "word_edges": word_edges}
    options = SearchOptions(beam_size, 0.0, n_best=beam_size)
    found = beam_search(*decoder_of(tables, beam_size), rules, LENGTH, options, static_shapes=static)
    pairs = zip(as_numpy(found.ids), as_numpy(found.scores), strict=True)
    return [[(s, tokens_of(row)) for s, row in zip(*pair[::-1], strict=True) if s > NEVER / 2] for pair in pairs]


def has(tokens, phrase, word_edges=NO_WORDS):
    goes_on, is_word_end = word_edges
    return any(
        tokens[n : n + len(phrase)] == phrase and not (is_word_end[phrase[-1]] and goes_on[tokens[n + len(phrase)]])
        for n in range(len(tokens) - len(phrase))
    )


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize(
    ("required", "word_edges"), [(REQUIRED, NO_WORDS), (OF_WORDS, SUFFIX_B)], ids=["tokens", "words"]
)
def test_the_outputs_are_all_those_that_have_the_phrases(required, word_edges, static):
    tables = random_tables(len(required))
    ranked = outputs(tables, WIDE, required, word_edges, static)
    for table, phrases, found in zip(tables, required, ranked, strict=True):
        expected = [p for p in ranked_outputs(table, 0.0) if all(has(p[1], each, word_edges) for each in phrases)]
        assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
        np.testing.assert_allclose([score for score, _ in found], [score for score, _ in expected], atol=1e-4)


AT_THE_BEGINNING = [
    ([(A,)], {(A,): (B,)}),  # as "▁Ein" and "Ein"
    ([(A, B)], {(A, B): (B,)}),
    ([(A,)], {(A,): (B, B)}),  # of more pieces
    ([(A,), (B,)], {(A,): (B,)}),  # one token begins both
    ([(A,), (B, B)], {(A,): (B,)}),
    ([(A,), (B,)], {(A,): (B,), (B,): (A,)}),
]


@pytest.mark.parametrize(("phrases", "first"), AT_THE_BEGINNING)
def test_a_phrase_may_begin_an_output_with_the_tokens_that_it_has_there(phrases, first):
    tables, begins = random_tables(8), {first.get(phrase, phrase)[0] for phrase in phrases}

    def is_right(tokens):
        has_all = all(
            has(tokens, each) or tokens[: len(first.get(each, each))] == first.get(each, each) for each in phrases
        )
        return has_all and (tokens[0] in begins or all(tokens[0] != phrase[0] for phrase in first))

    wide, narrow = (outputs(tables, beam_size, [phrases] * 8, first=first) for beam_size in (WIDE, 1))
    for table, found, greedy in zip(tables, wide, narrow, strict=True):
        assert [tokens for _, tokens in found] == [
            tokens for _, tokens in ranked_outputs(table, 0.0) if is_right(tokens)
        ]
        assert is_right(greedy[0][1])


@pytest.mark.parametrize("phrases", [[(A,)], [(A, B)], [(A,), (B, B)]])
@pytest.mark.parametrize("capital", [(B,), (B, A)])
def test_a_phrase_may_begin_an_output_with_a_capital_letter_and_nowhere_else(phrases, capital):
    capitals, tables = {phrases[0]: capital}, random_tables(8)

    def is_right(tokens):
        has_first = has(tokens, phrases[0]) or tokens[: len(capital)] == capital
        return has_first and all(has(tokens, each) for each in phrases[1:])

    wide, narrow = (outputs(tables, beam_size, [phrases] * 8, capitals=capitals) for beam_size in (WIDE, 1))
    for table, found, greedy in zip(tables, wide, narrow, strict=True):
        assert [t for _, t in found] == [t for _, t in ranked_outputs(table, 0.0) if is_right(t)]
        assert is_right(greedy[0][1])


@pytest.mark.parametrize(("text", "phrase", "is_there"), HAS_PHRASE)
def test_a_text_has_a_phrase_whatever_tags_it_has_and_at_its_beginning_with_a_capital_letter(text, phrase, is_there):
    assert has_phrase(text, phrase) == is_there


@pytest.mark.parametrize("rules", [{}, {"no_repeat_ngram_sizes": 1}, {"min_lengths": LENGTH}])
@pytest.mark.parametrize("beam_size", [1, 2])
def test_a_narrow_beam_has_them_too_whatever_the_model_prefers(beam_size, rules):
    tables = random_tables(2 * len(REQUIRED))
    tables[: len(REQUIRED), :, EOS] += 20.0
    for phrases, found in zip(2 * REQUIRED, outputs(tables, beam_size, 2 * REQUIRED, **rules), strict=True):
        assert found and all(has(tokens, phrase) for _, tokens in found for phrase in phrases)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """A Translator of random weights that draws, whose tokenizer has few pieces and two placeholders."""
    path = tmp_path_factory.mktemp("required") / "tokenizer.model"
    train_tokenizer(SENTENCES, path, 300, symbols_of(2))
    tokenizer = Tokenizer(path)
    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, num_heads=2
    )
    options = SearchOptions(beam_size=2, n_best=2, extra_length=3, temperature=2.0, seed=1)
    return Translator(Transformer(config), tokenizer, options)


def test_a_translation_is_forced_if_phrases_make_it_less_probable_than_they_may(translator, monkeypatch):
    """Of a line it is told by what the search says that was lost; the words of all its phrases count."""
    least = loss_allowed(["red hen"]) + loss_allowed(["dog"])
    lost = {"fox": [least - 0.5, least + 0.5], "dog": [least + 0.5, 0.0]}
    sources = {tuple(translator.tokenizer.encode(line)): lost[line] for line in lost}

    def search(source_ids, asked):
        rows = [[each for each in row.tolist() if each not in (EOS, PAD)] for row in source_ids]
        ids = np.array([[[*row[:1], EOS], [*row[-1:], EOS]] for row in rows], "int32")
        scores = np.tile(np.float32([-1.0, -2.0]), (len(rows), 1))
        return tuple(map(tf.constant, (ids, scores, scores > 0, np.float32([sources[tuple(row)] for row in rows]))))

    monkeypatch.setattr(translator, "_search", search)
    found = translator.translate_n_best(["fox", "dog", ""], required=[["red hen", " ", "dog"], ["red hen", "dog"], []])
    assert [[each.is_forced for each in of_line] for of_line in found] == [[False, True], [True, False], [False]]
    assert loss_allowed(["red hen"]) == 2 * loss_allowed(["dog"]) > 0


LINES = ["the fox {a} sees {b}", "", "the dog", "a hen", "the fox"]
PHRASES = [["red dog", "fox"], [], ["the hen sees the fox and the dog", "dog"], [" ", "犬", "犬が", "?!"], []]


@pytest.mark.parametrize("room", [2, 3])
def test_a_token_that_lengthens_the_word_of_a_phrase_comes_if_there_is_room_for_the_phrase_once_more(room):
    ids = np.array([[[A, A]]], "int32")  # A A B would have the second phrase, and the first one not any more
    limits = np.array([2 + room + 1], "int32")
    rules = {"required": rule_of([((A, A), (A, B))]), "word_edges": SUFFIX_B, "limits": limits}
    state = state_of(ids, np.zeros((1, 1), "float32"), **rules)
    allowed = as_numpy(state.rules.find(Required).allowed(state, np.ones((1, 1, VOCABULARY), bool)))[0, 0]
    assert allowed[B] == (room == 3) and allowed[A] and not allowed[EOS]


@pytest.mark.nightly
def test_any_model_has_every_phrase_beside_placeholders_and_prefixes(translator):
    prefixes = ["the do", "", "", "a h", ""]
    ways = [{}, {"protect": "placeholders"}, {"prefixes": prefixes}, {"prefixes": prefixes, "protect": "placeholders"}]
    for how in ways:
        results = translator.translate_n_best(LINES, required=PHRASES, **how)
        for number, (translations, phrases) in enumerate(zip(results, PHRASES, strict=True)):
            for translation in translations:
                assert all(has_phrase(translation.text, phrase.strip()) for phrase in phrases)
                assert translation.text.startswith(how.get("prefixes", [""] * 5)[number])
                assert translation.unplaced == ()
                if "protect" in how:
                    assert all(translation.text.count(each) == LINES[number].count(each) for each in ("{a}", "{b}"))


@pytest.mark.nightly
def test_a_phrase_has_other_tokens_at_the_beginning_unless_the_tokenizer_reads_a_space_there(translator, tmp_path):
    reader = PhraseReader(translator.tokenizer)
    [phrase, stop] = reader.read(["the fox", "."], 50)
    assert phrase.first_tokens == tuple(translator.tokenizer.encode("the fox")) != phrase.tokens
    assert phrase.capital_tokens == tuple(translator.tokenizer.encode("The fox")) != phrase.first_tokens
    beginnings = [(BOS, *phrase.first_tokens), (BOS, *phrase.capital_tokens)]
    assert phrase.ways() == [phrase.tokens, *beginnings] and stop.ways() == [stop.tokens]
    assert phrase.most_tokens == max(map(len, (phrase.tokens, phrase.first_tokens, phrase.capital_tokens)))
    train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 300, dummy_prefix=True)
    spaced = Tokenizer(tmp_path / "tokenizer.model")
    [phrase, stop] = PhraseReader(spaced).read(["the fox", "."], 50)
    assert phrase.first_tokens == () and phrase.tokens == tuple(spaced.encode("the fox"))  # as inside a sentence
    assert phrase.ways() == [phrase.tokens, (BOS, *phrase.tokens), (BOS, *spaced.encode("The fox"))]
    assert stop.first_tokens == tuple(spaced.encode(".")) != stop.tokens  # with a space, and attached to a word


@pytest.mark.nightly
def test_a_line_without_phrases_is_translated_as_without_the_option(translator):
    alone = translator.translate(LINES)
    assert translator.translate(LINES, required=[[]] * 5) == alone
    assert translator.translate(LINES, required=PHRASES)[4].text == alone[4].text


def test_a_phrase_that_finds_no_place_is_reported(translator, caplog):
    with caplog.at_level(logging.WARNING):
        assert translator.translate([""], 7, required=[["the dog"]])[0].unplaced == ("the dog",)
    assert "line 7: the dog did not fit into its translation" in caplog.text


def test_what_a_glossary_put_in_place_of_a_phrase_is_reported(translator, caplog):
    terms = Glossary([Term("dog", "K\u00f6ter"), Term("the fox", "Fuchs")])
    protection = Protection(glossary=terms, forbidden=Glossary([Term("fuchs", "-")]))
    phrases = [["k\u00f6ter the", "fox"], ["red"]]
    results = translator.translate(["the fox dog", "the dog"], 3, protect=protection, required=phrases)
    for best, of_line in zip(results, phrases, strict=True):
        assert best.unplaced == tuple(phrase for phrase in of_line if not has_phrase(best.text, phrase))
    assert "line 3: its translation has a phrase that is forbidden" in caplog.messages


@pytest.mark.parametrize(
    ("required", "sentence"),
    [
        ([["fox", "dog " * 200]], "Line 3: The phrases 'fox', 'dog dog"),
        ([["fox \u27e61\u27e7"]], "has a placeholder of a protected span: leave it out."),
    ],
)
def test_phrases_that_no_translation_can_have_are_one_sentence(translator, required, sentence):
    with pytest.raises(UserError, match=re.escape(sentence)):
        translator.translate(["the dog"], 3, required=required)


@pytest.mark.parametrize("letter", "犬々〇𠮟のกກཀမខ")
def test_letters_of_scripts_without_spaces_are_words_to_every_rule(letter):
    text = f"a{letter}b"
    assert is_apart(text, 1, 2) and has_phrase(text, letter) and UNSPACED_CHARACTER.fullmatch(letter)
    assert not word_edges([letter.encode()]).any()


def test_pieces_begin_inside_a_word_and_end_with_a_letter_where_words_have_spaces():
    goes_on, is_word_end = word_edges(["\u2581a".encode(), b"a", b".", b"", "\u2581".encode(), b"\xc3", "犬".encode()])
    assert goes_on.tolist() == [False, True, False, False, False, True, False]
    assert is_word_end.tolist() == [True, True, False, False, False, True, False]
    invisible = word_edges([b"\x01", "\u00ad".encode(), "\u200ba".encode()])  # "dog\x01s" is "dogs" to whoever reads it
    assert invisible[0].all()
