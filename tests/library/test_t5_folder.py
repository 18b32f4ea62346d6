"""T5, mT5 and MADLAD-400 as run folders: their pieces and languages, and what cannot be imported, in one sentence."""

import itertools
import json
import logging

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.commands.import_model import app
from keras_transformer.commands.translate import app as translate_app
from keras_transformer.ground.errors import UserError
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.models import hub
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.t5_names import LM_HEAD, SHARED, UNUSED, weights_of_blocks
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.damage import cuts
from tests.support.hub import Hub, asked, files_in
from tests.support.imported import assert_refused, cut, remove, with_arrays
from tests.support.m2m import changed
from tests.support.marian_files import safetensors
from tests.support.runs import SENTENCES
from tests.support.t5 import BYT5, CODES, KINDS, MADLAD, MT5, T5, UNNAMED, V11, config_of, pieces_of, spm, t5_folder

IDS = {MADLAD: {PAD: 1, UNK: 0, EOS: 2, BOS: 0}}  # the row there of each special id, of the others those of T5
OF_T5 = {PAD: 0, UNK: 2, EOS: 1, BOS: 0}


@pytest.mark.parametrize("kind", [T5, V11])
def test_every_weight_of_such_a_transformer_has_its_row_and_names_come_once(kind):
    config = config_of(11, kind)
    shapes = {weight.path: tuple(weight.shape) for weight in kt.Transformer(config).weights}
    rows = [*weights_of_blocks(config)]
    assert {weight.ours: weight.shape(config) for weight in rows} | {"embedding/matrix": (11, 32)} == shapes
    names = [weight.huggingface for weight in rows]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_those_of_sentencepiece_by_its_ids_and_no_text_has_the_others(tmp_path, kind):
    folder = t5_folder(tmp_path / "t5", kind)
    model, theirs = import_folder(folder), read_safetensors(folder / "model.safetensors")
    pieces, ids = model.tokenizer.pieces(), IDS.get(kind, OF_T5)
    rest = [piece for number, piece in enumerate(pieces_of(kind)) if number not in ids.values()]
    assert pieces[4:] == [*rest, *(f"madeupword000{number}" for number in range(UNNAMED))]
    extra = [number for number, piece in enumerate(pieces) if piece.startswith(("<extra_id_", "madeup"))]
    assert model.tokenizer.silent == {PAD, UNK, BOS, EOS, *extra}
    embedding = model.values["embedding/matrix"] * np.sqrt(32)
    logits = model.values["embedding/matrix" if kind == T5 else "logits/matrix"]
    head = theirs[SHARED] * 32**-0.5 if kind == T5 else theirs[LM_HEAD]
    for here, there in {**ids, len(pieces) - 1: len(theirs[SHARED]) - 1}.items():
        np.testing.assert_allclose(np.sort(embedding[here]), np.sort(theirs[SHARED][there]), rtol=1e-6)
        if here != BOS:
            np.testing.assert_allclose(np.sort(logits[here]), np.sort(head[there]), rtol=1e-6)
    bias = model.values["embedding/bias" if kind == T5 else "logits/bias"]
    assert bias[BOS] == -100 and not np.delete(bias, BOS).any()
    assert model.config.decoder_start == ("unk" if kind == MADLAD else "pad")
    assert model.search == {"beam_size": 3, "length_penalty": 1.0, "length_normalization": "tokens"}


def test_the_languages_of_madlad_are_its_tags_and_those_of_t5_its_tasks(tmp_path):
    madlad, t5 = (import_folder(t5_folder(tmp_path / kind, kind)).languages for kind in (MADLAD, T5))
    assert madlad.target == {code: f"\u2581 <2{code}>" for code in CODES} and madlad.source == {}
    assert madlad.source_first == t5.source_first == "target"
    assert (
        t5.source == {"en": ""}
        and t5.target["de"].replace(" ", "") == "\u2581translate\u2581English\u2581to\u2581German:"
    )
    assert t5.chosen("eng", "fr-CA") == ("en", "fr")
    several = {f"translation_{pair}": {"prefix": f"{pair}: "} for pair in ("en_to_de", "de_to_en")}
    model = import_folder(t5_folder(tmp_path / "several", T5, task_specific_params=several))
    assert not model.languages.target and model.notes[0].endswith("each line: en_to_de: , de_to_en: ")
    for kind in (V11, MT5):
        assert not import_folder(t5_folder(tmp_path / kind, kind)).languages.target


