"""T5, mT5, ByT5 and MADLAD-400 back in Hugging Face's format: the arrays, ids and languages that came in."""

import json

import numpy as np
import pytest

from export.huggingface.comparison import compare
from export.huggingface.t5 import LM_HEAD, Pieces, check_t5, unscaled
from export.versions import ExportError
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.models.imported.t5_names import SHARED
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run, save_run
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence
from tests.support.exchange import assert_the_same_model, exported
from tests.support.imported import with_arrays
from tests.support.m2m import changed
from tests.support.runs import SENTENCES, random_run
from tests.support.t5 import BYT5, EXTRA, KINDS, MADLAD, STRONG, T5, TASKS, V11, pieces_of, t5_folder


def read(folder, name):
    return json.loads((folder / name).read_text(encoding="utf-8"))


@pytest.fixture
def run(tmp_path):
    """From a kind of model to an imported run of it."""

    def imported(kind, **settings):
        write_run(import_folder(t5_folder(tmp_path / "there", kind, **settings)), tmp_path / "run", SENTENCES[:3])
        return tmp_path / "run"

    return imported


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_imported_goes_out_and_comes_in_again_bit_for_bit(run, kind, tmp_path):
    result = exported(run(kind), tmp_path / "out", *([] if kind == T5 else ["--no-check"]))  # equal arrays say more
    assert result.exit_code == 0, result.output
    arrays, there = assert_the_same_model(tmp_path / "out", tmp_path / "there")
    for name in arrays:
        close = 2**-22 if name == SHARED else 0  # which an import divides by sqrt(d_model)
        np.testing.assert_allclose(arrays[name], there[name], rtol=close)
    config, before = read(tmp_path / "out", "config.json"), read(tmp_path / "there", "config.json")
    kept = before.keys() - {"model_type", "architectures", "task_specific_params"}  # an mT5 is a T5 1.1
    assert {key: config[key] for key in kept} == {key: before[key] for key in kept}
    tokenizer = read(tmp_path / "out", "tokenizer_config.json")
    assert tokenizer["extra_ids"] == EXTRA[kind] == len(tokenizer["added_tokens_decoder"])
    assert (tmp_path / "out" / "spiece.model").exists() == (kind != BYT5)
    assert read(tmp_path / "out", "generation_config.json")["num_beams"] == 3


@pytest.mark.slow
def test_words_and_tags_of_languages_go_out_too(run, tmp_path):
    assert exported(run(T5), tmp_path / "out", "--target-language", "fr", "--no-check").exit_code == 0
    tasks = read(tmp_path / "out", "config.json")["task_specific_params"]
    expected = {name: task["prefix"] for name, task in TASKS.items() if name.startswith("translation")}
    assert {name: task["prefix"] for name, task in tasks.items()} == expected
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "T5ForConditionalGeneration" in card and '["translate English to French: A sentence."' in card
    assert "epsilon" not in card and "longest text" in card


@pytest.mark.slow
def test_the_card_of_madlad_shows_a_tag(run, tmp_path):
    assert exported(run(MADLAD), tmp_path / "out", "--no-check").exit_code == 0
    assert '["<2de> A sentence."' in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "task_specific_params" not in read(tmp_path / "out", "config.json")


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_have_the_ids_that_they_came_with(kind, tmp_path):
    folder = t5_folder(tmp_path / "there", kind)
    tokenizer, special = import_folder(folder).tokenizer, read(folder, "config.json")
    pieces = Pieces.of(tokenizer)
    assert pieces.names[: len(pieces_of(kind))] == pieces_of(kind) and len(pieces.names) == special["vocab_size"]
    assert [pieces.ids[number] for number in (0, 3)] == [special["pad_token_id"], special["eos_token_id"]]
    assert sorted(pieces.numbers) == [number for number in range(tokenizer.vocab_size) if number != 2]  # BOS


def other_ids(path, kind, **ids):
    folder = t5_folder(path, kind)
    for name in ("config.json", "generation_config.json"):
        changed(folder, name, **ids)
    return import_folder(folder)


def test_a_decoder_that_begins_with_a_piece_of_its_own(tmp_path):
    """<s>, which is BOS here: its row is there too, and no text has it."""
    first = other_ids(tmp_path / "there", MADLAD, pad_token_id=9, decoder_start_token_id=1)
    assert first.config.decoder_start == "bos"
    pieces = Pieces.of(first.tokenizer)
    assert pieces.ids == {0: 9, 1: 0, 2: 1, 3: 2} and pieces.numbers[:3] == [1, 2, 3]
    other = other_ids(tmp_path / "other", T5, decoder_start_token_id=20)
    with pytest.raises(ExportError, match="has the decoder_start 'bos'; Hugging Face's T5For"):
        check_t5(other.config, other.tokenizer)
    same = other_ids(tmp_path / "same", T5, pad_token_id=1)
    with pytest.raises(ExportError, match="vocabulary of one of T5's models"):
        check_t5(same.config, same.tokenizer)


