"""`keras-transformer train` from end to end: what a run leaves behind, how it goes on and stops, a user's mistakes."""

import contextlib
import functools
import json
import logging
import pathlib
import re
import shutil
import signal
import time
import tomllib

import numpy as np
import pytest

import train.__main__
from keras_transformer.config import TransformerConfig
from keras_transformer.pieces.tokenizer import Tokenizer
from tests.support.commands import assert_one_sentence, invoke
from tests.support.events import read_added, read_events
from tests.support.memory import PAGES, faults_of_a_large_block, with_glibc
from tests.support.places import ROOT
from tests.support.processes import HEARS_CTRL_C, end, start_fork, start_python, wait_until
from tests.support.runs import metrics_of, write_config
from train.config.run import load_config
from train.loop.checkpoints import read_checkpoint

train_command = functools.partial(invoke, train.__main__.app)


@pytest.fixture(scope="module")
def continued(tmp_path_factory):
    """A run folder trained in two parts, three steps and then the rest, and what the second part logged."""
    config = write_config(tmp_path_factory.mktemp("continued"))
    first = train_command(config, "--set", "training.steps=3")
    with logged_lines() as lines:
        second = train_command(config)
    assert (first.exit_code, second.exit_code) == (0, 0), first.output + second.output
    return config.with_suffix(""), lines


@contextlib.contextmanager
def logged_lines():
    """Yields a list that receives what `train` logs within."""
    log, lines, handler = logging.getLogger("train"), [], logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    yield lines
    log.removeHandler(handler)
    log.setLevel(logging.NOTSET)


@with_glibc
def test_a_process_that_has_trained_keeps_the_memory_of_a_step_for_the_next_one(continued):
    faults_of_a_large_block()
    assert faults_of_a_large_block() < 0.01 * PAGES


# a run that diverges


@pytest.mark.nightly
@pytest.mark.parametrize("on_divergence", ["stop", "rewind"])
def test_a_rate_that_is_far_too_high_is_found_by_the_first_validation_and_saves_nothing(tmp_path, on_divergence):
    """Each step has a finite loss, since the first update is what makes the weights explode."""
    config = write_config(tmp_path)
    changes = "learning_rate_factor=1e36", f"on_divergence={on_divergence}", "validate_every=1", "checkpoint_every=1"
    outcome = train_command(config, *(word for change in changes for word in ("--set", f"training.{change}")))
    assert_one_sentence(outcome, "raining has diverged", "left weights")
    saved = [path.name for path in (tmp_path / "run" / "checkpoints").glob("*.npz")]
    assert saved == ["step-00000000.npz"] * (on_divergence == "rewind")


# what a run leaves behind


def test_the_command_prints_the_run_folder_and_logs_to_stderr(finished):
    _, folder, process = finished
    assert process.stdout == f"{folder}\n"
    assert "step 4/5  loss " in process.stderr and "target tokens/s" in process.stderr
    assert "Traceback" not in process.stderr and "WARNING" not in process.stderr


def test_the_last_lines_of_the_log_are_the_scores_of_the_report(finished):
    _, folder, process = finished
    scores = process.stderr.partition("report.md:\n")[2].splitlines()
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert len(scores) > 3 and all(f"- {line.partition(' ')[2]}\n" in report for line in scores)


def test_the_run_folder_has_every_file_of_the_contract(finished):
    config, folder, _ = finished
    contract = "config.toml tokenizer.model model.json model.weights.h5 metrics.jsonl report.md scores.json curves.png"
    for name in contract.split():
        assert (folder / name).stat().st_size > 0
    assert [path.name for path in sorted((folder / "checkpoints").iterdir())] == [
        "step-00000002.npz",
        "step-00000004.npz",
        "step-00000005.npz",
    ]
    assert load_config(folder / "config.toml") == load_config(config)
    model = TransformerConfig.load(folder / "model.json")
    assert (model.vocab_size, model.d_model, model.d_k, model.dropout) == (300, 16, 8, 0.3)
    assert Tokenizer(folder / "tokenizer.model").vocab_size == 300
    assert len((folder / "validation.src.txt").read_text(encoding="utf-8").splitlines()) == 8
    assert not list(folder.rglob("*.part")) and not list(folder.rglob("part.weights.h5"))


