"""Sentence pairs as ids: the source by one model, the target by the other."""

import collections

import numpy as np

from keras_transformer.ground.tokens import EOS
from tests.support.marian import pair_tokenizer
from train.config.training import RowLengths
from train.data import encoding
from train.data.corpus import Split
from train.data.encoding import EncodedPairs, Sentences, encode_corpus, encoded_chunks, too_long_for


def test_each_side_has_the_pieces_of_its_own_model():
    pair = pair_tokenizer()
    split = Split("data.train", lambda: iter([("two hundred", "zweihundert")]), lambda: "one pair")
    encoded = encode_corpus(split, pair, RowLengths(64, 64))
    source, target = pair.encode("two hundred"), pair.encode_target("zweihundert")
    assert (encoded.source[0].tolist(), encoded.target[0].tolist()) == ([*source, EOS], [*target, EOS])
    assert target != pair.encode("zweihundert")


def test_text_is_read_no_further_than_its_chunks_are_encoded(monkeypatch):
    """A corpus of any size is encoded in the memory of a few chunks."""
    monkeypatch.setattr(encoding, "CHUNK", 2)
    monkeypatch.setattr(encoding, "THREADS", 3)
    read = []
    split = Split("data.train", lambda: (read.append(n) or ("two hundred", "zweihundert") for n in range(40)))
    for number, chunk in enumerate(encoded_chunks(split, pair_tokenizer(), RowLengths(64, 64))):
        assert len(chunk) == 2 and len(read) == min(40, 2 * (number + 1 + 3))  # as many as there are threads
    assert len(read) == 40


def test_what_is_too_long_is_counted_by_the_lengths_of_the_rows():
    assert too_long_for(RowLengths(5, 7)) == "longer than 5 source or 7 target tokens"
    assert too_long_for(RowLengths(7, 7)) == "longer than 7 tokens"


def test_pairs_that_are_not_of_text_have_no_keys():
    sentences = Sentences.of([[7, EOS]], np.uint16)
    keys = EncodedPairs(sentences, sentences, collections.Counter()).keys
    assert (keys.shape, keys.dtype) == ((0,), np.uint64)
