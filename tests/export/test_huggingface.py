"""A Hugging Face folder holds the run: its weights by other names, its search, its tokenizer, and a model card."""

import json
import re
import types

import numpy as np
import pytest

import keras_transformer as kt
from export import __main__ as command
from export.huggingface import families
from export.huggingface.weights import arrays_of, refuse_other_models, write_safetensors
from export.versions import ExportError
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.folder import import_folder, write_run
from tests.support.commands import assert_one_sentence, invoke
from tests.support.marian import MARIAN
from tests.support.models import randomise
from tests.support.runs import RUN_MODEL, random_run


def huggingface(run, folder, *options):
    return invoke(command.app, run, "--to", folder, "--format", "huggingface", *options)


def test_the_file_of_weights_has_what_was_written(tmp_path):
    arrays = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "b": np.float32([7]), "none": np.zeros((0, 4), "f4")}
    write_safetensors(tmp_path / "model.safetensors", arrays)
    read = read_safetensors(tmp_path / "model.safetensors")
    assert list(read) == list(arrays)
    for name, array in arrays.items():
        np.testing.assert_array_equal(read[name], array)
    content = (tmp_path / "model.safetensors").read_bytes()
    begin = 8 + int.from_bytes(content[:8], "little")
    assert begin % 8 == 0 and len(content) == begin + 4 * 7  # readers map the numbers as they stand
    assert json.loads(content[8:begin])["__metadata__"] == {"format": "pt"}  # without it transformers refuses the file


@pytest.mark.parametrize("is_shared", [True, False])
def test_every_weight_of_the_model_is_in_the_file_once(is_shared):
    config = RUN_MODEL.replace(shared_embeddings=is_shared, logits_bias=True, attention_bias=True)
    model = randomise(kt.Transformer(config))
    arrays = arrays_of(model)
    assert sum(array.size for array in arrays.values()) == model.count_params()
    assert sorted(np.concatenate([array.ravel() for array in arrays.values()])) == sorted(
        np.concatenate([weight.numpy().ravel() for weight in model.weights])
    )


def test_a_weight_without_a_name_there_is_not_left_out_silently():
    model = randomise(kt.Transformer(RUN_MODEL))
    more = types.SimpleNamespace(path="adapter/kernel", value=model.weights[0].value)
    own = types.SimpleNamespace(model_config=model.model_config, weights=[*model.weights, more])
    with pytest.raises(ExportError, match="has no place for the weights adapter/kernel"):
        arrays_of(own)


def test_a_bias_that_the_model_lacks_is_zeros():
    arrays = arrays_of(randomise(kt.Transformer(RUN_MODEL)))
    assert arrays["final_logits_bias"].shape == (1, RUN_MODEL.vocab_size)
    zeros = {name for name, array in arrays.items() if not array.any()}
    assert zeros == {name for name in arrays if name.endswith("proj.bias")} | {"final_logits_bias"}


def test_sinusoids_that_hugging_face_does_not_compute_are_in_the_file():
    """Marian's table: all sines, then all cosines, whose rates are 10000^(-i / (n - 1)), n = d_model / 2."""
    arrays = arrays_of(kt.Transformer(RUN_MODEL.replace(sinusoids="tensor2tensor")))
    half = RUN_MODEL.d_model // 2
    angles = np.arange(1024)[:, None] * 10000.0 ** (-np.arange(half) / (half - 1))
    expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    for side in ("encoder", "decoder"):
        np.testing.assert_allclose(arrays[f"model.{side}.embed_positions.weight"], expected, atol=1e-4)
    assert not any("positions" in name for name in arrays_of(kt.Transformer(RUN_MODEL)))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"norm": "pre"}, "model.json has the norm 'pre'; Hugging Face's MarianMTModel has post alone"),
        ({"positions": "learned"}, "the positions 'learned'; Hugging Face's MarianMTModel has sinusoidal alone"),
        ({"norm": "pre", "positions": "alibi"}, "has post alone, and lacks its positions too. "),
        ({"encoder_layer": "recurrent"}, "the encoder_layer 'recurrent'"),
        ({"decoder_layer": "ssru"}, "the decoder_layer 'ssru'"),
        ({"key_dim": 4}, "the key_dim 4; Hugging Face's MarianMTModel has d_model / num_heads, 32 / 4, alone"),
        ({"value_dim": 16}, "the value_dim 16"),
        ({"activation": "tanh"}, "the activation 'tanh'; Hugging Face's MarianMTModel has relu, gelu, silu, swish"),
    ],
)
def test_a_model_without_a_counterpart_is_refused_by_name(changes, sentence):
    with pytest.raises(ExportError, match=f"{re.escape(sentence)}.*Export it with --format saved_model"):
        refuse_other_models(RUN_MODEL.replace(**changes))
    for activation in ("relu", "gelu", "silu", "swish"):
        refuse_other_models(RUN_MODEL.replace(activation=activation))


