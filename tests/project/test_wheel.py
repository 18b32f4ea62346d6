"""The wheel and an editable checkout, each in an environment of its own, from training to a served translation."""

import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import site
import subprocess
import sys
import time
import venv
import zipfile

import pytest

from keras_transformer.__main__ import DISTRIBUTION
from keras_transformer.ground.command_table import COMMANDS
from tests.support.places import ROOT
from tests.support.processes import python
from tests.support.runs import write_config

pytestmark = pytest.mark.release
FOLDERS = {
    "keras_transformer": "keras_transformer",
    "train": "keras_transformer/train",
    "export": "keras_transformer/export",
    "cluster": "keras_transformer/cluster",
}
EXTRAS = "train,serve,parsing,tfds"  # ctranslate2 is not in requirements.txt


def checkout_in(folder):
    """Copy what the package is built of, because building leaves folders behind."""
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def pip(*arguments):
    run = python("-m", "pip", "--disable-pip-version-check", *arguments)
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]


def environment_with(folder, *package):
    """The `bin` of a new virtual environment with a package, which sees this one's packages behind its own."""
    venv.create(folder, with_pip=False)
    (packages_of(folder / "bin") / "behind.pth").write_text("\n".join(site.getsitepackages()) + "\n", encoding="utf-8")
    offline = "--no-deps", "--no-index", "--no-build-isolation"
    # whatever this environment has of that name stays behind
    pip("--python", folder / "bin/python", "install", "--ignore-installed", *offline, *package)
    return folder / "bin"


def packages_of(bin):
    (folder,) = (bin.parent / "lib").glob("python*/site-packages")
    return folder


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    folder = checkout_in(tmp_path_factory.mktemp("sdist"))
    script = "from setuptools.build_meta import build_sdist; build_sdist('dist')"
    subprocess.run([sys.executable, "-c", script], cwd=folder, capture_output=True, check=True)
    (path,) = (folder / "dist").iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory):
    """The wheel of the sdist, as whoever has no wheel builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, sdist)
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The environment of the wheel. Its extras are installed too: pip finds all of their packages behind."""
    bin = environment_with(tmp_path_factory.mktemp("environment"), wheel)
    pip("--python", bin / "python", "install", "--no-index", f"{DISTRIBUTION}[{EXTRAS}]")
    return bin


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    return checkout_in(tmp_path_factory.mktemp("checkout"))


@pytest.fixture(scope="module")
def editable(checkout, tmp_path_factory):
    return environment_with(tmp_path_factory.mktemp("editable"), "--editable", checkout)


