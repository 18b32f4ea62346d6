"""The wheel alone, in an environment of its own and away from the checkout, runs examples/fit.py."""

import importlib.metadata
import os
import pathlib
import re
import shutil
import site
import subprocess
import venv
import zipfile

import pytest

from tests.support.places import ROOT
from tests.support.processes import python

pytestmark = pytest.mark.release


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a copy of the checkout: building leaves folders behind."""
    folder = tmp_path_factory.mktemp("wheel")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for package in ("keras_transformer", "train", "export"):  # the last two must stay out
        shutil.copytree(ROOT / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder / "dist", folder)
    (path,) = (folder / "dist").glob("*.whl")
    return path


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """The `bin` of a virtual environment with the wheel, which sees this one's packages behind its own."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    (own_packages,) = (folder / "lib").glob("python*/site-packages")
    (own_packages / "behind.pth").write_text("\n".join(site.getsitepackages()) + "\n", encoding="utf-8")
    pip("--python", folder / "bin" / "python", "install", "--no-deps", "--no-index", wheel)
    return folder / "bin"


def pip(*arguments):
    run = python("-m", "pip", "--disable-pip-version-check", *arguments)
    assert run.returncode == 0, run.stderr[-3000:]


def run_in(folder, *command, stdin=""):
    """Run a command in `folder`, with no path to the checkout in its environment."""
    settings = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    settings |= {"EPOCHS": "1", "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONSAFEPATH": "1"}
    command = list(map(str, command))
    run = subprocess.run(command, cwd=folder, env=settings, input=stdin, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def test_the_wheel_holds_the_library_and_its_license_alone(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"keras_transformer"}
    for kind in (".py", ".html", ".css", ".js"):
        files = {str(path.relative_to(ROOT)) for path in (ROOT / "keras_transformer").rglob(f"*{kind}")}
        assert files == {name for name in names if name.endswith(kind)} != set()
    assert any(name.endswith("LICENSE") for name in names)


def test_its_requirements_are_what_the_library_imports(environment):
    (own_packages,) = (environment.parent / "lib").glob("python*/site-packages")
    (found,) = importlib.metadata.distributions(name="keras-transformer", path=[str(own_packages)])
    names = {re.split(r"[<>=;\[ ]", requirement)[0] for requirement in found.requires if "extra ==" not in requirement}
    assert names == {"keras", "sentencepiece", "tensorflow", "typer"}


def test_it_runs_the_example_and_its_command_away_from_the_checkout(environment, tmp_path):
    shutil.copy(ROOT / "examples" / "fit.py", tmp_path)
    where = run_in(tmp_path, environment / "python", "-c", "import keras_transformer as kt; print(kt.__file__)")
    assert pathlib.Path(where.strip()).is_relative_to(environment.parent)
    output = run_in(tmp_path, environment / "python", "fit.py", "run")
    assert re.fullmatch(r"\d+ of 100 unseen numbers are right", output.splitlines()[-1])
    translated = run_in(tmp_path, environment / "keras-transformer", "translate", "run", stdin="twenty-one\n\n")
    assert translated.count("\n") == 2
