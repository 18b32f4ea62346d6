"""`keras-transformer calibrate`: what it fits to what, what it prints, and what it refuses."""

import functools
import json
import re

import pytest

import train.calibrate
from keras_transformer.commands import translate
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.confidence import Calibration
from keras_transformer.runs.inference import TREES, Inference
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.repeating import Repeating
from tests.support.runs import random_run, write_config
from train.config.run import load_config

calibrate = functools.partial(invoke, train.calibrate.app)


@pytest.fixture
def folder(tmp_path):
    """A run folder with random weights, with 8 pairs of validation text and 12 of test text."""
    folder = random_run(tmp_path / "run")
    (folder / "config.toml").write_text(load_config(write_config(tmp_path)).to_toml(), encoding="utf-8")
    return RunFolder(folder)


class Scoring(Repeating):
    """Repeats its lines; those with a "q" have a low score."""

    options = SearchOptions()

    def translate(self, lines):
        return [Translation(line, -3.0 if "q" in line else -0.1, (5, 6, 2)) for line in lines]


@pytest.fixture
def loaded(monkeypatch):
    monkeypatch.setattr(Translator, "load", lambda *arguments, **named: Scoring())


@pytest.fixture
def files(tmp_path):
    """--source and --reference of 100 pairs, of which Repeating gets those without a "q" right."""
    lines = [f"line {number} q" if number % 4 == 0 else f"line {number}" for number in range(100)]
    references = ["something else" if "q" in line else line for line in lines]
    for name, texts in (("source", lines), ("reference", references)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return ["--source", tmp_path / "source", "--reference", tmp_path / "reference"]


def test_good_translations_get_a_high_confidence_and_bad_ones_a_low_one(folder, files, loaded):
    folder.config.unlink()  # so that there is no test set, and half of the pairs are measured on
    result = calibrate(folder.path, *files, "--json")
    found = json.loads(result.stdout)
    assert (found["fitted_on"]["sentences"], found["tested_on"]["sentences"]) == (50, 50)
    assert found["tested_on"]["good"] == 1.0 and found["fitted_on"]["good"] == 0.5  # every fourth line is in one half
    curve = Calibration.load(folder.calibration)
    assert curve.confidences == pytest.approx((1 / 27, 26 / 27)) and curve.measure.endswith("at least 60")
    assert found["expected_calibration_error"] == pytest.approx(1 - 26 / 27)
    assert [row["sentences"] for row in found["bins"]] == [0] * 9 + [50]
    printed = calibrate(folder.path, *files).stdout
    assert re.findall(r"50 sentences, (.*) per cent of them good", printed) == ["50.0", "100.0"]
    assert len(re.findall(r"^  0\.\d to 0\.\d +0 +- +-$", printed, re.MULTILINE)) == 9  # bins without a sentence
    assert re.search(r"^  0\.9 to 1\.0 +50 +0\.963 +1\.000$", printed, re.MULTILINE)  # 26 / 27


@pytest.mark.nightly
def test_translate_prints_the_confidences_of_a_run_that_is_calibrated(eager, folder):
    assert calibrate(folder.path).exit_code == 0
    run = functools.partial(invoke, translate.app, folder.path, "--max-length", 4, stdin="a dog\n\n")
    confidence, text = run("--confidence").stdout.splitlines()[0].split("\t")
    assert 0 < float(confidence) < 1 and run().stdout.splitlines()[0] == text
    assert run("--confidence").stdout.splitlines()[1] == "1.000\t"
    assert run("--confidence", "--scores").stdout.splitlines()[0].split("\t")[1] == confidence
    n_best = run("--confidence", "--n-best", 2).stdout.splitlines()[0].split(" ||| ")
    assert (n_best[0], n_best[3]) == ("1", confidence)
    folder.calibration.unlink()
    assert_one_sentence(run("--confidence"), "--confidence needs a calibration", "keras-transformer calibrate")


def test_trees_have_no_confidence(folder):
    Inference(outputs=TREES).save(folder.inference_file)
    assert_one_sentence(calibrate(folder.path), "writes trees", "A confidence is of translations.")


def test_what_cannot_be_is_one_sentence(folder, files, loaded, tmp_path):
    assert_one_sentence(calibrate(tmp_path / "nowhere"), "nowhere")
    assert_one_sentence(calibrate(folder.path, *files[:2]), "give both, or neither")
    folder.config.unlink()
    assert_one_sentence(calibrate(folder.path), "has no config.toml", "--source and --reference")
    (tmp_path / "source").write_text("a\n", encoding="utf-8")
    (tmp_path / "reference").write_text("b\n", encoding="utf-8")
    assert_one_sentence(calibrate(folder.path, *files), "has one pair")


@pytest.mark.parametrize("first", [0, 1])
def test_half_of_a_text_has_the_languages_of_its_own_pairs(first):
    languages = [("en", "de"), ("de", "fr"), ("fr", "en"), ("en", "fr"), ("de", "en")]
    pairs = [(f"{source} text", f"{target} text") for source, target in languages]
    half = train.calibrate.Text("all", pairs, languages).every_other("half", first)
    assert half.pairs == pairs[first::2] and [(f"{s} text", f"{t} text") for s, t in half.codes] == half.pairs