def test_the_metrics_hold_every_step_and_every_validation(finished):
    lines = metrics_of(finished[1])
    names = {"loss", "perplexity", "token_accuracy", "learning_rate", "gradient_norm", "tokens_per_second"}
    names |= {"seconds_in_step", "seconds_waiting", "resident_bytes"}
    steps = [line for line in lines if "train/loss" in line]
    assert [line["step"] for line in steps] == [1, 2, 3, 4, 5]
    assert all(set(line) == {"step", "time"} | {f"train/{name}" for name in names} for line in steps)
    validations = [line for line in lines if "validation/loss" in line]
    assert [line["step"] for line in validations] == [2, 4, 5]
    names = {"loss", "perplexity", "token_accuracy", "bleu", "chrf", "exact"}
    assert all(set(line) == {"step", "time"} | {f"validation/{name}" for name in names} for line in validations)
    assert validations[-1]["validation/loss"] < validations[0]["validation/loss"]
    assert [line["validation/bleu"] for line in validations] == [None] * 3  # a number is one word: BLEU is undefined


def test_tensorboard_has_the_same_numbers(finished):
    folder = finished[1]
    events = read_events(folder / "tensorboard")
    for name in ("train/loss", "train/gradient_norm", "validation/exact", "validation/loss"):
        expected = [(line["step"], pytest.approx(line[name])) for line in metrics_of(folder) if name in line]
        assert events[name] == expected


def test_the_report_has_scores_training_corpus_samples_and_configuration(finished):
    config, folder, _ = finished
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert report.startswith("# run\n\nen to de.\n")
    headings = re.findall(r"^## (\S+)", report, re.MULTILINE)
    assert headings == ["Use", "Scores", "Training", "Size", "Data", "How", "Sample", "Configuration"]
    assert len(re.findall(r"^- BLEU n/a +\S.*  undefined: no reference has four tokens$", report, re.MULTILINE)) == 3
    assert re.search(r"^- chrF \d+\.\d\d ± \d\.\d\d +raw text +nrefs:1\|bs:1000\|", report, re.MULTILINE)
    assert "![Loss, BLEU and learning rate over the steps](curves.png)" in report
    assert re.search(r"kept the (last checkpoint|average of the last 2 checkpoints): validation BLEU n/a", report)
    weights = sum(array.size for array in read_checkpoint(folder / "checkpoints/step-00000005.npz", "model/").values())
    for row in (f"parameters | {weights:,}", "updates | 5, of 4 rows of 64 positions", "vocabulary | 300 pieces"):
        assert f"| {row}" in report
    samples = report.split("## Sample translations")[1].split("## Configuration")[0]
    assert samples.count("\n|") == 2 + 10
    effective = tomllib.loads(report.split("```toml\n")[1].split("```")[0])
    assert effective == tomllib.loads(load_config(config).to_toml())


# continuing


def test_a_finished_run_is_not_trained_again(finished):
    config, folder, _ = finished
    files = [folder / "metrics.jsonl", *(folder / "checkpoints").iterdir()]
    before = [path.read_bytes() for path in files]
    again = train_command(config)
    assert (again.exit_code, again.stdout) == (0, f"{folder}\n")
    assert [path.read_bytes() for path in files] == before


def test_a_run_with_more_steps_to_do_continues_and_logs_it(continued):
    folder, lines = continued
    assert "continuing from the checkpoint of step 3" in lines
    assert any(re.fullmatch(r"trained 5 steps in .+", line) for line in lines)
    assert any(
        line.startswith("the configuration has changed") and "training.steps was 3 and is 5" in line for line in lines
    )
    assert [line["step"] for line in metrics_of(folder) if "train/loss" in line] == [1, 2, 3, 4, 5]
    assert [line["step"] for line in metrics_of(folder) if "final/loss" in line] == [3, 5]


