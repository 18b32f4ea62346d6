"""An imported model through every door of a run: fine-tuning by the command and by stock `fit`, evaluation, distilling.

The change of style is one that the model's vocabulary can write: "zweihundert vierundneunzig" in two words.
"""

import json

import keras
import pytest

import keras_transformer as kt
import train.__main__
import train.distil
import train.evaluate
from keras_transformer.commands import translate
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.translation.scorer import Scorer
from tests.support.commands import invoke
from tests.support.marian import best_by_marian, lines, marian_folder

pytestmark = pytest.mark.slow
FEW = 24  # lines of the test text
SEARCH = {"length_normalization": "tokens", "length_penalty": 1.0, "beam_size": 6}  # of `marian decode -b 6 -n 1`
CONFIG = """
[data]
source = "files"
train = [["{0}/train.en", "{0}/train.de"]]
validation = [["{0}/test.en", "{0}/test.de"]]

[training]
start_from = "{0}/run"
schedule = "constant"
learning_rate = 2e-3
steps = 40
tokens_per_batch = 1024
row_length = 64
validate_every = 20
checkpoint_every = 20
average_checkpoints = 1
histograms_every = 0
picture_sentences = 0
xla = false

[translation]
validation_sentences = 2
"""


def in_words(name):
    return [line.replace("hundert", "hundert ").strip() for line in lines(name)]


def write_lines(path, texts):
    path.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with an imported model, `run`, and a text in its language whose style is another one."""
    folder = tmp_path_factory.mktemp("imported")
    model = import_folder(marian_folder(folder / "marian"))._replace(search=SEARCH)
    write_run(model, folder / "run", lines("test.en")[:FEW])
    for split, count in (("train", None), ("test", FEW)):
        write_lines(folder / f"{split}.en", lines(f"{split}.en")[:count])
        write_lines(folder / f"{split}.de", in_words(f"{split}.de")[:count])
    return folder


def share_in_words(run):
    """The share of test lines that are translated in the new style, of those that differ between the styles."""
    pairs = zip(lines("test.en"), in_words("test.de"), strict=True)
    differing = [(source, target) for source, target in pairs if " " in target][:FEW]
    found = kt.Translator.load(run).translate([source for source, _ in differing])
    return sum(one.text == target for one, (_, target) in zip(found, differing, strict=True)) / len(differing)


@pytest.mark.release
def test_the_command_fine_tunes_it_from_a_configuration_of_a_text_and_a_start(folder):
    before = Scorer.load(folder / "run").score(lines("test.en"), in_words("test.de"))
    config = folder / "tuned.toml"
    config.write_text(f'run_folder = "{folder}/tuned"\n{CONFIG.format(folder)}', encoding="utf-8")
    result = invoke(train.__main__.app, config)
    assert result.exit_code == 0, result.output
    begun, tuned = RunFolder(folder / "run"), RunFolder(folder / "tuned")
    assert (tuned.inference().search, json.loads(tuned.model.read_text())) == (
        SEARCH,
        json.loads(begun.model.read_text()),
    )
    assert tuned.tokenizer.read_bytes() == begun.tokenizer.read_bytes()
    after = Scorer.load(tuned.path).score(lines("test.en"), in_words("test.de"))
    assert sum(pair.log_probability for pair in after) > 0.2 * sum(pair.log_probability for pair in before)
    assert share_in_words(folder / "run") == 0 and share_in_words(tuned.path) > 0.7
    validations = [json.loads(line) for line in tuned.metrics.read_text().splitlines() if "validation/loss" in line]
    assert validations[-1]["validation/token_accuracy"] > 0.9


@pytest.mark.release
def test_stock_fit_fine_tunes_it(folder):
    keras.utils.set_random_seed(1)
    model, tokenizer = kt.load_run(folder / "run")
    data = kt.dataset_from_pairs(list(zip(lines("train.en"), in_words("train.de"), strict=True)), tokenizer, rows=128)
    model.compile(keras.optimizers.Adam(2e-3), loss=kt.LabelSmoothedCrossentropy(0.1), metrics=[kt.TokenAccuracy()])
    before = model.evaluate(data, verbose=0, return_dict=True)
    model.fit(data, epochs=5, verbose=0)
    after = model.evaluate(data, verbose=0, return_dict=True)
    assert after["loss"] < 0.4 * before["loss"] and before["accuracy"] < 0.8 and after["accuracy"] > 0.97
    kt.save_run(model, tokenizer, folder / "fitted", inference=RunFolder(folder / "run").inference())
    assert share_in_words(folder / "fitted") > 0.7


@pytest.mark.nightly
def test_it_is_evaluated_by_its_own_search(folder):
    texts = "--source", folder / "test.en", "--reference", folder / "test.de"
    result = invoke(train.evaluate.app, folder / "run", *texts, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert SEARCH.items() <= found.items()


@pytest.mark.nightly
def test_an_ensemble_with_itself_is_itself(folder):
    text = "".join(f"{line}\n" for line in lines("test.en")[:FEW])
    result = invoke(translate.app, folder / "run", "--ensemble", folder / "run", "--scores", stdin=text)
    assert result.exit_code == 0, result.output
    for line, (expected, score) in zip(result.stdout.splitlines(), best_by_marian("self-attention"), strict=False):
        found_score, _, found = line.partition("\t")
        assert found == expected and float(found_score) == pytest.approx(score, abs=2e-4)


@pytest.mark.nightly
def test_what_is_nearest_to_references_is_distilled_from_it(folder):
    texts = "--source", folder / "test.en", "--reference", folder / "test.de"
    result = invoke(train.distil.app, folder / "run", *texts, "--output", folder / "distilled.de")
    assert result.exit_code == 0, result.output
    chosen = (folder / "distilled.de").read_text(encoding="utf-8").splitlines()
    assert len(chosen) == FEW and sum(one == target for one, target in zip(chosen, lines("test.de"), strict=False)) > 9
