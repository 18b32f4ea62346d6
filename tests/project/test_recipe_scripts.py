"""The scripts of recipes in examples/: their commands exist, each finds what it reads, and goes on where it stopped."""

import os
import subprocess

import pytest

from tests.support.commands import parse
from tests.support.places import ROOT
from train.config.run import load_config

LAST = {  # the runs that a script is for, and their updates
    "captions_recipe": {"runs/multi30k_en_de_captions": 6_000},
    "ensemble_recipe": {"runs/multi30k_en_de_ensemble": 10_000, "runs/multi30k_en_de_ensemble_seed2": 10_000},
    "fast_recipe": {"runs/multi30k_en_de_fast": 10_000},
    "faster_recipe": {"runs/multi30k_en_de_faster": 5_000},
}
RECORD = """#!/bin/bash
name=$1; shift; echo "$name" "${@@Q}" >> commands
test "$(wc -l < commands)" -ne "${FAILS_AT:-0}"
"""


def commands_of(name, folder, **environment):
    """Start a script in `folder` with a program that only notes how it is called. Returns exit code and commands."""
    program, commands = folder / "program", folder / "commands"
    program.write_text(RECORD, encoding="utf-8")
    program.chmod(0o755)
    commands.unlink(missing_ok=True)
    process = subprocess.run(
        [ROOT / f"examples/{name}.sh"], cwd=folder, env={**os.environ, "PROGRAM": str(program), **environment}
    )
    lines = commands.read_text(encoding="utf-8").splitlines() if commands.exists() else []
    return process.returncode, [f"keras-transformer {line}" for line in lines]


@pytest.fixture(scope="module", params=LAST)
def name(request):
    return request.param


@pytest.fixture(scope="module")
def commands(name, tmp_path_factory):
    code, commands = commands_of(name, tmp_path_factory.mktemp("recipe"))
    assert code == 0
    return commands


def test_every_command_has_the_options_that_it_is_given(commands):
    assert commands
    for command in commands:
        assert parse(command).args == [], command


def test_every_command_finds_what_it_reads(name, commands):
    """A run is trained before another command begins with it, and a text is written before it is read."""
    trained, written = {f"presets/{path.name}": 0 for path in (ROOT / "presets").iterdir()}, set()
    if name == "captions_recipe":
        trained |= LAST["fast_recipe"]
    for command in commands:
        arguments = parse(command).params
        if " distil " in command or " translate " in command:
            runs = [arguments["run"], *arguments["ensemble"]]
            assert {str(run) for run in runs} <= set(trained), command
            written.add(str(arguments["output"]))
            continue
        config = load_config(ROOT / arguments["config"], arguments["overrides"])
        made = {str(path) for path in config.data.paths() if path.parts[0] == "runs"}
        assert made <= written, command
        start = config.training.start_from
        assert start is None or start in trained, command
        assert trained.get(config.run_folder, 0) < config.training.steps, command
        trained[config.run_folder] = config.training.steps
    assert LAST[name].items() <= trained.items()


def test_it_stops_where_a_command_fails_and_goes_on_there(name, tmp_path, commands):
    place = len(commands) // 2
    code, first = commands_of(name, tmp_path, FAILS_AT=str(place))
    assert (code, first) == (1, commands[:place]) and place > 1
    code, rest = commands_of(name, tmp_path)
    assert (code, rest) == (0, commands[place - 1 :])
    assert commands_of(name, tmp_path) == (0, [])


def test_a_thousandth_of_it_has_other_steps_and_settings(name, tmp_path, commands):
    _, short = commands_of(name, tmp_path, DIVISOR="1000", SETTINGS="--set training.xla=false")
    trainings = [command for command in short if " train " in command]
    assert [command.split()[1:3] for command in short] == [command.split()[1:3] for command in commands]
    for command in trainings:
        config = load_config(ROOT / parse(command).params["config"], parse(command).params["overrides"])
        assert config.training.steps < 20 and not config.training.xla