def test_a_run_in_two_parts_equals_a_run_in_one_bit_for_bit(finished, continued):
    name = "checkpoints/step-00000005.npz"
    one, other = read_checkpoint(finished[1] / name), read_checkpoint(continued[0] / name)
    assert one.keys() == other.keys() and len(one) > 50
    for key in one.keys() - {"progress"}:  # which holds seconds
        np.testing.assert_array_equal(one[key], other[key])
    losses = [
        [line["train/loss"] for line in metrics_of(run) if "train/loss" in line] for run in (finished[1], continued[0])
    ]
    assert losses[0] == losses[1]


def test_an_emptied_record_of_the_configuration_loses_nothing(finished, tmp_path):
    config, folder, _ = finished
    copy = shutil.copytree(folder, tmp_path / "run")
    (copy / "config.toml").write_bytes(b"")
    result = train_command(config, "--set", f"run_folder={copy}")
    assert result.exit_code == 0, result.output
    assert load_config(copy / "config.toml") == load_config(config, [f"run_folder={copy}"])
    assert metrics_of(copy) == metrics_of(folder)


# stopping


@pytest.mark.slow
def test_a_signal_ends_the_command_with_exit_code_75_and_a_checkpoint_of_the_last_step(tmp_path):
    config, log = write_config(tmp_path), tmp_path / "log"
    folder = config.with_suffix("")
    options = [f"training.{key}=1000000" for key in ("steps", "checkpoint_every", "validate_every", "warmup_steps")]
    process = start_fork("-m", "train", config, *(word for option in options for word in ("--set", option)), log=log)
    wait_until(lambda: (folder / "metrics.jsonl").exists() and metrics_of(folder), [process])
    process.send_signal(signal.SIGTERM)
    assert end([process]) == [75]
    (checkpoint,) = (folder / "checkpoints").iterdir()
    assert checkpoint.name == f"step-{metrics_of(folder)[-1]['step']:08d}.npz"
    logged = log.read_text(encoding="utf-8")
    assert "same command" in logged and "Traceback" not in logged
    assert "final/_hparams_/session_start_info" in read_added(folder / "tensorboard")  # and no scores
    assert not any(name.startswith("final/") for name in read_events(folder / "tensorboard"))


@pytest.mark.release
@pytest.mark.slow
@pytest.mark.parametrize("seconds", [1, 4, 9])
def test_ctrl_c_in_the_first_seconds_ends_the_command_without_a_traceback(tmp_path, seconds):
    config, log = write_config(tmp_path), tmp_path / "log"
    arguments = "-m", "train", config, "--set", "training.steps=1000000"
    process = start_python("-c", HEARS_CTRL_C, *arguments, log=log)
    wait_until(lambda: has_begun(process.pid), [process])
    time.sleep(seconds)  # whatever it does by then: importing, reading, compiling, training
    wait_until(lambda: has_begun(process.pid), [process])  # not between two steps of Python's own start
    process.send_signal(signal.SIGINT)
    assert end([process])[0] in (-signal.SIGINT, 75)
    assert "Traceback" not in log.read_text(encoding="utf-8")


def has_begun(pid):
    """Whether the command has chosen what SIGINT does (Linux).

    Python ignores SIGPIPE when it starts and catches SIGINT a moment later. The command then lets SIGINT end it, and
    training catches SIGTERM as well.
    """
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="ascii")

    def has(number, field):
        return bool(int(re.search(rf"{field}:\s*(\w+)", status)[1], 16) & 1 << (number - 1))

    is_chosen = has(signal.SIGTERM, "SigCgt") or not has(signal.SIGINT, "SigCgt")
    return has(signal.SIGPIPE, "SigIgn") and is_chosen


