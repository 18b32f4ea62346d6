"""Messages about keys of the configuration: where one was set, and that each names its key."""

import datetime

import pytest

from keras_transformer.ground.errors import ConfigError
from train.config.run import KEYS, LONGEST, check_config, set_by

OVERRIDES = ["training.steps=1", 'data.train=[{files = "a.tsv", weight = -1}]', "training.steps = 2", "model.norm=pre"]


@pytest.mark.parametrize(
    ("key", "place"),
    [
        ("training.steps", "--set training.steps = 2"),  # the last one counts
        ("data.train.0.weight", f"--set {OVERRIDES[1]}"),  # within the value of an override
        ("model", "--set model.norm=pre"),  # a section of which a key is overridden
        ("training.step", "run.toml"),
        ("training.steps_per_epoch", "run.toml"),
    ],
)
def test_a_key_is_set_by_the_last_override_that_has_it(key, place):
    assert set_by(key, "run.toml", OVERRIDES) == place


DATA = {
    "files": {"train": ["a.tsv"], "validation": ["b.tsv"]},
    "numbers": {},
    "tfds": {"name": "a/b"},
    "treebank": {"files": ["trees"]},
}
OTHERS = [[1.5]], {"a": 1}, datetime.date(2026, 1, 1)  # which no key takes
TABLES = ("training.optimizer_options",)  # keys that take any table; the optimizer says what it takes of it


@pytest.mark.parametrize("source", DATA)
def test_a_value_of_another_type_is_one_line_that_names_its_key(source):
    data = {"source": source, **DATA[source]}
    if source in ("files", "tfds"):
        data |= {"source_language": "en", "target_language": "de"}
    check_config({"run_folder": "r", "data": data}, "run.toml")
    for key in KEYS:
        if key.startswith("data.") or source == "numbers":
            for value in OTHERS[:1] if key in TABLES else OTHERS:
                line = refusal({"run_folder": "r", "data": dict(data)}, key, value)
                assert line and line.startswith("run.toml: ") and "\n" not in line, (key, value)
                section = "data.clean" if source == "treebank" and "clean" in key else key  # which it has not
                assert section in line, (key, value, line)


def refusal(values, key, value):
    """What is said of a configuration of which one key has another value; None if it is taken."""
    *sections, name = key.split(".")
    place = values
    for section in sections:
        place = place.setdefault(section, {})
    place[name] = value
    try:
        check_config(values, "run.toml")
    except ConfigError as error:
        return str(error)
    return None


@pytest.mark.parametrize("key", ["run_folder", "cache_folder", "tokenizer.model", "training.start_from"])
def test_a_path_that_no_system_takes_is_refused(key):
    line = refusal({"run_folder": "r", "data": {"source": "numbers"}}, key, "b\0")
    assert key in line and r"'b\x00' has the character U+0000, which no path may have" in line


def test_what_another_source_has_no_use_for_is_to_be_left_out():
    data = {"source": "treebank", **DATA["treebank"]}
    line = refusal({"run_folder": "r", "data": data}, "data.clean.numbers", True)
    assert line == "run.toml: data.clean has no use if data.source is 'treebank': leave it out."


def test_of_a_long_value_the_beginning_is_shown():
    line = refusal({"run_folder": "r", "data": {"source": "numbers"}}, "training.steps", "é" * 9999)
    assert line.startswith("run.toml: training.steps is 'ééé") and "...: input should be" in line
    assert len(line) < LONGEST + 100


@pytest.mark.parametrize("key", ["data", "data.clean", "training", "training.augment"])
def test_what_is_no_table_is_told_so_in_words_of_the_file(key):
    line = refusal({"run_folder": "r", "data": {"source": "numbers"}}, key, 0.3)
    assert line == f"run.toml: {key} is 0.3: input should be a table of keys."
