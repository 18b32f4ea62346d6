"""The race: contestants run in their turns alone, clocks count that, and an interrupted race goes on."""

import contextlib
import os
import pathlib
import signal
import sys
import time

import numpy as np
import psutil
import pytest
import yaml
from PIL import Image

from benchmarks.errors import BenchmarkError
from benchmarks.recipes.race import prepare, run, score
from benchmarks.recipes.race_table import Race, conclusion, draw, table
from benchmarks.recipes.racing.joeynmt import JoeyNMT
from benchmarks.recipes.racing.memory import session_bytes
from benchmarks.recipes.racing.racer import Contestant, Runner, Task
from benchmarks.recipes.racing.record import Reached, Record, at_marks, first_mark_with
from keras_transformer.tokenizer import train_tokenizer
from tests.support.processes import start_python, wait_until
from train.scoring.figures import BLUE, ORANGE

LOOP = """
trap 'touch {folder}/$((i + 1)).ckpt; exit 0' INT
i=$(ls {folder} | grep -c ckpt)
sleep 0.1
while :; do i=$((i + 1)); touch {folder}/$i.ckpt; sleep 0.05; done
"""


class Script(Contestant):
    """Writes a checkpoint twenty times a second, and a last one on SIGINT."""

    label, stop_signal = "a script", signal.SIGINT

    def __init__(self, folder, script=LOOP, name="script"):
        super().__init__(folder, None)
        self.script, self.name = script, name

    def command(self):
        return ["sh", "-c", self.script.format(folder=self.folder)]

    def checkpoints(self):
        return {int(path.stem): path for path in self.folder.glob("*.ckpt")}

    def tokens(self, checkpoint):
        return 0

    def translate(self, checkpoint, split):
        return []


def nothing(step, path, passed):
    """Takes note of no checkpoint."""


@pytest.fixture(params=[signal.SIG_IGN, signal.default_int_handler], ids=["background", "terminal"])
def ctrl_c(request):
    """A race in the background ignores SIGINT, on which JoeyNMT ends."""
    before = signal.signal(signal.SIGINT, request.param)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.release
@pytest.mark.usefixtures("ctrl_c")
def test_a_contestant_runs_in_its_turns_alone(tmp_path):
    runner, told = Runner(Script(tmp_path)), []
    time.sleep(0.2)
    assert not runner.contestant.checkpoints()  # it is made stopped
    runner.run_for(0.6, lambda step, path, passed: told.append((step, passed)))
    seconds, steps = runner.seconds, sorted(runner.contestant.checkpoints())
    assert seconds >= 0.6 and len(steps) > 1
    time.sleep(0.2)
    assert sorted(runner.contestant.checkpoints())[-1] - steps[-1] <= 1  # what began before the signal came
    assert [step for step, _ in told] == sorted(step for step, _ in told) and set(steps) >= {step for step, _ in told}
    assert all(0 <= passed <= seconds for _, passed in told)
    assert runner.memory_bytes > 0
    told.clear()
    runner.end(lambda step, path, passed: told.append(step))
    assert told == sorted(told) and told[-1] == max(runner.contestant.checkpoints()) and runner.process.returncode == 0
    assert runner.seconds > seconds


@pytest.mark.release
def test_memory_is_the_peak_of_all_processes(tmp_path, monkeypatch):
    """`tail` keeps what `head` writes, and gives it back in the middle of a turn; `sh` has hardly any."""
    monkeypatch.setattr("benchmarks.recipes.racing.racer.LOOK_AT_MEMORY", 1)
    size = 50_000_000
    script = f"{{{{ head -c {size} /dev/zero; sleep 2; }}}} | tail -c {size} > /dev/null; sleep 600"
    runner, session = Runner(Script(tmp_path, script)), lambda: session_bytes(runner.process.pid)
    runner.run_for(6, nothing)
    assert session() < size / 2 < size <= runner.memory_bytes < 2 * size
    os.killpg(runner.process.pid, signal.SIGKILL)
    runner.process.wait()
    deadline = time.monotonic() + 100
    while session() and time.monotonic() < deadline:  # its children end when the system comes to it
        time.sleep(0.01)
    assert session() == 0


