"""Checkpoints: what is saved comes back, the last ones stay, and a damaged file is named and not used."""

import errno
import os

import keras
import numpy as np
import pytest

from keras_transformer.ground.machine import processor_cores
from keras_transformer.runs.run_folder import RunFolder
from tests.support.models import as_numpy, assert_close, normal
from train.loop.checkpoints import (
    CheckpointError,
    Checkpoints,
    assign_weights,
    progress_of,
    read_checkpoint,
    read_weights,
)
from train.loop.progress import Progress


def small_model(seed=0, width=2):
    """A model of one layer after three updates, and its optimizer."""
    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(width, name="dense")], name="small")
    optimizer = keras.optimizers.Adam(0.1, name="adam")
    optimizer.build(model.trainable_variables)
    for step in range(3):
        gradients = [normal(*weight.shape, seed=seed + step) for weight in model.trainable_variables]
        optimizer.apply([keras.ops.convert_to_tensor(gradient) for gradient in gradients])
    return model, optimizer


def values_of(model, optimizer):
    return {variable.path: as_numpy(variable) for variable in [*model.weights, *optimizer.variables]}


@pytest.fixture
def checkpoints(tmp_path):
    return Checkpoints(tmp_path / "run" / "checkpoints", keep=3)


def names(checkpoints):
    return [path.name for path in checkpoints.paths()]


def test_weights_optimizer_and_progress_come_back(checkpoints):
    saved, progress = small_model(seed=1), Progress(3, 1.5, 70.0, has_learned=True, skipped=[4, 7])
    checkpoints.save(*saved, progress)
    assert names(checkpoints) == ["step-00000003.npz"]
    fresh = small_model(seed=2)
    assert checkpoints.restore_latest(*fresh) == progress
    expected = values_of(*saved)
    assert len(expected) == 8  # kernel, bias, two moments of each, updates, rate
    for path, value in values_of(*fresh).items():
        np.testing.assert_array_equal(value, expected[path])
    assert set(read_weights(*checkpoints.paths())) == {weight.path for weight in fresh[0].weights}


def test_without_a_checkpoint_nothing_is_restored(checkpoints):
    model, optimizer = small_model()
    before = values_of(model, optimizer)
    assert checkpoints.restore_latest(model, optimizer) is None
    for path, value in values_of(model, optimizer).items():
        np.testing.assert_array_equal(value, before[path])


@pytest.mark.parametrize("stops", [[], [9], [9, 10, 11], [13], [11, 13, 14]])
def test_a_run_that_was_stopped_has_the_checkpoints_of_one_that_was_not(tmp_path, stops):
    model, optimizer = small_model()
    checkpoints = Checkpoints(tmp_path / "checkpoints", keep=3)
    for step in sorted([4, 8, 12, 16, *stops]):
        checkpoints.save(model, optimizer, Progress(step, is_interim=step in stops))
        assert names(checkpoints)[-1] == f"step-{step:08d}.npz"
    assert names(checkpoints) == ["step-00000008.npz", "step-00000012.npz", "step-00000016.npz"]


def test_an_interim_checkpoint_that_a_kill_left_goes_later(checkpoints):
    model, optimizer = small_model()
    interim, after = (checkpoints.folder / f"step-{step:08d}.npz" for step in (9, 12))
    checkpoints.save(model, optimizer, Progress(9, is_interim=True))
    content = interim.read_bytes()
    checkpoints.save(model, optimizer, Progress(12))
    interim.write_bytes(content)  # as if killed between the two
    checkpoints.save(model, optimizer, Progress(16))
    assert names(checkpoints) == [after.name, "step-00000016.npz"]


def test_the_last_checkpoints_stay(checkpoints):
    model, optimizer = small_model()
    for step in (900, 1000, 1100, 20_000):
        checkpoints.save(model, optimizer, Progress(step))
    assert names(checkpoints) == ["step-00001000.npz", "step-00001100.npz", "step-00020000.npz"]
    assert checkpoints.restore_latest(model, optimizer) == Progress(20_000)


