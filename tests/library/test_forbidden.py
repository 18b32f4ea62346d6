"""Phrases that no translation may have: as a rule of the search, and as texts."""

import numpy as np
import pytest

from keras_transformer.pieces.translation import Translation
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.text.forbidden import ROUNDS, rule_of_forbidden, search_without
from keras_transformer.text.forbidden import tokens_of as tokens_that_wrote
from keras_transformer.text.glossary import Glossary, Term
from tests.support.models import as_numpy
from tests.support.searches import beam_search
from tests.support.tables import LENGTH, OUTPUTS, A, B, decoder_of, random_tables, ranked_outputs, tokens_of

WIDE = len(OUTPUTS)  # a beam that holds every output
FORBIDDEN = [(), ((A,),), ((A, B),), ((B, A, A), (B, B)), ((A, A),)]


def has(tokens, sequence):
    return any(tokens[n : n + len(sequence)] == sequence for n in range(len(tokens)))


@pytest.mark.parametrize("static", [False, True])
def test_the_outputs_are_all_those_without_a_forbidden_sequence(static):
    tables = random_tables(len(FORBIDDEN))
    rules = {"limits": np.full(len(tables), LENGTH, "int32"), "forbidden": rule_of_forbidden(FORBIDDEN)}
    options = SearchOptions(WIDE, 0.0, n_best=WIDE)
    found = beam_search(*decoder_of(tables, WIDE), rules, LENGTH, options, static_shapes=static)
    for table, sequences, ids, scores in zip(
        tables, FORBIDDEN, as_numpy(found.ids), as_numpy(found.scores), strict=True
    ):
        outputs = [tokens_of(row) for row, score in zip(ids, scores, strict=True) if score > NEVER / 2]
        every = [tokens for _, tokens in ranked_outputs(table, 0.0)]
        assert outputs == [tokens for tokens in every if not any(has(tokens, sequence) for sequence in sequences)]


WORDS = ["the", "dog", "dog", "fox", "hen"]


def search(numbers, sequences):
    """Each line is written with the first words that it may have; 'dog' can be written by two tokens."""
    asked.append(numbers)
    results = []
    for of_line in sequences:
        word = next((token for token in (1, 2, 3) if not any(token in each for each in of_line)), 4)
        results.append([Translation(decode([0, word]), 0.0, (0, word))])
    return results


asked = []


def decode(ids):
    return " ".join(WORDS[number] for number in ids)


def test_a_line_is_searched_until_its_translation_has_no_phrase():
    asked.clear()
    results = search_without(search, [Glossary([Term("Dog", "-"), Term("fox", "-")])] * 2, decode)
    assert [best.text for [best] in results] == ["the hen"] * 2
    assert asked == [[0, 1]] * 4


def test_lines_without_a_phrase_are_searched_once():
    asked.clear()
    assert search_without(search, [Glossary([Term("cat", "-")])] * 2, decode)[0][0].text == "the dog"
    assert asked == [[0, 1]]


def test_each_line_has_its_own_phrases():
    asked.clear()
    found = search_without(search, [Glossary([Term("dog", "-")]), Glossary()], decode)
    assert [best.text for [best] in found] == ["the fox", "the dog"]


@pytest.mark.parametrize("phrase, tokens", [("the", (0,)), ("dog", (1,)), ("the dog", (0, 1)), ("dog fox", (1, 3))])
def test_the_tokens_that_wrote_a_phrase_are_those_and_no_others(phrase, tokens):
    translation = Translation("the dog fox", 0.0, (0, 1, 3))
    assert tokens_that_wrote(translation, Glossary([Term(phrase, "-")]), decode) == [tokens]


def test_so_many_searches_are_made_and_every_translation_of_a_line_counts():
    asked.clear()

    def stubborn(numbers, sequences):
        asked.append(sequences)
        return [[Translation("hen", 0.0, (4,)), Translation("dog", 0.0, (1 + len(asked) % 2,))] for _ in numbers]

    results = search_without(stubborn, [Glossary([Term("dog", "-")])], decode)
    assert len(asked) == ROUNDS and asked[1] == [((2,),)] and asked[2] == [((2,), (1,))]
    assert [each.text for each in results[0]] == ["hen", "dog"]


def test_a_batch_without_sequences_has_a_rule_of_none():
    assert rule_of_forbidden([(), ()]).shape == (2, 0, 1)
