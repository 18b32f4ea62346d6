"""The story of a run: from a configuration to a run folder that can translate."""

import functools
import logging
import os

import keras

from keras_transformer.inspection.projector import write_projector
from keras_transformer.runs.inference import TEXT
from keras_transformer.runs.run_folder import RunFolder

from .config.run import RunConfig
from .config.training import check_idle_keys
from .cost.micro_batches import find_micro_batches
from .cost.preflight import report_preflight
from .data.batches import ShardedBatches
from .data.cleaning import proposal_lines
from .data.corpus import own_shards
from .data.prepare import PreparedData, check_division, keep_check_lines, load_corpus, prepare_data
from .data.vocabulary import share_tokenizer, tokenizer_on_trial
from .loop.fit import fit, report_is_missing
from .loop.progress import Progress
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
from .record.lock import run_folder_of, run_folder_to_read
from .record.start import load_start_weights
from .record.training_text import check_same_text_on_all_workers, record_of_text, record_training_text
from .report.final_scores import record_final_scores
from .report.report import write_report
from .report.reproduction import commit
from .step.build import build, compiled
from .step.freezing import check_frozen
from .step.training_model import TrainingModel
from .validation.after_validation import inspections_of
from .validation.selection import select_weights
from .validation.validation import Validator
from .workers.rendezvous import log_as, report_lost_workers
from .workers.strategy import choose_strategy
from .workers.tf_config import Cluster, read_cluster
from .workers.workers import Workers

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
    with run_folder_to_read(config.run_folder, worker) as folder:
        config = with_found_micro_batches(folder, config, worker)
        check_unchanged(folder, config)
        check_division(config.training, config.data.shards, replicas, worker)
        check_start(folder, config, worker)
        corpus = load_corpus(config.data)
        tokenizer = tokenizer_on_trial(config.effective_tokenizer, corpus, folder, worker)
        data = prepare_data(corpus, tokenizer, config.training, config.cache_path, worker, config.data)
        record_of_text(folder, data, where_it_stands(folder, config.training), worker)  # which refuses another text
    transformer_config = config.transformer_config(tokenizer.vocab_size)
    check_frozen(transformer_config, config.training.frozen or ())
    report_preflight(config.training, data, transformer_config, replicas)
    if config.data.outputs == TEXT:
        for line in proposal_lines(own_shards(corpus.train, worker)[0], config.data):
            log.info(line)


def train(config: RunConfig, folder: RunFolder, cluster: Cluster, changes: Changes) -> None:
    """Turn text into weights and a report, in a run folder that no other process writes to.

    changes: those of the configuration since the run was trained last. All workers take every step together. The chief
    alone does what is done once, before the steps and after them, and the others wait for it.
    """
    workers = Workers(choose_strategy(cluster), cluster.worker)
    check_same_on_all_workers(config, workers)
    check_division(config.training, config.data.shards, workers.replicas, workers.worker)

    corpus = load_corpus(config.data)
    tokenizer = share_tokenizer(config.effective_tokenizer, corpus, folder, workers)
    config = config.with_tokenizer(tokenizer.vocab_size, tokenizer.normalization)
    data = prepare_data(corpus, tokenizer, config.training, config.cache_path, workers.worker, config.data)
    check_same_text_on_all_workers(data, workers)
    workers.only_chief(record_start, config, folder, data, changes, workers)

    transformer = build(config.transformer_config(tokenizer.vocab_size), config.training, workers.strategy)
    workers.only_chief(load_start_weights, config.training, folder, transformer, tokenizer)
    config, model = compiled_to_fit(config, folder, data.batches, transformer, workers)
    validator = Validator(
        transformer, data, config.translation, config.training.xla, config.training.positions_at_once(workers.replicas)
    )
    inspections = inspections_of(config.training, transformer, tokenizer, validator)
    progress = fit(config, folder, data.batches, model, validator, workers, inspections)
    workers.only_chief(finish, config, folder, data, transformer, validator, progress, workers.describe())
    workers.wait()  # for the report: a chief that is stopped before it needs all others when it is started again


def record_start(config: RunConfig, folder: RunFolder, data: PreparedData, changes: Changes, workers: Workers) -> None:
    """Write into the run folder what is about to be trained on which text, and log what is worth knowing before."""
    transformer_config = config.transformer_config(data.tokenizer.vocab_size)
    record_training_text(folder, data, where_it_stands(folder, config.training), workers.worker)
    record_part(folder, config.training, commit(), changes)  # before config.toml, with which the next process compares
    write_configuration(folder, config, transformer_config)
    keep_check_lines(data.corpus.validation, folder.check_lines)
    report_preflight(config.training, data, transformer_config, workers.replicas)


def compiled_to_fit(
    config: RunConfig, folder: RunFolder, batches: ShardedBatches, transformer: keras.Model, workers: Workers
) -> tuple[RunConfig, TrainingModel]:
    """`compiled`, with as many micro-batches as memory asks for if `training.find_micro_batches` is true.

    Returns the configuration with the number that was found, which config.toml then has too, and the model.
    """
    compile_for = functools.partial(compiled, transformer, strategy=workers.strategy)
    if not config.training.find_micro_batches:
        return config, compile_for(config.training)
    model_config = transformer.model_config
    training, model = find_micro_batches(config.training, model_config, batches, workers.strategy, compile_for)
    config = config.model_copy(update={"training": training})
    write_configuration(folder, config, model_config)
    return config, model


def finish(
    config: RunConfig,
    folder: RunFolder,
    data: PreparedData,
    transformer: keras.Model,
    validator: Validator,
    progress: Progress,
    devices: str,
) -> None:
    """Select the weights that translation uses, and write the report. A signal ends this at once: it is soon redone."""
    with interrupted_by_signals(report_is_missing(folder)):
        selection = select_weights(folder, config.training, transformer, validator)
        write_projector(folder.tensorboard, transformer, data.tokenizer.pieces())
        card = write_report(config, folder, data, progress, selection, devices)
        record_final_scores(folder, config, progress.step, card.scores, selection.kept.validation.loss)
