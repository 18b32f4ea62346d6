"""Sentence pairs as ids: the source by one model, the target by the other."""

from keras_transformer.tokens import EOS
from tests.support.marian import pair_tokenizer
from train.config.training import RowLengths
from train.data.corpus import Split
from train.data.encoding import encode_corpus, too_long_for


def test_each_side_has_the_pieces_of_its_own_model():
    pair = pair_tokenizer()
    split = Split("data.train", lambda: iter([("two hundred", "zweihundert")]), lambda: "one pair")
    encoded = encode_corpus(split, pair, RowLengths(64, 64))
    source, target = pair.encode("two hundred"), pair.encode_target("zweihundert")
    assert (encoded.source[0].tolist(), encoded.target[0].tolist()) == ([*source, EOS], [*target, EOS])
    assert target != pair.encode("zweihundert")


def test_what_is_too_long_is_counted_by_the_lengths_of_the_rows():
    assert too_long_for(RowLengths(5, 7)) == "longer than 5 source or 7 target tokens"
    assert too_long_for(RowLengths(7, 7)) == "longer than 7 tokens"