@pytest.mark.parametrize("kind", [T5, MADLAD])
def test_the_pieces_of_a_language_and_a_line_are_those_of_both_as_one_text(tmp_path, kind):
    """So a model is told as it was trained, whatever the line begins with."""
    model = import_folder(t5_folder(tmp_path / "t5", kind))
    tokenizer, languages = model.tokenizer, model.languages
    before = "<2de> " if kind == MADLAD else "translate English to German: "
    ids = {piece: number for number, piece in enumerate(tokenizer.pieces())}
    marks = [ids[piece] for piece in languages.target["de"].split()]
    for line in [*SENTENCES[:5], " two", "\u2581two", ":two", "<2fr> two", "\u00a0two", "?"]:
        assert tokenizer.encode(before + line) == marks + tokenizer.encode(line), line
    graph = graph_tokenizer(tokenizer.model_bytes)
    assert graph.encode([before + "two"]).to_list()[0] == marks + tokenizer.encode("two")


def test_of_byt5_every_byte_is_a_piece_and_a_text_stays_as_it_is(tmp_path):
    tokenizer = import_folder(t5_folder(tmp_path / "byt5", BYT5)).tokenizer
    graph, texts = (
        graph_tokenizer(tokenizer.model_bytes),
        ["a  b", "\u732b \u00e9\t1", "</s> <extra_id_3>", "", "\ufb01"],
    )
    expected = [[byte + 4 for byte in text.encode()] for text in texts]  # byte + 3 there, and BOS is one more here
    assert tokenizer.encode_batch(texts) == graph.encode(texts).to_list() == expected
    assert [tokenizer.decode(ids) for ids in expected[:4]] == texts[:4]
    assert [text.decode() for text in graph.decode(tf.ragged.constant(expected[:4], tf.int32)).numpy()] == texts[:4]
    assert b"".join(tokenizer.surfaces()[number] for number in expected[1]).decode() == texts[1]


@pytest.mark.parametrize("kind", [MT5, MADLAD])
def test_a_byte_is_a_piece_that_stands_for_that_byte(tmp_path, kind):
    tokenizer = import_folder(t5_folder(tmp_path / "t5", kind)).tokenizer
    text = "two \u6f22 \U00013000"
    ids, surfaces, graph = tokenizer.encode(text), tokenizer.surfaces(), graph_tokenizer(tokenizer.model_bytes)
    assert (
        UNK not in ids
        and b"".join(surfaces[number] for number in ids).decode() == f"\u2581{text.replace(' ', chr(0x2581))}"
    )
    assert tokenizer.decode(ids) == text == graph.decode([ids]).numpy()[0].decode()
    assert graph.encode([text]).to_list() == [ids]


def test_names_and_keys_of_other_writers_are_the_same_model(tmp_path):
    """Of transformers 5, of old files, and of those in which another name holds the embedding."""
    expected = import_folder(t5_folder(tmp_path / "t5", V11))
    for number, settings in enumerate(
        (
            {"tie_word_embeddings": True, "scale_decoder_outputs": False, "dense_act_fn": "gelu_new"},
            {"is_gated_act": True, "num_decoder_layers": None, "d_kv": 8, "decoder_start_token_id": None},
            {"pad_token_id": None, "eos_token_id": None, "layer_norm_epsilon": None},
        )
    ):
        folder = t5_folder(tmp_path / str(number), V11, **settings)
        arrays = dict(read_safetensors(folder / "model.safetensors"))
        arrays["decoder.embed_tokens.weight"] = arrays.pop(SHARED)
        arrays[UNUSED] = np.zeros((32, 4), "f4")
        (folder / "model.safetensors").write_bytes(safetensors(arrays))
        found = import_folder(folder)
        assert found.config == expected.config and found.values.keys() == expected.values.keys()
        for path, value in found.values.items():
            np.testing.assert_array_equal(value, expected.values[path], err_msg=path)


def test_logits_that_are_the_embedding_are_scaled_if_the_file_says_so(tmp_path):
    folder = t5_folder(tmp_path / "t5", T5)
    tied, arrays = import_folder(folder), dict(read_safetensors(folder / "model.safetensors"))
    scaled = {"scale_decoder_outputs": True}
    for number, (more, settings, factor) in enumerate(
        (
            ({LM_HEAD: arrays[SHARED]}, {}, 1.0),
            ({}, {"scale_decoder_outputs": False}, 32**0.5),
            ({LM_HEAD: 2 * arrays[SHARED]}, scaled, 2.0),
        )
    ):
        other = t5_folder(tmp_path / str(number), T5, **settings)
        (other / "model.safetensors").write_bytes(safetensors(arrays | more))
        model = import_folder(other)
        name = "embedding/matrix" if model.config.tied_logits else "logits/matrix"
        assert model.config.tied_logits == (factor == 1.0)
        np.testing.assert_allclose(model.values[name][4:], factor * tied.values["embedding/matrix"][4:], rtol=1e-6)


