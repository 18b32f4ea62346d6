"""The race: contestants run in their turns alone, clocks count that, and an interrupted race goes on."""

import contextlib
import signal
import sys
import time

import psutil
import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.recipes.race import run, score
from benchmarks.recipes.race_table import Race, conclusion, table
from benchmarks.recipes.racing.racer import Contestant, Runner, Task
from benchmarks.recipes.racing.record import Reached, Record, at_marks, first_mark_with
from tests.support.processes import start_python, wait_until

LOOP = """
trap 'touch {folder}/$((i + 1)).ckpt; exit 0' INT
i=$(ls {folder} | grep -c ckpt)
sleep 0.1
while :; do i=$((i + 1)); touch {folder}/$i.ckpt; sleep 0.05; done
"""


class Script(Contestant):
    """Writes a checkpoint twenty times a second, and a last one on SIGINT."""

    label, note, stop_signal = "a script", "It counts.", signal.SIGINT

    def __init__(self, folder, name="script"):
        super().__init__(folder, None)
        self.name = name

    def command(self):
        return ["sh", "-c", LOOP.format(folder=self.folder)]

    def checkpoints(self):
        return {int(path.stem): path for path in self.folder.glob("*.ckpt")}

    def tokens(self, checkpoint):
        return 0

    def translate(self, checkpoint, split):
        return []


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

    languages = ("en", "de")

    def lines(self, split, language):
        return ["a b c d e"]


@pytest.fixture
def translating(tmp_path):
    """A contestant whose checkpoints are its translations of one sentence, and its record."""

    def made(*checkpoints):
        one, record = Script(tmp_path), Record(tmp_path / "race.jsonl")
        one.task, one.translate = Lines(), lambda checkpoint, split: [checkpoint.read_text()]
        for step, seconds, text in checkpoints:
            record.add_checkpoint("script", step, seconds, tmp_path / f"{step}.ckpt")
            if text:
                (tmp_path / f"{step}.ckpt").write_text(text)
        return one, record

    return made


def test_a_checkpoint_that_its_program_has_removed_counts_for_no_mark(translating, tmp_path):
    checkpoints = (1, 5.0, "a b c d e"), (2, 15.0, None), (3, 25.0, "f g h i j")
    found = score(*translating(*checkpoints), tmp_path, 30.0, 10.0, 1000)
    assert found.scores == {10.0: pytest.approx(100.0), 20.0: pytest.approx(100.0), 30.0: 0.0}


def test_scores_after_the_same_updates_are_of_the_checkpoints_at_them(translating, tmp_path):
    checkpoints = (100, 5.0, "a b c d x"), (200, 15.0, "a b c d e"), (400, 35.0, "a b c d e"), (600, 99.0, "a")
    found = score(*translating(*checkpoints), tmp_path, 40.0, 40.0, 200)
    assert found.scores_by_step == {200: pytest.approx(100.0), 400: pytest.approx(100.0)}
    assert found.rate == 0.0 and found.note == "It counts."


def test_the_first_mark_with_a_score_counts():
    assert first_mark_with({10.0: 20.0, 30.0: 31.0, 20.0: 30.0}, 30.0) == 20.0
    assert first_mark_with({10.0: 20.0}, 30.0) is None


RACE = {
    "ours": Race(
        "this project", {300.0: 30.0, 600.0: 35.0}, {1000: 31.0}, "the signature", 5_000.0, 61.0, 2**30, "Ours."
    ),
    "joeynmt": Race(
        "JoeyNMT 2.3", {300.0: 12.0, 600.0: 31.0}, {1000: 30.5}, "the signature", 1_000.0, 83.0, 2**29, "Theirs."
    ),
}


def test_the_table_has_both_scores_at_each_mark_and_when_one_reached_the_other(tmp_path):
    (tmp_path / "train.en").write_text("a\nb\n")
    task = Task(tmp_path, tmp_path / "tokenizer.model", tokens_per_batch=4096)
    text = table(RACE, "the command", task)
    assert "4,096 target tokens a batch" in text and "the 2 pairs of [configs/multi30k.toml]" in text
    assert "Ours." in text and "Theirs." in text and "| 1,000 | 31.00 | 30.50 |" in text
    assert "| 5 | 30.00 | 12.00 |" in text and "| 10 | 35.00 | 31.00 |" in text and "the signature" in text
    assert "| seconds between checkpoints | 61 | 83 |" in text and "| peak memory | 1,024 MiB | 512 MiB |" in text
    assert conclusion(RACE)[0] == "JoeyNMT 2.3 has 31.00 BLEU after 10 minutes; this project had that after 10 minutes."
    slow = {**RACE, "ours": RACE["ours"]._replace(scores={300.0: 3.0})}
    assert conclusion(slow)[0].endswith("had that not yet.")
