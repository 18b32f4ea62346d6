"""presets/multi30k_en_de is a model that translates as its card says, and `make try` needs what it installs alone."""

import gzip
import re

import pytest
import sacrebleu

import keras_transformer as kt
from tests.support.places import ROOT
from tests.support.processes import python

PRESET = ROOT / "presets" / "multi30k_en_de"
CARD = (PRESET / "README.md").read_text(encoding="utf-8")
MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
PINS = re.compile(r"^([\w-]+==\S+)", re.MULTILINE)


def sentences(language):
    """The sentences of test_2016."""
    path = MULTI30K / f"test_2016_flickr.{language}.gz"
    if not path.exists():
        pytest.skip(f"{path} is not on this machine")
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


def translations():
    return (PRESET / "test_2016_flickr.de").read_text(encoding="utf-8").splitlines()


def test_what_make_try_installs_has_the_versions_of_the_tests():
    of_try, of_tests = (
        PINS.findall((ROOT / name).read_text()) for name in ("requirements-try.txt", "requirements.txt")
    )
    assert of_try and set(of_try) <= set(of_tests)


WITHOUT = """
import sys

class Missing:
    def find_spec(name, path=None, target=None):
        if name.split(".")[0] in ("tensorflow", "keras", "h5py", "sacrebleu", "matplotlib", "grpc", "requests"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Missing)
from keras_transformer.__main__ import main
sys.argv = ["keras-transformer", "translate-export", "FOLDER"]
main()
"""


@pytest.mark.slow
def test_a_translation_imports_nothing_that_make_try_does_not_install():
    process = python("-c", WITHOUT.replace("FOLDER", str(PRESET / "litert")), stdin="A dog runs.\n")
    assert (process.returncode, process.stdout) == (0, "Ein Hund rennt.\n"), process.stderr


def test_the_scores_of_its_card_are_those_of_its_translations():
    score = sacrebleu.corpus_bleu(translations(), [sentences("de")]).score
    assert f"BLEU {score:.2f} ±" in CARD


@pytest.mark.slow
def test_it_translates_the_test_set_as_its_translations_say():
    found = [translation.text for translation in kt.Translator.from_preset(PRESET).translate(sentences("en")[:20])]
    assert found == translations()[:20]