def test_a_recurrent_model_a_coverage_penalty_and_an_existing_folder_are_refused(random_folder, pair, tmp_path):
    sizes = {"vocab_size": pair[1].vocab_size, "encoder_layers": 1, "decoder_layers": 1, "d_model": 8}
    kt.save_run(kt.RecurrentModel(kt.RecurrentConfig(**sizes)), pair[1], tmp_path / "run")
    refused = huggingface(tmp_path / "run", tmp_path / "to", "--no-check")
    assert_one_sentence(refused, "model.json has the kind 'recurrent'; Hugging Face's MarianMTModel has transformer")
    refused = huggingface(random_folder, tmp_path / "to", "--coverage-penalty", 0.2)
    assert_one_sentence(refused, "The coverage penalty is 0.2, and transformers searches without one")
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "notes").touch()
    assert_one_sentence(huggingface(random_folder, tmp_path / "to"), "exists already: name a new folder")


VARIANTS = {
    "as the paper has it": {},
    "as an import leaves it": {"attention_bias": True, "logits_bias": True, "norm_epsilon": 1e-5},
    "separate embeddings": {"shared_embeddings": False, "norm_epsilon": 1e-5},
    "Marian's sinusoids": {"sinusoids": "tensor2tensor", "activation": "swish"},
}


@pytest.mark.nightly
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_written_is_imported_bit_for_bit(variant, tmp_path):
    """BOS begins every output, so its row is more than that of a token that nobody reads."""
    run = random_run(tmp_path / "run", **VARIANTS[variant])
    written = huggingface(run, tmp_path / "to", "--extra-length", 12)
    assert written.exit_code == 0, written.output
    assert "the scores of their translations differ by at most 0.00" in written.stdout
    model, tokenizer = kt.load_run(run)
    imported = import_folder(tmp_path / "to")
    assert imported.tokenizer.model_bytes == tokenizer.model_bytes
    assert imported.search["beam_size"] == 4
    config = model.model_config
    assert imported.config == config.replace(norm_epsilon=1e-5, attention_bias=True, logits_bias=True, dropout=0.1)
    ours = {weight.path: weight.numpy() for weight in model.weights}
    assert ours.keys() <= imported.values.keys()
    for path, array in imported.values.items():
        np.testing.assert_array_equal(array, ours.get(path, np.zeros_like(array)), err_msg=path)


@pytest.mark.nightly
def test_an_import_is_written_and_imported_again_bit_for_bit(tmp_path):
    run = random_run(tmp_path / "run", attention_bias=True, logits_bias=True, dropout=0.1)
    imports = []
    for number in range(2):
        assert huggingface(run, tmp_path / f"to{number}", "--no-check").exit_code == 0
        imports.append(import_folder(tmp_path / f"to{number}"))
        run = tmp_path / f"run{number}"
        write_run(imports[-1], run)
    for name in ("model.safetensors", "config.json", "vocab.json", "source.spm"):
        first, second = (tmp_path / f"to{number}" / name for number in range(2))
        assert first.read_bytes() == second.read_bytes(), name
    for path, array in imports[0].values.items():
        np.testing.assert_array_equal(array, imports[1].values[path])


@pytest.mark.nightly
def test_weights_that_are_not_the_run_s_are_not_published(random_folder, tmp_path, monkeypatch):
    def damaged(model):
        arrays = arrays_of(model)
        return arrays | {"final_logits_bias": arrays["final_logits_bias"] + np.arange(330, dtype=np.float32) / 30}

    monkeypatch.setattr(families, "arrays_of", damaged)
    refused = huggingface(random_folder, tmp_path / "to", "--extra-length", 12)
    assert_one_sentence(refused, "does not score translations as the run does", "Nothing was published.")
    assert not (tmp_path / "to").exists()


@pytest.mark.nightly
def test_a_model_of_two_sentencepiece_models_is_written_and_imported_again(tmp_path):
    first = import_folder(MARIAN / "self-attention.npz")
    write_run(first, tmp_path / "run")
    assert huggingface(tmp_path / "run", tmp_path / "to", "--no-check").exit_code == 0
    second = import_folder(tmp_path / "to")
    assert second.tokenizer.model_bytes == first.tokenizer.model_bytes
    assert second.config == first.config.replace(norm_epsilon=1e-5)
    assert second.search == {name: first.search[name] for name in second.search}
    assert second.values.keys() == first.values.keys()
    for path, array in second.values.items():
        np.testing.assert_array_equal(array, first.values[path], err_msg=path)
