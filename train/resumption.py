"""Going on with a run under another configuration: what may change is said, what may not is refused."""

import logging
import tomllib

from keras_transformer.config import ConfigError

log = logging.getLogger("train")

FIXED = ("model.", "tokenizer.")  # sections that decide what a weight means


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


def flat(values, prefix=""):
    """{"a": {"b": 1}} -> {"a.b": 1}"""
    pairs = {}
    for key, value in values.items():
        pairs |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return pairs
