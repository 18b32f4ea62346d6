"""A run of seconds, from a configuration to a report: numbers below 1,000, a model of 16 dimensions, five steps."""

import json
import os
import pathlib
import subprocess
import sys

from typer.testing import CliRunner

ROOT = pathlib.Path(__file__).parents[2]
CONFIG = """
[data]
source = "numbers"
maximum = 999
train_pairs = 300
validation_pairs = 8
test_pairs = 12

[tokenizer]
vocab_size = 300

[model]
preset = "tiny"
encoder_layers = 1
decoder_layers = 1
d_model = 16
d_ff = 32
num_heads = 2

[training]
steps = 5
tokens_per_batch = 256
row_length = 64
warmup_steps = 10
checkpoint_every = 2
keep_checkpoints = 3
average_checkpoints = 2
validate_every = 2
log_every = 2
xla = false
"""


def write_config(folder, name="run"):
    """A configuration file in `folder` whose run folder is folder/name. Returns its path."""
    path = folder / f"{name}.toml"
    path.write_text(f'run_folder = "{folder / name}"\n{CONFIG}', encoding="utf-8")
    return path


def python(*arguments):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


def invoke(app, *arguments):
    return CliRunner().invoke(app, list(map(str, arguments)))


def metrics_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def assert_one_sentence(result, *parts):
    assert result.exit_code == 1, result.output
    assert result.stdout == "" and isinstance(result.exception, SystemExit)
    assert result.stderr.count("\n") == 1 and "Traceback" not in result.stderr
    for part in parts:
        assert str(part) in result.stderr


HELP = """
import atexit, runpy, sys
sys.argv = ["command", "--help"]
atexit.register(lambda: print("imported:", {"tensorflow", "keras"} & set(sys.modules)))
runpy.run_module(MODULE, run_name="__main__")
"""


def help_of(module):
    """What `python -m module --help` prints, and which slow packages it imported for that."""
    process = python("-c", HELP.replace("MODULE", repr(module)))
    assert process.returncode == 0, process.stderr
    return process.stdout
