"""From a corpus to batches: the splits are encoded and packed, and the log says what was found."""

import collections
import dataclasses
import functools
import importlib
import itertools
import json
import logging
import math
import pathlib
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.notations import json_of
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages, MarkReader
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.inference import TEXT
from keras_transformer.runs.run_folder import RunFolder

from ..config.data import DataSection
from ..config.run import RunConfig
from ..config.training import RowLengths, TrainingConfig
from ..workers.tf_config import ONLY_WORKER, Worker
from . import sources
from .augmentation import Augmentation
from .batches import PackedBatches, ShardedBatches
from .cache import CorpusCache
from .cleaning import cleaning_settings, joined_examples, proposal_lines
from .corpus import Corpus, Split, own_shards, skipped_sentence
from .documents import document_lines
from .encoding import EncodedPairs, EncodedShards, MarksOf, Sentences, encode_corpus, unmarked
from .epochs import Redraw
from .links import Linker
from .mixing import Mixture
from .placeholders import Placeholders, placeholder_lines
from .segmentation import BpeDropout
from .vocabulary import share_tokenizer, tokenizer_on_trial

if TYPE_CHECKING:  # it imports TensorFlow, which reading and packing do without
    from ..workers.workers import Workers

log = logging.getLogger("train")

MOST_CHECK_LINES = 500  # source sentences that the run folder keeps, for `export` to try what it wrote


@dataclasses.dataclass(frozen=True)
class PreparedData:
    """What training and validation read. `train` and `batches` are of this worker's shards only."""

    corpus: Corpus  # whose validation Split is in memory
    tokenizer: Tokenizer
    train: EncodedShards
    validation: EncodedPairs
    batches: ShardedBatches
    languages: Languages = NO_LANGUAGES  # how the model is told those of a pair


def load_corpus(data: DataSection) -> Corpus:
    """The Corpus that the configuration's section `data` describes. Reads no sentences but those of a treebank.

    Raises CorpusError for what can be seen without reading every sentence, such as a missing file, and ConfigError for
    rules of data.clean that cannot be followed.
    """
    corpus = reader_of(data).read_corpus(data)
    settings = cleaning_settings(data)
    return dataclasses.replace(corpus, train=corpus.train.cleaned(settings, data.tags)) if settings else corpus


def load_test_split(data: DataSection) -> Split:
    """The Split that scores are of: the test set, or the validation set if there is none.

    A reader that needs no training text for it has a function `read_test_split`.
    """
    reader = reader_of(data)
    if hasattr(reader, "read_test_split"):
        return reader.read_test_split(data)
    corpus = reader.read_corpus(data)
    return corpus.test or corpus.validation


def reader_of(data: DataSection) -> ModuleType:
    """The module in sources/ that reads this section: it has the name that `data.source` has."""
    return importlib.import_module(f"{sources.__name__}.{data.source}")


def prepared(config: RunConfig, folder: RunFolder, workers: "Workers") -> tuple[RunConfig, PreparedData]:
    """What all workers train on, and the configuration with its tokenizer, which they share.

    Raises what `check_division`, `load_corpus`, `check_not_empty`, `share_tokenizer` and `prepare_data` raise.
    """
    check_division(config.training, config.data.shards, workers.replicas, workers.worker)
    corpus = load_corpus(config.data)
    check_not_empty(corpus.validation, corpus.test)
    tokenizer = share_tokenizer(config.effective_tokenizer, corpus, folder, workers)
    config = config.with_tokenizer(tokenizer.vocab_size, tokenizer.normalization)
    told = Languages.of(json_of(workers.text_of_chief(json.dumps(config.told.as_json()))))
    return config, prepare_data(
        corpus, tokenizer, config.training, config.cache_path, workers.worker, config.data, told
    )


def prepared_on_trial(config: RunConfig, folder: RunFolder, worker: Worker, replicas: int) -> PreparedData:
    """What this worker would train on, of so many replicas of all workers. Keeps no tokenizer."""
    check_division(config.training, config.data.shards, replicas, worker)
    corpus = load_corpus(config.data)
    check_not_empty(corpus.validation, corpus.test)
    tokenizer = tokenizer_on_trial(config.effective_tokenizer, corpus, folder, worker)
    return prepare_data(corpus, tokenizer, config.training, config.cache_path, worker, config.data, config.told)


def check_not_empty(*splits: Split | None) -> None:
    """Raises CorpusError for a split without a pair, before minutes are spent on the training text."""
    for split in splits:
        if split is not None:
            next(iter(split))


