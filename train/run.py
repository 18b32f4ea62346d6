"""The story of a run: from a configuration to a run folder that can translate."""

import functools
import logging
import os
import pathlib
import tempfile

import keras
import tensorflow as tf

from keras_transformer.inspection.projector import write_projector
from keras_transformer.kinds import build_model
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.run_folder import RunFolder

from .config.idle_keys import check_idle_keys
from .config.run import RunConfig, TrainingConfig
from .cost.micro_batches import find_micro_batches
from .cost.preflight import report_preflight
from .data.corpus import own_shards
from .data.prepare import PreparedData, check_division, keep_check_lines, load_corpus, prepare_data
from .data.vocabulary import prepare_tokenizer, share_tokenizer
from .loop.fit import fit, report_is_missing
from .loop.stopping import interrupted_by_signals
from .record.changes import (
    check_same_on_all_workers,
    check_start,
    check_unchanged,
    with_found_micro_batches,
    write_configuration,
)
from .record.finished import where_it_stands
from .record.history import Changes, record_part
from .record.lock import check_can_be_created, run_folder_of
from .record.start import begin
from .record.training_text import check_same_text_on_all_workers, record_of_text, record_training_text
from .report.final_scores import record_final_scores
from .report.report import write_report
from .report.reproduction import commit
from .step.freezing import freeze
from .step.optimizer import training_optimizer
from .step.training_model import TrainingModel
from .validation.inspections import inspections_of
from .validation.selection import select_weights
from .validation.validation import Validator
from .workers.broadcast import Broadcast
from .workers.rendezvous import log_as, report_lost_workers
from .workers.strategy import choose_strategy, describe
from .workers.tf_config import Cluster, read_cluster

log = logging.getLogger("train")


def run(config: RunConfig) -> RunFolder | None:
    """Train as `config` says, or continue the run in its run folder.

    Returns the RunFolder on the chief, None on every other worker.
    Raises UserError for what the user can correct, and Interrupted if training stops before the last step.
    """
    check_idle_keys(config.training)
    cluster = read_cluster(os.environ.get("TF_CONFIG"))
    log_as(cluster.worker)
    with run_folder_of(config.run_folder, cluster.worker) as folder, report_lost_workers(cluster):
        config = with_found_micro_batches(folder, config, cluster.worker)
        changes = check_unchanged(folder, config)
        check_start(folder, config, cluster.worker)
        train(config, folder, cluster, changes)
        return folder if cluster.worker.is_chief else None


def dry_run(config: RunConfig) -> None:
    """Do what comes before the first step and log what is found. Leaves nothing but the cache.

    A worker of a cluster does its own part without waiting for the others.
    """
    check_idle_keys(config.training)
    worker = read_cluster(os.environ.get("TF_CONFIG")).worker
    replicas = choose_strategy().num_replicas_in_sync * worker.count  # as many devices on every worker as here
    folder = RunFolder(config.run_folder)
    if worker.is_chief:
        check_can_be_created(folder)
        config = with_found_micro_batches(folder, config, worker)
        check_unchanged(folder, config)
    check_division(config.training, config.data.shards, replicas, worker)
    check_start(folder, config, worker)
    corpus = load_corpus(config.data)
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "tokenizer.model"
        if worker.is_chief and folder.has_begun():
            folder.check_tokenizer()
            path = folder.tokenizer
        tokenizer = prepare_tokenizer(
            config.effective_tokenizer, own_shards(corpus.train, worker), path, corpus.symbols
        )
    data = prepare_data(corpus, tokenizer, config.training, config.cache_path, worker)
    if worker.is_chief:
        record_of_text(folder, data, *where_it_stands(folder, config.training), worker)  # which refuses another text
    transformer_config = config.transformer_config(tokenizer.vocab_size)
    if config.training.frozen:
        freeze(build_model(transformer_config), config.training.frozen)  # which refuses a name that no layer has
    report_preflight(config.training, data, transformer_config, replicas)


