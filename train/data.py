"""A run's text made ready: tokenizer, encoded splits, batches, and what was found on the way."""

import dataclasses
import itertools
import logging
import math
import pathlib
import shutil
from typing import Any

from keras_transformer.config import ConfigError
from keras_transformer.tokenizer import Tokenizer, train_tokenizer
from train.batches import EncodedPairs, PackedBatches, ShardedBatches, encode_corpus
from train.cache import CorpusCache
from train.corpus import skipped_sentence
from train.encoded import EncodedShards
from train.share import Share

log = logging.getLogger("train")

TOKENIZER_PAIRS = 1_000_000  # at most, of which a tokenizer is learned: more would hardly change it, but take gigabytes
CHECK_LINES = 500  # source sentences that the run folder keeps, for `export` to try what it wrote


@dataclasses.dataclass(frozen=True)
class Data:
    """What training and validation read; of training, this worker's shards."""

    corpus: Any  # Corpus: text
    tokenizer: Tokenizer
    train: EncodedShards
    validation: EncodedPairs
    batches: ShardedBatches


def prepare_data(config, corpus, folder, replicas, share=Share()):  # noqa: B008
    """Get the tokenizer, encode, pack; say what was found. Raises CorpusError, TokenizerError or ConfigError.

    replicas: of all workers. share: which of them this is. Of a corpus in several shards, it opens, encodes and packs
    a contiguous part; of one in one shard, it holds all pairs and lays out its own rows. Of several workers each finds
    the tokenizer in `folder` (`share_tokenizer`).
    """
    training = config.training
    check_division(training, config.data.shards, replicas, share)
    splits = own_shards(corpus.train, share)
    for split in splits:
        split.fingerprint()  # a missing file is named now, not after the tokenizer is trained
    tokenizer = prepare_tokenizer(config.tokenizer, splits, folder)
    lengths = training.row_length, training.source_row_length
    cache = CorpusCache(config.cache_folder or pathlib.Path(config.run_folder).parent / "cache")
    train = EncodedShards(cache.encoded(split, tokenizer, *lengths) for split in splits)
    validation = encode_corpus(corpus.validation, tokenizer, *lengths)
    for name, pairs in (("training", train), ("validation", validation)):
        log.info(
            "%s: %s pairs, %s source and %s target tokens; skipped: %s",
            name, f"{len(pairs):,}", f"{pairs.source_tokens:,}", f"{pairs.target_tokens:,}",
            skipped_sentence(pairs.skipped),
        )  # fmt: skip
    batches = packed_batches(train, training, config.data.shards, share)
    log.info(
        "packed rows of %d source and %d target positions: %.2f%% padding; %d rows a batch, %d steps an epoch, "
        "%.1f epochs in %d steps",
        batches.source_row_length, batches.row_length, 100 * batches.padding, batches.rows_per_batch,
        batches.steps_per_epoch, training.steps / batches.steps_per_epoch, training.steps,
    )  # fmt: skip
    if share.is_chief:
        keep_check_lines(corpus, folder)
    return Data(corpus, tokenizer, train, validation, batches)


def share_tokenizer(config, corpus, folder, replicas, broadcast):
    """The chief's tokenizer, made now if there is none, in every worker's folder. Raises as `prepare_data` does."""
    check_division(config.training, config.data.shards, replicas, broadcast.share)
    if broadcast.share.is_chief:
        prepare_tokenizer(config.tokenizer, own_shards(corpus.train, broadcast.share), folder)
    broadcast.file(folder.tokenizer, folder.path)


def check_division(training, shards, replicas, share):
    """Raises ConfigError unless every device and every shard has equally many rows, and every worker as many shards."""
    if shards > 1 and shards % share.count:
        raise ConfigError(
            f"data.shards is {shards}, which do not divide among {share.count} workers; make it a multiple of "
            f"{share.count}, or 1 for every worker to hold the whole corpus."
        )
    rows = training.tokens_per_batch // training.row_length
    parts = math.lcm(replicas * training.micro_batches, shards, share.count)
    if rows % parts:
        among = f"{replicas} devices times {training.micro_batches} micro-batches"
        among += f" and among {shards} shards" if shards > 1 else ""
        raise ConfigError(
            f"training.tokens_per_batch {training.tokens_per_batch} makes {rows} rows of {training.row_length}, which "
            f"do not divide into {among}; make it a multiple of {training.row_length * parts}."
        )


def own_shards(split, share):
    """The Splits that this worker reads: its contiguous part of several shards, or the only one that there is."""
    if len(split.shards) == 1:
        return split.shards
    count = len(split.shards) // share.count
    return split.shards[share.index * count : (share.index + 1) * count]


def packed_batches(train, training, shards, share):
    """The ShardedBatches of this worker's EncodedShards."""
    first = share.index * len(train.shards) if shards > 1 else 0
    of_a_shard = Share() if shards > 1 else share
    return ShardedBatches(
        (
            PackedBatches(
                pairs, training.tokens_per_batch // training.row_length // shards * training.row_length,
                training.row_length, (training.seed, number), training.source_row_length, of_a_shard,
            )
            for number, pairs in enumerate(train.shards, start=first)
        ),
        share,
    )  # fmt: skip


def prepare_tokenizer(settings, splits, folder):
    """The run folder's tokenizer; made first where there is none: the given model copied, or one trained."""
    if not folder.tokenizer.exists():
        if settings.model:
            Tokenizer(settings.model)  # refuses what cannot be used, before it is copied
            shutil.copyfile(settings.model, folder.tokenizer)
        else:
            learn_tokenizer(settings.vocab_size, splits, folder.tokenizer)
    tokenizer = Tokenizer(folder.tokenizer)
    if not settings.model and tokenizer.vocab_size != settings.vocab_size:
        raise ConfigError(
            f"{folder.tokenizer} has {tokenizer.vocab_size} pieces and tokenizer.vocab_size is {settings.vocab_size}: "
            "the run was begun with another vocabulary. Use another run_folder."
        )
    return tokenizer


def learn_tokenizer(vocab_size, splits, path):
    """Train a tokenizer on the text of all `splits`, or on pairs at equal distances where there are very many."""
    log.info("training a tokenizer of %d pieces", vocab_size)
    sample, distance = evenly_spaced(itertools.chain.from_iterable(splits), TOKENIZER_PAIRS)
    if distance > 1:
        log.info("it is trained on one pair in %d, %s pairs from beginning to end", distance, f"{len(sample):,}")
    train_tokenizer(itertools.chain.from_iterable(sample), path, vocab_size)


def evenly_spaced(items, limit):
    """At most `limit` of the items, an even number, at equal distances; and the distance: 1, 2, 4, 8, ...

    Whoever has kept `limit` of them drops every other one and goes on at twice the distance: one pass, in the memory
    of what is kept, and without chance, so that the same text makes the same tokenizer.
    """
    kept, distance = [], 1
    for number, item in enumerate(items):
        if number % distance == 0:
            if len(kept) == limit:
                kept, distance = kept[::2], 2 * distance
            kept.append(item)
    return kept, distance


def keep_check_lines(corpus, folder):
    lines = [source for (source, _), _ in zip(corpus.validation, range(CHECK_LINES), strict=False)]
    folder.check_lines.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
