"""What the README tells its readers to write, run and look up is there."""

import ast
import importlib
import json
import re
import statistics
import subprocess

import pytest

import keras_transformer as kt
from tests.support.commands import parse
from tests.support.places import ROOT
from train.config.run import load_config

LONGEST = 150  # lines
README = (ROOT / "README.md").read_text(encoding="utf-8")
CONDITIONS = (ROOT / "benchmarks" / "README.md").read_text(encoding="utf-8")
MANUAL = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))}
PAGES = {"README.md": README, **MANUAL}
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)


def commands_of(page):
    """The lines of a page's blocks of commands, and what its tables have in a cell, if a program of ours runs there."""
    blocks = [block for language, block in re.findall(r"```(\w*)\n(.*?)```", page, re.DOTALL) if not language]
    lines = [line for block in blocks for line in block.replace("\\\n", "").splitlines()]
    lines += re.findall(r"\| `((?:keras-transformer|python -m) [^`]+)` \|", page)
    commands = [line.split(" #")[0].split(" | ")[-1].strip() for line in lines]
    return [command for command in commands if command.startswith(("keras-transformer ", "python -m "))]


COMMANDS_OF_PAGES = sorted({command for page in PAGES.values() for command in commands_of(page)})


def test_it_is_read_in_a_minute():
    assert len(README.splitlines()) <= LONGEST


def test_the_configuration_for_ones_own_files_loads(tmp_path):
    (example,) = [block for language, block in BLOCKS if language == "toml"]
    path = tmp_path / "mine.toml"
    path.write_text(example, encoding="utf-8")
    config = load_config(path)
    assert config.data.train == [["train.en", "train.de"]]
    assert [config.data.source_language, config.data.target_language] == ["en", "de"]


def test_the_commands_of_the_pages_are_found():
    names = {line.split()[1] for line in commands_of(README)}
    assert {"train", "translate", "evaluate", "compare", "export", "serve", "query"} <= names
    assert any(line.startswith("python -m benchmarks.") for line in COMMANDS_OF_PAGES)


@pytest.mark.parametrize("line", COMMANDS_OF_PAGES)
def test_a_command_has_the_arguments_that_it_is_given(line):
    context = parse(line)
    assert context.params and context.args == []  # all of them were taken


def test_the_make_targets_that_pages_name_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = {
        target
        for page in PAGES.values()
        for target in re.findall(r"(?:^|[`;] ?)make ([a-z][\w-]+)", page, re.MULTILINE)
    }
    assert {"demo", "test", "check"} <= targets
    assert [target for target in targets if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_make_test_runs_every_folder_of_tests():
    lines = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ntest:")[2].partition("\n\n")[0]
    named = re.findall(r" tests/(\w+)", lines)
    assert sorted(named) == sorted({path.relative_to(ROOT).parts[1] for path in ROOT.glob("tests/*/**/test_*.py")})


@pytest.mark.parametrize(("uv", "installer"), [("", "-m pip install "), ("/any/uv", "/any/uv pip install ")])
def test_make_installs_everything_with_uv_or_without(tmp_path, uv, installer):
    for name in ("requirements.txt", "pyproject.toml", "setup.py"):
        (tmp_path / name).touch()
    command = ["make", "-n", "-f", ROOT / "Makefile", f"UV={uv}", "install", "peers", "lint", "docs"]
    printed = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    installing = [line for line in printed.splitlines() if "pip install" in line]
    wanted = {f"requirements{part}.txt" for part in ("", "-peers", "-lint", "-docs")}
    assert {line.split()[-1] for line in installing} == wanted | {"."}
    assert all(installer in line and ".venv/bin/python" in line for line in installing)


def test_make_clean_leaves_what_its_reader_trained(tmp_path):
    kept = ["runs/mine", "runs/cache", "exports/mine", "data/multi30k"]
    for folder in [*kept, "runs/numbers", "exports/numbers", ".venv", ".race"]:
        (tmp_path / folder).mkdir(parents=True)
    subprocess.run(["make", "-f", ROOT / "Makefile", "clean"], cwd=tmp_path, check=True, capture_output=True)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.glob("*/*")) == sorted(kept)
    assert {path.name for path in tmp_path.iterdir()} == {"runs", "exports", "data"}


def test_every_file_it_names_is_there():
    named = re.findall(r"(?<![\w/])(?:configs|docs|benchmarks|examples|train|export)/[\w/]+\.\w+", README)
    assert len(named) >= 5 and [path for path in named if not (ROOT / path).exists()] == []


def test_its_table_names_every_page_of_the_manual():
    assert [name for name in MANUAL if f"](docs/{name})" not in README] == []


def row_about(subject):
    """The row of the README's first table about a subject."""
    return next(line for line in README.splitlines() if line.startswith(f"| **{subject}**"))


