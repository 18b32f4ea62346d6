"""Fine-tuning of imported T5: MADLAD-400, whose tags are two pieces, learns by heart; what was tuned goes out again."""

import numpy as np
import pytest

import train.__main__
from keras_transformer.ground.tokens import BOS, EOS
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.exchange import assert_the_same_model, exported
from tests.support.t5 import MADLAD, SHAPE, T5, t5_folder
from tests.train.test_told_languages import CONFIG, entries_in
from train.config.run import load_config
from train.data.prepare import load_corpus, prepare_data
from train.loop.checkpoints import read_weights

PAIRS = {
    ("en", "de"): [("two dogs run", "zwei hunde rennen"), ("a man sits", "ein mann sitzt")],
    ("en", "fr"): [("two dogs run", "deux chiens courent"), ("a man sits", "un homme est assis")],
}


@pytest.fixture
def begun(tmp_path):
    """The path of a configuration that starts from an imported run."""
    write_run(import_folder(t5_folder(tmp_path / "there", MADLAD)), tmp_path / "start", [])
    path = tmp_path / "tuned.toml"
    text = CONFIG.format(folder=tmp_path, start=tmp_path / "start", entries=entries_in(tmp_path, PAIRS))
    changed = text.replace("tokens_per_batch = 128", "tokens_per_batch = 64").replace("steps = 60", "steps = 150")
    path.write_text(changed, encoding="utf-8")
    return path


def test_the_tag_of_the_target_stands_before_the_source(begun):
    config = load_config(begun)
    tokenizer = open_tokenizer(RunFolder(config.training.start_from).tokenizer)
    settings = {"data": config.data, "languages": config.told}
    data = prepare_data(load_corpus(config.data), tokenizer, config.training, config.cache_path, **settings)
    pieces = tokenizer.pieces()
    for number, code in enumerate(["de", "de", "fr", "fr"]):
        first = [pieces.index("\u2581"), pieces.index(f"<2{code}>")]
        text = PAIRS["en", code][number % 2][0]
        assert data.validation.source[number].tolist() == [*first, *tokenizer.encode(text), EOS]
        assert data.validation.target[number][-1] == EOS


@pytest.mark.nightly
def test_a_run_learns_pairs_by_heart_and_its_start_stays_the_padding(begun, tmp_path):
    result = invoke(train.__main__.app, begun)
    assert result.exit_code == 0, result.output
    translator = Translator.load(tmp_path / "tuned")
    for (_, target), texts in PAIRS.items():
        found = translator.translate([one for one, _ in texts], target_language=target)
        assert [each.text for each in found] == [other for _, other in texts]
    before, after = (load_run(tmp_path / name)[0].get_layer("logits") for name in ("start", "tuned"))
    np.testing.assert_array_equal(before.bias, after.bias)  # T5 has none that train
    assert np.asarray(after.bias)[BOS] == -100


@pytest.mark.nightly
def test_a_run_that_is_stopped_goes_on_bit_for_bit(begun, tmp_path):
    few = ["training.checkpoint_every=2", "training.validate_every=4", "training.dropout=0.1"]

    def trained(name, steps):
        changes = [f"run_folder={tmp_path / name}", f"training.steps={steps}", *few]
        result = invoke(train.__main__.app, begun, *(word for change in changes for word in ("--set", change)))
        assert result.exit_code == 0, result.output
        return read_weights(tmp_path / name / f"checkpoints/step-{steps:08}.npz")

    expected = trained("calm", 4)
    trained("stopped", 2)
    found = trained("stopped", 4)
    assert found.keys() == expected.keys()
    for path, weight in found.items():
        np.testing.assert_array_equal(weight, expected[path])


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [T5, MADLAD])
def test_what_was_tuned_goes_out_to_transformers_and_comes_in_as_it_is(kind, tmp_path):
    """A T5 has no biases, neither in networks of two matrices nor in gated ones, and gains none by training."""
    write_run(import_folder(t5_folder(tmp_path / "there", kind)), tmp_path / "start", ["two dogs run"])
    few = "training.tokens_per_batch=64", "training.steps=4", "training.validate_every=4", "training.checkpoint_every=4"
    entries = entries_in(tmp_path, {("en", "de"): PAIRS["en", "de"]})
    text = CONFIG.format(folder=tmp_path, start=tmp_path / "start", entries=entries)
    (tmp_path / "tuned.toml").write_text(text, encoding="utf-8")
    result = invoke(
        train.__main__.app, tmp_path / "tuned.toml", *(word for change in few for word in ("--set", change))
    )
    assert result.exit_code == 0, result.output
    assert (out := exported(tmp_path / "tuned", tmp_path / "out", "--no-check")).exit_code == 0, out.output
    (model, _), again = load_run(tmp_path / "tuned"), import_folder(tmp_path / "out")
    start = import_folder(tmp_path / "there")
    assert again.config == start.config and {weight.path for weight in model.weights} == {*again.values}
    moved = 0
    for weight in model.weights:
        close = 2**-22 if weight.path == "embedding/matrix" else 0  # which an import divides by sqrt(d_model)
        rows = [number for number in range(weight.shape[0]) if number != BOS or not close]  # BOS has no row there
        np.testing.assert_allclose(again.values[weight.path][rows], np.asarray(weight)[rows], rtol=close)
        moved += not np.array_equal(again.values[weight.path], start.values[weight.path])
    assert moved > 8 * SHAPE["encoder_layers"]
    write_run(again, tmp_path / "again", ["two dogs run"])
    assert exported(tmp_path / "again", tmp_path / "more", "--no-check").exit_code == 0
    assert_the_same_model(tmp_path / "out", tmp_path / "more")
