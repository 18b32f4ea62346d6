"""One trainer to a run folder: a lock that dies with its process."""

import contextlib
import fcntl
import logging
import os
import tempfile
import tomllib

from keras_transformer.config import ConfigError
from keras_transformer.run_folder import RunFolder

log = logging.getLogger("train")

FIXED = ("model.", "tokenizer.")  # sections that decide what a weight means
OWN_KEYS = (  # paths
    "run_folder", "cache_folder", "data.train", "data.validation", "data.test", "data.data_dir", "tokenizer.model",
)  # fmt: skip


@contextlib.contextmanager
def own_folder(path, worker):
    """The run folder at `path`, locked, for the chief; a temporary one for every other worker, which keeps nothing."""
    if worker.is_chief:
        folder = RunFolder(path)
        create(folder)
        with run_lock(folder):
            yield folder
    else:
        with tempfile.TemporaryDirectory() as scratch:
            yield RunFolder(scratch)


@contextlib.contextmanager
def run_lock(folder):
    """Hold the run folder while training. The system lets go of it however the process ends.

    Raises ConfigError where another process holds it, with that process's number.
    """
    with open(folder.lock, "a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise ConfigError(
                f"{folder.path} is being trained by process {holder}. Wait for it, stop it, or use another run_folder."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def check_changes(folder, config):
    """Compare `config` with the configuration of the run folder, if training in it has begun.

    Every key that differs is logged. Raises ConfigError if one of them changes the meaning of the weights.
    """
    if not folder.config.exists() or not any(folder.checkpoints.glob("*.npz")):
        return
    try:
        before = flat(tomllib.loads(folder.config.read_text(encoding="utf-8")))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(
            f"{folder.config} is not valid TOML: {error}. It is the run's own record; restore it."
        ) from None
    now = flat(tomllib.loads(config.to_toml()))
    changes = {
        key: f"{key} was {before.get(key, 'not set')!r} and is {now.get(key, 'not set')!r}"
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key) and key != "run_folder"
    }
    refused = [sentence for key, sentence in changes.items() if key.startswith(FIXED)]
    if refused:
        raise ConfigError(
            f"{folder.path} was begun with another model or tokenizer: {'; '.join(refused)}. "
            "Its weights would mean something else: go back to that configuration, or use another run_folder."
        )
    for sentence in changes.values():
        log.info("the configuration has changed since this run began: %s", sentence)


def check_same(config, broadcast):
    """Raises ConfigError on a worker whose configuration is not the chief's; paths may differ."""
    here = flat(tomllib.loads(config.to_toml()))
    chief = flat(tomllib.loads(broadcast.text(config.to_toml())))
    differences = [
        f"{key} is {here.get(key, 'not set')!r} here and {chief.get(key, 'not set')!r} there"
        for key in sorted(here.keys() | chief.keys())
        if here.get(key) != chief.get(key) and key not in OWN_KEYS
    ]
    if differences:
        raise ConfigError(
            f"This worker's configuration is not that of worker 0: {'; '.join(differences)}. "
            "Start every worker with the same one."
        )


def flat(values, prefix=""):
    """{"a": {"b": 1}} -> {"a.b": 1}"""
    pairs = {}
    for key, value in values.items():
        pairs |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return pairs


def create(folder):
    """Create the run folder. Raises ConfigError, if the file system refuses."""
    try:
        folder.path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"run_folder {folder.path} cannot be made: {error.strerror}.") from None
