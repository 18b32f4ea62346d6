"""The models in presets/ translate as their cards say, and `make try` needs what it installs alone."""

import gzip
import re
import tomllib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
import sacrebleu

import keras_transformer as kt
from tests.support.places import ROOT
from tests.support.processes import python

PRESETS = ROOT / "presets"
MULTI30K = ROOT.parent / "shared" / "data" / "multi30k"
LINK = re.compile(r"\]\(([^)\s]+)\)")
PINS = re.compile(r"^([\w-]+==\S+)", re.MULTILINE)


class Boxed(NamedTuple):
    """A model in presets/: what `make try` prints for a line, and its test set with its translations."""

    line: str
    translation: str
    test_set: Callable[[], Sequence[Sequence[str]]]  # source, reference, translation

    @property
    def rows(self):
        return [tuple(row) for row in self.test_set()]


def of_photographs():
    columns = []
    for language in ("en", "de"):
        path = MULTI30K / f"test_2016_flickr.{language}.gz"
        if not path.exists():
            pytest.skip(f"{path} is not on this machine")
        columns.append(gzip.decompress(path.read_bytes()).decode("utf-8").splitlines())
    translations = (PRESETS / "multi30k_en_de/test_2016_flickr.de").read_text(encoding="utf-8").splitlines()
    return zip(*columns, translations, strict=True)


def of_software():
    text = (PRESETS / "software_en_de/test.tsv").read_text(encoding="utf-8")
    return (line.split("\t") for line in text.split("\n") if line)


BOXED = {
    "multi30k_en_de": Boxed("A dog runs.", "Ein Hund rennt.", of_photographs),
    "software_en_de": Boxed("Open the file.", "Öffnen Sie die Datei.", of_software),
}
of_each = pytest.mark.parametrize("name", BOXED)


def test_every_preset_is_tested():
    assert {path.name for path in PRESETS.iterdir()} == BOXED.keys()


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
@of_each
def test_a_translation_imports_nothing_that_make_try_does_not_install(name):
    script = WITHOUT.replace("FOLDER", str(PRESETS / name / "litert"))
    process = python("-c", script, stdin=f"{BOXED[name].line}\n")
    assert (process.returncode, process.stdout) == (0, f"{BOXED[name].translation}\n"), process.stderr


@of_each
def test_the_scores_of_its_card_are_those_of_its_translations(name):
    _, references, translations = zip(*BOXED[name].rows, strict=True)
    score = sacrebleu.corpus_bleu(translations, [references]).score
    assert f"BLEU {score:.2f} ±" in (PRESETS / name / "README.md").read_text(encoding="utf-8")


@of_each
def test_the_links_of_its_card_lead_somewhere_wherever_its_folder_is_put(name):
    source = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
    for link in LINK.findall((PRESETS / name / "README.md").read_text(encoding="utf-8")):
        of_project = ROOT / link.removeprefix(f"{source}/blob/main/")
        of_folder = PRESETS / name / link
        assert ".." not in link and (of_project if link.startswith(source) else of_folder).exists(), link


@pytest.mark.slow
@of_each
def test_it_translates_the_test_set_as_its_translations_say(name):
    sources, _, expected = zip(*BOXED[name].rows[:20], strict=True)
    found = kt.Translator.from_preset(PRESETS / name).translate(sources)
    assert [translation.text for translation in found] == list(expected)