def proposals(data: PreparedData, section: DataSection, worker: Worker) -> Iterator[str]:
    """Lines on cleaning, placeholders and documents, of the first of this worker's shards; nothing of trees."""
    if section.outputs == TEXT:
        first = own_shards(data.corpus.train, worker)[0]
        yield from proposal_lines(first, section)
        yield from placeholder_lines(first)
        splits = (first, data.corpus.validation, data.corpus.test)
        yield from document_lines(split for split in splits if split is not None)


def prepare_data(
    corpus: Corpus,
    tokenizer: Tokenizer,
    training: TrainingConfig,
    cache_folder: pathlib.Path,
    worker: Worker = ONLY_WORKER,
    data: DataSection | None = None,
    languages: Languages = NO_LANGUAGES,
) -> PreparedData:
    """Encode the training and validation text, pack the training pairs, and log what was found.

    If the corpus has several shards, a worker reads and packs only its own contiguous shards. If it has one, every
    worker reads every pair and builds only its own rows of each batch. data: has the shares of the pairs that get
    placeholders; None: no pair does. languages: of the model, by whose pieces it is told those of each pair. Raises
    CorpusError or ConfigError.
    """
    cache, row_lengths, marks_of = CorpusCache(cache_folder), training.row_lengths, marks_by(languages, tokenizer)
    corpus = dataclasses.replace(corpus, validation=corpus.validation.in_memory())
    # Validation comes first: it may have no pair that fits
    validation = encode_corpus(corpus.validation, tokenizer, row_lengths, marks_of)
    shards = own_shards(corpus.train, worker)
    train = EncodedShards(encoded(split, tokenizer, row_lengths, cache, marks_of) for split in shards)
    for name, pairs in (("training", train), ("validation", validation)):
        log.info(
            "%s: %s pairs, %s source and %s target tokens; skipped: %s",
            name,
            f"{len(pairs):,}",
            f"{pairs.source_tokens:,}",
            f"{pairs.target_tokens:,}",
            skipped_sentence(pairs.skipped),
        )
    redraw = redraw_of(training, tokenizer, corpus.symbols, data, languages)
    batches = packed_batches(train, training, len(corpus.train.shards), worker, redraw, tokenizer.vocab_size)
    log.info(
        "packed rows of %d source and %d target positions: %.2f%% padding; %d rows per batch, %d steps per epoch, "
        "%.1f epochs in %d steps",
        *row_lengths,
        100 * batches.padding.total,
        batches.rows_per_batch,
        batches.steps_per_epoch,
        batches.epochs(training.steps),
        training.steps,
    )
    return PreparedData(corpus, tokenizer, train, validation, batches, languages)


def marks_by(languages: Languages, tokenizer: Tokenizer) -> MarksOf:
    """Return the marks of each pair of languages. Raises ConfigError if the tokenizer lacks a piece of a language."""
    if not languages.are_told:
        return unmarked
    reader = MarkReader(languages, tokenizer)
    return functools.cache(lambda codes: reader.of_pairs([codes])[0])


def redraw_of(
    training: TrainingConfig,
    tokenizer: Tokenizer,
    tags: Sequence[str],
    data: DataSection | None,
    languages: Languages = NO_LANGUAGES,
) -> Redraw | None:
    """What every epoch does to the pairs before they are packed; None for nothing.

    Changes of text come first, then placeholders for a share of the pairs, then BPE-dropout. Raises ConfigError or
    TokenizerError if the tokenizer has no placeholders, or has no merges.
    """
    steps: list[Redraw] = []
    if training.augment:
        steps.append(Augmentation(tokenizer, training.augment, training.row_lengths, tags, languages))
    if data and data.placeholders:
        steps.append(Placeholders(tokenizer, data.placeholders, training.row_lengths))
    if training.bpe_dropout:
        steps.append(BpeDropout(tokenizer, training.bpe_dropout, training.row_lengths))

    def redraw(pairs: EncodedPairs, rng: np.random.Generator, gives_up: Callable[[], bool]) -> EncodedPairs:
        return functools.reduce(lambda pairs, step: step(pairs, rng, gives_up), steps, pairs)

    return redraw if steps else None


