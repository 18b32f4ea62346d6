"""Two processes that train as one: only the chief writes and logs, both stop together, and a lost one is noticed."""

import json
import re
import signal
import time

import numpy as np
import pytest

from keras_transformer.commands.console import INTERRUPTED as EXIT_CODE
from tests.support.commands import assert_one_sentence, invoke
from tests.support.events import steps_in
from tests.support.processes import end, start_workers, wait_until
from tests.support.runs import metrics_of, write_config
from train.__main__ import app
from train.loop.checkpoints import read_checkpoint

pytestmark = pytest.mark.release

STEPS = 80
OPTIONS = (
    f"training.steps={STEPS}",
    "training.checkpoint_every=10",
    "training.validate_every=1000",
    "training.patience=9",  # the chief tells the other what it found by validation
    "training.dropout=0.2",
    "translation.beam_size=1",
)


class Pair:
    """Two workers that train the run of `config`; worker 1 is given a run folder that it must not use."""

    def __init__(self, config):
        self.run, self.others = config.with_suffix(""), config.with_name("of-worker-1")
        self.logs = [config.with_suffix(f".log{index}") for index in (0, 1)]
        folders = self.run, self.others

        def arguments(index):
            options = *OPTIONS, f"run_folder={folders[index]}"
            return "-m", "train", config, *(word for option in options for word in ("--set", option))

        self.before = self.checkpoints()
        self.processes = start_workers(arguments, self.logs)

    def checkpoints(self):
        return set((self.run / "checkpoints").glob("*.npz"))

    def wait_for_a_checkpoint(self):
        """Wait until these two have written one."""
        wait_until(lambda: self.checkpoints() - self.before, self.processes)

    def end(self):
        return end(self.processes)

    def logged(self):
        return [log.read_text(encoding="utf-8") for log in self.logs]


def kill(config, victim):
    """Kill one of two with SIGKILL. Returns the other's exit code, how long it took, and what it logged."""
    pair = Pair(config)
    pair.wait_for_a_checkpoint()
    pair.processes[victim].kill()
    began = time.monotonic()
    codes = pair.end()
    return codes[1 - victim], time.monotonic() - began, pair.logged()[1 - victim]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """An undisturbed run of two, and one that was stopped once and lost each of the two once."""
    folder = tmp_path_factory.mktemp("cluster")
    calm = Pair(write_config(folder, "calm"))
    found = {"calm": calm, "calm_codes": calm.end()}
    config = write_config(folder, "disturbed")
    stopped = Pair(config)
    stopped.wait_for_a_checkpoint()
    stopped.processes[1].send_signal(signal.SIGTERM)
    found |= {"stopped_codes": stopped.end(), "stopped_logs": stopped.logged(), "stopped": stopped.checkpoints()}
    found |= {"without_worker": kill(config, victim=1), "without_chief": kill(config, victim=0)}
    disturbed = Pair(config)
    return found | {"disturbed_codes": disturbed.end(), "disturbed": disturbed}


def test_two_processes_train_to_the_end_and_only_the_chief_writes_and_logs(runs):
    calm = runs["calm"]
    assert runs["calm_codes"] == [0, 0], calm.logged()
    assert not calm.others.exists()
    chief, other = calm.logged()
    assert "training on 2 CPU replicas of 2 workers (MultiWorkerMirroredStrategy), float32" in chief
    assert chief.endswith(f"{calm.run}\n")
    assert all(line.startswith("worker 1: ") and "waiting up to" in line for line in other.splitlines())
    assert "2 workers" in (calm.run / "report.md").read_text(encoding="utf-8")


def test_if_one_is_asked_to_stop_both_stop_after_the_same_step_with_its_checkpoint(runs):
    assert runs["stopped_codes"] == [EXIT_CODE, EXIT_CODE], runs["stopped_logs"]
    steps = [
        int(re.search(r"Stopped after step (\d+); its checkpoint is written", logged)[1])
        for logged in runs["stopped_logs"]
    ]
    assert steps[0] == steps[1] < STEPS
    assert max(path.name for path in runs["stopped"]) == f"step-{steps[0]:08d}.npz"


@pytest.mark.parametrize(("survivor", "lost"), [("without_worker", 1), ("without_chief", 0)])
def test_if_one_dies_the_other_stops_within_a_minute_names_it_and_tells_how_to_continue(runs, survivor, lost):
    code, seconds, logged = runs[survivor]
    assert code == EXIT_CODE, logged
    assert seconds < 60
    assert re.search(
        rf"worker {lost} \(127\.0\.0\.1:\d+\) is gone.*Start every worker again with the same command", logged
    )
    assert "Traceback" not in logged