@pytest.mark.release
@pytest.mark.skipif(sys.platform != "linux", reason="the system ends it on Linux alone")
def test_a_contestant_ends_with_a_race_that_is_killed(tmp_path):
    """It is stopped, so nothing else would end it, and the race would not go on while it holds its run folder."""
    program = (
        "import pathlib, sys, time; from tests.benchmarks.recipes.test_race import Runner, Script\n"
        "print(Runner(Script(pathlib.Path(sys.argv[1]))).process.pid, flush=True); time.sleep(600)"
    )
    log = tmp_path / "log"
    race = start_python("-c", program, tmp_path / "script", log=log)
    wait_until(lambda: log.read_text().endswith("\n"), [race])
    contestant = psutil.Process(int(log.read_text().split()[-1]))
    race.kill()
    race.wait()
    with contextlib.suppress(psutil.NoSuchProcess):
        contestant.wait(60)
    assert not contestant.is_running() or contestant.status() == psutil.STATUS_ZOMBIE


def test_a_contestant_that_ends_by_itself_is_named_with_its_log(tmp_path):
    runner = Runner(Script(tmp_path, "echo broken; exit 3"))
    with pytest.raises(BenchmarkError, match=f"a script ended with exit code 3.*{tmp_path}"):
        runner.run_for(5, nothing)
    seconds = runner.seconds
    runner.end(nothing)
    assert runner.log.read_text() == "broken\n" and 0 < seconds == runner.seconds


@pytest.mark.release
@pytest.mark.usefixtures("ctrl_c")
def test_a_race_that_was_interrupted_goes_on_from_the_last_checkpoints(tmp_path):
    path = tmp_path / "race.jsonl"

    def race(seconds):
        both = [Script(tmp_path / name, name=name) for name in ("one", "two")]
        run(both, Record(path), seconds, turn=0.3)
        return Record(path)

    def turns(record, name):
        return [line["seconds"] for line in record.lines if line["event"] == "turn" and line["contestant"] == name]

    first = race(0.5)
    goal = max(first.seconds(name) for name in ("one", "two")) + 0.5
    second = race(goal)
    for name in ("one", "two"):
        times = [reached.seconds for reached in second.checkpoints(name)]
        assert times == sorted(times)
        assert turns(first, name) == turns(second, name)[: len(turns(first, name))]
        assert turns(first, name)[-1] >= 0.5 and turns(second, name) == sorted(turns(second, name))
        went_on_from = turns(second, name)[len(turns(first, name))] - 0.3  # a turn takes 0.3 seconds or more
        assert went_on_from > first.seconds(name) - 0.02 and turns(second, name)[-1] > goal - 0.02  # two roundings


class Interrupting(Script):
    """A script during which Ctrl-C is pressed, when its fifth checkpoint is seen."""

    is_pressed = False

    def checkpoints(self):
        found = super().checkpoints()
        if len(found) >= 5 and not self.is_pressed:
            self.is_pressed = True
            raise KeyboardInterrupt
        return found


@pytest.mark.release
@pytest.mark.usefixtures("ctrl_c")
def test_a_turn_that_is_interrupted_counts_until_then(tmp_path):
    record = Record(tmp_path / "race.jsonl")
    with pytest.raises(KeyboardInterrupt):
        run([Interrupting(tmp_path / "script")], record, seconds=600, turn=300)
    *earlier, last = record.checkpoints("script")
    assert last.step == max(Script(tmp_path / "script").checkpoints()) >= 5
    assert [reached.step for reached in earlier] == list(range(1, last.step))  # none is forgotten
    assert last.seconds >= 5 * 0.05  # a checkpoint takes that, and none is recorded as older than the one before
    assert [reached.seconds for reached in earlier] == sorted(reached.seconds for reached in earlier)
    assert last.seconds >= earlier[-1].seconds


def test_what_ran_after_the_last_checkpoint_is_not_counted(tmp_path):
    record = Record(tmp_path / "race.jsonl")
    record.add_checkpoint("ours", 50, 20.0, tmp_path / "50")
    record.add_turn("ours", 33.0, 1_000)
    again = Record(record.path)
    assert again.seconds("ours") == 20.0 and again.memory_bytes("ours") == 1_000
    assert again.seconds("joeynmt") == 0.0 and again.memory_bytes("joeynmt") == 0
    assert again.checkpoints("ours") == [Reached(50, 20.0, tmp_path / "50")]


@pytest.mark.parametrize("lines", [0, 1])
def test_half_a_line_of_a_race_that_was_killed_is_taken_out(tmp_path, lines):
    path = tmp_path / "race.jsonl"
    for step in range(lines):
        Record(path).add_checkpoint("ours", step, 5.0, tmp_path)
    whole = path.read_text() if lines else ""
    path.write_text(whole + '{"contestant": "ours", "ev')
    record = Record(path)
    assert len(record.lines) == lines and path.read_text() == whole
    record.add_turn("ours", 6.0, 7)
    assert len(Record(path).lines) == lines + 1