# mistakes


@pytest.mark.parametrize(
    ("override", "parts"),
    [
        ("training.stepz=3", ["training.stepz", "did you mean training.steps?"]),
        ("data.maximum=10", ["320 pairs", "11 numbers"]),
        ("tokenizer.vocab_size=5000", ["tokenizer.vocab_size is 5000", "the largest possible size is "]),
        ("tokenizer.model=none.model", ["none.model", "No such file"]),
        ("training.row_length=8", ["has no sentence pair left", "Raise training.row_length"]),
        ("run_folder=/dev/null/run", ["run_folder /dev/null/run cannot be created: Not a directory"]),
    ],
)
def test_a_mistake_in_the_configuration_is_one_sentence(tmp_path, override, parts):
    assert_one_sentence(train_command(write_config(tmp_path), "--set", override), *parts)


def test_a_missing_configuration_is_one_sentence(tmp_path):
    assert_one_sentence(train_command(tmp_path / "none.toml"), tmp_path / "none.toml", "configs/")


def test_a_missing_corpus_file_is_one_sentence(tmp_path):
    config = write_config(tmp_path)
    data = 'source = "files"\ntrain = [["none.en", "none.de"]]\nvalidation = [["none.en", "none.de"]]\n\n[tokenizer]'
    before, after = config.read_text(encoding="utf-8").split("[tokenizer]")
    config.write_text(before.split('source = "numbers"')[0] + data + after, encoding="utf-8")
    assert_one_sentence(train_command(config), "data.train names none.en, but there is no such file.")


def test_a_run_folder_that_is_a_file_is_one_sentence(tmp_path):
    config = write_config(tmp_path)
    config.with_suffix("").write_text("hello", encoding="utf-8")
    assert_one_sentence(train_command(config), f"run_folder {config.with_suffix('')} cannot be created: File exists")


def test_another_model_in_a_run_folder_is_refused_before_anything_in_it_changes(finished):
    config, folder, _ = finished
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "lock"]
    before = [path.read_bytes() for path in files]
    assert_one_sentence(train_command(config, "--set", "model.d_model=32"), folder, "model.d_model was 16 and is 32")
    assert [path.read_bytes() for path in files] == before


def test_everything_that_training_logs_goes_to_the_log_that_commands_show():
    lines = [line for path in (ROOT / "train").rglob("*.py") for line in path.read_text(encoding="utf-8").splitlines()]
    assert {line for line in lines if line.startswith("log = ")} == {'log = logging.getLogger("train")'}


@pytest.mark.parametrize("empty", ["validation", "test"])
@pytest.mark.parametrize("how", [(), ("--dry-run",)], ids=["training", "dry run"])
def test_a_split_without_a_pair_is_found_before_the_training_text_is_read(tmp_path, empty, how):
    config = write_config(tmp_path)
    for name, text in {
        "full.en": "a dog\n" * 50,
        "full.de": "ein Hund\n" * 50,
        "blank.en": "\n",
        "blank.de": "\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    full, blank = ([[str(tmp_path / f"{name}.{side}") for side in ("en", "de")]] for name in ("full", "blank"))
    splits = {"train": full, "validation": full, "test": full} | {empty: blank}
    text = re.sub(r"(?s)\[data\].*?\n\n", "", config.read_text(encoding="utf-8"))
    keys = "".join(f"{name} = {json.dumps(entries)}\n" for name, entries in splits.items())
    config.write_text(f'cache_folder = "{tmp_path}/cache"\n{text}\n[data]\nsource = "files"\n{keys}', encoding="utf-8")
    result = train_command(config, *how)
    assert_one_sentence(result, f"data.{empty} has no sentence pair left. Skipped: 1 empty source")
    assert not list(tmp_path.rglob("tokenizer.model")) and not (tmp_path / "cache").exists()
