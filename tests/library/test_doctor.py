"""`keras-transformer doctor`: its lines, its exit code, and that it needs neither TensorFlow nor Keras."""

import shutil

import pytest

from keras_transformer.commands import doctor
from keras_transformer.doctor import packages
from tests.support.commands import assert_one_sentence, invoke
from tests.support.findings import removed
from tests.support.processes import python


@pytest.fixture
def run(random_folder, tmp_path):
    return shutil.copytree(random_folder, tmp_path / "run")


@pytest.fixture(autouse=True)
def without_the_files_of_tensorflow(request, monkeypatch):
    """There are 22,000 of them; only the test of files looks at files."""
    if "distribution" not in request.fixturenames:
        monkeypatch.setattr(packages, "damaged_file", lambda distribution: None)


def test_a_damaged_run_ends_the_command_with_1(run):
    assert invoke(doctor.app, run).exit_code == 0
    removed(run / "tokenizer.model")
    result = invoke(doctor.app, run)
    assert result.exit_code == 1 and "MISSING it has no tokenizer.model" in result.stdout
    assert result.stdout.splitlines()[-1].startswith("1 of these lines is MISSING")


def test_a_model_of_the_hub_that_is_no_name_is_one_sentence():
    assert_one_sentence(invoke(doctor.app, "hf://one"), "hf://one")


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["tensorflow,keras", "tensorflow,keras,sentencepiece,h5py,numpy"])
def test_it_works_where_tensorflow_does_not(run, broken):
    script = """
import sys

class Broken:
    def find_spec(name, path, target=None):
        if name.partition(".")[0] in sys.argv[1].split(","):
            raise ModuleNotFoundError(f"No module named {name}")

sys.meta_path.insert(0, Broken)
from keras_transformer.__main__ import main
main(arguments=["doctor", *sys.argv[2:]])
"""
    process = python("-c", script, broken, run)
    assert (process.stderr, "Machine" in process.stdout) == ("", True)
    assert process.returncode == ("numpy" in broken)
    assert ("it cannot be looked at" in process.stdout) == ("numpy" in broken)