@pytest.mark.parametrize(("projection", "activation"), [("gelu", "gelu"), ("silu", "swish"), ("gated-silu", "swiglu")])
def test_other_feed_forward_networks(tmp_path, projection, activation):
    kind = V11 if projection.startswith("gated") else T5
    assert import_folder(t5_folder(tmp_path / "t5", kind, feed_forward_proj=projection)).config.activation == activation


@pytest.mark.nightly
@pytest.mark.parametrize("kind", [T5, MADLAD])
def test_the_commands_import_and_translate(tmp_path, kind, caplog):
    caplog.set_level(logging.INFO, logger="keras_transformer")
    folder = t5_folder(tmp_path / kind, kind)
    assert invoke(app, folder, tmp_path / "run").exit_code == 0
    count = sum(np.size(array) for array in read_safetensors(folder / "model.safetensors").values())
    messages = " ".join(record.message for record in caplog.records)
    assert f"{len(CODES) if kind == MADLAD else 2} languages: de" in messages and "relative positions" in messages
    pieces = len(import_folder(folder).tokenizer.pieces())
    rows = pieces - len(pieces_of(kind)) - UNNAMED  # BOS has one of its own
    assert f"{count + rows * 32 * (1 if kind == T5 else 2) + pieces:,} parameters" in messages
    stdin = "".join(f"{line}\n" for line in SENTENCES[:3])
    translator = Translator.load(tmp_path / "run")
    expected = [best.text for best in translator.translate(SENTENCES[:3], target_language="de")]
    tag = "<2de> " if kind == MADLAD else "translate English to German: "
    assert [best.text for best in translator.translate([tag + line for line in SENTENCES[:3]])] == expected
    found = invoke(translate_app, tmp_path / "run", "--to", "de", stdin=stdin)
    assert found.stdout.split("\n")[:-1] == expected
    assert_one_sentence(invoke(translate_app, tmp_path / "run", "--to", "xx", stdin=stdin), "this model writes de, fr")


def config(**values):
    return lambda folder: changed(folder, "config.json", **values)


def of_tokenizer(**values):
    return lambda folder: changed(folder, "tokenizer_config.json", **values)


