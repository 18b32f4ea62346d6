"""A run whose training is done: nothing may say afterwards that it was trained otherwise."""

import dataclasses
import json
import os
import signal

import h5py
import numpy as np
import pytest

from keras_transformer.commands.console import INTERRUPTED
from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.run_folder import RunFolder
from tests.support.commands import assert_one_sentence, invoke
from tests.support.runs import write_config
from train.__main__ import app
from train.config.run import load_config
from train.config.training import TrainingConfig
from train.loop.checkpoints import last_progress
from train.loop.progress import Progress
from train.record.changes import check_unchanged, write_configuration
from train.record.finished import Standing, where_it_stands
from train.record.history import Part, history, record_part
from train.validation.validation import Validator

CONFIG = """
run_folder = "run"
[data]
source = "files"
train = ["a.tsv"]
validation = ["b.tsv"]
[model]
preset = "tiny"
[training]
steps = 40
patience = 3
"""
EARLY = {"best_metric": "bleu", "best_step": 10, "best_score": 1.0, "validations_since_best": 3}


@pytest.fixture(params=[Progress(40), Progress(25, **EARLY)], ids=["all steps", "stopped early"])
def folder(request, tmp_path):
    """A run folder with the checkpoint of a run that is done."""
    folder = RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    progress = np.array(json.dumps(dataclasses.asdict(request.param)))
    np.savez(folder.checkpoints / f"step-{request.param.step:08d}.npz", progress=progress)
    record(folder)
    return folder


def record(folder, *overrides):
    config = configuration(folder, *overrides)
    write_configuration(folder, config, config.model.resolve(vocab_size=300))


def configuration(folder, *overrides):
    path = folder.path.with_suffix(".toml")
    path.write_text(CONFIG)
    return load_config(path, overrides)


def test_a_run_without_a_checkpoint_stands_at_its_beginning(tmp_path):
    assert where_it_stands(RunFolder(tmp_path), TrainingConfig(steps=40)) == Standing(step=0, is_done=False)


def test_a_run_stands_at_its_last_checkpoint(folder):
    (step,) = {int(path.stem.removeprefix("step-")) for path in folder.checkpoints.iterdir()}
    training = configuration(folder).training
    assert where_it_stands(folder, training) == Standing(step, is_done=True)
    assert where_it_stands(folder, training.model_copy(update={"steps": 41, "patience": 4})) == Standing(step, False)


@pytest.mark.parametrize(
    ("content", "is_damaged"),
    [
        (None, False),
        (b"", False),
        (b'{"step": 0, "commit": null, "changes": {}}\n', False),
        *((content, True) for content in (b"{", b"\xff", b"1\n", b"[1]\n", b"{}\n", b'{"step": 0, "strange": 1}\n')),
    ],
)
def test_a_damaged_history_is_kept_beside_the_new_one(tmp_path, content, is_damaged):
    folder = RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    if content is not None:
        folder.history.write_bytes(content)
    record_part(folder, TrainingConfig(steps=40), "abc", {})
    damaged = folder.path / "history.jsonl.damaged"
    assert (damaged.read_bytes() if damaged.exists() else None) == (content if is_damaged else None)
    assert [part.commit for part in history(folder)] == ["abc"]


@pytest.mark.parametrize(
    "override",
    [
        "training.seed=2",
        "training.dropout=0.5",
        "data.train_pairs=7",
        "data.shards=2",
        "training.augment.uppercase=0.1",
        "data.clean.identical=true",
    ],
)
def test_what_would_be_trained_otherwise_is_refused(folder, override):
    key = override.partition("=")[0]
    with pytest.raises(ConfigError, match=rf"been trained for \d+ steps.*{key} was .* and is .*run_folder"):
        check_unchanged(folder, configuration(folder, override))


def test_steps_that_a_damaged_checkpoint_has_lost_are_trained_again_and_may_change(folder):
    (folder.checkpoints / "step-00000050.npz").write_bytes(b"torn")
    with pytest.raises(ConfigError, match="training.seed was 1 and is 2"):
        check_unchanged(folder, configuration(folder, "training.seed=2"))
    check_unchanged(folder, configuration(folder, "training.seed=2", "training.steps=50", "training.patience=9"))