@pytest.mark.parametrize("d_model", [8, 24, 32, 96, 512, 768, 1024])
def test_an_embedding_that_was_multiplied_is_found_again(d_model):
    there = np.random.default_rng(1).normal(size=(2000, d_model)).astype("f4")
    factor = np.float32(1 / np.sqrt(d_model))
    np.testing.assert_array_equal(unscaled(there * factor) * factor, there * factor)
    np.testing.assert_allclose(unscaled(there), there * np.sqrt(d_model), rtol=2**-22)  # as training leaves one


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"norm_kind": "layer"}, "has the norm_kind 'layer'; Hugging Face's T5ForConditionalGeneration has rms alone"),
        ({"norm": "post"}, "has the norm 'post'; Hugging Face's T5ForConditionalGeneration has pre alone"),
        ({"scale_scores": True}, "has the scale_scores True; Hugging Face's T5ForConditionalGeneration has False"),
        ({"activation": "geglu"}, "has the activation 'geglu'; "),
        ({"activation": "tanh"}, "has the activation 'tanh'; "),
        ({"attention_bias": True}, "has the attention_bias True; "),
        ({"embedding_norm": True}, "has the embedding_norm True; "),
        ({"value_dim": 4}, "has the value_dim 4; Hugging Face's T5ForConditionalGeneration has key_dim, 8, alone"),
        ({"tied_logits": True, "shared_embeddings": False}, "has the shared_embeddings False; "),
    ],
)
def test_what_t5_cannot_express_is_refused_by_name(tmp_path, changes, sentence):
    model = import_folder(t5_folder(tmp_path / "there", V11))
    check_t5(model.config, model.tokenizer)
    with pytest.raises(ExportError) as error:
        check_t5(model.config.replace(**changes), model.tokenizer)
    assert sentence in str(error.value) and str(error.value).endswith("Export it with --format saved_model or litert.")


@pytest.mark.slow
def test_a_bias_and_another_family_are_one_sentence(run, tmp_path):
    folder = run(T5)
    model, tokenizer = load_run(folder)
    model.get_layer("embedding").bias.assign(np.arange(tokenizer.vocab_size) / 10.0)
    save_run(model, tokenizer, tmp_path / "biased", SENTENCES[:3], RunFolder(folder).inference())
    refused = exported(tmp_path / "biased", tmp_path / "out", "--no-check")
    assert_one_sentence(refused, "This run has a bias, embedding/bias, and Hugging Face's T5For")
    own = random_run(tmp_path / "own", positions="relative")  # its norm, which differs too, is no reason to train again
    assert_one_sentence(exported(own, tmp_path / "out", "--no-check"), "that of this run is none")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_logits_that_are_the_unscaled_embedding_are_a_matrix_of_their_own(run, tmp_path):
    assert exported(run(T5, scale_decoder_outputs=False), tmp_path / "out", "--no-check").exit_code == 0
    assert LM_HEAD in read_safetensors(tmp_path / "out" / "model.safetensors")
    first, again = import_folder(tmp_path / "there"), import_folder(tmp_path / "out")
    assert first.config == again.config and not again.config.tied_logits
    for path, value in first.values.items():
        np.testing.assert_array_equal(value, again.values[path])


@pytest.mark.nightly
def test_last_bits_of_the_embedding_are_rounding_and_a_hundredth_of_a_matrix_is_refused(run, tmp_path):
    """Of weights so large that the last bits move scores by about 1e-4."""
    folder = run(BYT5, strength=STRONG)
    assert exported(folder, tmp_path / "out", "--no-check").exit_code == 0
    translator, name = Translator.load(folder), "encoder.block.0.layer.1.DenseReluDense.wo.weight"
    model, lines = load_run(folder)[0], ["thirty-seven", "two dogs"]
    arrays = dict(read_safetensors(tmp_path / "out" / "model.safetensors"))
    with_arrays(tmp_path / "out", **{SHARED: np.nextafter(arrays[SHARED], np.float32(np.inf))})
    compare(tmp_path / "out", model, translator, lines)
    with_arrays(tmp_path / "out", **{name: arrays[name] * np.float32(1.01)})
    with pytest.raises(ExportError, match="does not score translations as the run does"):
        compare(tmp_path / "out", model, translator, lines)
