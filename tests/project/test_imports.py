"""The map of the folders holds: one-way arrows, rooms, no circles, files that are named and short."""

import ast
import functools
import graphlib
import itertools
import pathlib
import re

import pytest

from tests.support.imports import (
    EVERY_FILE,
    FILE_OF,
    MODULES,
    PACKAGES,
    TREES,
    files_of,
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
    *("versions", "job", "client", "graph", "server", "certificate", "ctranslate2", "litert", "huggingface", "top"),
)
MAY_IMPORT_TENSORFLOW = {
    f"keras_transformer.{name}"
    for name in (
        "aligner",
        "datasets",
        "decoding.gather",
        "parallel",
        "recurrent.loop",
        "replicas",
        "scorer",
        "graph_tokenizer",
        "compiled_search",
    )
}
# the top level of train/
STORY = {"__init__", "__main__", "run", "evaluate", "compare", "calibrate", "distil", "projector"}
DRAWERS = {"utils", "helpers", "common", "misc"}
LONGEST = 300  # lines: a longer file is telling two stories
SUBJECTS = {  # of test files that are about more than one module: each other one is named after its module
    "boxed_model": "presets/, and make try",
    "attack": "bad requests to a local server",
    "attack_links": "links and pipes in the folder of a model",
    "attack_memory": "clients that hold requests and answers of a local server",
    "attack_options": "bad options of the signature translate",
    "backends": "the model on JAX and PyTorch",
    "check_learning": "tests/check_learning.py",
    "container": "serving/Dockerfile and serving/local_server.yaml",
    "cluster_commands": "keras-transformer cluster",
    "cluster": "several processes that train as one",
    "damaged_archives": "every reader of a .zip or .npz file",
    "decoder_kinds": "model.decoder_layer",
    "decoder_step": "decoding/step.py against the whole Transformer",
    "decoding_backends": "the search on JAX and PyTorch",
    "encoder_kinds": "model.encoder_layer",
    "search_start": "decoding/search.py before the first step",
    "text_files": "keras-transformer translate --format, --input and --output",
    "documents_page": "docs/documents.md",
    "equations": "docs/equations.md",
    "exact": "replicas, workers and micro-batches train alike",
    "examples": "examples/",
    "extras": "the extras of pyproject.toml",
    "export_command": "keras-transformer export",
    "export_ctranslate2": "keras-transformer export --format ctranslate2",
    "export_litert": "keras-transformer export --format litert, and keras_transformer/lite",
    "export_options": "keras-transformer export without a run",
    "export_shortlist": "exports of a run with a shortlist, in every format",
    "export_translate": "keras-transformer translate-export",
    "forks": "tests/support/forks.py",
    "front_door": "import keras_transformer",
    "imported_parts": "imported/, part by part, without the packages of others",
    "imported_run": "an imported model through every door of a run",
    "handed_on": "options that functions hand on",
    "http_limits": "export/server/http_connection.py without a socket",
    "imports": "the map of the folders",
    "job_on_lists": "cluster/job.py on a Spark of lists",
    "keras_hooks": "docs/keras_hooks.md",
    "korean": "the pages in Korean",
    "links": "the links of README.md and of every page",
    "killed": "a run that is killed and resumed",
    "letters_graph": "export/graph/served_graph.py with letters for tokens",
    "light_folder": "export/server/models.py and model_folder.py with versions that load at once",
    "lite_folder": "keras_transformer/lite/folder.py",
    "messages": "what a user reads of errors of the operating system",
    "lowercase": "tokenizers in lower case",
    "manual": "the pages of docs/",
    "marian_mt": "an exported folder in transformers",
    "metrics_page": "docs/metrics.md",
    "page_key": "API keys on the page",
    "page_paragraphs": "whole texts on the page",
    "page_protected": "protected spans, terms and phrases on the page",
    "parity": "independent implementations",
    "old_runs": "tests/data/old_runs",
    "written_before": "tests/data/written_by_ff3e6823",
    "pair_run": "a run whose tokenizer is a pair of SentencePiece models",
    "parsing": "a run on a treebank through every command",
    "readme": "README.md",
    "real_clients": "clients in other languages and from other projects",
    "recurrent_run": "a recurrent model through every door",
    "recurrent_training": "the training step with a recurrent model",
    "rewinds": "train/loop/divergence.py without a model",
    "run_config": "train/config/run.py",
    "recipe_scripts": "examples/*_recipe.sh",
    "references_page": "docs/references.md",
    "program": "the command keras-transformer",
    "scaling": "docs/scaling.md",
    "search_options": "SearchOptions, from a script to translations",
    "site": "the site of the documentation",
    "operating": "docs/operating.md and serving/grafana.json",
    "kubernetes": "serving/spark.yaml",
    "serving_files": "serving/ and docs/tensorflow_serving.md",
    "serving_runtime": "an export in TensorFlow's C++ runtime",
    "several_models": "keras-transformer serve --models",
    "several_languages": "tags of target languages, from text to translations",
    "shards": "a corpus in shards",
    "tensorboard": "docs/tensorboard.md",
    "story": "the story of a run, train/run.py",
    "stock_fit": "what a user writes with stock Keras",
    "stock_fit_backends": "stock model.fit on JAX and PyTorch",
    "keras_promises": "what Keras promises of every layer",
    "keras_promises_backends": "what Keras promises, on JAX and PyTorch",
    "contributing": "CONTRIBUTING.md and CHANGELOG.md",
    "configuration_page": "docs/configuration.md",
    "text_page": "docs/text.md",
    "training_page": "docs/training.md",
    "trial_commands": "the processes of benchmarks/trials/training.py",
    "types": "`make lint`: the types",
    "two_replicas": "stock model.fit under MirroredStrategy",
    "wheel": "the wheel and an editable checkout",
}

