"""first_gpu.sh: its commands exist, its text is one to learn, and its table has what each part measured."""

import collections
import json
import os
import subprocess
import sys

import pytest

from benchmarks.speed.first_gpu import LONGEST, as_page, made_up_text, word_of
from tests.support.commands import parse
from tests.support.places import ROOT
from train.config.run import load_config

SCRIPT = ROOT / "benchmarks" / "speed" / "first_gpu.sh"
RECORD = '#!/bin/sh\necho "$CUDA_VISIBLE_DEVICES|$@" >> "$(dirname "$0")/commands"\n'


def started(folder, *options, code=0):
    """Run the script with a Python that only notes how it is called. Returns the process and [(devices, command)]."""
    python = folder / "python"
    python.write_text(RECORD + f"exit {code}\n", encoding="utf-8")
    python.chmod(0o755)
    environment = {**os.environ, "PYTHON": str(python), "CUDA_VISIBLE_DEVICES": "0"}
    process = subprocess.run(["bash", SCRIPT, *options], env=environment, capture_output=True, text=True)
    noted = folder / "commands"
    lines = noted.read_text(encoding="utf-8").splitlines() if noted.exists() else []
    return process, [line.replace("-m keras_transformer", "keras-transformer").split("|") for line in lines]


@pytest.mark.parametrize("options", [[], ["--toy"]])
def test_its_commands_exist_and_its_configuration_loads(options, tmp_path):
    process, commands = started(tmp_path, *options, str(tmp_path / "results"))
    assert process.returncode == 0, process.stderr
    parts = [command.replace("-m benchmarks", "python -m benchmarks") for _, command in commands]
    assert [parse(part).args for part in parts] == [[]] * 7
    config = load_config(tmp_path / "results" / "train.toml")
    assert config.training.tokens_per_batch % config.training.row_length == 0
    assert config.run_folder == str(tmp_path / "results" / "run")
    assert [devices for devices, command in commands if " translate " in command] == ["0", "-1"]


def test_a_part_that_fails_stops_no_other_and_the_exit_code_tells(tmp_path):
    process, commands = started(tmp_path, str(tmp_path / "results"), code=1)
    assert process.returncode == 1 and len(commands) == 7


def test_without_a_folder_it_says_what_is_missing(tmp_path):
    process, commands = started(tmp_path)
    assert process.returncode != 0 and "Say where the results go" in process.stderr and commands == []


def test_its_text_can_be_learnt_and_has_the_frequencies_of_words():
    pairs = made_up_text(300, 1_000)
    assert pairs == made_up_text(300, 1_000) and len(pairs) == 300
    assert all(target.split() == [word[::-1] for word in source.split()] for source, target in pairs)
    counts = collections.Counter(word for source, _ in pairs for word in source.split())
    most = [count for _, count in counts.most_common(100)]
    assert most[0] > 5 * most[20] > 0 and len(counts) > 500
    assert max(len(source.split()) for source, _ in pairs) <= LONGEST


def test_each_number_has_a_word_of_its_own():
    assert len({word_of(number) for number in range(50_000)}) == 50_000


def write(folder, name, value):
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def filled(folder, device="NVIDIA X1"):
    def row(name, speed):
        labels = {"label": name, "products": "bfloat16"}
        return {"name": name, "size": "base", "rounds": [1], "tokens_per_second": speed, "contestant": labels}

    rows = [row("keras_bfloat16", 3_000.0), row("torch_bfloat16", 2_000.0)]
    write(folder, "jax/accelerator.json", {"chip": {"name": device}, "measurements": rows})
    case = {"size": "base", "case": {"beam_size": 4, "rows": 1024}, "contestant": {"label": "search"}}
    measured = {"rounds": [{"precision": "bfloat16"}], "tokens_per_second": 70_000.0}
    results = {"results": [case | measured, case | {"rounds": []}]}
    write(folder, "jax/accelerator_translate.json", results)
    speeds = [10.0, 20.0, 400.0, 500.0, 600.0]  # the first ones compile
    write(folder, "run/metrics.jsonl", "".join(json.dumps({"train/tokens_per_second": s}) + "\n" for s in speeds))
    write(folder, "train.toml", 'model = {preset = "base"}\n[training]\nprecision = "mixed_bfloat16"\n')
    for name, machine, rate in (("gpu", device, 900.0), ("cpu", "CPU", 300.0)):
        speed = {"run": "presets/x", "device": machine, "lines": 1024, "per_second": {"beam 4": rate}}
        write(folder, f"translate_{name}.json", speed)


def test_the_table_has_what_each_part_measured(tmp_path):
    filled(tmp_path)
    page, missing = as_page(tmp_path)
    assert missing == [] and page.startswith("# NVIDIA X1, measured by")
    assert "| keras_bfloat16, base, bfloat16 | 3,000 target tokens/s, 1.50 times torch |" in page
    assert page.count("| search,") == 1
    assert "| search, base, bfloat16, beam 4, 1,024 rows | 70,000 target tokens/s |" in page
    assert "| keras-transformer train, TensorFlow, base, mixed_bfloat16 | 500 target tokens/s |" in page
    assert "| translation, x, beam 4, 1,024 lines at once, NVIDIA X1 | 900 lines/s, 3.0 times the processor |" in page
    assert "    | **NVIDIA X1** | " in page


def test_a_machine_without_a_gpu_is_not_compared_with_itself(tmp_path):
    filled(tmp_path, device="CPU")
    assert "times the processor" not in as_page(tmp_path)[0]


def test_what_was_not_measured_is_named_with_nothing_in_its_place(tmp_path):
    page, missing = as_page(tmp_path)
    assert missing == ["fit on JAX", "translation on JAX", "training on TensorFlow", "translation"]
    assert page.count("not measured") == 8
    filled(tmp_path)
    (tmp_path / "run" / "metrics.jsonl").write_text("", encoding="utf-8")  # killed before its first update
    page, missing = as_page(tmp_path)
    assert missing == ["training on TensorFlow"] and "| training on TensorFlow | not measured |" in page


@pytest.mark.release
def test_at_toy_size_it_runs_on_a_processor(tmp_path):
    pytest.importorskip("jax", reason="jax is not installed: pip install -r requirements-peers.txt")
    environment = {**os.environ, "PYTHON": sys.executable, "JAX_PLATFORMS": "cpu"}
    process = subprocess.run(["bash", SCRIPT, "--toy", tmp_path], env=environment, capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-2000:]
    page = (tmp_path / "first_gpu.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert [sum(row.endswith(f" {unit} |") for row in rows) for unit in ("target tokens/s", "lines/s")] == [3, 2]
