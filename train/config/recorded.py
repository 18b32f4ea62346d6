"""The configuration that a run folder records, which may be of another version."""

import logging
import os
from typing import Any

from keras_transformer.model_config import FIRST_KIND
from keras_transformer.pieces.normalization import IDENTITY

from .run import KEYS, SECTIONS, RunConfig, check_config, read_toml

log = logging.getLogger("train")

BEFORE_THEY_WERE_KEYS = {  # what a config.toml without them was trained with
    "model.kind": FIRST_KIND,
    "tokenizer.lowercase": False,
    "tokenizer.dummy_prefix": False,
    "tokenizer.normalization": IDENTITY,
    "tokenizer.split_digits": False,
    "tokenizer.placeholders": 0,
    "data.placeholders": 0.0,
    "training.optimizer": "adam",
    "training.lora_rank": 0,
    "training.precision": "float32",
}


def load_recorded(path: str | os.PathLike) -> RunConfig:
    """Read the config.toml of a run, which may be of another version: keys that this one lacks are logged and left out.

    Raises ConfigError as `load_config` does for what is damaged.
    """
    values, unknown = read_toml(path), []
    for name, section in list(values.items()):
        if isinstance(section, dict) and name in SECTIONS:
            unknown += [f"{name}.{key}" for key in section if f"{name}.{key}" not in KEYS]
            values[name] = {key: value for key, value in section.items() if f"{name}.{key}" in KEYS}
        elif name not in KEYS:
            unknown.append(name)
            del values[name]
    if unknown:
        log.warning("%s has keys that this version does not know: %s", path, ", ".join(unknown))
    return check_recorded(values, path)


def check_recorded(values: dict[str, Any], path: str | os.PathLike) -> RunConfig:
    """Return the configuration of a record whose keys this version has. Raises ConfigError for what is damaged.

    A key that the record lacks, because it is older, has the value with which the run was trained.
    """
    values = {name: dict(part) if isinstance(part, dict) else part for name, part in values.items()}
    for key, value in BEFORE_THEY_WERE_KEYS.items():
        section, _, name = key.partition(".")
        values.setdefault(section, {}).setdefault(name, value)
    return check_config(values, path)
