"""Every example runs in its short form, from a folder of its own; the notebook prints what it was committed with.

fit.py and fine_tune_imported.ipynb run in test_wheel.py, away from the checkout.
"""

import json
import re
import sys
import tomllib
import warnings

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.ground.command_table import DISTRIBUTION
from tests.support.models import randomise
from tests.support.places import ROOT
from tests.support.processes import fork_python
from tests.support.runs import SENTENCES, random_run

EXAMPLES = ROOT / "examples"
NOTEBOOK = EXAMPLES / "paper.ipynb"
SHORT = {"EPOCHS": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def cells(kind):
    return [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def last_line(process):
    assert process.returncode == 0, process.stderr[-3000:]
    return process.stdout.splitlines()[-1]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_the_header_of_an_example_says_how_to_run_it_and_ends_with_its_output(path):
    text = path.read_text(encoding="utf-8")
    header = text.split('"""')[3 if text.startswith('"""\nTitle: ') else 1]  # in the form of keras.io, after its fields
    assert f"python examples/{path.name}" in header and "TODO" not in header
    last = header.rstrip().splitlines()[-1]
    assert last.startswith("    ") and re.search(r"right|house style", last)


FIELDS = ["Title", "Author", "Date created", "Last modified", "Description", "Accelerator"]


@pytest.mark.parametrize("name", ["fit.py", "serve.py"])
def test_an_example_for_keras_io_has_its_fields_and_sections(name):
    blocks = (EXAMPLES / name).read_text(encoding="utf-8").split('"""')[1::2]
    assert re.findall(r"^([A-Z][a-z ]+): \S", blocks[0], re.MULTILINE) == FIELDS
    assert all(block.lstrip().startswith("## ") for block in blocks[1:]) and len(blocks) >= 6


@pytest.mark.release
def test_serve_exports_what_save_run_wrote_and_asks_a_server_that_answers_as_the_run_does(tmp_path):
    """The export has no further option."""
    kt.save_run(*kt.load_run(random_run(tmp_path / "random")), tmp_path / "run", check_lines=SENTENCES)
    process = fork_python(EXAMPLES / "serve.py", tmp_path / "run", tmp_path / "export", **SHORT)
    assert last_line(process) == "3 of 3 answers of the server are right"


@pytest.mark.release
def test_fine_tune_goes_on_from_a_run_folder_and_leaves_another(tmp_path):
    run, new_run = tmp_path / "run", tmp_path / "new_run"
    run.mkdir()
    kt.train_tokenizer([f"{n} hundred and twenty-one" for n in range(99)], run / "tokenizer.model", 290)
    config = kt.TransformerConfig(vocab_size=290, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=16, num_heads=2)
    config.save(run / "model.json")
    randomise(kt.Transformer(config)).save_weights(run / "model.weights.h5")
    process = fork_python(EXAMPLES / "fine_tune.py", run, new_run, **SHORT)
    assert re.fullmatch(r"\d+ of 36 unseen numbers are in the house style", last_line(process))
    (before, _), (after, _) = kt.load_run(run), kt.load_run(new_run)
    assert any((one != other).any() for one, other in zip(before.get_weights(), after.get_weights(), strict=True))
    again = fork_python(EXAMPLES / "fine_tune.py", run, new_run, **SHORT)
    assert again.returncode == 1 and str(new_run) in again.stderr and "Traceback" not in again.stderr


@pytest.mark.release
def test_layers_trains_a_classifier():
    process = fork_python(EXAMPLES / "layers.py", **SHORT)
    assert re.fullmatch(r"[\d.]+% of \d+ unseen reviews are classified right", last_line(process))


@pytest.mark.release
def test_the_notebook_runs_and_prints_what_it_was_committed_with(capsys):
    plt = pytest.importorskip("matplotlib.pyplot", reason="pip install -r requirements.txt")
    plt.switch_backend("Agg")
    names = {}
    for cell in cells("code"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # plt.show() has no window to show
            exec("".join(cell["source"]), names)
        printed = capsys.readouterr().out
        committed = "".join("".join(o["text"]) for o in cell["outputs"] if o["output_type"] == "stream")
        assert printed == committed
        assert len(plt.get_fignums()) == sum("image/png" in o.get("data", {}) for o in cell["outputs"])
        for figure in map(plt.figure, plt.get_fignums()):
            labelled = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"]
            assert all(axes.get_xlabel() for axes in labelled) and labelled[0].get_ylabel()
        plt.close("all")
    accuracy = names["history"]["accuracy"]
    assert np.isfinite(accuracy).all() and accuracy[-1] > 0.99


def test_the_notebook_is_committed_with_its_outputs():
    assert not any(cell["outputs"] == [] and "plt.show()" in "".join(cell["source"]) for cell in cells("code"))
    assert sum("image/png" in o.get("data", {}) for cell in cells("code") for o in cell["outputs"]) >= 8
    assert not any(o["output_type"] == "error" for cell in cells("code") for o in cell["outputs"])


def code_of(path):
    return [
        "".join(cell["source"]) for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("**/*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_imports_what_is_public_alone_and_opens_nothing_of_the_checkout(path):
    code = "\n".join(code_of(path))
    modules = set(re.findall(r"^\s*(?:from|import) (keras_transformer[\w.]*)", code, re.MULTILINE))
    assert modules <= {"keras_transformer", "keras_transformer.inspection"}
    assert not re.search(
        r"""^\s*(?:from|import) (?:train|export|tests|benchmarks)\b|["'](?:\.\./|presets/|configs/|tests/)""",
        code,
        re.M,
    )
    assert [name for name in re.findall(r"\bkt\.(\w+)", code) if name not in kt.__all__] == []


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("**/*.ipynb")), ids=lambda path: path.name)
def test_a_notebook_opens_itself_in_colab_and_installs_there_what_it_lacks(path):
    source = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    address = f"https://colab.research.google.com/{source.removeprefix('https://').replace('.com/', '/')}/blob/main"
    first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
    assert re.findall(r"^\[!\[.+?\]\(\S+\.svg\)\]\((.+)\)$", first, re.M) == [f"{address}/{path.relative_to(ROOT)}"]
    install, *rest = code_of(path)
    imported = set(re.findall(r"^(?:from|import) (\w+)", "\n".join(rest), re.M)) - set(sys.stdlib_module_names)
    assert imported - {"keras", "numpy", "keras_transformer"} <= set(re.findall(r'"([\w-]+)"', install))
    assert f'"{DISTRIBUTION}"' in install
