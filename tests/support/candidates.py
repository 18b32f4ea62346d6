"""Sentence pairs of words that are numbers, with scored candidates, and their tokenizer."""

import functools
import pathlib
import tempfile

import numpy as np

from tests.support.training import TINY
from train.config import RowLengths
from train.data.candidates import Scored, line_of, with_candidates
from train.data.corpus import Split
from train.data.encoding import encode_corpus

ROWS = RowLengths(16, 16)


class Words:
    """A tokenizer whose pieces are words that are numbers: "7 8" -> [7, 8]."""

    vocab_size = TINY.vocab_size

    def encode_batch(self, texts):
        return [[int(word) for word in text.split()] for text in texts]


@functools.cache
def scored_corpus():
    """40 pairs of text, and 1 to 3 different candidates of each: two lists."""
    rng = np.random.default_rng(0)

    def sentence():
        return " ".join(map(str, rng.integers(4, Words.vocab_size, rng.integers(1, 7))))

    pairs = [(f"{n % 19 + 4} {n % 17 + 4} {sentence()}", sentence()) for n in range(40)]
    found = []
    for number in range(len(pairs)):
        texts = dict.fromkeys(sentence() for _ in range(3 if number < 2 else rng.integers(1, 4)))
        found.append([Scored(text, round(float(rng.uniform(0, 100)), 2)) for text in texts])
    return pairs, found


def write_candidates(path, pairs, candidates):
    """Write a file of candidates. Returns its path."""
    lines = [line_of(*pair, scored) for pair, scored in zip(pairs, candidates, strict=True)]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def encode(pairs, row_lengths=ROWS):
    return encode_corpus(Split("data.train", lambda: iter(pairs)), Words(), row_lengths)


@functools.cache
def pairs_with_candidates():
    """The EncodedPairs of `scored_corpus`."""
    with tempfile.TemporaryDirectory() as folder:
        path = write_candidates(pathlib.Path(folder) / "candidates.jsonl", *scored_corpus())
        return with_candidates(encode(scored_corpus()[0]), path, Words(), ROWS)
