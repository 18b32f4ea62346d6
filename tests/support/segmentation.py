"""Texts in the pieces that BPE-dropout draws."""

import numpy as np

from keras_transformer.ground.tokens import EOS
from keras_transformer.pieces.tokenizer import Tokenizer
from train.config.training import RowLengths
from train.data.encoding import EncodedPairs, Sentences
from train.data.segmentation import BpeDropout


def drawn_by(tokenizer: Tokenizer, texts: list[str], rate: float, seed: int = 1) -> list[list[int]]:
    """One list of ids per text, without EOS."""
    plain = Sentences.of([[*ids, EOS] for ids in tokenizer.encode_batch(texts)], np.int32)
    dropout = BpeDropout(tokenizer, rate, RowLengths(100_000, 100_000))
    source = dropout(EncodedPairs(plain, plain, {}), np.random.default_rng(seed)).source
    return [source[index].tolist()[:-1] for index in range(len(source))]