NORM = "encoder.final_layer_norm.weight"
TABLE = "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
SECOND = "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"
MISTAKES = {
    "umt5": (
        config(model_type="umt5"),
        "'umt5'; only .* can be imported. UMT5 has a table of distances in each layer,",
    ),
    "switch": (config(model_type="switch_transformers"), "'switch_transformers'; only .* a choice of experts"),
    "longt5": (config(model_type="longt5"), "has model_type: 'longt5'; only"),
    "encoder": (config(architectures=["T5EncoderModel"]), "has architectures: ['T5EncoderModel']; only T5For"),
    "decoder": (config(is_encoder_decoder=False), "is_encoder_decoder: False; only True"),
    "projection": (config(feed_forward_proj="gated-relu"), "feed_forward_proj: 'gated-relu'; only relu, "),
    "gate": (config(is_gated_act=False), "is_gated_act: False; only True, as feed_forward_proj says,"),
    "activation": (config(dense_act_fn="relu"), "dense_act_fn: 'relu'; only 'gelu_new', as feed_forward_proj says,"),
    "tied": (
        config(tie_word_embeddings=True),
        "lm_head.weight that is not the embedding, although tie_word_embeddings",
    ),
    "no head": (lambda f: with_arrays(f, **{LM_HEAD: None}), "has no array lm_head.weight"),
    "no width": (config(d_model=None), "has no 'd_model', which every model of its kind has"),
    "heads": (config(num_heads=3), "its options ask for (24, 32)"),
    "layers": (config(num_layers=10**9), "has no array encoder.block.2.layer.0.SelfAttention.q.weight"),
    "buckets": (config(relative_attention_num_buckets=16), f"{TABLE.replace('decoder', 'encoder')} of"),
    "odd buckets": (config(relative_attention_num_buckets=7), "does not describe a model: model.relative_buckets is 7"),
    "distance": (config(relative_attention_max_distance=10**12), "model.relative_distance is 1000000000000"),
    "epsilon": (config(layer_norm_epsilon="small"), "model.norm_epsilon is 'small'"),
    "eos": (config(eos_token_id=3), "has eos_token_id: 3, but the end in spiece.model has the id 1"),
    "forced": (
        lambda f: changed(f, "generation_config.json", forced_bos_token_id=5),
        "generation_config.json has forced_bos_token_id: 5; only null",
    ),
    "ends": (config(eos_token_id=[1, 2]), "eos_token_id: [1, 2]; it must be an id"),
    "pad": (config(pad_token_id=9999), "there is none with the id 9999"),
    "rows": (config(vocab_size=9), "its options ask for (9, 32)"),
    "class": (of_tokenizer(tokenizer_class="LlamaTokenizer"), "tokenizer_class: 'LlamaTokenizer'; only T5Tokenizer"),
    "class of the model": (
        lambda f: (remove(f, "tokenizer_config.json"), changed(f, "config.json", tokenizer_class="LlamaTokenizer")),
        "/config.json has tokenizer_class: 'LlamaTokenizer'; only T5Tokenizer",
    ),
    "extra": (of_tokenizer(extra_ids="many"), "extra_ids: 'many'; only a number of pieces"),
    "added": (
        lambda f: changed(f, "added_tokens.json", x=9999),
        "has 10,000 pieces, and the embedding of the model",
    ),
    "text": (
        lambda f: changed(f, "tokenizer.json", added_tokens=[{"id": 275, "content": "km/h", "special": False}]),
        "the added token 'km/h', which is not special",
    ),
    "no spm": (lambda f: remove(f, "spiece.model"), "has no spiece.model, the SentencePiece model of both sides"),
    "half an spm": (lambda f: cut(f, "spiece.model"), "is not a SentencePiece model, or is damaged"),
    "half of the weights": (lambda f: cut(f, "model.safetensors"), "is damaged, or is not a file of safetensors"),
    "no weights": (lambda f: remove(f, "model.safetensors"), "has no model.safetensors or pytorch_model.bin"),
    "nan": (lambda f: with_arrays(f, **{NORM: np.full(32, np.nan, "f4")}), f"{NORM} of .* NaN or infinite"),
    "missing": (lambda f: with_arrays(f, **{TABLE: None}), f"has no array {TABLE}"),
    "table per layer": (lambda f: with_arrays(f, **{SECOND: np.ones((32, 4), "f4")}), "has no place for, such as enc"),
    "beams": (lambda f: changed(f, "generation_config.json", num_beams=0), "has a num_beams that no search can have"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_imported_is_one_sentence(tmp_path, mistake):
    change, sentence = MISTAKES[mistake]
    change(folder := t5_folder(tmp_path / "t5"))
    assert_refused(folder, sentence)


def test_mt5_without_logits_of_its_own_is_refused(tmp_path):
    """transformers 4 scaled them, and transformers 5 does not."""
    folder = t5_folder(tmp_path / "mt5", MT5)
    with_arrays(folder, **{LM_HEAD: None})
    with pytest.raises(UserError, match=r"has no array lm_head\.weight"):
        import_folder(folder)
    with pytest.raises(UserError, match="is not of Marian: its positions can be huggingface alone"):
        import_folder(folder, "marian")


ODD = (None, True, -1, 0, 3, 10**12, 1.5, "x", [], [1], {}, {"a": 1})


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "generation_config.json"])
def test_any_value_of_any_key_leaves_a_model_or_one_sentence(tmp_path, name):
    folder = t5_folder(tmp_path / "t5", T5)
    path = folder / name
    values = json.loads(path.read_text("utf-8")) | {"scale_decoder_outputs": True, "added_tokens_decoder": {}}
    for key, odd in itertools.product(values, ODD):
        path.write_text(json.dumps(values | {key: odd}), encoding="utf-8")
        leaves_a_model_or_one_sentence(folder)


@pytest.mark.parametrize("name", ["config.json", "spiece.model", "tokenizer_config.json", "model.safetensors"])
def test_a_file_that_ends_early_leaves_a_model_or_one_sentence(tmp_path, name):
    folder = t5_folder(tmp_path / "t5", V11)
    for part in cuts((folder / name).read_bytes(), most=20):
        (folder / name).write_bytes(part)
        leaves_a_model_or_one_sentence(folder)


def leaves_a_model_or_one_sentence(folder):
    try:
        import_folder(folder)
    except UserError as error:
        assert "\n" not in str(error) and str(folder) in str(error)


@pytest.mark.parametrize("kind", [T5, MT5])
def test_a_model_of_the_hub_is_downloaded_whole(tmp_path, kind):
    files = files_in(t5_folder(tmp_path / "t5", kind)) | {"README.md": b""}
    with asked(Hub(), tmp_path / "cache") as local:
        local.add("google/t5", files)
        folder = hub.download("hf://google/t5")
        assert local.downloaded() == files.keys() - {"README.md"}
        assert import_folder(folder).config.positions == "relative"


def test_the_pieces_of_the_fixture_have_the_ids_of_real_models():
    for kind, ids in ((T5, (0, 1, 2)), (MADLAD, (-1, 2, 0))):
        processor = sentencepiece.SentencePieceProcessor(model_proto=spm(kind))
        assert (processor.pad_id(), processor.eos_id(), processor.unk_id()) == ids
