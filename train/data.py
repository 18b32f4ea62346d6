"""A run's text made ready: tokenizer, encoded splits, batches, and what was found on the way."""

import dataclasses
import logging
import shutil
from typing import Any

from keras_transformer.config import ConfigError
from keras_transformer.tokenizer import Tokenizer, train_tokenizer
from train.batches import EncodedPairs, PackedBatches, encode_corpus
from train.corpus import skipped_sentence
from train.share import Share

log = logging.getLogger("train")

CHECK_LINES = 500  # source sentences that the run folder keeps, for `export` to try what it wrote


@dataclasses.dataclass(frozen=True)
class Data:
    """What training and validation read."""

    corpus: Any  # Corpus: text
    tokenizer: Tokenizer
    train: EncodedPairs
    validation: EncodedPairs
    batches: PackedBatches


def prepare_data(config, corpus, folder, replicas, share=Share()):  # noqa: B008
    """Get the tokenizer, encode, pack; say what was found. Raises CorpusError, TokenizerError or ConfigError."""
    tokenizer = prepare_tokenizer(config.tokenizer, corpus, folder)
    training = config.training
    train = encode_corpus(corpus.train, tokenizer, training.row_length)
    validation = encode_corpus(corpus.validation, tokenizer, training.row_length)
    rows = training.tokens_per_batch // training.row_length
    parts = replicas * training.micro_batches
    if rows % parts:
        raise ConfigError(
            f"training.tokens_per_batch {training.tokens_per_batch} makes {rows} rows of {training.row_length}, which "
            f"do not divide into {replicas} devices times {training.micro_batches} micro-batches; make it a multiple "
            f"of {training.row_length * parts}."
        )
    batches = PackedBatches(train, training.tokens_per_batch, training.row_length, training.seed, share)
    for name, pairs in (("training", train), ("validation", validation)):
        log.info(
            "%s: %s pairs, %s source and %s target tokens; skipped: %s",
            name, f"{len(pairs):,}", f"{pairs.source_tokens:,}", f"{pairs.target_tokens:,}",
            skipped_sentence(pairs.skipped),
        )  # fmt: skip
    log.info(
        "packed rows of %d: %.2f%% padding; %d rows a batch, %d steps an epoch, %.1f epochs in %d steps",
        training.row_length, 100 * batches.padding, batches.rows_per_batch, batches.steps_per_epoch,
        training.steps / batches.steps_per_epoch, training.steps,
    )  # fmt: skip
    keep_check_lines(corpus, folder)
    return Data(corpus, tokenizer, train, validation, batches)


def prepare_tokenizer(settings, corpus, folder):
    """The run folder's tokenizer; made first where there is none: the given model copied, or one trained."""
    if not folder.tokenizer.exists():
        if settings.model:
            Tokenizer(settings.model)  # refuses what cannot be used, before it is copied
            shutil.copyfile(settings.model, folder.tokenizer)
        else:
            log.info("training a tokenizer of %d pieces", settings.vocab_size)
            sentences = (sentence for pair in corpus.train for sentence in pair)
            train_tokenizer(sentences, folder.tokenizer, settings.vocab_size)
    tokenizer = Tokenizer(folder.tokenizer)
    if not settings.model and tokenizer.vocab_size != settings.vocab_size:
        raise ConfigError(
            f"{folder.tokenizer} has {tokenizer.vocab_size} pieces and tokenizer.vocab_size is {settings.vocab_size}: "
            "the run was begun with another vocabulary. Use another run_folder."
        )
    return tokenizer


def keep_check_lines(corpus, folder):
    lines = [source for (source, _), _ in zip(corpus.validation, range(CHECK_LINES), strict=False)]
    folder.check_lines.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
