"""Which changes of the configuration a run accepts when it continues, and which run another one may start from."""

import logging
import pathlib
import re

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.run_folder import RunFolder
from train.config.run import load_config
from train.record import as_begun
from train.record.as_begun import with_found_micro_batches, with_precision
from train.record.changes import check_start, check_unchanged, write_configuration
from train.workers.tf_config import ONLY_WORKER, Worker

CONFIG = """
run_folder = "run"
[data]
source = "numbers"
[model]
preset = "tiny"
"""


# the configuration of a run that continues


@pytest.fixture
def folder(tmp_path):
    """A run folder with a checkpoint, begun with CONFIG."""
    folder = RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    (folder.checkpoints / "step-00000010.npz").touch()
    record(folder, configuration(folder))
    return folder


def configuration(folder, *overrides):
    (path := folder.path.with_suffix(".toml")).write_text(CONFIG)
    return load_config(path, overrides)


def record(folder, config):
    write_configuration(folder, config, config.model.resolve(vocab_size=300))


def test_commands_are_told_what_they_need_of_the_configuration(folder):
    assert folder.inference() == Inference("text", {}, 128, Languages({"en": ""}, {"de": ""}))
    treebank = 'data={source="treebank",files=["a.mrg"]}'
    search = {"beam_size": 5, "length_penalty": 0.6, "extra_length": 50}
    search |= {"length_normalization": "gnmt", "coverage_penalty": 0.0}
    record(folder, configuration(folder, treebank, "translation.beam_size=5", "training.source_row_length=90"))
    assert folder.inference() == Inference("trees", search, 90)


def test_the_same_configuration_logs_nothing(folder, caplog):
    with caplog.at_level(logging.INFO, logger="train"):
        check_unchanged(folder, configuration(folder))
    assert not caplog.messages


def test_a_run_from_before_there_were_kinds_is_of_a_transformer(folder, caplog):
    for file in (folder.config, folder.model):
        text = file.read_text(encoding="utf-8")
        without, count = re.subn(r'^ *"?kind"?[ :=].*\n', "", text, flags=re.MULTILINE)
        assert count == 1
        file.write_text(without, encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="train"):
        check_unchanged(folder, configuration(folder))
    assert not caplog.messages
    other = folder.path.with_name("other.toml")
    other.write_text(CONFIG.replace('preset = "tiny"', 'kind = "recurrent"'), encoding="utf-8")
    with pytest.raises(ConfigError, match="model.kind was 'transformer' and is 'recurrent'"):
        check_unchanged(folder, load_config(other))


def test_a_run_from_before_tokenizers_could_be_in_lower_case_has_none_that_is(folder, caplog):
    lines = folder.config.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not line.startswith(("lowercase", "dummy_prefix"))]
    assert len(kept) == len(lines) - 2
    folder.config.write_text("".join(kept), encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="train"):
        check_unchanged(folder, configuration(folder))
    assert not caplog.messages
    with pytest.raises(ConfigError, match="tokenizer.lowercase was False and is True"):
        check_unchanged(folder, configuration(folder, "tokenizer.lowercase=true"))


def test_a_former_key_that_changed_nothing_has_not_changed(folder, caplog):
    text = folder.config.read_text(encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="train"):
        for sentences in (0, 2):
            folder.config.write_text(text.replace("[data]\n", f"[data]\ncontext = {sentences}\n"), encoding="utf-8")
            check_unchanged(folder, configuration(folder))
    (message,) = caplog.messages
    assert message.endswith("data.context was 2 and is not set")


def test_a_key_that_may_change_is_logged_with_both_values(folder, caplog):
    with caplog.at_level(logging.INFO, logger="train"):
        check_unchanged(folder, configuration(folder, "training.steps=7", "training.dropout=0.2", "run_folder='x'"))
    dropout, steps = (message.partition("began: ")[2] for message in caplog.messages)
    assert (dropout, steps) == ("training.dropout was not set and is 0.2", "training.steps was 100000 and is 7")


FIXED = [
    "model.d_model=64",
    'model.preset="base"',
    "tokenizer.vocab_size=500",
    'model.norm="pre"',
    "training.ema_decay=0.9",
    'training.frozen=["embedding"]',
    "training.lora_rank=8",
    "training.lora_alpha=8.0",
    'training.lora_matrices=["ffn"]',
    "training.optimizer=lion",
    "training.optimizer_options={beta_2=0.95}",
    'training.precision="mixed_float16"',
]


@pytest.mark.parametrize("override", FIXED)
def test_a_key_that_changes_what_weights_mean_is_refused_by_name(folder, override):
    with pytest.raises(ConfigError, match=f"{folder.path} was begun with another .*{override.partition('=')[0]}"):
        check_unchanged(folder, configuration(folder, override))