AFTERWARDS = [
    "translation.beam_size=7",
    "data.licence='CC0'",
    "data.test=['c.tsv']",
    "data.validation=['c.tsv']",
    "cache_folder='elsewhere'",
    "training.average_checkpoints=2",
    "training.keep_checkpoints=9",
    "training.keep_best=true",
    "training.checkpoint_every=7",
    "training.validate_every=7",
    "training.best_metric=chrf",
    "training.patience=2",
    "training.log_every=7",
    "training.picture_sentences=1",
    "training.histograms_every=7",
    "training.profile_steps=[1, 2]",
    "training.on_divergence=rewind",
    "training.xla=false",
]


def test_what_chooses_measures_and_records_may_change(folder):
    for override in AFTERWARDS:
        assert check_unchanged(folder, configuration(folder, override)).keys() == {override.partition("=")[0]}


@pytest.mark.parametrize("key", ["data.source_language", "data.target_language"])
def test_languages_may_be_corrected_unless_they_choose_the_text(folder, key):
    assert check_unchanged(folder, configuration(folder, f"{key}=zh")).keys() == {key}
    numbers = folder.path.with_name("numbers.toml")
    numbers.write_text('run_folder="run"\ndata={source="numbers"}\nmodel={preset="tiny"}\ntraining={steps=25}')
    write_configuration(folder, config := load_config(numbers), config.model.resolve(vocab_size=300))
    with pytest.raises(ConfigError, match=f"{key} was '..' and is 'fr'"):
        check_unchanged(folder, load_config(numbers, [f"{key}=fr"]))


@pytest.mark.parametrize("key", ["data.source_language", "data.target_language"])
def test_languages_by_which_pairs_were_left_out_are_refused(folder, key):
    by_language = ["data.source_language=en", "data.target_language=de", "data.clean.languages=true"]
    record(folder, *by_language)
    check_unchanged(folder, configuration(folder, *by_language))
    with pytest.raises(ConfigError, match=f"{key} was '..' and is 'fr'"):
        check_unchanged(folder, configuration(folder, *by_language, f"{key}=fr"))


@pytest.mark.parametrize("override", ["model.d_model=128", "training.dropout=0.3", "training.label_smoothing=0.1"])
def test_values_of_the_preset_may_be_written_out(folder, override):
    check_unchanged(folder, configuration(folder, override))


def test_the_same_configuration_is_that_of_a_run_from_before_some_keys_or_with_others(folder):
    lines = folder.config.read_text(encoding="utf-8").splitlines(keepends=True)
    older = [line for line in lines if not line.startswith(("bpe_dropout", "schedule", "cooldown_steps", "xla"))]
    assert len(older) == len(lines) - 4
    older.insert(older.index("[training]\n") + 1, "r_drop = 0.0\n")
    folder.config.write_text("".join(older), encoding="utf-8")
    check_unchanged(folder, configuration(folder))


def test_a_run_that_goes_on_may_change(folder):
    more = ["training.steps=80", "training.patience=9", "training.dropout=0.5"]
    assert "training.dropout" in check_unchanged(folder, configuration(folder, *more))


@pytest.mark.parametrize(
    "entries", ["'a.tsv', 'c.tsv'", "{files = 'a.tsv', tag = '<2de>'}", "{files = 'a.tsv', weight = 2.0}"]
)
def test_training_files_may_move_but_not_change_their_number_tags_or_weights(folder, entries):
    check_unchanged(folder, configuration(folder, "data.train=['moved/a.tsv']"))
    check_unchanged(folder, configuration(folder, "data.train=[['moved/a.en', 'moved/a.de']]"))
    with pytest.raises(ConfigError, match=r"data.train was \['a.tsv'\] and is .*run_folder"):
        check_unchanged(folder, configuration(folder, f"data.train=[{entries}]"))


