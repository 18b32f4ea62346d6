"""The token with which an output begins because the model is told it: all else is as if it began behind it."""

import numpy as np
import pytest

from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.prefixes import NO_ENDING
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.text.required import Phrase, rule_of_required
from tests.support.models import as_numpy
from tests.support.searches import beam_search
from tests.support.tables import LENGTH, OUTPUTS, PREFIXES, VOCABULARY, A, B, decoder_of, random_tables, tokens_of

WIDE = len(OUTPUTS)
ENDINGS = [[A, B], [B, PAD], [NO_ENDING, NO_ENDING]]
AT_THE_BEGINNING = Phrase("", (A,), (B, B)), Phrase("", (B, A))  # the first has other tokens there
NO_WORDS = np.zeros((2, VOCABULARY), bool)


def outputs(tables, beam_size, static, alpha=0.0, limits=LENGTH, **rules):
    """Every sentence's outputs as a list of (score, tokens), best first; rules have a row per sentence."""
    rules = {"limits": np.full(len(tables), limits, "int32")} | rules
    options = SearchOptions(beam_size, alpha, n_best=beam_size)
    found = beam_search(*decoder_of(tables, beam_size), rules, LENGTH, options, static_shapes=static)
    pairs = zip(as_numpy(found.ids), as_numpy(found.scores), strict=True)
    return [[(s, tokens_of(row)) for s, row in zip(*pair[::-1], strict=True) if s > NEVER / 2] for pair in pairs]


def behind(tables, opening):
    """The tables of what follows the opening, over outputs that are one token shorter."""
    places = [PREFIXES.index((opening, *prefix)) for prefix in PREFIXES if len(prefix) < LENGTH - 1]
    return np.concatenate([tables[:, places], tables[:, len(places) :]], axis=1)


RULES = {
    "nothing": ({}, {}),
    "prefixes": ({"prefixes": [[B, PAD]]},) * 2,
    "endings": ({"prefixes": [[PAD]], "endings": [ENDINGS]},) * 2,
    "endings behind a prefix": ({"prefixes": [[A]], "endings": [ENDINGS]},) * 2,
    "forbidden": ({"forbidden": [[[A, A]]]},) * 2,
    "lengths": ({"min_lengths": [3]}, {"min_lengths": [2]}),
    "required": ({"required": rule_of_required([AT_THE_BEGINNING]), "word_edges": NO_WORDS},) * 2,
    "required at the beginning": ({"required": rule_of_required([AT_THE_BEGINNING[:1]]), "word_edges": NO_WORDS},) * 2,
}


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("beam_size", [1, 3, WIDE])
@pytest.mark.parametrize("rules", list(RULES.values()), ids=list(RULES))
def test_a_search_with_an_opening_finds_what_one_of_the_rest_finds(rules, beam_size, static):
    """B stands before each output, and no sequence of it counts as one of the rest."""
    tables = random_tables(6)

    def of_sentences(arrays):
        return {n: np.repeat(a, 6, axis=0) if n != "word_edges" else a for n, a in arrays.items()}

    with_opening, of_rest = map(of_sentences, rules)
    of_rest = {n: np.array(a, "int32") if n != "word_edges" else a for n, a in of_rest.items()}
    with_opening = {n: np.array(a, "int32") if n != "word_edges" else a for n, a in with_opening.items()}
    found = outputs(tables, beam_size, static, openings=np.full(6, B, "int32"), **with_opening)
    expected = outputs(behind(tables, B), beam_size, static, limits=LENGTH - 1, **of_rest)
    for some, others in zip(found, expected, strict=True):
        assert [tokens for _, tokens in some] == [(B, *tokens) for _, tokens in others]
        np.testing.assert_allclose([s for s, _ in some], [s for s, _ in others], atol=1e-4)


def test_each_sentence_has_its_own_opening_which_counts_in_the_length():
    tables, alpha = random_tables(4), 1.0
    openings = np.array([A, B, B, A], "int32")
    for table, opening, found in zip(
        tables, openings, outputs(tables, WIDE, False, alpha, openings=openings), strict=True
    ):
        for score, tokens in found:
            gained = [table[PREFIXES.index(tokens[:n]), token] for n, token in enumerate(tokens)]
            assert tokens[0] == opening
            np.testing.assert_allclose(score, sum(gained[1:]) / ((5 + len(tokens)) / 6) ** alpha, atol=1e-4)


def test_at_a_limit_of_one_token_an_output_ends_at_the_models_price():
    tables = random_tables(3)
    for table, [(score, tokens)] in zip(
        tables, outputs(tables, 1, False, limits=1, openings=np.full(3, A, "int32")), strict=True
    ):
        assert len(tokens) == 1 and score == pytest.approx(table[0, tokens[0]], abs=1e-4)