def test_a_run_of_before_there_were_optimizers_goes_on_with_adam(folder, caplog):
    text = folder.config.read_text(encoding="utf-8")
    folder.config.write_text(text.replace('optimizer = "adam"\n', ""), encoding="utf-8")
    assert "optimizer" not in folder.config.read_text(encoding="utf-8")
    with caplog.at_level(logging.INFO, logger="train"):
        check_unchanged(folder, configuration(folder))
    assert not caplog.messages
    with pytest.raises(ConfigError, match="training.optimizer was 'adam' and is 'muon'"):
        check_unchanged(folder, configuration(folder, "training.optimizer=muon"))


def test_a_run_of_before_there_was_normalization_goes_on_unless_another_one_is_asked_for(folder):
    """Its tokenizer has none; the key that is left out is what a new run would have."""
    recorded = folder.config.read_text()
    folder.config.write_text(recorded.replace('normalization = "nfc"\n', ""))
    assert check_unchanged(folder, configuration(folder)) == {}
    assert check_unchanged(folder, configuration(folder, "tokenizer.normalization=identity")) == {}
    with pytest.raises(ConfigError, match="tokenizer.normalization was 'identity' and is 'nfc'"):
        check_unchanged(folder, configuration(folder, "tokenizer.normalization=nfc"))


def test_bfloat16_has_the_checkpoints_of_float32(folder):
    check_unchanged(folder, configuration(folder, 'training.precision="mixed_bfloat16"'))


@pytest.mark.parametrize(("before", "now"), [(None, "a"), ("a", None), ("a", "b")])
def test_a_run_that_has_begun_starts_from_no_other_weights(folder, before, now):
    def started(run):
        return configuration(folder, *([f"training.start_from={run}"] if run else []))

    record(folder, started(before))
    check_unchanged(folder, started(before and pathlib.Path(before).absolute()))  # written in another way
    begun = f"was begun from {'the weights of a' if before else 'random weights'}, and"
    with pytest.raises(ConfigError, match=f"{begun} training.start_from is now {now or 'not set'}: a run starts once"):
        check_unchanged(folder, started(now))


def test_a_damaged_model_json_that_nobody_needs_is_no_obstacle(folder):
    folder.model.write_text("{torn")
    check_unchanged(folder, configuration(folder))
    folder.model.unlink(), folder.config.unlink()
    assert check_unchanged(folder, configuration(folder)) == {}


def test_before_the_first_checkpoint_anything_may_change(folder):
    (folder.checkpoints / "step-00000010.npz").unlink()
    check_unchanged(folder, configuration(folder, "model.d_model=64"))


def test_a_finished_model_without_its_checkpoints_is_not_trained_anew(folder):
    (folder.checkpoints / "step-00000010.npz").unlink()
    folder.weights.touch()
    with pytest.raises(ConfigError, match=f"{folder.path} has a finished model, .*Set another run_folder, or remove"):
        check_unchanged(folder, configuration(folder))


def test_a_tokenizer_that_was_given_may_move_but_not_be_another(folder, tmp_path):
    """The run folder has a copy of it. How many pieces it has is not a setting."""
    given, moved, other = (str(tmp_path / name) for name in ("given.model", "moved.model", "other.model"))
    for path, content in {folder.tokenizer: b"pieces", moved: b"pieces", other: b"others"}.items():
        pathlib.Path(path).write_bytes(content)
    record(folder, configuration(folder, f"tokenizer.model={given}").with_tokenizer(300, "nfc"))
    for path in (given, moved):  # the first is no longer there
        check_unchanged(folder, configuration(folder, f"tokenizer.model={path}"))
    check_unchanged(folder, configuration(folder, f"tokenizer.model={moved}", "model.d_model=128"))  # of the preset
    with pytest.raises(ConfigError, match="tokenizer.model was .*given.model' and is .*other.model'"):
        check_unchanged(folder, configuration(folder, f"tokenizer.model={other}"))
    with pytest.raises(ConfigError, match="tokenizer.model was .*given.model' and is not set"):
        check_unchanged(folder, configuration(folder))


def test_a_run_that_learned_its_tokenizer_was_given_none(folder, tmp_path):
    """Not even one that is not there, or its own: the record would name it, and the first configuration be refused."""
    folder.tokenizer.write_bytes(b"pieces")
    for given in (tmp_path / "mistyped.model", folder.tokenizer):
        with pytest.raises(ConfigError, match="has learned its tokenizer, and tokenizer.model is now .*leave it out"):
            check_unchanged(folder, configuration(folder, f"tokenizer.model={given}"))
    check_unchanged(folder, configuration(folder))


