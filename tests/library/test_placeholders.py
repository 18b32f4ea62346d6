"""Placeholders of protected spans: an output has them as often as its source, and ends with all of them."""

import re

import numpy as np
import pytest

from keras_transformer.ground.tokens import EOS, PAD
from keras_transformer.model import Transformer
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.rules.placeholders import rule_of_placeholders
from keras_transformer.search.scores import NEVER
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.placeholders import SYMBOL, placeholders_in, symbol_of, symbols_of
from keras_transformer.text.spans import Protection
from keras_transformer.translation.translator import Translator
from tests.support.models import as_numpy
from tests.support.runs import SENTENCES
from tests.support.searches import beam_search
from tests.support.tables import LENGTH, OUTPUTS, A, B, decoder_of, random_tables, ranked_outputs, tokens_of

WIDE = len(OUTPUTS)  # a beam that holds every output


def outputs(tables, beam_size, placeholders, counts, static, **rules):
    """Every sentence's outputs, best first; `counts` (B, N): how often each of `placeholders` must come."""
    tokens = np.broadcast_to(placeholders, np.shape(counts))
    rules = {name: np.full(len(tables), rule, "int32") for name, rule in ({"limits": LENGTH} | rules).items()}
    rules["placeholders"] = np.stack([tokens, counts], axis=2).astype("int32")
    options = SearchOptions(beam_size, 0.0, n_best=beam_size)
    found = beam_search(*decoder_of(tables, beam_size), rules, LENGTH, options, static_shapes=static)
    pairs = zip(as_numpy(found.ids), as_numpy(found.scores), strict=True)
    return [[(s, tokens_of(row)) for s, row in zip(*pair[::-1], strict=True) if s > NEVER / 2] for pair in pairs]


@pytest.mark.parametrize("static", [False, True])
def test_the_outputs_are_all_those_that_have_each_placeholder_as_often_as_it_must_come(static):
    tables, counts = random_tables(6), [[0], [1], [2], [3], [1], [0]]
    for table, [count], found in zip(tables, counts, outputs(tables, WIDE, [A], counts, static), strict=True):
        expected = [pair for pair in ranked_outputs(table, 0.0) if pair[1].count(A) == count]
        assert [tokens for _, tokens in found] == [tokens for _, tokens in expected]
        np.testing.assert_allclose([score for score, _ in found], [score for score, _ in expected], atol=1e-4)


@pytest.mark.parametrize("count", [0, 1])
def test_where_all_sources_have_equally_many_placeholders_outputs_have_so_many(count):
    tables = random_tables(3)
    for table, found in zip(tables, outputs(tables, WIDE, [A], [[count]] * 3, False), strict=True):
        expected = [tokens for _, tokens in ranked_outputs(table, 0.0) if tokens.count(A) == count]
        assert [tokens for _, tokens in found] == expected


@pytest.mark.parametrize("rules", [{}, {"no_repeat_ngram_sizes": 1}, {"min_lengths": LENGTH}])
def test_a_narrow_beam_has_them_too_whatever_the_model_prefers(rules):
    tables = random_tables(8)
    tables[:4, :, EOS] += 20.0
    counts = np.array([[n % 3, 1] for n in range(8)])
    for [of_a, of_b], found in zip(counts, outputs(tables, 1, [A, B], counts, False, **rules), strict=True):
        [(_, tokens)] = found
        assert (tokens.count(A), tokens.count(B), tokens.count(EOS)) == (of_a, of_b, 1)


def test_the_rule_counts_the_placeholders_of_each_source():
    rule = rule_of_placeholders((7, 8), np.array([[7, 9, 7, EOS], [9, 8, EOS, PAD], [9, EOS, PAD, PAD]]))
    assert as_numpy(rule["placeholders"]).tolist() == [[[7, 2], [8, 0]], [[7, 0], [8, 1]], [[7, 0], [8, 0]]]
    assert rule_of_placeholders((), np.array([[7]])) == {}


@pytest.fixture(scope="module")
def knowing(tmp_path_factory):
    """A Transformer of random weights with a tokenizer of four placeholders."""
    folder = tmp_path_factory.mktemp("knowing")
    path = folder / "tokenizer.model"
    train_tokenizer(SENTENCES, path, 300, symbols_of(4), split_digits=True)
    tokenizer = Tokenizer(path)
    from keras_transformer.config import TransformerConfig

    config = TransformerConfig(
        vocab_size=tokenizer.vocab_size, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=32, num_heads=2
    )
    return Transformer(config), tokenizer


def test_a_placeholder_is_one_piece_and_a_digit_too(knowing):
    _, tokenizer = knowing
    ids = placeholders_in(tokenizer.pieces())
    assert [tokenizer.pieces()[number] for number in ids] == symbols_of(4)
    assert set(ids) & set(tokenizer.encode("see\u27e62\u27e7.")) == {ids[1]}
    assert placeholders_in(["<pad>", "a"]) == ()


@pytest.mark.nightly
def test_every_span_comes_once_from_a_model_that_knows_placeholders(knowing):
    translator = Translator(*knowing, SearchOptions(beam_size=2, n_best=2, extra_length=3, temperature=3.0, seed=1))
    lines = [
        "the fox {a} sees {b} and {c}",
        "{a} or {a} the hen \u27e61\u27e7",
        "{a} {b} {c} {d} {e} {f} of the fox",
        "the dog",
        "see https://x.org the <b>dog {a}</b>",
    ]
    protection = Protection(("urls", "placeholders", "tags"), Glossary([Term("dog", "Hund")]))
    for line, translations in zip(lines, translator.translate_n_best(lines, protect=protection), strict=True):
        for translation in translations:
            wanted = sorted(re.findall(r"\{.\}|https://x.org|\u27e6.\u27e7|</?b>", line))
            assert sorted(re.findall(r"\{.\}|https://x.org|\u27e6.\u27e7|</?b>", translation.text)) == wanted
            assert translation.text.count("Hund") == line.count("dog") and translation.unplaced == ()


def test_placeholders_are_numbers_from_1_to_100_without_a_gap():
    found = [bool(SYMBOL.fullmatch(symbol_of(number))) for number in (0, 1, 99, 100, 101)]
    assert found == [False, True, True, True, False] and symbols_of(2) == [symbol_of(1), symbol_of(2)]
    assert placeholders_in([symbol_of(2), symbol_of(1), "a", symbol_of(4)]) == (1, 0)