def test_a_step_saved_again_replaces_its_file(checkpoints):
    for seed in (1, 2):
        checkpoints.save(*small_model(seed), Progress(5, seconds=seed))
    assert names(checkpoints) == ["step-00000005.npz"]
    assert checkpoints.restore_latest(*small_model()) == Progress(5, seconds=2)


def test_the_average_is_the_mean_of_the_last_weights(checkpoints):
    model, optimizer = small_model()
    for step, value in ((1, 100.0), (2, 1.0), (3, 5.0)):
        for weight in model.weights:
            weight.assign(keras.ops.full(weight.shape, value))
        checkpoints.save(model, optimizer, Progress(step))
    for count, mean in ((1, 5.0), (2, 3.0), (3, 106 / 3), (9, 106 / 3)):
        means, paths = checkpoints.average(count)
        assert [path.name for path in paths] == names(checkpoints)[-count:]
        assert set(means) == {weight.path for weight in model.weights}
        assign_weights(model, means)
        for weight in model.weights:
            assert_close(weight, np.full(weight.shape, mean))


@pytest.mark.slow
def test_every_flipped_byte_is_noticed_or_changes_nothing(checkpoints):
    checkpoints.save(*small_model(), Progress(3, seconds=1.5))
    (path,) = checkpoints.paths()
    whole, expected = path.read_bytes(), read_checkpoint(path)
    noticed = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        try:
            found = read_checkpoint(path)
        except CheckpointError as error:
            noticed += 1
            assert str(path) in str(error)
        else:  # a name that flips becomes another name, which `assign` misses
            assert all((found[name] == expected[name]).all() for name in found.keys() & expected.keys())
    assert noticed > len(whole) / 2  # the rest are dates and other fields of the archive that hold nothing of ours


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.999])
def test_a_truncated_file_is_renamed_and_the_checkpoint_before_it_used(checkpoints, share, caplog):
    saved = small_model(seed=1)
    checkpoints.save(*saved, Progress(2))
    checkpoints.save(*small_model(seed=2), Progress(4))
    torn = checkpoints.paths()[-1]
    torn.write_bytes(torn.read_bytes()[: int(share * torn.stat().st_size)])
    means, averaged = checkpoints.average(2)
    assert averaged == checkpoints.paths()[:1] and f"{torn} is damaged: " in caplog.text
    for weight in saved[0].weights:
        np.testing.assert_array_equal(means[weight.path], weight.value)
    fresh = small_model(seed=3)
    assert checkpoints.restore_latest(*fresh) == Progress(2)
    for path, value in values_of(*saved).items():
        np.testing.assert_array_equal(values_of(*fresh)[path], value)
    assert names(checkpoints) == ["step-00000002.npz"] and (torn.parent / "step-00000004.npz.damaged").exists()
    assert f"{torn} is damaged" in caplog.text and "step-00000004.npz.damaged" in caplog.text


@pytest.mark.parametrize("content", [b"hello", b"", b"PK\x03\x04", b"\x93NUMPY"])
def test_if_every_checkpoint_is_damaged_training_does_not_start_again_by_itself(checkpoints, content):
    for step in (1, 2):
        (checkpoints.folder / f"step-0000000{step}.npz").write_bytes(content)
    for _ in range(2):  # the same command again too
        with pytest.raises(CheckpointError, match=f"{checkpoints.folder} are damaged.*another run_folder"):
            checkpoints.restore_latest(*small_model())
    assert names(checkpoints) == ["step-00000001.npz", "step-00000002.npz"]  # nothing is thrown away
    assert RunFolder(checkpoints.folder.parent).has_begun()