def test_a_run_may_be_ended_where_it_stands(folder):
    step = last_progress(folder.checkpoints).step
    record(folder, "training.steps=90", "training.patience=99")
    keys = check_unchanged(folder, configuration(folder, f"training.steps={step}", "training.patience=99")).keys()
    assert keys == {"training.steps"}
    with pytest.raises(ConfigError, match=f"trained for {step} steps.*training.steps was 90 and is {step - 1}"):
        check_unchanged(folder, configuration(folder, f"training.steps={step - 1}"))
    for rate in (["cooldown_steps=5"], ["schedule=cosine", "warmup_steps=2"]):  # the last steps would have been others
        ending = [f"training.{key}" for key in rate]
        record(folder, "training.steps=90", *ending)
        with pytest.raises(ConfigError, match=f"training.steps was 90 and is {step}"):
            check_unchanged(folder, configuration(folder, f"training.steps={step}", *ending))


def test_a_run_that_is_ended_where_it_was_stopped_was_not_trained_by_a_process_without_a_checkpoint(folder):
    """It was stopped; with another rate it diverged before the next checkpoint; now it is ended with the first rate."""
    step = last_progress(folder.checkpoints).step
    record(folder, "training.steps=90", "training.patience=99", "training.learning_rate_factor=5.0")
    parts = [Part(0, None, {}), Part(step, None, {"training.learning_rate_factor": ("1.0", "5.0")})]
    folder.history.write_text("".join(json.dumps(part._asdict()) + "\n" for part in parts))
    end = [f"training.steps={step}", "training.patience=99"]
    with pytest.raises(ConfigError, match=r"learning_rate_factor was 1\.0 and is 5\.0"):
        check_unchanged(folder, configuration(folder, *end, "training.learning_rate_factor=5.0"))
    config = configuration(folder, *end)
    record_part(folder, config.training, None, check_unchanged(folder, config))
    assert [part.step for part in history(folder)] == [0]


@pytest.mark.slow
def test_a_run_that_is_ended_where_it_was_stopped_has_the_weights_of_one_of_as_many_steps(tmp_path, monkeypatch):
    class StoppingValidator(Validator):
        def __call__(self):
            os.kill(os.getpid(), signal.SIGTERM)
            return super().__call__()

    stopped, straight = write_config(tmp_path, "stopped"), write_config(tmp_path, "straight")
    with monkeypatch.context() as patch:
        closed = []
        patch.setattr("train.validation.after_validation.Validator", StoppingValidator)
        patch.setattr("train.data.batches.Epochs.give_up", lambda epochs: closed.append(epochs))
        assert invoke(app, stopped).exit_code == INTERRUPTED  # after step 3, since the first validation follows step 2
        assert len(closed) == 2  # before Keras' fit returns, and at the end; so it waits for no epoch
    for config in (stopped, straight):
        assert invoke(app, config, "--set", "training.steps=3").exit_code == 0
    one, other = (weights_in(tmp_path / name / "model.weights.h5") for name in ("stopped", "straight"))
    assert one.keys() == other.keys() and len(one) > 20
    for name, value in one.items():
        np.testing.assert_array_equal(value, other[name])


def weights_in(path):
    found = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: found.update({name: item[()]}) if isinstance(item, h5py.Dataset) else None)
    return found


@pytest.mark.release
def test_a_command_that_trains_nothing_leaves_the_run_folder_as_it_is(tmp_path):
    config, folder = write_config(tmp_path), RunFolder(tmp_path / "run")
    assert invoke(app, config, "--set", "training.steps=2").exit_code == 0
    kept = [path.read_bytes() for path in (folder.config, folder.report, folder.history)]
    refused = invoke(app, config, "--set", "training.steps=2", "--set", "training.seed=2")
    assert_one_sentence(refused, "training.seed was 1 and is 2")
    dry = invoke(app, config, "--dry-run", "--set", "training.steps=2", "--set", "training.seed=2")
    assert_one_sentence(dry, "training.seed was 1 and is 2")  # as the training itself
    assert kept == [path.read_bytes() for path in (folder.config, folder.report, folder.history)]
    assert invoke(app, config, "--set", "training.seed=2").exit_code == 0  # five steps
    assert [part.changes.keys() for part in history(folder)] == [set(), {"training.seed", "training.steps"}]
