"""`keras-transformer doctor`: its lines, its exit code, and that it needs neither TensorFlow nor Keras."""

import itertools
import shutil
import sys

import pytest

from keras_transformer.commands import doctor
from keras_transformer.doctor import packages
from keras_transformer.doctor.finding import MISSING, missing, note, ok
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


@pytest.mark.parametrize(
    ("lacking", "last"),
    [
        (0, "All that is needed is here."),
        (1, "1 of these lines is MISSING: do what the arrows say."),
        (3, "3 of these lines are MISSING: do what the arrows say."),
    ],
)
@pytest.mark.parametrize("path", [None, "run"])
def test_every_finding_is_a_line_with_its_advice_and_what_is_missing_is_counted(lacking, last, path, monkeypatch):
    lack = [missing(f"no {number}", "install it") for number in range(lacking)]
    monkeypatch.setattr(doctor, "software", lambda: [ok("Python"), *lack[:1]])
    monkeypatch.setattr(doctor, "machine", lambda place: [note(f"at {place}", "look"), *lack[1:]])
    monkeypatch.setattr(doctor, "folder_findings", lambda place: [ok("a run")])
    result = invoke(doctor.app, *[path] if path else [])
    blocks = [["Packages", "  ok      Python"], ["Machine", f"  note    at {path or '.'}", "          -> look"]]
    for number in range(lacking):
        blocks[min(number, 1)] += [f"  MISSING no {number}", "          -> install it"]
    blocks += [["run", "  ok      a run"]] if path else []
    assert result.stdout.splitlines() == [*itertools.chain(*blocks), "", last]
    assert result.exit_code == (lacking > 0)


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


def test_without_a_package_that_a_run_needs_it_is_not_looked_at(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "keras_transformer.doctor.folders", None)  # its import fails
    [found] = doctor.folder_findings(tmp_path)
    assert found.state == MISSING and "it cannot be looked at: " in found.text and found.advice
