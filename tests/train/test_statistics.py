"""What a corpus is made of: lengths, pieces and bytes, counted by hand; its text and its licence."""

import collections
import types

import numpy as np
import pytest

from train.data import statistics as corpus_statistics
from train.data.encoding import EncodedPairs, EncodedShards, Sentences
from train.data.statistics import length_sentence, piece_counts, vocabulary_rows

PIECES = ["<pad>", "<unk>", "<s>", "</s>", "<0x00>", "<0xFF>", "a", "b"]
TOKENIZER = types.SimpleNamespace(vocab_size=8, pieces=lambda: PIECES)


def pairs(sources, targets, **skipped):
    sides = (Sentences.of(lists, np.uint16) for lists in (sources, targets))
    return EncodedPairs(*sides, collections.Counter(skipped))


TRAIN = EncodedShards([pairs([[6, 3], [6, 6, 3]], [[7, 3], [3]]), pairs([[6, 7, 6, 6, 3]], [[7, 3]])])
VALIDATION = pairs([[4, 5, 6, 3]], [[7, 3]])


def test_lengths_are_of_all_shards_with_their_end_of_sentence():
    assert length_sentence(TRAIN, "source") == "mean 3.3; percentiles (50, 90, 99, 100): 3, 4, 4, 5"
    assert length_sentence(TRAIN, "target") == "mean 1.7; percentiles (50, 90, 99, 100): 2, 2, 2, 2"


@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_pieces_are_counted_over_all_shards_whatever_the_chunk(monkeypatch, chunk):
    monkeypatch.setattr(corpus_statistics, "CHUNK", chunk)
    assert piece_counts(TRAIN.shards, "source", 8).tolist() == [0, 0, 0, 3, 0, 0, 6, 1]


def test_pairs_and_tokens_are_counted_with_what_was_skipped():
    counted = corpus_statistics.counts(pairs([[6, 3]] * 1_500, [[3]] * 1_500, identical=2_000))
    assert counted == "1,500; 3,000 source and 1,500 target tokens; skipped: 2,000 identical"


def test_the_vocabulary_has_pieces_in_use_and_bytes(monkeypatch):
    monkeypatch.setattr(corpus_statistics, "OFTEN", 6)
    rows = dict(vocabulary_rows(TOKENIZER, TRAIN, VALIDATION))
    assert rows["vocabulary"] == "8 pieces, joint"
    assert rows["pieces in use"] == (
        "3 occur in the training text, 2 of them 6 times and more; 3 on its source side and 2 on its target side"
    )
    assert rows["without a piece"].startswith("50.00 per cent of the source tokens and 0.00 of the target tokens")