def encoded(
    split: Split, tokenizer: Tokenizer, row_lengths: RowLengths, cache: CorpusCache, marks_of: MarksOf = unmarked
) -> EncodedPairs:
    """The EncodedPairs of a training Split from the cache. Those of a mixed one are joined in memory."""
    if not split.mixed:
        return cache.encoded(split, tokenizer, row_lengths, marks_of)
    parts = [cache.encoded(part, tokenizer, row_lengths, marks_of) for part, _ in split.mixed]
    source, target = (Sentences.joined([getattr(part, side) for part in parts]) for side in ("source", "target"))
    skipped, too_long = (
        sum((getattr(part, counts) for part in parts), collections.Counter()) for counts in ("skipped", "too_long")
    )
    mixture = Mixture([len(part) for part in parts], [weight for _, weight in split.mixed])
    for part, count in zip(parts, mixture.counts(), strict=True):
        log.info("an epoch takes %s pairs of an entry that has %s", f"{count:,}", f"{len(part):,}")
    keys = np.concatenate([part.keys for part in parts])
    return EncodedPairs(source, target, skipped, keys, mixture, too_long, joined_examples(parts))


def packed_batches(
    train: EncodedShards,
    training: TrainingConfig,
    shards: int,
    worker: Worker,
    redraw: Redraw | None = None,
    vocab_size: int = 0,
) -> ShardedBatches:
    """The batches of this worker's EncodedShards; `shards` counts those of all workers. vocab_size: for links."""
    row_lengths = training.row_lengths
    linkers = [Linker(pairs, vocab_size) if training.guided_alignment else None for pairs in train.shards]
    if shards == 1:
        (pairs,), (linker,) = train.shards, linkers
        seeds = training.seed, 0
        streams = [PackedBatches(pairs, training.tokens_per_batch, row_lengths, seeds, worker, redraw, linker)]
    else:
        rows_per_shard = training.tokens_per_batch // row_lengths.target // shards
        first = worker.index * len(train.shards)
        streams = [
            PackedBatches(
                pairs,
                rows_per_shard * row_lengths.target,
                row_lengths,
                (training.seed, number),
                redraw=redraw,
                linker=linker,
            )
            for number, (pairs, linker) in enumerate(zip(train.shards, linkers, strict=True), start=first)
        ]
    check_batch_fits(streams, training, shards)
    return ShardedBatches(streams, worker)


def check_batch_fits(streams: list[PackedBatches], training: TrainingConfig, shards: int) -> None:
    """Raises ConfigError if a batch takes more rows of a shard than an epoch of it has, and so would repeat pairs."""
    smallest = min(streams, key=lambda stream: stream.rows_per_epoch)
    if smallest.rows_per_batch > smallest.rows_per_epoch:
        text = "the training text" if shards == 1 else f"the smallest of {shards} shards"
        most = smallest.rows_per_epoch * shards * training.row_length
        raise ConfigError(
            f"training.tokens_per_batch {training.tokens_per_batch} takes {smallest.rows_per_batch} rows per batch, "
            f"but {text} fills only {smallest.rows_per_epoch} rows of {training.row_length}: a batch would repeat "
            f"sentence pairs. Set training.tokens_per_batch to at most {most}, or training.row_length to less."
        )


def check_division(training: TrainingConfig, shards: int, replicas: int, worker: Worker) -> None:
    """Check that every device and every shard gets equally many rows of a batch, and every worker equally many shards.

    `replicas`: devices of all workers together. Raises ConfigError with values that would divide.
    """
    if shards > 1 and shards % worker.count:
        raise ConfigError(
            f"data.shards is {shards}, which is not divisible by the {worker.count} workers; make it a multiple of "
            f"{worker.count}, or 1 if every worker is to hold the whole corpus."
        )
    rows = training.tokens_per_batch // training.row_length
    if training.find_micro_batches and worker.count > 1:
        raise ConfigError(
            f"training.find_micro_batches needs a single worker, and there are {worker.count}: set "
            "training.micro_batches to what one of them finds on its own with its part of training.tokens_per_batch."
        )
    parts = math.lcm(replicas * training.micro_batches, shards, worker.count)
    if rows % parts:
        among = f"{replicas} devices times {training.micro_batches} micro-batches"
        if shards > 1:
            among += f" and among {shards} shards"
        raise ConfigError(
            f"training.tokens_per_batch {training.tokens_per_batch} makes {rows} rows of {training.row_length}, which "
            f"cannot be divided evenly among {among}; make it a multiple of {training.row_length * parts}."
        )


def keep_check_lines(validation: Split, path: pathlib.Path) -> None:
    """Write the first source sentences of the validation text to `path`, one per line."""
    pairs = itertools.islice(validation, MOST_CHECK_LINES)
    write_atomically(path, "".join(f"{source}\n" for source, _ in pairs))
