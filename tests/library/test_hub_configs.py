"""config.json as the Hugging Face hub has it: whatever wrote it, it is the same model; null is as left out."""

import json

import pytest

import keras_transformer as kt
from keras_transformer.models.imported.folder import import_folder
from tests.support.marian import huggingface_folder
from tests.support.marian_configs import CONFIGS, GENERATION, OF_2020


@pytest.mark.parametrize("writer", CONFIGS)
def test_every_config_that_the_hub_has_is_the_same_model(tmp_path, writer):
    settings, expected = CONFIGS[writer], import_folder(huggingface_folder(tmp_path / "ours"))
    model = import_folder(huggingface_folder(tmp_path / "of_the_hub", **settings))
    assert model.config == expected.config and model.values.keys() == expected.values.keys()
    search = {"beam_size": settings["num_beams"]} if settings["num_beams"] else {}
    assert model.search == {"length_penalty": 1.0, "length_normalization": "tokens", **search}
    ignored = ["extra_pos_embeddings"] if settings.get("extra_pos_embeddings") else []
    ignored += ["static_position_embeddings", "add_final_layer_norm"] if writer == "by hand" else []
    assert len(model.notes) == 1 + bool(ignored) + bool(settings.get("max_length"))
    for name in ignored:
        assert f"{name}: {settings[name]}" in model.notes[1]


def test_a_generation_config_of_the_hub_says_how_to_search(tmp_path):
    folder = huggingface_folder(tmp_path / "of_the_hub", **CONFIGS["4.49"])
    (folder / "generation_config.json").write_text(json.dumps(GENERATION), encoding="utf-8")
    assert import_folder(folder).search["beam_size"] == 4


NULLS = [*OF_2020, "activation_function", "d_model", "decoder_start_token_id", "num_beams", "tie_word_embeddings"]
NULLS += ["length_penalty", "share_encoder_decoder_embeddings", "eos_token_id", "pad_token_id", "encoder_ffn_dim"]


@pytest.mark.parametrize("name", dict.fromkeys(NULLS))
def test_null_is_as_left_out(tmp_path, name):
    def imported(folder, file, null):
        huggingface_folder(folder, **CONFIGS["4"])
        path = folder / file
        values = json.loads(path.read_text(encoding="utf-8")) if path.exists() else dict(GENERATION)
        values.pop(name, None)
        path.write_text(json.dumps(values | null), encoding="utf-8")
        try:
            model = import_folder(folder)
        except kt.UserError as error:
            return str(error).replace(str(folder), "FOLDER")
        return model.config, model.search, model.notes

    for number, file in enumerate(("config.json", "generation_config.json")):
        found, expected = (imported(tmp_path / f"{number}{len(null)}", file, null) for null in ({name: None}, {}))
        assert found == expected
