"""One trainer to a run folder."""

import os
import subprocess
import sys

import pytest

from keras_transformer.config import ConfigError
from keras_transformer.run_folder import RunFolder
from train.resume import own_folder, run_lock
from train.workers.tf_config import Worker


def test_a_second_trainer_is_refused_with_the_number_of_the_first(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with run_lock(folder):
        with pytest.raises(ConfigError, match=f"is being trained by process {os.getpid()}"):
            with run_lock(folder):
                pass


def test_the_lock_is_free_again_afterwards_also_after_an_error(tmp_path):
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(ZeroDivisionError):
        with run_lock(folder):
            raise ZeroDivisionError
    with run_lock(folder):
        assert folder.lock.read_text() == f"{os.getpid()}\n"


def test_the_lock_dies_with_its_process(tmp_path):
    hold = (
        "import sys, time\nfrom train.resume import run_lock\nfrom keras_transformer.run_folder import RunFolder\n"
        "with run_lock(RunFolder(sys.argv[1])):\n    print('held', flush=True)\n    time.sleep(60)"
    )
    process = subprocess.Popen([sys.executable, "-c", hold, tmp_path / "run"], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "held\n"
    folder = RunFolder(tmp_path / "run")
    with pytest.raises(ConfigError, match=f"process {process.pid}"):
        with run_lock(folder):
            pass
    process.kill()
    process.wait()
    with run_lock(folder):
        assert folder.lock.read_text() == f"{os.getpid()}\n"


def test_of_several_workers_the_chief_alone_has_the_run_folder_and_the_others_leave_nothing(tmp_path):
    with own_folder(tmp_path / "run", Worker(0, 2)) as chief, own_folder(tmp_path / "run", Worker(1, 2)) as other:
        assert chief.path == tmp_path / "run" and chief.lock.read_text() == f"{os.getpid()}\n"
        other.tokenizer.write_bytes(b"a copy")
        assert other.path.exists() and tmp_path not in other.path.parents
    assert not other.path.exists()
    assert [path.name for path in chief.path.iterdir()] == ["lock"]
