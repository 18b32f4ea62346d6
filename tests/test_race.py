"""The race: contestants run in their turns alone, clocks count that, and an interrupted race goes on."""

import json
import signal
import time

import numpy as np
import pytest
from PIL import Image

from benchmarks.race import prepare, run
from benchmarks.race_table import Race, conclusion, draw, table
from benchmarks.racing.joeynmt import JoeyNMT
from benchmarks.racing.ours import Ours
from benchmarks.racing.racer import Contestant, Runner, Task
from benchmarks.racing.record import Reached, Record, at_marks, first_mark_with
from benchmarks.worker import BenchmarkError
from keras_transformer.tokenizer import train_tokenizer
from train.config import load_config
from train.evaluation.figures import BLUE, ORANGE

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


@pytest.mark.slow
@pytest.mark.usefixtures("ctrl_c")
def test_a_contestant_runs_in_its_turns_alone(tmp_path):
    runner, told = Runner(Script(tmp_path)), []
    time.sleep(0.2)
    assert not runner.contestant.checkpoints()  # it is made stopped
    seconds = runner.run_for(0.6, lambda step, path, passed: told.append((step, passed)))
    steps = sorted(runner.contestant.checkpoints())
    assert seconds >= 0.6 and len(steps) > 1
    time.sleep(0.2)
    assert sorted(runner.contestant.checkpoints())[-1] - steps[-1] <= 1  # what began before the signal came
    assert [step for step, _ in told] == sorted(step for step, _ in told) and set(steps) >= {step for step, _ in told}
    assert all(0 <= passed <= seconds for _, passed in told)
    assert runner.peak_bytes() > 0
    told.clear()
    runner.end(lambda step, path, passed: told.append(step))
    assert told == sorted(told) and told[-1] == max(runner.contestant.checkpoints()) and runner.process.returncode == 0


def test_a_contestant_that_ends_by_itself_is_named_with_its_log(tmp_path):
    runner = Runner(Script(tmp_path, "echo broken; exit 3"))
    with pytest.raises(BenchmarkError, match=f"a script ended with exit code 3.*{tmp_path}"):
        runner.run_for(5, nothing)
    assert runner.log.read_text() == "broken\n" and runner.end(nothing) == 0


@pytest.mark.slow
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


def test_if_one_cannot_start_the_other_is_not_left_stopped(tmp_path, monkeypatch):
    made, start = [], Runner.__init__

    def refuse(self, contestant):
        if made:
            raise BenchmarkError("cannot start")
        made.append(self)
        start(self, contestant)

    monkeypatch.setattr(Runner, "__init__", refuse)
    with pytest.raises(BenchmarkError, match="cannot start"):
        run([Script(tmp_path / name, name=name) for name in ("one", "two")], Record(tmp_path / "race.jsonl"), 5, 1)
    assert made[0].process.returncode is not None


def test_what_ran_after_the_last_checkpoint_is_not_counted(tmp_path):
    record = Record(tmp_path / "race.jsonl")
    record.add_checkpoint("ours", 50, 20.0, tmp_path / "50")
    record.add_turn("ours", 33.0, 1_000)
    again = Record(record.path)
    assert again.seconds("ours") == 20.0 and again.peak_bytes("ours") == 1_000
    assert again.seconds("joeynmt") == 0.0 and again.peak_bytes("joeynmt") == 0
    assert again.checkpoints("ours") == [Reached(50, 20.0, tmp_path / "50")]


def test_a_mark_has_the_newest_checkpoint_that_was_there_by_then(tmp_path):
    checkpoints = [Reached(step, seconds, tmp_path) for step, seconds in ((1, 5.0), (2, 10.0), (3, 29.0), (4, 31.0))]
    found = at_marks(checkpoints, every=10.0, last=40.0)
    assert {mark: reached.step for mark, reached in found.items()} == {10.0: 2, 20.0: 2, 30.0: 3, 40.0: 4}
    assert at_marks(checkpoints, every=4.0, last=9.0) == {8.0: checkpoints[0]}


def test_the_first_mark_with_a_score_counts():
    assert first_mark_with({10.0: 20.0, 30.0: 31.0, 20.0: 30.0}, 30.0) == 20.0
    assert first_mark_with({10.0: 20.0}, 30.0) is None


RACE = {
    "ours": Race("this project", {300.0: 30.0, 600.0: 35.0}, "the signature", 5_000.0, 2**30),
    "joeynmt": Race("JoeyNMT 2.3", {300.0: 12.0, 600.0: 31.0}, "the signature", 1_000.0, 2**29),
}


def test_the_table_has_both_scores_at_each_mark_and_when_one_reached_the_other():
    text = table(RACE, "the command")
    assert "| 5 | 30.00 | 12.00 |" in text and "| 10 | 35.00 | 31.00 |" in text and "the signature" in text
    assert conclusion(RACE)[0] == "JoeyNMT 2.3 has 31.00 BLEU after 10 minutes; this project had that after 10 minutes."
    slow = {**RACE, "ours": RACE["ours"]._replace(scores={300.0: 3.0})}
    assert conclusion(slow)[0].endswith("had that not yet.")


@pytest.mark.slow
def test_the_picture_shows_curves(tmp_path):
    draw(RACE, tmp_path / "race.png")
    pixels = np.asarray(Image.open(tmp_path / "race.png").convert("RGB"))
    for colour in (BLUE, ORANGE):
        assert np.all(pixels == list(bytes.fromhex(colour[1:])), axis=-1).sum() > 200


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race")
    for split in ("train", "val"):
        for language in ("en", "de"):
            (folder / f"{split}.{language}").write_text("a dog\na man\n")
    train_tokenizer(["a dog", "a man"] * 50, folder / "tokenizer.model", 270)
    return Task(folder, folder / "tokenizer.model")


def test_both_train_the_same_model_in_the_same_way(task, tmp_path):
    (tmp_path / "race.toml").write_text(Ours(tmp_path, task).config())
    ours = load_config(tmp_path / "race.toml")
    joeynmt = object.__new__(JoeyNMT)
    joeynmt.folder, joeynmt.task = tmp_path, task
    theirs = json.loads(json.dumps(joeynmt.config(tmp_path / "part1", None)))
    model, training = theirs["model"], theirs["training"]
    for side, layers in (("encoder", ours.model.encoder_layers), ("decoder", ours.model.decoder_layers)):
        stack = model[side]
        assert stack["num_layers"] == layers and stack["num_heads"] == ours.model.num_heads
        assert stack["hidden_size"] == ours.model.d_model and stack["ff_size"] == ours.model.d_ff
        assert stack["dropout"] == stack["embeddings"]["dropout"] == ours.training.dropout
    assert training["label_smoothing"] == ours.training.label_smoothing
    assert training["learning_rate_warmup"] == ours.training.warmup_steps
    assert training["learning_rate_factor"] == ours.training.learning_rate_factor
    vocabulary = (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(vocabulary) == len(set(vocabulary)) == 270  # the four special ones have other numbers here


def test_an_environment_without_joeynmt_is_named(task, tmp_path):
    with pytest.raises(BenchmarkError, match="make race-peer"):
        JoeyNMT(tmp_path, task, tmp_path / "python")


def test_text_that_is_missing_is_named(tmp_path):
    with pytest.raises(BenchmarkError, match="train.en.gz.*make multi30k"):
        prepare(tmp_path / "race", tmp_path / "data")