def test_a_row_of_its_first_table_has_two_numbers_at_most():
    rows = re.findall(r"^\| \*\*.*?\*\* \| (.*?) \|", README, re.MULTILINE)
    names = r"Multi30k|test_2016|en-de|en-fr|CTranslate2|int8|64 clients|one core"
    assert len(rows) > 5 and [row for row in rows if len(re.findall(r"\d[\d.,]*", re.sub(names, "", row))) > 2] == []


def test_its_speeds_are_those_that_the_benchmarks_left():
    files = {
        name: ROOT / f"benchmarks/results/{name}.json" for name in ("train_speed", "translate_speed", "serve_load")
    }
    found = {name: json.loads(path.read_text(encoding="utf-8")) for name, path in files.items()}
    training, translation = found["train_speed"]["ratios"], found["translate_speed"]["ratios"]
    all_lines = "multi30k/beam4/all/"
    assert f"**{training['tiny/torch_compile']:.1f} times** `torch.compile`" in row_about("Training speed")
    assert f"{training['base/torch_compile']:.1f} times for base" in row_about("Training speed")
    assert f"**{translation[all_lines + 'marian']:.1f} times** `Marian" in row_about("Translation speed")
    assert f"{translation[all_lines + 'ctranslate2_float32']:.2f} times CTrans" in row_about("Translation speed")
    in_bfloat16 = translation[all_lines + "ctranslate2_float32/bfloat16"]
    assert f"with AMX, {in_bfloat16:.2f} times CTranslate2 in float32" in CONDITIONS
    loads = {load["clients"]: load for load in found["serve_load"]["loads"] if load["engine"] == "graph and LiteRT"}
    assert f"**{loads[64]['latencies']['per_second']:.0f}** requests/s from 64 clients" in row_about("Serving")
    assert f"{loads[1]['latencies']['p50'] * 1e3:.0f} ms for one " in row_about("Serving")
    assert all(load["wrong"] == [] for load in found["serve_load"]["loads"])


def alone_on_one_core(name):
    """Milliseconds by model and engine, one line at a time, in the table `name`."""
    engines = json.loads((ROOT / "benchmarks/results" / name).read_text(encoding="utf-8"))
    return {
        (point["model"], point["engine"]): 1000 * statistics.median(point["seconds"])
        for point in engines["points"]
        if (point["mode"], point["cores"]) == ("one", 1)
    }


def times_of_a_graph(alone, models):
    times = [alone[model, "saved_model"] / alone[model, "ctranslate2_float32"] for model in models]
    return " to ".join(f"{time:.1f}" for time in times)


def test_its_speeds_of_engines_are_those_that_the_benchmark_left():
    alone = alone_on_one_core("engines.json")
    ours, theirs = (alone["multi30k_en_de_fast", f"{engine}_int8"] for engine in ("litert", "ctranslate2"))
    assert f"**{ours:.1f} ms** of one core by LiteRT in int8, {theirs / ours:.2f} times" in row_about("One sentence")
    times = times_of_a_graph(alone, ["multi30k_en_de", "multi30k_en_de_fast"])
    assert f"takes {times} times as long as CTranslate2" in CONDITIONS
    folders = ["runs/multi30k_en_de", "presets/multi30k_en_de"]
    times = times_of_a_graph(alone_on_one_core("engines_amx.json"), folders)
    assert f"with [AMX](results/engines_amx.md) {times}:" in CONDITIONS


def test_its_speeds_on_an_accelerator_are_those_that_the_benchmark_left():
    lines = (ROOT / "benchmarks/results/accelerator.jsonl").read_text(encoding="utf-8").splitlines()
    for size, result in zip(("base", "big"), map(json.loads, lines), strict=False):  # other tables come after them
        speeds = {row["name"]: row["tokens_per_second"] for row in result["measurements"] if row["size"] == size}
        times = speeds["keras_bfloat16"] / speeds["torch_bfloat16"]
        stated = {
            "base": f"**{times:.2f} times** `torch.compile` for base",
            "big": f"{times:.2f} times for big",
        }
        assert stated[size] in row_about(f"On an {result['chip']['name'].removeprefix('NVIDIA ')}")
        tokens = f"{round(speeds['keras_bfloat16'], -3):,.0f} target tokens/s"
        assert size == "big" or tokens in CONDITIONS


def test_its_scores_are_those_of_the_table_of_results():
    quality = row_about("Quality")
    scores = re.findall(r"\*\*(\d+\.\d+)\*\*", quality)
    assert (
        len(scores) == 2
        and [score for score in scores if f"**{score}**\N{NO-BREAK SPACE}(" not in MANUAL["results.md"]] == []
    )


PYTHON = [
    (name, code)
    for name in ("README.md", "library.md")
    for code in re.findall(r"```python\n(.*?)```", PAGES[name], re.DOTALL)
]


@pytest.mark.parametrize(("name", "code"), PYTHON)
def test_python_names_what_there_is(name, code):
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert all(hasattr(importlib.import_module(node.module), alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            assert all(importlib.import_module(alias.name) for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "kt":
            assert hasattr(kt, node.attr)
