"""The run folder: its tokenizer is the one that its weights were trained with."""

import shutil
import subprocess

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.models.presets import folder_to_save
from keras_transformer.pieces.tokenizer import model_proto, train_tokenizer
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run, load_runs
from tests.support.runs import random_run


def test_another_tokenizer_of_the_same_size_is_refused(tmp_path):
    """Its pieces would be other words to the weights."""
    folder = RunFolder(random_run(tmp_path / "run"))
    load_run(folder.path)  # without a sum, as a run of before there was one, it is not checked
    folder.keep_tokenizer_sum()
    load_run(folder.path)
    train_tokenizer(["not the words of that run, but so many others"] * 9, folder.tokenizer, 290)
    with pytest.raises(ConfigError, match="tokenizer.model is not the tokenizer that the weights were trained with"):
        load_run(folder.path)


@pytest.mark.parametrize("name", ["config.toml", "inference.json", "checkpoints", "checkpoints/x/y", "a/../lock"])
def test_no_command_may_write_over_a_file_of_a_run(name, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(ConfigError, match="--output .* is a file of the run .*: name another one"):
        RunFolder(tmp_path).refuse_own_file("--output", tmp_path / "link" / name)
    RunFolder(tmp_path).refuse_own_file("--output", tmp_path / "distilled.de")  # a file of the user's


def test_a_folder_that_lacks_a_file_is_told_what_it_is(tmp_path):
    run = RunFolder(tmp_path / "run")
    with pytest.raises(ConfigError, match="There is no run folder"):
        run.check_has(run.weights)
    run.path.mkdir()
    with pytest.raises(ConfigError, match="has no model.weights.h5: it is not a run folder, or its training has not"):
        run.check_has(run.path, run.weights)
    run.check_has()
    for place in (run.path, run.path / "123"):
        place.mkdir(exist_ok=True)
        (place / "saved_model.pb").touch()
        with pytest.raises(ConfigError, match="is an export, not a run folder: `keras-transformer translate-export"):
            run.check_has(run.weights)
        (place / "saved_model.pb").unlink()
    run.weights.touch()
    run.check_has(run.weights)


def test_no_run_is_no_ensemble():
    with pytest.raises(ConfigError, match="There is no run folder to open: give one or more"):
        load_runs([])


def test_a_damaged_sum_is_one_sentence(tmp_path):
    run = RunFolder(tmp_path)
    run.tokenizer.write_bytes(b"pieces")
    run.tokenizer_sum.write_bytes(b"\xff\xfe\n")
    with pytest.raises(ConfigError, match="is not the tokenizer that the weights were trained with"):
        run.check_tokenizer()


def test_the_sum_is_one_that_sha256sum_checks(tmp_path):
    folder = RunFolder(tmp_path)
    folder.tokenizer.write_bytes(b"any bytes")
    folder.keep_tokenizer_sum()
    check = subprocess.run(["sha256sum", "-c", folder.tokenizer_sum.name], cwd=tmp_path, capture_output=True, text=True)
    assert check.stdout == "tokenizer.model: OK\n"
    folder.tokenizer.write_bytes(b"other bytes")
    with pytest.raises(ConfigError, match="Put the right one back"):
        folder.check_tokenizer()


def test_a_checkpoint_that_was_put_aside_is_none_to_continue_from(tmp_path):
    folder = RunFolder(tmp_path)
    folder.checkpoints.mkdir()
    for name in ("step-00000001.old.npz", "step-1.npz", "step-00000001.npz.damaged"):
        (folder.checkpoints / name).touch()
    assert not folder.has_begun()
    (folder.checkpoints / "step-00000001.npz").touch()
    assert folder.has_begun()


def test_a_run_that_has_just_begun_is_no_place_for_a_preset(tmp_path):
    (tmp_path / "config.toml").touch()
    with pytest.raises(ConfigError, match="is a run folder: save the preset into another folder"):
        folder_to_save(tmp_path)


def test_an_ensemble_has_one_tokenizer_and_at_least_one_run(random_folder, tmp_path):
    with pytest.raises(ConfigError, match="There is no run folder to open: give one or more."):
        load_runs([])
    [_], tokenizer = load_runs([random_folder])
    assert tokenizer.model_bytes == RunFolder(random_folder).tokenizer.read_bytes()
    other = shutil.copytree(random_folder, tmp_path / "other")
    proto = model_proto(tokenizer.model_bytes)
    proto.pieces[-1].score -= 1
    RunFolder(other).tokenizer.write_bytes(proto.SerializeToString())
    RunFolder(other).keep_tokenizer_sum()
    with pytest.raises(ConfigError, match=f"^{other} has another tokenizer than {random_folder}, so that"):
        load_runs([random_folder, other])
