"""The story of a run: from a configuration to a run folder that can translate."""

import logging
import tempfile

import keras

from keras_transformer.model import Transformer
from train.choice import choose_weights
from train.corpus import load_corpus
from train.data import prepare_data
from train.devices import choose_strategy, describe
from train.fitting import fit
from train.lock import run_lock
from train.optimizer import paper_optimizer
from train.preflight import report_preflight
from train.report import write_report
from train.resumption import check_changes
from train.run_folder import RunFolder
from train.trainer import TrainingModel
from train.validation import ValidationLoss, ValidationText

log = logging.getLogger("train")


def run(config):
    """Train as `config` says, or go on where its run folder stands. Returns the RunFolder.

    Raises ConfigError, CorpusError, TokenizerError, CheckpointError or DivergenceError, each with one sentence for the
    user, and Interrupted where it was asked to stop before the last step.
    """
    folder = RunFolder(config.run_folder)
    with run_lock(folder):
        check_changes(folder, config)
        train(config, folder)
    return folder


def dry_run(config):
    """Only what comes before the first step: read, encode, pack, log what was found. Leaves nothing but the cache."""
    strategy = choose_strategy()
    with tempfile.TemporaryDirectory() as folder:
        data = prepare_data(config, load_corpus(config.data), RunFolder(folder), strategy.num_replicas_in_sync)
    report_preflight(config, data, transformer_config(config, data.tokenizer), strategy.num_replicas_in_sync)


def train(config, folder):
    """From text to weights and a report, in a run folder that nobody else writes to."""
    strategy = choose_strategy()
    data = prepare_data(config, load_corpus(config.data), folder, strategy.num_replicas_in_sync)
    settings = transformer_config(config, data.tokenizer)
    report_preflight(config, data, settings, strategy.num_replicas_in_sync)
    folder.config.write_text(config.to_toml(), encoding="utf-8")
    settings.save(folder.model)
    transformer, model = build(config.training, settings, strategy)
    validation_loss = ValidationLoss(model, data.validation, model.label_smoothing, config.training.xla)
    validation_text = ValidationText(
        transformer, data.tokenizer, data.corpus.validation, config.translation, config.training.xla
    )
    progress = fit(config, folder, data, model, validation_loss, validation_text)
    choice = choose_weights(config, folder, transformer, validation_loss, validation_text)
    write_report(config, folder, data, transformer, progress, choice, describe(strategy))


def transformer_config(config, tokenizer):
    """The TransformerConfig that the sections of a RunConfig and the tokenizer make together."""
    training = config.training
    return config.model.resolve(tokenizer.vocab_size, training.dropout, training.label_smoothing)


def build(training, settings, strategy):
    """The Transformer, and the TrainingModel around it, ready for `fit`."""
    with strategy.scope():
        keras.utils.set_random_seed(training.seed)
        transformer = Transformer(settings, dtype=training.precision)
        model = TrainingModel(transformer.input, transformer.output)
        model.prepare(
            paper_optimizer(settings.d_model, training), training.seed, settings.label_smoothing, training.xla,
            training.micro_batches,
        )  # fmt: skip
    log.info(
        "%s parameters; training on %s, %s", f"{transformer.count_params():,}", describe(strategy), training.precision
    )
    return transformer, model
