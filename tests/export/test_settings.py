"""The files beside the weights of a Hugging Face folder say what the run is and how it searches."""

import json
import types

import keras_transformer as kt
from export.huggingface.settings import Languages, config_json, generation_json, write_tokenizer
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.pieces.pair_tokenizer import PairTokenizer
from tests.support.marian import pair_tokenizer
from tests.support.runs import RUN_MODEL


def test_the_search_of_the_run_is_what_generate_does():
    options = kt.SearchOptions(beam_size=5, length_penalty=0.7, extra_length=30)
    generation = generation_json(options, max_source_tokens=100)
    assert (generation["num_beams"], generation["length_penalty"], generation["max_length"]) == (5, 0.7, 131)
    assert generation["bad_words_ids"] == [[PAD], [UNK], [BOS]]
    assert generation["forced_eos_token_id"] == config_json(RUN_MODEL)["forced_eos_token_id"] == EOS
    assert generation_json(kt.SearchOptions(extra_length=5000), 512)["max_length"] == 1024


def test_the_tokenizer_s_files_number_the_pieces_alike(pair, tmp_path):
    write_tokenizer(pair[1], Languages("en", "de"), 200, tmp_path)
    for name in ("source.spm", "target.spm"):
        assert (tmp_path / name).read_bytes() == pair[1].model_bytes
    vocabulary = json.loads((tmp_path / "vocab.json").read_text(encoding="utf-8"))
    assert sorted(vocabulary, key=vocabulary.get) == pair[1].pieces()
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert (settings["source_lang"], settings["target_lang"], settings["model_max_length"]) == ("en", "de", 200)


def test_the_configuration_has_the_shape_of_the_model():
    """The keys of transformers' MarianConfig; every number here differs from every other."""
    config = kt.TransformerConfig(
        vocab_size=330,
        encoder_layers=2,
        decoder_layers=3,
        d_model=32,
        d_ff=48,
        num_heads=4,
        dropout=0.25,
        activation="swish",
        shared_embeddings=False,
    )
    found = config_json(config)
    shape = {
        "d_model": 32, "encoder_layers": 2, "decoder_layers": 3, "encoder_attention_heads": 4,
        "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "vocab_size": 330,
        "decoder_vocab_size": 330, "dropout": 0.25, "activation_function": "swish", "max_position_embeddings": 1024,
    }  # fmt: skip
    ids = {"pad_token_id": PAD, "eos_token_id": EOS, "bos_token_id": BOS, "decoder_start_token_id": BOS}
    kind = {"architectures": ["MarianMTModel"], "model_type": "marian", "is_encoder_decoder": True, "dtype": "float32"}
    fixed = {"scale_embedding": True, "static_position_embeddings": True, "forced_eos_token_id": EOS}
    pre_norm = dict.fromkeys(("normalize_before", "normalize_embedding", "add_final_layer_norm"), False)
    shared = ("share_encoder_decoder_embeddings", "tie_word_embeddings")
    assert found == shape | ids | kind | fixed | pre_norm | dict.fromkeys(shared, False)
    assert all(config_json(config.replace(shared_embeddings=True))[name] is True for name in shared)
    assert ids.items() <= generation_json(kt.SearchOptions(), 100).items()


def test_a_pair_of_models_is_written_side_by_side_and_what_is_not_known_is_left_out(tmp_path):
    tokenizer = pair_tokenizer()
    assert isinstance(tokenizer, PairTokenizer) and tokenizer.source_spm != tokenizer.target_spm
    write_tokenizer(tokenizer, Languages(None, "de"), 99, tmp_path)
    assert (tmp_path / "source.spm").read_bytes() == tokenizer.source_spm
    assert (tmp_path / "target.spm").read_bytes() == tokenizer.target_spm
    pieces = tokenizer.pieces()
    assert json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8")) == {
        "tokenizer_class": "MarianTokenizer",
        "target_lang": "de",
        "model_max_length": 99,
        "separate_vocabs": False,
        "unk_token": pieces[UNK],
        "eos_token": pieces[EOS],
        "pad_token": pieces[PAD],
    }


def test_special_pieces_are_named_as_the_tokenizer_names_them(tmp_path):
    tokenizer = types.SimpleNamespace(model_bytes=b"m", pieces=lambda: ["<p>", "<u>", "<b>", "<e>", "ä"])
    write_tokenizer(tokenizer, Languages(), 9, tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert [settings[f"{name}_token"] for name in ("pad", "unk", "eos")] == ["<p>", "<u>", "<e>"]
    assert "ä" in (tmp_path / "vocab.json").read_text(encoding="utf-8")
