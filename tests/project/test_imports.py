"""The map of the folders holds: one-way arrows, rooms, no circles, files that say what they are about."""

import ast
import functools
import graphlib
import itertools
import re

import pytest

from tests.support.imports import (
    EVERY_FILE,
    FILE_OF,
    MODULES,
    PACKAGES,
    TREES,
    modules_imported_by,
    name_of,
    roots_imported_by,
    source_of,
)
from tests.support.places import ROOT

FORBIDDEN = {
    "keras_transformer": {"train", "export", "cluster", "benchmarks"},
    "train": {"export", "cluster", "benchmarks"},
    "export": {"train", "cluster", "benchmarks"},
    "cluster": {"train", "export", "benchmarks"},
}
# of train/, in the direction of imports
ROOMS = "config", "workers", "data", "step", "loop", "scoring", "record", "validation", "cost", "report", "top"
EXPORT_ROOMS = (  # of export/, likewise
    *("versions", "expressible", "job", "client", "graph", "server", "certificate", "ctranslate2", "litert"),
    *("huggingface", "top"),
)
LIBRARY_ROOMS = (  # of keras_transformer/; `paper` is its top level and layers/, `front` its door and its program
    *("ground", "paper", "search", "recurrent", "pieces", "runs", "shortlist", "text", "lite", "parsing", "models"),
    *("translation", "inspection", "page", "doctor", "commands", "front"),
)
MAY_IMPORT_TENSORFLOW = {
    f"keras_transformer.{name}"
    for name in (
        "ground.replicas",
        "layers.gather",
        "layers.loop",
        "pieces.datasets",
        "pieces.graph_tokenizer",
        "translation.aligner",
        "translation.compiled_search",
        "translation.exported",
        "translation.parallel",
        "translation.scorer",
    )
}
# the top level of train/
STORY = {"__init__", "__main__", "run", "evaluate", "compare", "calibrate", "distil", "projector"}
PEERS = set("pyspark py4j torch jax scipy ctranslate2 transformers playwright axe_playwright_python".split())
PEERS |= {"pysubs2", "translate", "libretranslatepy", "translatepy", "openapi_spec_validator", "schemathesis"}


def test_each_file_on_the_way_to_the_softmax_imports_the_next_one():
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    paths = re.findall(r"^\d\. `(.*)\.py`", page.partition("## From a command to the softmax")[2], re.MULTILINE)
    modules = [path.replace("/", ".") for path in paths]
    assert (modules[0], modules[-1]) == ("train.__main__", "keras_transformer.layers.attention")
    for module, next_module in itertools.pairwise(modules):
        assert next_module in modules_imported_by(module)


def test_the_packages_are_found():
    assert {"keras_transformer.model", "keras_transformer.layers.attention", "train.config.run", "export"} <= set(
        MODULES
    )
    assert "keras_transformer.layers.attention" in modules_imported_by("keras_transformer.layers.blocks")


def offenders(rule, things):
    """The `things` that break a rule, each with what `rule(thing)` finds wrong with it."""
    return {thing: wrong for thing in things if (wrong := rule(thing))}


def test_the_arrows_between_the_folders_point_one_way():
    assert offenders(lambda module: roots_imported_by(module) & FORBIDDEN[module.split(".")[0]], MODULES) == {}


def room_of(module, rooms):
    """The place in `rooms` of a module: its folder or file; other files of train/ and export/ are the top."""
    package, *parts = module.split(".")
    if parts and parts[0] in rooms:
        return rooms.index(parts[0])
    if package != "keras_transformer":
        return rooms.index("top")
    return rooms.index("front" if not parts or parts == ["__main__"] else "paper")


@pytest.mark.parametrize(
    ("package", "rooms"), [("train", ROOMS), ("export", EXPORT_ROOMS), ("keras_transformer", LIBRARY_ROOMS)]
)
def test_a_room_imports_only_rooms_before_it(package, rooms):
    def rooms_above(module):
        imported = [name for name in modules_imported_by(module) if name.partition(".")[0] == package]
        return [name for name in imported if room_of(name, rooms) > room_of(module, rooms)]

    assert offenders(rooms_above, [name for name in MODULES if name.partition(".")[0] == package]) == {}


def test_the_top_of_the_library_is_the_paper_and_each_folder_of_it_is_a_room():
    files = {path.stem for path in (ROOT / "keras_transformer").glob("*.py")}
    paper = "config model_config masks model translation_model losses schedules optimizers metrics"
    assert files == {"__init__", "__main__", *paper.split()}
    folders = {path.parent.name for path in (ROOT / "keras_transformer").glob("*/__init__.py")}
    assert folders == set(LIBRARY_ROOMS) - {"paper", "front"} | {"layers"}


@functools.cache
def defined_in(path):
    """The names at the top level of a module, those in its `if` and `try` included."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        for inner in ast.walk(node) if isinstance(node, ast.If | ast.Try) else [node]:
            if isinstance(inner, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                names.add(inner.name)
            elif isinstance(inner, ast.Import | ast.ImportFrom):
                names.update(alias.asname or alias.name for alias in inner.names)
            elif isinstance(inner, ast.Assign | ast.AnnAssign):
                targets = inner.targets if isinstance(inner, ast.Assign) else [inner.target]
                names.update(name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))
    return names


def exists(module, name):
    """Whether `from module import name` finds something: a module, or a name in one."""
    if f"{module}.{name}" in FILE_OF:
        return True
    return module in FILE_OF and name in defined_in(FILE_OF[module])


def missing_imports(file):
    """What a file imports from this project although it does not exist."""
    path = EVERY_FILE[file]
    imports = [
        (source_of(node, name_of(path), path.name == "__init__.py"), alias.name)
        for node in ast.walk(TREES[file])
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    own = [(source, alias) for source, alias in imports if source.split(".")[0] in (*PACKAGES, "benchmarks", "tests")]
    return [f"{source}.{alias}" for source, alias in own if not exists(source, alias)]


def test_what_a_file_imports_from_this_project_exists():
    assert offenders(missing_imports, EVERY_FILE) == {}


def test_no_module_imports_itself_through_others():
    graph = {module: set(modules_imported_by(module)) for module in MODULES}
    order = list(graphlib.TopologicalSorter(graph).static_order())  # raises a CycleError that names the circle
    assert set(MODULES) <= set(order)


def test_only_text_in_the_graph_the_translator_and_tf_distribute_need_tensorflow():
    library = [name for name in MODULES if name.startswith("keras_transformer")]
    users = offenders(lambda module: roots_imported_by(module) & {"tensorflow", "tensorflow_text"}, library)
    assert set(users) <= MAY_IMPORT_TENSORFLOW


def test_the_top_level_of_train_is_its_story():
    assert {path.stem for path in (ROOT / "train").glob("*.py")} == STORY


def peers_imported_at_the_top(file):
    imported = {alias.name for node in TREES[file].body if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in TREES[file].body if isinstance(node, ast.ImportFrom) and node.module}
    return PEERS & {module.partition(".")[0] for module in imported}


def test_the_tests_begin_without_the_packages_of_comparisons():
    """They skip what needs these packages, if `make peers` has not installed them; scipy comes with jax."""
    tests = [file for file in EVERY_FILE if file.startswith("tests") and "scripts" not in file]
    assert offenders(peers_imported_at_the_top, tests) == {}


def asserts_in(module):
    return [node.lineno for node in ast.walk(MODULES[module]) if isinstance(node, ast.Assert)]


def test_no_assert_outside_tests_since_python_O_removes_it():
    assert offenders(asserts_in, MODULES) == {}
