"""Which version of this distribution runs: as pyproject.toml of the checkout says, or as pip wrote down."""

import importlib.metadata
import pathlib
import tomllib
from typing import Any

from keras_transformer.ground.command_table import DISTRIBUTION

CHECKOUT = pathlib.Path(__file__).parents[2] / "pyproject.toml"  # of an installed package there is none
UNKNOWN = "of an unknown version"


def project_of_checkout() -> dict[str, Any]:
    """Return the table [project] of pyproject.toml; {} if this is an installed package."""
    project = tomllib.loads(CHECKOUT.read_text("utf-8")).get("project", {}) if CHECKOUT.is_file() else {}
    return project if project.get("name") == DISTRIBUTION else {}


def version() -> str:
    """Return the version that runs, such as "0.9.0"; UNKNOWN of a folder that was copied without pip."""
    try:
        return project_of_checkout().get("version") or importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        return UNKNOWN


def version_line() -> str:
    """Return what `keras-transformer --version` prints, such as "keras-transformer-mt 0.9.0"."""
    return f"{DISTRIBUTION} {version()}"
