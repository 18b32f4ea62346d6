"""What a corpus is made of: its text and licence, the lengths of its sentences, the pieces that it uses."""

import re

import numpy as np

from keras_transformer.inspection.markdown import table
from keras_transformer.pieces.tokenizer import Tokenizer

from ..config.data import DataSection
from .corpus import WHOLE_TEXT, Corpus, skipped_sentence
from .encoding import EncodedPairs, EncodedShards
from .prepare import PreparedData

PERCENTILES = (50, 90, 99, 100)
OFTEN = 10  # occurrences
CHUNK = 10_000_000  # tokens that are counted at once


def data_table(config: DataSection, data: PreparedData) -> str:
    """What the model was trained on: the text and its licence, counts, lengths, vocabulary.

    Of several workers the first, who writes this, knows its own shards alone, and says so.
    """
    part = own_part(data)
    return table(
        ("text", config.description),
        ("licence", config.licence or "not given (the configuration key data.licence)"),
        *split_rows(data.corpus),
        *([("what follows is of", f"{part}, not of those of the others")] if part else []),
        ("training pairs", counts(data.train)),
        ("validation pairs", counts(data.validation)),
        ("source tokens per sentence", length_sentence(data.train, "source")),
        ("target tokens per sentence", length_sentence(data.train, "target")),
        *vocabulary_rows(data.tokenizer, data.train, data.validation),
        ("padding", f"{100 * data.batches.padding.total:.2f} per cent of the positions of packed rows"),
    )


def own_part(data: PreparedData) -> str:
    """Name the part of the training text that this worker has read; "" if it is the whole."""
    own, everyone = len(data.train.shards), len(data.corpus.train.shards)
    return f"the first worker's {own} of {everyone} shards of {WHOLE_TEXT}" if own < everyone else ""


def split_rows(corpus: Corpus) -> list[tuple[str, str]]:
    """Rows of a table: which parts of their source the splits are, if the configuration does not tell."""
    splits = [split for split in (corpus.train, corpus.validation, corpus.test) if split and split.description]
    return [(split.name.removeprefix("data."), split.description) for split in splits]


def counts(pairs: EncodedPairs | EncodedShards) -> str:
    """Pairs, tokens of each side, and what was skipped."""
    return (
        f"{len(pairs):,}; {pairs.source_tokens:,} source and {pairs.target_tokens:,} target tokens; "
        f"skipped: {skipped_sentence(pairs.skipped)}"
    )


def length_sentence(train: EncodedShards, side: str) -> str:
    """Mean and percentiles of the lengths of training sentences, in tokens; `side` is "source" or "target"."""
    lengths = np.concatenate([getattr(shard, side).lengths for shard in train.shards])
    values = ", ".join(f"{int(value)}" for value in np.percentile(lengths, PERCENTILES))
    return f"mean {lengths.mean():.1f}; percentiles {PERCENTILES}: {values}"


def piece_counts(shards: tuple[EncodedPairs, ...], side: str, vocab_size: int) -> np.ndarray:
    """How often each piece occurs on one side of the shards: int64 (vocab_size,)."""
    counts = np.zeros(vocab_size, np.int64)
    for shard in shards:
        ids = getattr(shard, side).ids
        for start in range(0, len(ids), CHUNK):
            counts += np.bincount(ids[start : start + CHUNK], minlength=vocab_size)
    return counts


def vocabulary_rows(tokenizer: Tokenizer, train: EncodedShards, validation: EncodedPairs) -> list[tuple[str, str]]:
    """Rows of a table: how many pieces the training text uses, and what validation text has no piece for."""
    size = tokenizer.vocab_size
    source, target = (piece_counts(train.shards, side, size) for side in ("source", "target"))
    both = source + target
    is_missing = [re.fullmatch("<unk>|<0x[0-9A-F]{2}>", piece) is not None for piece in tokenizer.pieces()]
    shares = [
        100 * counts[is_missing].sum() / counts.sum()
        for counts in (piece_counts((validation,), side, size) for side in ("source", "target"))
    ]
    return [
        ("vocabulary", f"{size:,} pieces, joint"),
        (
            "pieces in use",
            f"{np.count_nonzero(both):,} occur in the training text, {np.count_nonzero(both >= OFTEN):,} of them "
            f"{OFTEN} times and more; {np.count_nonzero(source):,} on its source side and "
            f"{np.count_nonzero(target):,} on its target side",
        ),
        (
            "without a piece",
            f"{shares[0]:.2f} per cent of the source tokens and {shares[1]:.2f} of the target tokens of the "
            "validation text are <unk>, or bytes of characters that the vocabulary lacks",
        ),
    ]
