"""The configuration that a run folder records, which may be of another version."""

import logging
import os

from .run import KEYS, SECTIONS, RunConfig, check_config, read_toml

log = logging.getLogger("train")


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
    return check_config(values, path)