def test_a_race_does_not_go_on_with_other_settings(tmp_path):
    path = tmp_path / "race.jsonl"
    Record(path).begin({"peer batch": 2048, "dropout": 0.25})
    Record(path).begin({"peer batch": 2048, "dropout": 0.25})
    assert len(path.read_text().splitlines()) == 1
    with pytest.raises(BenchmarkError, match=r"peer batch was 2048 and is 4096\. Remove that folder"):
        Record(path).begin({"peer batch": 4096, "dropout": 0.25})


def test_a_mark_has_the_newest_checkpoint_that_was_there_by_then(tmp_path):
    checkpoints = [Reached(step, seconds, tmp_path) for step, seconds in ((1, 5.0), (2, 10.0), (3, 29.0), (4, 31.0))]
    found = at_marks(checkpoints, every=10.0, last=40.0)
    assert {mark: reached.step for mark, reached in found.items()} == {10.0: 2, 20.0: 2, 30.0: 3, 40.0: 4}
    assert at_marks(checkpoints, every=4.0, last=9.0) == {8.0: checkpoints[0]}


class Lines:
    """A task with one sentence."""

    def lines(self, split, language):
        return ["a b c d e"]


def test_a_checkpoint_that_its_program_has_removed_counts_for_no_mark(tmp_path):
    one, record = Script(tmp_path), Record(tmp_path / "race.jsonl")
    one.task, one.translate = Lines(), lambda checkpoint, split: [checkpoint.read_text()]
    for step, seconds, text in ((1, 5.0, "a b c d e"), (2, 15.0, None), (3, 25.0, "f g h i j")):
        record.add_checkpoint("script", step, seconds, tmp_path / f"{step}.ckpt")
        if text:
            (tmp_path / f"{step}.ckpt").write_text(text)
    found = score([one], record, tmp_path, 30.0, {"script": 10.0})["script"]
    assert found.scores == {10.0: pytest.approx(100.0), 20.0: pytest.approx(100.0), 30.0: 0.0}


def test_the_first_mark_with_a_score_counts():
    assert first_mark_with({10.0: 20.0, 30.0: 31.0, 20.0: 30.0}, 30.0) == 20.0
    assert first_mark_with({10.0: 20.0}, 30.0) is None


RACE = {
    "ours": Race("this project", {300.0: 30.0, 600.0: 35.0}, "the signature", 5_000.0, 61.0, 2**30),
    "joeynmt": Race("JoeyNMT 2.3", {300.0: 12.0, 600.0: 31.0}, "the signature", 1_000.0, 83.0, 2**29),
}


def test_the_table_has_both_scores_at_each_mark_and_when_one_reached_the_other():
    text = table(RACE, "the command", 2048, 4096)
    assert "JoeyNMT has batches of 4,096 tokens" in text and "packs rows, 2,048 tokens a batch" in text
    assert "| 5 | 30.00 | 12.00 |" in text and "| 10 | 35.00 | 31.00 |" in text and "the signature" in text
    assert "| seconds between checkpoints | 61 | 83 |" in text and "| peak memory | 1,024 MiB | 512 MiB |" in text
    assert conclusion(RACE)[0] == "JoeyNMT 2.3 has 31.00 BLEU after 10 minutes; this project had that after 10 minutes."
    slow = {**RACE, "ours": RACE["ours"]._replace(scores={300.0: 3.0})}
    assert conclusion(slow)[0].endswith("had that not yet.")


@pytest.mark.release
def test_the_picture_shows_curves(tmp_path):
    draw(RACE, tmp_path / "race.png")
    pixels = np.asarray(Image.open(tmp_path / "race.png").convert("RGB"))
    for colour in (BLUE, ORANGE):
        assert np.all(pixels == list(bytes.fromhex(colour[1:])), axis=-1).sum() > 200


def test_text_that_is_missing_is_named(tmp_path):
    with pytest.raises(BenchmarkError, match="train.en.gz.*make multi30k"):
        prepare(tmp_path / "race", tmp_path / "data")


def test_joeynmt_reads_what_was_meant(tmp_path):
    """YAML 1.1 reads 1e-09, which JSON writes for a small number, as text."""
    train_tokenizer(["a b c d e f"] * 9, tmp_path / "tokenizer.model", 267)
    there = pathlib.Path("/bin/true")  # which, like a Python with JoeyNMT, exits with 0
    peer = JoeyNMT(tmp_path, Task(tmp_path, tmp_path / "tokenizer.model"), there)
    *_, path, _ = peer.command()
    meant = peer.config(tmp_path / "part1", None)
    assert yaml.safe_load(pathlib.Path(path).read_text(encoding="utf-8")) == meant
    assert meant["training"]["batch_size"] == 2048 and meant["training"]["batch_type"] == "token"