def test_a_checkpoint_that_cannot_be_read_now_keeps_its_name(checkpoints, monkeypatch):
    for step in (2, 4):
        checkpoints.save(*small_model(), Progress(step))
    newest, load = checkpoints.paths()[-1], np.load

    def load_from_a_failing_disk(path):
        if path == newest:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return load(path)

    monkeypatch.setattr(np, "load", load_from_a_failing_disk)
    with pytest.raises(CheckpointError, match=f"{newest} cannot be read: Input/output error.*same command"):
        checkpoints.restore_latest(*small_model())
    assert names(checkpoints) == ["step-00000002.npz", "step-00000004.npz"]
    monkeypatch.undo()
    assert checkpoints.restore_latest(*small_model()) == Progress(4)


@pytest.mark.parametrize("missing", ["model/small/dense/kernel", "optimizer/adam/iteration", "progress"])
def test_a_missing_array_is_named(checkpoints, missing):
    model, optimizer = small_model()
    checkpoints.save(model, optimizer, Progress(3))
    (path,) = checkpoints.paths()
    arrays = read_checkpoint(path)
    del arrays[missing]
    np.savez(path, **arrays)
    with pytest.raises(CheckpointError, match=f"step-00000003.npz has no {missing}"):
        checkpoints.restore_latest(model, optimizer)


def test_weights_of_another_shape_are_named_with_both_shapes(checkpoints):
    checkpoints.save(*small_model(width=2), Progress(3))
    (path,) = checkpoints.paths()
    shapes = rf"{path} has model/small/dense/kernel of shape \(3, 2\); .* \(3, 4\). .*another run_folder"
    with pytest.raises(CheckpointError, match=shapes):
        checkpoints.restore_latest(*small_model(width=4))


def test_a_checkpoint_that_does_not_fit_changes_no_weight(checkpoints):
    checkpoints.save(*small_model(seed=1), Progress(3))
    model, _ = small_model(seed=2)
    before = values_of(model, keras.optimizers.SGD())
    other = keras.optimizers.Adam(name="another_adam")
    other.build(model.trainable_variables)
    with pytest.raises(CheckpointError, match="has no optimizer/"):
        checkpoints.restore_latest(model, other)
    for weight in model.weights:
        np.testing.assert_array_equal(as_numpy(weight), before[weight.path])


def test_unfinished_files_are_removed_and_foreign_ones_are_ignored(checkpoints):
    model, optimizer = small_model()
    checkpoints.save(model, optimizer, Progress(3))
    foreign = {"step-9.npz", "notes.txt", "step-00000009.npz~", "model.part"}
    for name in (*foreign, "step-00000009.npz.part", "best-00000003.npz.part"):
        (checkpoints.folder / name).write_bytes(b"torn")
    assert names(checkpoints) == ["step-00000003.npz"]
    assert checkpoints.restore_latest(model, optimizer) == Progress(3)
    assert {path.name for path in checkpoints.folder.iterdir()} == {"step-00000003.npz", *foreign}


def savez_of_a_full_disk(file, **arrays):
    file.write(b"PK\x03\x04 the first bytes")
    raise OSError(28, "No space left on device")


def test_a_write_that_fails_midway_leaves_the_earlier_checkpoint_and_no_new_file(checkpoints, monkeypatch):
    model, optimizer = small_model()
    checkpoints.save(model, optimizer, Progress(3))

    monkeypatch.setattr(np, "savez", savez_of_a_full_disk)
    with pytest.raises(OSError, match="No space left"):
        checkpoints.save(model, optimizer, Progress(6))
    assert names(checkpoints) == ["step-00000003.npz"]
    assert checkpoints.restore_latest(model, optimizer) == Progress(3)


def test_the_untrained_checkpoint_is_in_no_average(checkpoints):
    for step in (0, 2):
        checkpoints.save(*small_model(seed=step), Progress(step))
    assert [path.name for path in checkpoints.average(2)[1]] == ["step-00000002.npz"]


def test_a_checkpoint_of_before_cores_were_counted_had_the_cores_of_now():
    found = progress_of({"progress": np.array('{"step": 4, "seconds": 10.0}')})
    assert found == Progress(4, seconds=10.0, core_seconds=10.0 * processor_cores())
