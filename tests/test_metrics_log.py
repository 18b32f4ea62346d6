"""metrics.jsonl and TensorBoard hold the same; a resumed run goes on where its checkpoint stands."""

import json

import pytest

from keras_transformer.run_folder import RunFolder
from tests.support.events import read_events
from train.loop.metrics_log import MetricsLog


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path / "run")


def write(folder, first_step, last_step):
    """A process that goes on from `first_step` and logs up to `last_step`."""
    metrics = MetricsLog(folder, first_step)
    for step in range(first_step + 1, last_step + 1):
        metrics.write(step, {"train/loss": 10.0 / step, "train/gradient_norm": float(step)})
    metrics.close()


def lines_of(folder):
    """Parsed as strictly as JSON is: without NaN and Infinity."""

    def refuse(constant):
        raise ValueError(f"{constant} is no JSON")

    text = folder.metrics.read_text(encoding="utf-8")
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def steps_of(folder):
    return [line["step"] for line in lines_of(folder)]


def test_the_file_and_tensorboard_hold_the_same_numbers(folder):
    write(folder, 0, 3)
    lines, events = lines_of(folder), read_events(folder.tensorboard)
    assert [set(line) for line in lines] == [{"step", "train/loss", "train/gradient_norm"}] * 3
    assert set(events) == {"train/loss", "train/gradient_norm"}
    for name, values in events.items():
        assert [step for step, _ in values] == [1, 2, 3]
        assert [value for _, value in values] == pytest.approx([line[name] for line in lines])


def test_a_line_is_in_the_file_before_the_next_step(folder):
    metrics = MetricsLog(folder, 0)
    metrics.write(1, {"train/loss": 2.0})
    assert lines_of(folder) == [{"step": 1, "train/loss": 2.0}]
    metrics.close()


def test_texts_go_to_both_too(folder):
    metrics = MetricsLog(folder, 0)
    metrics.write(7, {"validation/samples": "| ä | 한 |"})
    metrics.close()
    assert read_events(folder.tensorboard) == {"validation/samples": [(7, "| ä | 한 |")]}
    assert lines_of(folder) == [{"step": 7, "validation/samples": "| ä | 한 |"}]


@pytest.mark.parametrize("separator", ["\u2028", "\x85", "\x0c", "\n"])
def test_a_text_with_any_line_separator_in_it_outlives_a_resumption(folder, separator):
    metrics = MetricsLog(folder, 0)
    metrics.write(1, {"validation/samples": f"one{separator}two"})
    metrics.close()
    write(folder, 1, 2)
    assert read_events(folder.tensorboard)["validation/samples"] == [(1, f"one{separator}two")]


def test_what_came_after_the_checkpoint_is_dropped_and_comes_again(folder):
    write(folder, 0, 5)
    write(folder, 3, 6)
    assert steps_of(folder) == [1, 2, 3, 4, 5, 6]
    assert [step for step, _ in read_events(folder.tensorboard)["train/loss"]] == [1, 2, 3, 4, 5, 6]


def test_curves_are_whole_after_a_process_that_was_killed_before_it_could_write_them(folder):
    metrics = MetricsLog(folder, 0)
    metrics.write(1, {"train/loss": 4.0, "train/text": "one"})
    metrics.file.close()  # killed: TensorBoard's writer was never flushed
    write(folder, 1, 2)
    events = read_events(folder.tensorboard)
    assert events["train/loss"] == [(1, 4.0), (2, 5.0)]
    assert events["train/text"] == [(1, "one")]


def test_a_run_begun_anew_begins_a_file_anew(folder):
    write(folder, 0, 5)
    write(folder, 0, 2)
    assert steps_of(folder) == [1, 2]


@pytest.mark.parametrize("torn", ['{"step": 4, "train/lo', '{"step"', "4", '{"train/loss": 2.0}', "[]", "\0\0\0"])
def test_a_torn_last_line_is_dropped(folder, torn):
    write(folder, 0, 3)
    with open(folder.metrics, "a", encoding="utf-8") as file:
        file.write(torn)
    write(folder, 3, 5)
    assert steps_of(folder) == [1, 2, 3, 4, 5]


def test_a_last_line_that_lacks_only_its_end_stays_a_line(folder):
    write(folder, 0, 3)
    folder.metrics.write_text(folder.metrics.read_text(encoding="utf-8").rstrip("\n"), encoding="utf-8")
    write(folder, 3, 4)
    assert steps_of(folder) == [1, 2, 3, 4]


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_is_null_in_the_file(folder, number):
    metrics = MetricsLog(folder, 0)
    metrics.write(1, {"train/gradient_norm": number, "train/loss": 2.0})
    metrics.close()
    assert lines_of(folder) == [{"step": 1, "train/gradient_norm": None, "train/loss": 2.0}]