PEERS = set("pyspark py4j torch jax scipy ctranslate2 transformers playwright axe_playwright_python".split())
PEERS |= {"pysubs2", "translate"}


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
    """The place in `rooms` of a module of train/ or export/: its folder or file; other files are the top."""
    parts = module.split(".")
    return rooms.index(parts[1] if parts[1:] and parts[1] in rooms else "top")


@pytest.mark.parametrize(("package", "rooms"), [("train", ROOMS), ("export", EXPORT_ROOMS)])
def test_a_room_imports_only_rooms_before_it(package, rooms):
    def rooms_above(module):
        imported = [name for name in modules_imported_by(module) if name.startswith(f"{package}.")]
        return [name for name in imported if room_of(name, rooms) > room_of(module, rooms)]

    assert offenders(rooms_above, [name for name in MODULES if name.startswith(f"{package}.")]) == {}


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


MIRRORS = {"library": "keras_transformer"} | {room: room for room in ("train", "export", "cluster", "benchmarks")}


def test_a_test_file_is_named_after_a_module_of_its_folder_or_has_a_subject():
    without_module = set()
    for path in (ROOT / "tests").rglob("test_*.py"):
        source = MIRRORS.get(path.relative_to(ROOT / "tests").parts[0])
        modules = {part for file in files_of(source) for part in (file.stem, file.parent.name)} if source else set()
        if (subject := path.stem.removeprefix("test_")) not in modules:
            without_module.add(subject)
    assert without_module == set(SUBJECTS), "name a test file after its module, or add it to SUBJECTS"


def test_tests_start_python_and_find_the_checkout_through_their_support():
    own_ways = re.compile(r"sys\.executable|Path\(__file__\)").findall
    tests = (ROOT / "tests").rglob("test_*.py")
    assert offenders(lambda path: own_ways(path.read_text(encoding="utf-8")), tests) == {}


def peers_imported_at_the_top(file):
    imported = {alias.name for node in TREES[file].body if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in TREES[file].body if isinstance(node, ast.ImportFrom) and node.module}
    return PEERS & {module.partition(".")[0] for module in imported}


def test_the_tests_begin_without_the_packages_of_comparisons():
    """They skip what needs these packages, if `make peers` has not installed them; scipy comes with jax."""
    tests = [file for file in EVERY_FILE if file.startswith("tests") and "scripts" not in file]
    assert offenders(peers_imported_at_the_top, tests) == {}


def test_no_file_is_a_drawer_for_whatever_comes():
    assert offenders(lambda file: DRAWERS & set(pathlib.PurePath(file).with_suffix("").parts), EVERY_FILE) == {}


def test_a_file_begins_with_what_it_is_about():
    files = [file for file in EVERY_FILE if not file.endswith("__init__.py")]
    assert offenders(lambda file: not ast.get_docstring(TREES[file]), files) == {}


def test_a_file_has_at_most_300_lines():
    lengths = {file: len(path.read_text(encoding="utf-8").splitlines()) for file, path in EVERY_FILE.items()}
    assert {file: length for file, length in lengths.items() if length > LONGEST} == {}


def asserts_in(module):
    return [node.lineno for node in ast.walk(MODULES[module]) if isinstance(node, ast.Assert)]


def test_no_assert_outside_tests_since_python_O_removes_it():
    assert offenders(asserts_in, MODULES) == {}
