"""The story of a run: from a configuration to a run folder that can translate."""

import logging
import os

import keras

from keras_transformer.ground.memory import keep_freed_memory
from keras_transformer.model import Transformer
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.recurrent.model import RecurrentModel
from keras_transformer.runs.kinds import kind_of
from keras_transformer.runs.run_folder import RunFolder

from .config.run import RunConfig
from .config.training import TrainingConfig
from .cost.micro_batches import compiled_to_fit
from .cost.preflight import report_preflight
from .data.prepare import prepared, prepared_on_trial, proposals
from .loop.fit import fit
from .record.changes import check_same_on_all_workers
from .record.opened_run import OpenedRun, check_text, record_start, run_to_read, run_to_train
from .record.start import load_start_weights
from .report.finish import finish
from .step.freezing import check_frozen
from .validation.after_validation import validation_of
from .workers.rendezvous import log_as, report_lost_workers
from .workers.tf_config import Cluster, read_cluster
from .workers.workers import Workers, replicas_like_here

log = logging.getLogger("train")


def run(config: RunConfig) -> RunFolder | None:
    """Train as `config` says, or continue the run in its run folder.

    Returns the RunFolder on the chief, None on every other worker.
    Raises UserError for what the user can correct, and Interrupted if training stops before the last step.
    """
    keep_freed_memory()
    cluster = read_cluster(os.environ.get("TF_CONFIG"))
    log_as(cluster.worker)
    with run_to_train(config, cluster.worker) as opened, report_lost_workers(cluster):
        train(opened, cluster)
        return opened.folder if cluster.worker.is_chief else None


def dry_run(config: RunConfig) -> None:
    """Do what comes before the first step and log what is found. Leaves nothing but the cache.

    A worker of a cluster does its own part without waiting for the others.
    """
    worker = read_cluster(os.environ.get("TF_CONFIG")).worker
    replicas = replicas_like_here(worker)
    with run_to_read(config, worker) as opened:
        config = opened.config
        data = prepared_on_trial(config, opened.folder, worker, replicas)
        check_text(opened, data, worker)
    model_config = config.transformer_config(data.tokenizer.vocab_size)
    check_frozen(model_config, config.training.frozen or ())
    report_preflight(config.training, data, model_config, replicas)
    for line in proposals(data, config.data, worker):
        log.info(line)


def train(opened: OpenedRun, cluster: Cluster) -> None:
    """Turn text into weights and a report, in a run folder that no other process writes to.

    All workers take every step together. The chief alone does what is done once, before the steps and after them, and
    the others wait for it.
    """
    folder, config = opened.folder, opened.config
    workers = Workers.of(cluster)
    check_same_on_all_workers(config, workers)
    config, data = prepared(config, folder, workers)
    model_config = config.transformer_config(data.tokenizer.vocab_size)
    record_start(opened._replace(config=config), data, workers)
    workers.only_chief(report_preflight, config.training, data, model_config, workers.replicas)

    transformer = build(model_config, config.training, workers)
    workers.only_chief(load_start_weights, config.training, folder, transformer, data.tokenizer)
    config, model = compiled_to_fit(config, folder, data.batches, transformer, workers)
    validator, inspections = validation_of(config, transformer, data, workers.replicas)
    progress = fit(config, folder, data.batches, model, validator, workers, inspections)
    workers.only_chief(finish, config, folder, data, transformer, validator, progress, workers.describe())
    workers.wait()  # for the report: a chief that is stopped before it needs all others when it is started again


def build(config: BaseModelConfig, training: TrainingConfig, workers: Workers) -> Transformer | RecurrentModel:
    """The model with its first weights, which follow from `training.seed`."""
    with workers.strategy.scope():
        keras.utils.set_random_seed(training.seed)
        transformer = kind_of(config).model(config, dtype=training.precision)
    parameters = f"{transformer.count_params():,}"
    log.info("%s parameters; training on %s, %s", parameters, workers.describe(), training.precision)
    return transformer
