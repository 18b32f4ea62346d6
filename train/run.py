"""The story of a run: from a configuration to a run folder that can translate."""

import logging
import os
import tempfile

import keras

from keras_transformer.model import Transformer
from keras_transformer.run_folder import RunFolder
from train.data.prepare import check_division, keep_check_lines, load_corpus, prepare_data
from train.data.vocabulary import prepare_tokenizer, share_tokenizer
from train.evaluation.preflight import report_preflight
from train.evaluation.report import write_report
from train.evaluation.selection import select_weights
from train.evaluation.validation import Validator
from train.loop.fit import fit
from train.resume import check_same_on_all_workers, check_unchanged, run_folder_of, write_configuration
from train.step.optimizer import training_optimizer
from train.step.training_model import TrainingModel
from train.workers.broadcast import Broadcast
from train.workers.rendezvous import log_as, missing_workers_are_named
from train.workers.strategy import choose_strategy, describe
from train.workers.tf_config import read_cluster

log = logging.getLogger("train")


def run(config):
    """Train as `config` says, or go on where its run folder stands. Returns the RunFolder, and None but on the chief.

    Raises ConfigError, CorpusError, TokenizerError, CheckpointError or DivergenceError, each with one sentence for the
    user, Interrupted where it was asked to stop before the last step, and WorkerLost where another worker is gone.
    """
    cluster = read_cluster(os.environ.get("TF_CONFIG"))
    log_as(cluster.worker)
    with run_folder_of(config.run_folder, cluster.worker) as folder, missing_workers_are_named(cluster):
        check_unchanged(folder, config)
        train(config, folder, cluster)
        return folder if cluster.worker.is_chief else None


def dry_run(config):
    """Only what comes before the first step: read, encode, pack, log what was found. Leaves nothing but the cache."""
    worker = read_cluster(os.environ.get("TF_CONFIG")).worker
    replicas = choose_strategy().num_replicas_in_sync * worker.count  # of this machine alone: nobody is waited for
    check_division(config.training, config.data.shards, replicas, worker)
    corpus = load_corpus(config.data)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = prepare_tokenizer(config.tokenizer, corpus.train.shards, RunFolder(folder).tokenizer)
    data = prepare_data(corpus, tokenizer, config.training, config.cache_path)
    report_preflight(config.training, data, transformer_config(config, data.tokenizer), replicas)


def train(config, folder, cluster):
    """From text to weights and a report, in a run folder that nobody else writes to.

    Of several workers all take every step together; before it and after it the chief alone does what is done once.
    """
    strategy, worker = choose_strategy(cluster), cluster.worker
    broadcast = Broadcast(strategy, worker)
    check_same_on_all_workers(config, broadcast)
    replicas = strategy.num_replicas_in_sync
    check_division(config.training, config.data.shards, replicas, worker)
    corpus = load_corpus(config.data)
    tokenizer = share_tokenizer(config.tokenizer, corpus.train, folder.tokenizer, broadcast)
    data = prepare_data(corpus, tokenizer, config.training, config.cache_path, worker)
    settings = transformer_config(config, data.tokenizer)
    if worker.is_chief:
        keep_check_lines(corpus.validation, folder.check_lines)
        report_preflight(config.training, data, settings, replicas)
    write_configuration(folder, config, settings)
    transformer, model = build(config.training, settings, strategy)
    validator = Validator(transformer, data, config.translation, config.training.xla)
    progress = fit(config, folder, data, model, validator, broadcast)
    if worker.is_chief:
        selection = select_weights(folder, config.training, transformer, validator)
        write_report(config, folder, data, progress, selection, describe(strategy))


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
            training_optimizer(settings.d_model, training), training.seed, settings.label_smoothing, training.xla,
            training.micro_batches,
        )  # fmt: skip
    log.info(
        "%s parameters; training on %s, %s", f"{transformer.count_params():,}", describe(strategy), training.precision
    )
    return transformer, model