def settings():
    """The environment variables, without a path to the checkout."""
    kept = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    return kept | {"EPOCHS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def run_in(folder, *command, stdin=""):
    """What a command prints that is run in `folder`."""
    command = list(map(str, command))
    run = subprocess.run(command, cwd=folder, env=settings(), input=stdin, capture_output=True, text=True, timeout=900)
    assert run.returncode == 0, run.stderr[-3000:]
    return run.stdout


def test_the_wheel_holds_every_file_of_the_folders_and_the_license(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    files = {name for name in names if ".dist-info/" not in name}
    assert files == {
        f"{inside}/{path.relative_to(ROOT / folder)}"
        for folder, inside in FOLDERS.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert any(name.endswith("LICENSE") for name in names)


def test_the_index_takes_both_files(sdist, wheel):
    """Their metadata is valid, and the page of the project can be rendered."""
    pytest.importorskip("twine", reason="pip install -r requirements-lint.txt")
    check = python("-m", "twine", "check", "--strict", sdist, wheel)
    assert (check.returncode, check.stdout.count("PASSED")) == (0, 2), check.stdout + check.stderr


def test_both_say_the_same_of_the_version(sdist, wheel, installed):
    version = sdist.name.split("-")[-1].removesuffix(".tar.gz")
    assert wheel.name.split("-")[1] == version
    said = run_in(sdist.parent, installed / "python", "-c", "import keras_transformer as kt; print(kt.__version__)")
    assert said.strip() == version
    assert run_in(sdist.parent, installed / "keras-transformer", "--version").split() == [DISTRIBUTION, version]


@pytest.mark.parametrize("environment", ["installed", "editable"])
def test_no_module_of_another_name_lands_in_site_packages(request, environment):
    folder = packages_of(request.getfixturevalue(environment))
    names = {path.name for path in folder.iterdir() if DISTRIBUTION.replace("-", "_") not in path.name}
    assert names - {"behind.pth", "__pycache__"} == ({"keras_transformer"} if environment == "installed" else set())
    (distribution,) = importlib.metadata.distributions(name=DISTRIBUTION, path=[str(folder)])
    assert distribution.version


def test_the_library_alone_runs_the_example_and_translates(installed, tmp_path):
    shutil.copy(ROOT / "examples" / "fit.py", tmp_path)
    output = run_in(tmp_path, installed / "python", "fit.py", "run")
    assert re.fullmatch(r"\d+ of 100 unseen numbers are right", output.splitlines()[-1])
    numbers = "twenty-one\nseven hundred\n\n"
    translated = run_in(tmp_path, installed / "keras-transformer", "translate", "run", stdin=numbers)
    assert translated.count("\n") == 3


def test_the_wheel_walks_the_road_away_from_the_checkout(installed, tmp_path):
    """From a configuration to an answer of a server."""

    def program(*arguments, stdin=""):
        return run_in(tmp_path, installed / "keras-transformer", *arguments, stdin=stdin)

    where = run_in(tmp_path, installed / "python", "-c", "import keras_transformer.train.run as m; print(m.__file__)")
    assert pathlib.Path(where.strip()).is_relative_to(installed.parent)
    write_config(tmp_path)
    assert program("train", "run.toml").strip() == str(tmp_path / "run")
    report = (tmp_path / "run/report.md").read_text(encoding="utf-8")
    assert "keras-transformer train config.toml" in report and "not in a git checkout" in report
    assert "chrF" in program("evaluate", "run", "--beam-size", 1)
    alone = "--signature", "serving_default"  # the others take most of the time
    assert program("export", "run", "--to", "exports/mine", "--beam-size", 1, *alone).endswith("exports/mine/1\n")
    expected = program("translate", "run", "--beam-size", 1, stdin="twenty-one\n")
    assert program("translate-export", "exports/mine", stdin="twenty-one\n") == expected
    command = [installed / "keras-transformer", "serve", "exports/mine", "--port", "0", "--grpc-port", "0"]
    log = tmp_path / "log"
    with log.open("w") as file:
        server = subprocess.Popen(command, cwd=tmp_path, env=settings(), stdout=file, stderr=file)
    try:
        while not (urls := re.findall(r"(http\S+):predict\n|(grpc:\S+)\n", log.read_text())) or len(urls) < 2:
            assert server.poll() is None, log.read_text()
            time.sleep(0.05)
        for url in urls:
            assert program("query", "--url", "".join(url), stdin="twenty-one\n") == expected
        server.terminate()
        assert server.wait(60) == 0, log.read_text()
    finally:
        server.kill()


CELLS = """
import json, sys
names = {}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]), names)
"""


def printed_by(notebook, installed, folder):
    """What the cells of a notebook of examples/ print in a folder where there is nothing but the notebook."""
    shutil.copy(ROOT / "examples" / notebook, folder)
    return run_in(folder, installed / "python", "-W", "ignore", "-c", CELLS, notebook)


def test_the_notebook_of_the_paper_prints_the_same_away_from_the_checkout(installed, tmp_path):
    cells = json.loads((ROOT / "examples/paper.ipynb").read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", []) if output["output_type"] == "stream"]
    committed = "".join("".join(output["text"]) for output in outputs if output["name"] == "stdout")
    assert printed_by("paper.ipynb", installed, tmp_path) == committed


def test_the_notebook_of_an_imported_model_makes_one_and_teaches_it_a_style(installed, tmp_path):
    printed = printed_by("fine_tune_imported.ipynb", installed, tmp_path)
    counts = re.search(r"after: +(\d+) of (\d+) in the new style, (\d+) of (\d+) others", printed)
    learned, styled, kept, others = map(int, counts.groups())
    assert "before: 0 of" in printed and learned >= styled / 2 and kept >= others / 2


# a script that prints what `python -m MODULE ...` prints of each of its arguments, words with spaces between them
EACH = """
import runpy, sys
for words in sys.argv[1:]:
    module, *sys.argv[1:] = words.split()
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        assert not ended.code, (words, ended.code)
"""


def usages(folder, bin, commands):
    """The lines `Usage: ...` of these commands, `MODULE ...`, called in `folder` by one process."""
    output = run_in(folder, bin / "python", "-c", EACH, *(f"{command} --help" for command in commands))
    return re.findall(r"^Usage: (.+?) \[?[A-Z]", output, re.MULTILINE)


def test_an_editable_checkout_has_every_command_from_anywhere(editable, checkout, tmp_path):
    assert usages(tmp_path, editable, [f"keras_transformer {name}" for name in COMMANDS]) == [
        f"python -m keras_transformer {name}" for name in COMMANDS
    ]
    where = run_in(tmp_path, editable / "python", "-c", "import keras_transformer.train.run as m; print(m.__file__)")
    assert where.strip() == str(checkout / "train/run.py")
    write_config(tmp_path)
    output = run_in(tmp_path, editable / "keras-transformer", "train", "run.toml", "--set", "training.steps=1")
    assert output.strip() == str(tmp_path / "run")


@pytest.mark.parametrize("environment", ["installed", "editable"])
def test_python_m_still_starts_a_command(request, environment, checkout, tmp_path):
    """In a checkout by its name there, elsewhere by its name in the package."""
    bin, names = request.getfixturevalue(environment), ["train", "train.evaluate", "export", "export.serve"]
    inside = [f"keras_transformer.{name}" for name in names]
    assert usages(checkout, bin, names) == [f"python -m {name}" for name in names]
    assert usages(tmp_path, bin, inside) == [f"python -m {name}" for name in inside]
