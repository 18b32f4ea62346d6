"""A run's text made ready: tokenizer, encoded splits, batches, and what was found on the way."""

import dataclasses
import logging
import pathlib
from typing import Any

from keras_transformer.tokenizer import Tokenizer
from train.data.batches import PackedBatches, ShardedBatches, check_division
from train.data.cache import CorpusCache
from train.data.corpus import Corpus, own_shards, skipped_sentence
from train.data.encoding import EncodedPairs, EncodedShards, encode_corpus
from train.data.files import files_splits, files_test_split
from train.data.numbers import numbers_splits
from train.data.tfds import tfds_splits
from train.data.vocabulary import prepare_tokenizer
from train.workers.tf_config import Worker

log = logging.getLogger("train")

CHECK_LINES = 500  # source sentences that the run folder keeps, for `export` to try what it wrote


@dataclasses.dataclass(frozen=True)
class Data:
    """What training and validation read; of training, this worker's shards."""

    corpus: Any  # Corpus: text
    tokenizer: Tokenizer
    train: EncodedShards
    validation: EncodedPairs
    batches: ShardedBatches


def prepare_data(config, corpus, folder, replicas, worker=Worker()):  # noqa: B008
    """Get the tokenizer, encode, pack; say what was found. Raises CorpusError, TokenizerError or ConfigError.

    replicas: of all workers. worker: which of them this is. Of a corpus in several shards, it opens, encodes and packs
    a contiguous part; of one in one shard, it holds all pairs and lays out its own rows. Of several workers each finds
    the tokenizer in `folder` (`share_tokenizer`).
    """
    training = config.training
    check_division(training, config.data.shards, replicas, worker)
    splits = own_shards(corpus.train, worker)
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
    batches = packed_batches(train, training, config.data.shards, worker)
    log.info(
        "packed rows of %d source and %d target positions: %.2f%% padding; %d rows a batch, %d steps an epoch, "
        "%.1f epochs in %d steps",
        batches.source_row_length, batches.row_length, 100 * batches.padding, batches.rows_per_batch,
        batches.steps_per_epoch, training.steps / batches.steps_per_epoch, training.steps,
    )  # fmt: skip
    if worker.is_chief:
        keep_check_lines(corpus, folder)
    return Data(corpus, tokenizer, train, validation, batches)


def packed_batches(train, training, shards, worker):
    """The ShardedBatches of this worker's EncodedShards."""
    first = worker.index * len(train.shards) if shards > 1 else 0
    of_a_shard = Worker() if shards > 1 else worker
    return ShardedBatches(
        (
            PackedBatches(
                pairs, training.tokens_per_batch // training.row_length // shards * training.row_length,
                training.row_length, (training.seed, number), training.source_row_length, of_a_shard,
            )
            for number, pairs in enumerate(train.shards, start=first)
        ),
        worker,
    )  # fmt: skip


def keep_check_lines(corpus, folder):
    lines = [source for (source, _), _ in zip(corpus.validation, range(CHECK_LINES), strict=False)]
    folder.check_lines.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


SPLITS = {"files": files_splits, "numbers": numbers_splits, "tfds": tfds_splits}


def load_corpus(data):
    """NumbersData, FilesData or TfdsData -> Corpus. Sentences are read when a split is iterated, not here.

    Raises CorpusError for what can be seen without reading every sentence, such as a missing file.
    """
    return Corpus(*SPLITS[data.source](data), data.source_language, data.target_language)


def load_test_split(data):
    """NumbersData, FilesData or TfdsData -> the Split that scores are of: test, or validation if there is no test set.

    Needs no training files.
    """
    if data.source == "files":
        return files_test_split(data)
    corpus = load_corpus(data)
    return corpus.test or corpus.validation
