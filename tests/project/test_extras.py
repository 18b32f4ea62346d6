"""The extras of the distribution: each brings what its commands import, and nothing else."""

import importlib.metadata
import re
import sys
import tomllib

import pytest

import keras_transformer as kt
from keras_transformer.ground.command_table import COMMANDS
from tests.support.imports import MODULES, PACKAGES, modules_behind, roots_imported_by
from tests.support.places import ROOT
from tests.support.processes import python

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
# imports that a sentence stands in for if the package is missing, or that only another backend does
OPTIONAL = {
    "nltk",
    "tensorflow_text",
    "tensorflow_datasets",
    "ctranslate2",
    "jax",
    "huggingface_hub",
    "ai_edge_litert",
    "regex",
    "sacremoses",
    "sentencex",
    "py3langid",
    "markdown_it",
}
# what the requirements bring and the project imports too
BROUGHT = {
    "flatbuffers": "tensorflow",
    "google": "tensorflow",
    "h5py": "keras",
    "numpy": "keras",
    "PIL": "matplotlib",
    "urllib3": "requests",
    "py4j": "pyspark",
}
# who imports what the project does not import itself
IMPORTED_BY = {"httptools": "uvicorn.protocols.http.httptools_impl", "importlib-resources": "tensorflow_datasets"}
PACKAGES_OF_MODULES = importlib.metadata.packages_distributions() | {
    "ctranslate2": ["ctranslate2"],
    "pyspark": ["pyspark"],
}


def modules_of(extra):
    """The modules that an extra is for, with all that they import; "" is for the library and its commands.

    Those of an extra for one option are all modules.
    """
    if extra not in ("", "inspection", "train", "serve"):
        return MODULES
    starts = [command.module for command in COMMANDS.values() if command.extra == extra]
    if extra == "":
        starts += [f"keras_transformer.{module}" for module in kt.MODULE_OF.values()]
    if extra == "train":  # finds the section and the reader of a source by name
        starts += [name for name in MODULES if name.startswith(("train.config.sources", "train.data.sources"))]
    if extra == "inspection":
        starts += [name for name in MODULES if name.startswith("keras_transformer.inspection")]
    return modules_behind(*starts)


def packages_of(extra):
    """The packages that `pip install NAME[extra]` asks for: those of the extras that it names are among them."""
    packages = {name_of(requirement) for requirement in PROJECT["dependencies"]}
    for requirement in EXTRAS[extra] if extra else ():
        if named := re.fullmatch(rf"{PROJECT['name']}\[(.*)\]", requirement):
            packages |= {package for other in named[1].split(",") for package in packages_of(other)}
        else:
            packages.add(name_of(requirement))
    return packages


def name_of(requirement):
    return re.match(r"[\w-]+", requirement)[0].lower().replace("_", "-")


def package_of(root):
    """The package that brings a module."""
    return BROUGHT.get(root) or name_of(PACKAGES_OF_MODULES[root][0])


def foreign(modules):
    roots = {root for module in modules for root in roots_imported_by(module)}
    return roots - sys.stdlib_module_names - set(PACKAGES)


@pytest.mark.parametrize("extra", ["", "inspection", "train", "serve"])
def test_an_extra_brings_what_its_modules_import(extra):
    roots = foreign(modules_of(extra)) - OPTIONAL
    assert {package_of(root) for root in roots} <= packages_of(extra)


@pytest.mark.nightly
def test_the_extra_of_a_command_brings_what_that_command_imports():
    lacking = {
        name: {package_of(root) for root in foreign(modules_behind(command.module)) - OPTIONAL}
        - packages_of(command.extra)
        for name, command in COMMANDS.items()
    }
    assert {name: packages for name, packages in lacking.items() if packages} == {}


@pytest.mark.nightly
@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_each_package_of_an_extra_is_imported(extra):
    imported = {package_of(root) for root in foreign(modules_of(extra)) - {"jax"}} | set(IMPORTED_BY)
    assert packages_of(extra) - packages_of("") <= imported


@pytest.mark.nightly
def test_the_help_of_every_command_needs_no_extra():
    """Whoever has installed the light library reads it before the extra."""
    script = """
import contextlib, sys
import typer.main
from keras_transformer.__main__ import main
from keras_transformer.ground.command_table import COMMANDS

class Lacking:
    blocked = set(sys.argv[1:]) - set(sys.modules)  # Typer may bring one of them

    def find_spec(name, path, target=None):
        if name.partition(".")[0] in Lacking.blocked:
            raise ModuleNotFoundError(f"No module named {name}", name=name)

sys.meta_path.insert(0, Lacking)
for name in COMMANDS:
    with contextlib.suppress(SystemExit):
        main(arguments=[name, "--help"])
"""
    of_extras = packages_of("all") - packages_of("")
    blocked = [root for root, names in PACKAGES_OF_MODULES.items() if of_extras & {name_of(name) for name in names}]
    assert {"tomli_w", "tenacity", "pydantic", "grpc"} <= set(blocked)
    process = python("-c", script, *blocked)
    assert (process.returncode, process.stderr) == (0, "")
    assert [name for name in COMMANDS if f"Usage: keras-transformer {name} [OPTIONS]" not in process.stdout] == []


def test_all_is_all():
    assert packages_of("all") == {package for extra in EXTRAS for package in packages_of(extra)}


def test_make_install_installs_every_extra():
    """requirements.txt has exact versions of what the extras ask for; ctranslate2 is in requirements-peers.txt."""
    texts = [(ROOT / name).read_text(encoding="utf-8") for name in ("requirements.txt", "requirements-peers.txt")]
    pinned = {name_of(line) for text in texts for line in text.splitlines() if "==" in line}
    assert packages_of("all") <= pinned
