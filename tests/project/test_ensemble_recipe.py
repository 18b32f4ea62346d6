"""examples/ensemble_recipe.sh: its commands exist, each finds what it reads, and it goes on where it stopped."""

import os
import pathlib
import subprocess

import pytest

from tests.support.commands import parse
from tests.support.places import ROOT
from train.config.run import load_config

SCRIPT = ROOT / "examples/ensemble_recipe.sh"
RECORD = '#!/bin/sh\necho "$@" >> commands\ntest "$(wc -l < commands)" -ne "${FAILS_AT:-0}"\n'


def commands_of(folder, **environment):
    """Start the script in `folder` with a program that only notes how it is called. Returns exit code and commands."""
    program, commands = folder / "program", folder / "commands"
    program.write_text(RECORD, encoding="utf-8")
    program.chmod(0o755)
    commands.unlink(missing_ok=True)
    process = subprocess.run([SCRIPT], cwd=folder, env={**os.environ, "PROGRAM": str(program), **environment})
    lines = commands.read_text(encoding="utf-8").splitlines() if commands.exists() else []
    return process.returncode, [f"keras-transformer {line}" for line in lines]


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    code, commands = commands_of(tmp_path_factory.mktemp("recipe"))
    assert code == 0
    return commands


def test_every_command_has_the_options_that_it_is_given(commands):
    assert len(commands) == 20
    for command in commands:
        assert parse(command).args == [], command


def test_every_command_finds_what_it_reads(commands):
    """A run is trained before another command begins with it, and a text is written before it is read."""
    trained, written = {}, set()
    for command in commands:
        arguments = parse(command).params
        if " distil " in command:
            runs = [arguments["run"], *arguments["ensemble"]]
            assert {str(run) for run in runs} <= set(trained), command
            written.add(str(arguments["output"]))
            continue
        config = load_config(ROOT / arguments["config"], arguments["overrides"])
        entries = config.data.train + config.data.validation + config.data.test
        made = {file for entry in entries for file in entry if pathlib.PurePath(file).parts[0] == "runs"}
        assert made <= written, command
        start = config.training.start_from
        assert start is None or start in trained, command
        assert trained.get(config.run_folder, 0) < config.training.steps, command
        trained[config.run_folder] = config.training.steps
    assert trained["runs/multi30k_en_de_ensemble"] == trained["runs/multi30k_en_de_ensemble_seed2"] == 10_000
    assert trained["runs/multi30k_en_de_pretrained_seed2"] == 10_000


def test_it_stops_where_a_command_fails_and_goes_on_there(tmp_path, commands):
    code, first = commands_of(tmp_path, FAILS_AT="5")
    assert (code, first) == (1, commands[:5])
    code, rest = commands_of(tmp_path)
    assert (code, rest) == (0, commands[4:])
    assert commands_of(tmp_path) == (0, [])


def test_a_thousandth_of_it_has_other_steps_and_settings(tmp_path, commands):
    _, short = commands_of(tmp_path, DIVISOR="1000", SETTINGS="--set training.xla=false")
    trainings = [command for command in short if " train " in command]
    assert [command.split()[1:3] for command in short] == [command.split()[1:3] for command in commands]
    for command in trainings:
        config = load_config(ROOT / parse(command).params["config"], parse(command).params["overrides"])
        assert config.training.steps < 20 and not config.training.xla