DAMAGED = {"empty": b"", "half": b"[model]\npres", "not UTF-8": b'run_folder = "\xff"', "missing": None}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_record_loses_no_run_but_another_model_is_still_refused(folder, content, caplog):
    folder.config.unlink() if content is None else folder.config.write_bytes(content)
    with caplog.at_level(logging.WARNING, logger="train"):
        check_unchanged(folder, configuration(folder, "training.dropout=0.4"))
    assert len(caplog.messages) == 1 and str(folder.config) in caplog.messages[0]
    with pytest.raises(ConfigError, match="model.activation was 'relu' and is 'gelu'"):
        check_unchanged(folder, configuration(folder, 'model.activation="gelu"'))


def test_the_number_of_micro_batches_that_was_found_stays(folder, caplog):
    record(folder, configuration(folder, "training.micro_batches=4"))
    asked = configuration(folder, "training.find_micro_batches=true")
    with caplog.at_level(logging.INFO, logger="train"):
        found = with_found_micro_batches(folder, asked)
    assert "goes on with training.micro_batches = 4, with which it was begun" in caplog.text
    caplog.clear()
    assert (found.training.micro_batches, found.training.find_micro_batches) == (4, False)
    check_unchanged(folder, found)
    assert with_found_micro_batches(folder, configuration(folder)).training.micro_batches == 1  # not asked for
    assert not caplog.messages
    assert with_found_micro_batches(folder, asked, Worker(0, 2)) == asked  # which is refused for two workers
    for count, content in enumerate((*DAMAGED.values(), b"[a]\nb = 4", b"[training]\nmicro_batches = [1]"), 1):
        folder.config.unlink() if content is None else folder.config.write_bytes(content)
        assert with_found_micro_batches(folder, asked) == asked and len(caplog.messages) == count
    (folder.checkpoints / "step-00000010.npz").unlink()
    assert with_found_micro_batches(folder, asked) == asked  # not begun


def test_a_run_goes_on_in_the_precision_with_which_it_was_begun(folder, monkeypatch):
    monkeypatch.setattr(as_begun, "precision_here", lambda config, worker: "mixed_bfloat16")

    def found(*overrides):
        return with_precision(folder, configuration(folder, *overrides)).training.precision

    for recorded in ("float32", "mixed_bfloat16"):
        record(folder, configuration(folder, f'training.precision="{recorded}"'))
        assert found() == recorded
        assert check_unchanged(folder, with_precision(folder, configuration(folder))) == {}
    assert found('training.precision="float32"') == "float32"  # which is asked for
    before_it_was_a_key = folder.config.read_text().replace('precision = "mixed_bfloat16"\n', "")
    folder.config.write_text(before_it_was_a_key)
    assert found() == "float32"
    for content in DAMAGED.values():  # of which check_unchanged tells
        folder.config.unlink() if content is None else folder.config.write_bytes(content)
        assert found() == "mixed_bfloat16"
    (folder.checkpoints / "step-00000010.npz").unlink()
    assert found() == "mixed_bfloat16"  # not begun


# the run that a run starts from


@pytest.fixture
def other(tmp_path, folder):
    """Another run folder, finished, with the model of CONFIG."""
    other = RunFolder(tmp_path / "other")
    other.path.mkdir()
    record(other, configuration(folder))
    other.tokenizer.touch()
    other.weights.touch()
    return other


def start(folder, other, *overrides, worker=ONLY_WORKER):
    check_start(folder, configuration(folder, f"training.start_from={other.path}", *overrides), worker)


def test_a_run_may_start_from_one_with_the_same_model_or_a_deeper_decoder_and_another_tokenizer(folder, other):
    (folder.checkpoints / "step-00000010.npz").unlink()
    start(folder, other, "tokenizer.vocab_size=500", "training.dropout=0.4", "training.label_smoothing=0")
    start(folder, other, "model.decoder_layers=1")


def test_another_model_to_start_from_is_one_sentence_with_both_values(folder, other):
    start(folder, other, "model.d_model=64")  # has begun already
    (folder.checkpoints / "step-00000010.npz").unlink()
    start(folder, other, "model.d_model=64", worker=Worker(1, 2))  # another worker needs no such folder
    parts = {"d_model=64": "d_model is 128 there and 64", "kind=recurrent": "kind is .* 'recurrent'"}
    parts |= {f"{side}_layers={n}": f"{side}_layers is 4 there and {n}" for side, n in (("encoder", 3), ("decoder", 5))}
    for change, part in parts.items():
        with pytest.raises(ConfigError, match=rf"start_from is {other.path}, .*model.{part} here.* section \[model\]"):
            start(folder, other, "model.preset=null" if "kind" in change else "model.norm=post", f"model.{change}")


@pytest.mark.parametrize("missing", ["model", "tokenizer", "weights"])
def test_a_run_that_is_not_finished_is_no_start(folder, other, missing):
    (folder.checkpoints / "step-00000010.npz").unlink()
    (file := getattr(other, missing)).unlink()
    with pytest.raises(ConfigError, match=f"training.start_from is {other.path}, which has no {file.name}: "):
        start(folder, other)
