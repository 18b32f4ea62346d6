"""A run that is about to be trained: its folder, opened, and the configuration with which it may begin or go on."""

import contextlib
from collections.abc import Iterator
from typing import NamedTuple

from keras_transformer.runs.run_folder import RunFolder

from ..config.lora import check_lora
from ..config.run import RunConfig
from ..config.training import check_idle_keys
from ..data.prepare import PreparedData, keep_check_lines
from ..step.optimizer_choice import check_optimizer
from ..workers.tf_config import Worker
from ..workers.workers import Workers
from .as_begun import with_found_micro_batches, with_precision
from .changes import check_start, check_unchanged, write_configuration
from .finished import where_it_stands
from .history import Changes, commit, record_part
from .lock import run_folder_of, run_folder_to_read
from .training_text import check_same_text_on_all_workers, record_of_text, record_training_text


class OpenedRun(NamedTuple):
    """What has been checked against the record of the run, before the text is read."""

    folder: RunFolder
    config: RunConfig
    changes: Changes  # of the configuration since the run was trained last


@contextlib.contextmanager
def run_to_train(config: RunConfig, worker: Worker) -> Iterator[OpenedRun]:
    """Yields the run of `config`, whose folder no other process writes to within: see `run_folder_of`.

    Raises ConfigError if it cannot begin or go on with this configuration.
    """
    check_training(config)
    with run_folder_of(config.run_folder, worker) as folder:
        yield checked(folder, config, worker)


@contextlib.contextmanager
def run_to_read(config: RunConfig, worker: Worker) -> Iterator[OpenedRun]:
    """As `run_to_train`, but creates and locks nothing."""
    check_training(config)
    with run_folder_to_read(config.run_folder, worker) as folder:
        yield checked(folder, config, worker)


def check_training(config: RunConfig) -> None:
    """Raises ConfigError for keys of [training] that do not go together, and for an optimizer that there is not."""
    check_idle_keys(config.training)
    check_optimizer(config.training)
    check_lora(config.training, config.transformer_config(config.tokenizer.vocab_size))


def checked(folder: RunFolder, config: RunConfig, worker: Worker) -> OpenedRun:
    """The run in `folder`, if it can begin or go on with `config`. Raises ConfigError if it cannot."""
    config = with_precision(folder, with_found_micro_batches(folder, config, worker), worker)
    changes = check_unchanged(folder, config)
    check_start(folder, config, worker)
    return OpenedRun(folder, config, changes)


def record_start(run: OpenedRun, data: PreparedData, workers: Workers) -> None:
    """Let the chief write into the run folder what is about to be trained on which text.

    Raises ConfigError on a worker whose text is another, and for another text than before if no steps are left.
    """
    check_same_text_on_all_workers(data, workers)
    if not workers.is_chief:
        return
    folder, training = run.folder, run.config.training
    record_training_text(folder, data, where_it_stands(folder, training), workers.worker)
    record_part(folder, training, commit(), run.changes)  # before config.toml, with which the next process compares
    write_configuration(folder, run.config, run.config.transformer_config(data.tokenizer.vocab_size))
    keep_check_lines(data.corpus.validation, folder.check_lines)


def check_text(run: OpenedRun, data: PreparedData, worker: Worker) -> None:
    """Raises ConfigError for another text than before if no steps are left, and logs what differs otherwise."""
    record_of_text(run.folder, data, where_it_stands(run.folder, run.config.training), worker)