def test_a_run_that_was_stopped_and_killed_ends_as_an_undisturbed_run_bit_for_bit(runs):
    assert runs["disturbed_codes"] == [0, 0], runs["disturbed"].logged()
    name = f"checkpoints/step-{STEPS:08d}.npz"
    expected, found = (read_checkpoint(runs[run].run / name) for run in ("calm", "disturbed"))
    assert expected.keys() == found.keys() and len(expected) > 50
    for key in expected.keys() - {"progress"}:  # which holds seconds
        np.testing.assert_array_equal(found[key], expected[key])
    curves = [
        [(line["step"], line["train/loss"]) for line in metrics_of(runs[run].run) if "train/loss" in line]
        for run in ("calm", "disturbed")
    ]
    assert curves[0] == curves[1] and [step for step, _ in curves[0]] == list(range(1, STEPS + 1))


def test_tensorboard_has_every_step_once_however_often_the_workers_were_started(runs):
    calm, disturbed = (steps_in(runs[run].run / "tensorboard") for run in ("calm", "disturbed"))
    assert calm == disturbed and calm["train/loss"] == list(range(1, STEPS + 1))
    assert len(calm["final/_hparams_/session_start_info"]) == len(calm["final/loss"]) == 1


def test_no_worker_ends_well_before_the_report_is_written(tmp_path):
    """Whoever has ended with 0 is not started again, and a chief that was killed then waits for it for ever."""
    config = write_config(tmp_path, "reporting")
    killed = Pair(config)
    wait_until(lambda: f"trained {STEPS} steps" in killed.logged()[0], killed.processes[:1])
    killed.processes[0].kill()
    assert killed.end()[1] == EXIT_CODE, killed.logged()
    assert "gone" in killed.logged()[1] and not (killed.run / "report.md").exists()
    again = Pair(config)
    assert again.end() == [0, 0] and (again.run / "report.md").exists(), again.logged()


def test_a_worker_with_another_training_text_is_refused_and_both_end(tmp_path):
    texts, logs = ([tmp_path / f"{index}.{ending}" for index in (0, 1)] for ending in ("tsv", "log"))
    for index, text in enumerate(texts):
        text.write_text("".join(f"one {line}\tone {line + index}\n" for line in range(300)), encoding="utf-8")
    config = write_config(tmp_path)
    content = config.read_text(encoding="utf-8")
    own = f'[data]\nsource = "files"\ntrain = ["x"]\nvalidation = ["{texts[0]}"]\n[tokenizer]\nvocab_size = 290\n'
    config.write_text(content[: content.index("[data]")] + own + content[content.index("[model]") :], encoding="utf-8")
    arguments = [("-m", "train", config, "--set", f"data.train=['{text}']") for text in texts]
    assert end(start_workers(lambda index: arguments[index], logs)) == [EXIT_CODE, 1], [log.read_text() for log in logs]
    assert "training text is not that of worker 0: it has 300 pairs here and 300 there" in logs[1].read_text()
    assert "worker 1 (127.0.0.1:" in logs[0].read_text() and "is gone" in logs[0].read_text()


def test_a_dry_run_of_a_worker_needs_its_own_shards_alone(tmp_path, monkeypatch):
    text = "".join(f"one {number}\teins {number}\n" for number in range(40))
    for name in ("0.tsv", "validation.tsv"):
        (tmp_path / name).write_text(text, encoding="utf-8")
    config = write_config(tmp_path)
    data = f"""[data]\nsource = "files"\nshards = 2\nvalidation = ["{tmp_path}/validation.tsv"]
train = ["{tmp_path}/0.tsv", "{tmp_path}/1.tsv"]\n\n[tokenizer]"""
    config.write_text(re.sub(r"\[data\].*\[tokenizer\]", data, config.read_text(), flags=re.DOTALL), encoding="utf-8")
    addresses = ["localhost:1", "localhost:2"]
    for index in (0, 1):
        cluster = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
        monkeypatch.setenv("TF_CONFIG", json.dumps(cluster))
        result = invoke(app, config, "--dry-run", "--set", "training.tokens_per_batch=128")
        if index == 0:
            assert result.exit_code == 0, result.output
        else:
            assert_one_sentence(result, "1.tsv")