def train(config: RunConfig, folder: RunFolder, cluster: Cluster, changes: Changes) -> None:
    """Turn text into weights and a report, in a run folder that no other process writes to.

    changes: those of the configuration since the run was trained last. All workers take every step together. The chief
    alone does what is done once, before the steps and after them, and the others wait for it.
    """
    strategy, worker = choose_strategy(cluster), cluster.worker
    broadcast = Broadcast(strategy, worker)
    check_same_on_all_workers(config, broadcast)
    check_division(config.training, config.data.shards, strategy.num_replicas_in_sync, worker)

    corpus = load_corpus(config.data)
    tokenizer = share_tokenizer(config.effective_tokenizer, corpus, folder, broadcast)
    config = config.with_vocab_size(tokenizer.vocab_size)
    data = prepare_data(corpus, tokenizer, config.training, config.cache_path, worker)
    check_same_text_on_all_workers(data, broadcast)
    transformer_config = config.transformer_config(tokenizer.vocab_size)
    if worker.is_chief:
        record_training_text(folder, data, *where_it_stands(folder, config.training), worker)
    if worker.is_chief:  # before config.toml, which the next process compares with: no change is lost between the two
        record_part(folder, config.training, commit(), changes)
    write_configuration(folder, config, transformer_config)
    if worker.is_chief:
        keep_check_lines(corpus.validation, folder.check_lines)
        report_preflight(config.training, data, transformer_config, strategy.num_replicas_in_sync)

    transformer = build(transformer_config, config.training, strategy)
    begin(config.training, folder, transformer, tokenizer, worker)
    config, model = compiled_to_fit(config, folder, data, transformer, strategy)
    at_once = config.training.tokens_per_batch / (config.training.micro_batches * strategy.num_replicas_in_sync)
    validator = Validator(transformer, data, config.translation, config.training.xla, at_once)
    inspections = inspections_of(config.training, transformer, tokenizer, validator)
    progress = fit(config.training, folder, data, model, validator, broadcast, inspections)
    if worker.is_chief:
        with interrupted_by_signals(report_is_missing(folder)):
            selection = select_weights(folder, config.training, transformer, validator)
            write_projector(folder.tensorboard, transformer, tokenizer.pieces())
            card = write_report(config, folder, data, progress, selection, describe(strategy))
            record_final_scores(folder, progress.step, card.scores, selection.kept.validation.loss)
    broadcast.wait()  # for the report: a chief that is stopped before it needs all others when it is started again


def build(config: BaseModelConfig, training: TrainingConfig, strategy: tf.distribute.Strategy) -> keras.Model:
    """The model with its first weights, which follow from `training.seed`."""
    with strategy.scope():
        keras.utils.set_random_seed(training.seed)
        transformer = build_model(config, dtype=training.precision)
    parameters = f"{transformer.count_params():,}"
    log.info("%s parameters; training on %s, %s", parameters, describe(strategy), training.precision)
    return transformer


def compiled_to_fit(
    config: RunConfig, folder: RunFolder, data: PreparedData, transformer: keras.Model, strategy: tf.distribute.Strategy
) -> tuple[RunConfig, TrainingModel]:
    """`compiled`, with as many micro-batches as memory asks for if `training.find_micro_batches` says so.

    Returns the configuration with the number that was found, which is in config.toml too, and the model.
    """
    compile_for = functools.partial(compiled, transformer, strategy=strategy)
    if not config.training.find_micro_batches:
        return config, compile_for(config.training)
    transformer_config = transformer.model_config
    training, model = find_micro_batches(config.training, transformer_config, data.batches, strategy, compile_for)
    config = config.model_copy(update={"training": training})
    write_configuration(folder, config, transformer_config)
    return config, model


def compiled(transformer: keras.Model, training: TrainingConfig, strategy: tf.distribute.Strategy) -> TrainingModel:
    """A TrainingModel that shares the transformer's weights, ready for `fit`."""
    config = transformer.model_config
    freeze(transformer, training.frozen or ())
    with strategy.scope():
        model = TrainingModel(transformer.input, transformer.output)
        model.compile(
            training_optimizer(config.d_model, training),
            seed=training.seed,
            label_smoothing=config.label_smoothing,
            xla=training.xla,
            micro_batches=training.micro_batches,
        )
    return model
