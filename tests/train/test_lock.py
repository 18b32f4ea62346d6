"""The run folder: one training at a time."""

import errno
import fcntl
import os

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.run_folder import RunFolder
from tests.support.processes import start_python
from train.record.lock import check_can_be_created, run_folder_of, run_folder_to_read, run_lock
from train.workers.tf_config import Worker


def test_a_second_training_is_refused_with_the_process_number_of_the_first(tmp_path):
    folder = RunFolder(tmp_path)
    with run_lock(folder):
        with pytest.raises(ConfigError, match=f"by process {os.getpid()}"):
            with run_lock(folder):
                pass


def test_the_lock_is_free_again_after_an_error(tmp_path):
    folder = RunFolder(tmp_path)
    with pytest.raises(ZeroDivisionError), run_lock(folder):
        raise ZeroDivisionError
    with run_lock(folder):
        assert folder.lock.read_text() == f"{os.getpid()}\n"


@pytest.mark.slow
def test_the_lock_dies_with_its_process(tmp_path):
    hold = (
        "import sys, time\nfrom keras_transformer.runs.run_folder import RunFolder\n"
        "from train.record.lock import run_lock\n"
        "with run_lock(RunFolder(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)"
    )
    process = start_python("-c", hold, tmp_path)
    assert process.stdout.readline() == "held\n"
    folder = RunFolder(tmp_path)
    with pytest.raises(ConfigError, match=f"process {process.pid}"):
        with run_lock(folder):
            pass
    process.kill()
    process.wait()
    with run_lock(folder):
        assert folder.lock.read_text() == f"{os.getpid()}\n"


def test_a_file_system_without_locks_is_one_sentence(tmp_path, monkeypatch):
    def flock(file, operation):
        raise OSError(errno.ENOTSUP, os.strerror(errno.ENOTSUP))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(ConfigError, match=f"run_folder {tmp_path} .*Operation not supported.*flock"):
        with run_lock(RunFolder(tmp_path)):
            pass


def test_a_folder_that_cannot_be_written_to_is_one_sentence(tmp_path):
    folder = RunFolder(tmp_path)
    folder.lock.mkdir()  # refuses root too, whom a folder's mode does not stop
    with pytest.raises(ConfigError, match=f"run_folder {tmp_path} .*Is a directory"):
        with run_lock(folder):
            pass


def test_only_the_chief_has_the_run_folder_and_other_workers_leave_nothing(tmp_path):
    path = str(tmp_path / "run")
    with run_folder_of(path, Worker(0, 2)) as chief, run_folder_of(path, Worker(1, 2)) as other:
        assert chief.path == tmp_path / "run" and chief.lock.read_text() == f"{os.getpid()}\n"
        other.tokenizer.write_bytes(b"a copy")
        assert other.path.exists() and tmp_path not in other.path.parents
    assert not other.path.exists()
    assert [path.name for path in chief.path.iterdir()] == ["lock"]


def test_whether_a_run_folder_can_be_created_is_known_without_creating_it(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "run"):
        with pytest.raises(ConfigError, match=f"run_folder {path} cannot be created: .*/file is not a folder"):
            check_can_be_created(RunFolder(path))
    check_can_be_created(RunFolder(tmp_path / "new" / "run"))
    assert not (tmp_path / "new").exists()
    monkeypatch.setattr(os, "access", lambda place, mode: place != tmp_path)
    with pytest.raises(ConfigError, match=f"run_folder .* cannot be created: {tmp_path} is .*not writable"):
        check_can_be_created(RunFolder(tmp_path / "new" / "run"))


def test_a_dry_run_reads_the_folder_of_the_chief_alone_and_creates_none(tmp_path):
    with run_folder_to_read(str(tmp_path / "run"), Worker(0, 2)) as folder:
        assert folder.path == tmp_path / "run" and not folder.path.exists()
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="cannot be created"):
        with run_folder_to_read(str(tmp_path / "file"), Worker(0, 1)):
            pass
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.weights.h5").touch()
    with run_folder_to_read(str(tmp_path / "run"), Worker(1, 2)) as folder:
        assert not folder.weights.exists()
