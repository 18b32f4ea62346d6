"""A folder becomes a model or is refused in a sentence: which file, option or array it is, and what can be imported."""

import json
import pathlib
import shutil

import numpy as np
import pytest
import sentencepiece

import keras_transformer as kt
from keras_transformer.ground.tokens import BOS, PAD
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.families import FAMILIES
from keras_transformer.models.imported.folder import READERS, import_folder
from keras_transformer.models.imported.vocabulary import Vocabulary
from keras_transformer.models.imported.weights import Tokens
from tests.support.damage import cuts
from tests.support.marian import (
    SELF_ATTENTION,
    changed_arrays,
    changed_options,
    huggingface_folder,
    lines,
    marian_folder,
)
from tests.support.sentencepiece_models import trained_model

NPZ = f"{SELF_ATTENTION}.npz"


@pytest.fixture
def marian(tmp_path):
    return marian_folder(tmp_path / "opus")


@pytest.fixture
def huggingface(tmp_path):
    return huggingface_folder(tmp_path / "opus-mt")


def refused(folder, why):
    with pytest.raises(kt.UserError, match=why) as refusal:
        import_folder(folder)
    assert "\n" not in str(refusal.value)


def test_a_folder_of_hugging_face_is_the_model_that_marian_trained(marian, huggingface):
    ours, theirs = import_folder(marian), import_folder(huggingface, "marian")
    assert theirs.config == ours.config and theirs.tokenizer.model_bytes == ours.tokenizer.model_bytes
    assert theirs.values.keys() == ours.values.keys()
    for name, value in ours.values.items():
        np.testing.assert_array_equal(theirs.values[name], value, err_msg=name)


def test_it_is_computed_as_hugging_face_does_unless_asked(huggingface):
    model = import_folder(huggingface)
    assert (model.config.sinusoids, model.config.norm_epsilon) == ("paper", 1e-5)
    assert model.values["embedding/bias"][PAD] == 0 and model.values["embedding/bias"][BOS] == -100
    assert "--positions marian" in model.notes[0]
    assert "Hugging Face" in import_folder(huggingface, "marian").notes[0]


def test_the_model_searches_as_its_files_say(marian, huggingface):
    assert import_folder(marian).search == {"beam_size": 12, "length_penalty": 0, "length_normalization": "tokens"}
    search = {"beam_size": 6, "length_penalty": 1.0, "length_normalization": "tokens"}
    assert import_folder(huggingface).search == search
    (huggingface / "generation_config.json").write_text('{"num_beams": 4, "length_penalty": 0.5}', encoding="utf-8")
    assert import_folder(huggingface).search == search | {"beam_size": 4, "length_penalty": 0.5}
    with (marian / "decoder.yml").open("a") as file:
        file.write("\nword-penalty: 0.5\n")
    assert "word-penalty: 0.5" in import_folder(marian).notes[0]
    (huggingface / "generation_config.json").write_text('{"num_beams": "many"}', encoding="utf-8")
    refused(huggingface, "generation_config.json has a num_beams that no search can have: beam_size is 'many'")


@pytest.mark.parametrize("activation", ["relu", "swish", "gelu"])
def test_the_activation_is_marians(marian, activation):
    changed_options(marian, transformer_ffn_activation=activation)
    assert import_folder(marian).config.activation == activation


REFUSED_OPTIONS = {
    "type": "s2s",
    "transformer-decoder-autoreg": "average-attention",
    "transformer-ffn-depth": "3",
    "transformer-no-projection": "true",
    "transformer-tied-layers": "[1, 1]",
    "transformer-ffn-activation": "glu",
    "transformer-decoder-dim-ffn": "48",
    "transformer-postprocess-emb": "nd",
    "transformer-no-affine": "true",
    "transformer-train-position-embeddings": "true",
    "lemma-dim-emb": "4",
    "right-left": "true",
    "transformer-disable-position-embeddings": "true",
    "input-types": "[class, sequence]",
}


@pytest.mark.parametrize("name", REFUSED_OPTIONS)
def test_an_option_that_makes_another_model_is_named_with_its_value(marian, name):
    changed_options(marian, **{name: REFUSED_OPTIONS[name]})
    first = REFUSED_OPTIONS[name].strip("[]").split(",")[0]
    refused(marian, rf"{NPZ} has the option {name}: .*{first}.*; only .* can be imported")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"transformer_postprocess": "dhn"}, 'transformer-postprocess: "hn"'),
        ({"transformer_postprocess": "dar"}, 'transformer-postprocess: "ar"'),
        ({"transformer_preprocess": "n", "transformer_postprocess": "da"}, 'transformer-postprocess-top: ""'),
        ({"transformer_heads": ""}, "no option 'transformer-heads'"),
        ({"transformer_heads": "5"}, "d_model is 48"),
        (
            {"transformer_dim_ffn": "97"},
            r"encoder_l1_ffn_W1 .* has the shape \(48, 96\); its options ask for \(48, 97\)",
        ),
        ({"enc_depth": "3"}, "has no array encoder_l3_self_Wq"),
        ({"enc_depth": "1000000000"}, "has no array encoder_l3_self_Wq"),
        ({"dec_depth": "1"}, "26 arrays that .* has no place for, such as decoder_l2_context_Wk"),
        ({"enc_depth": "many"}, "many"),
    ],
)
def test_options_that_contradict_the_arrays_are_refused(marian, options, why):
    changed_options(marian, **options)
    refused(marian, why)


@pytest.mark.parametrize(
    ("arrays", "why"),
    [
        ({"decoder_l1_self_bo": None}, "no array decoder_l1_self_bo"),
        ({"encoder_l1_self_bo": np.full((1, 48), np.nan, "f4")}, "encoder_l1_self_bo of .* NaN or infinite"),
        ({"Wemb": np.zeros((150, 48), "f4")}, r"Wemb of .* the shape \(150, 48\); its options ask for \(151, 48\)"),
        ({"encoder_l1_self_Wq": np.zeros((48, 48), "i1")}, "encoder_l1_self_Wq of .* type int8: only floats"),
        ({"Wpos": np.zeros((512, 48), "f4")}, "has 1 arrays that .* such as Wpos"),
        ({"special:model.yml": None}, "no array special:model.yml, so it is not a model of Marian"),
        ({"special:model.yml": np.frombuffer(b"no options", np.int8)}, "is not a list of Marian's options"),
    ],
)
def test_arrays_that_are_not_those_of_the_options_are_refused(marian, arrays, why):
    changed_arrays(marian, **arrays)
    refused(marian, why)


def rename(name, other):
    return lambda folder: (folder / name).rename(folder / other)


def write(name, text):
    return lambda folder: (folder / name).write_text(text, encoding="utf-8")


def cut(name):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:-100])


def without(*names):
    return lambda folder: [(folder / name).unlink() for name in names]


MARIAN_DAMAGES = {
    "int8": (rename(NPZ, "model.intgemm.alphas.bin"), "Marian's binary format"),
    "nothing": (lambda folder: [path.unlink() for path in folder.iterdir()], "neither a config.json, .* nor a decoder"),
    "no_model": (lambda folder: (folder / NPZ).unlink(), "has no model: expected an .npz"),
    "no_target": (lambda folder: (folder / "target.spm").unlink(), "no target.spm. The SentencePiece models"),
    "bpe": (rename("source.spm", "source.bpe"), "no source.spm. It has source.bpe: .* needs source.bpe and target.bpe"),
    "no_vocabulary": (lambda folder: (folder / "vocab.yml").unlink(), "no vocab.yml, which .*decoder.yml names"),
    "no_names": (without("decoder.yml", "vocab.yml"), "no decoder.yml that names the vocabs, and not one vocab.yml"),
    "factors": (write("decoder.yml", f"models: [{NPZ}]\nvocabs: [a.fsv, a.fsv]\n"), "a.fsv is .* factors cannot"),
    "three": (write("decoder.yml", f"models: [{NPZ}]\nvocabs: [a.yml]\n"), "names 1 vocabs, expected 2"),
    "ensemble": (write("decoder.yml", "models: [a.npz, b.npz]\n"), "names 2 models: import each alone"),
    "decoder": (write("decoder.yml", "no options"), "decoder.yml is damaged"),
    "short_vocabulary": (write("vocab.yml", "</s>: 0\n<unk>: 1\n"), r"Wemb of .*\(151, 48\); .* \(2, 48\)"),
    "no_unk": (write("vocab.yml", "</s>: 0\nunk: 1\n"), "vocab.yml has no piece <unk>"),
    "cut_model": (cut(NPZ), f"{NPZ} is damaged"),
    "cut_spm": (cut("source.spm"), "source.spm is not a SentencePiece model, or is damaged"),
}


@pytest.mark.parametrize("kind", MARIAN_DAMAGES)
def test_a_folder_of_marian_that_lacks_something_is_refused(marian, kind):
    damage, why = MARIAN_DAMAGES[kind]
    damage(marian)
    refused(marian, why)


def settings(**changes):
    def change(folder):
        values = json.loads((folder / "config.json").read_text(encoding="utf-8")) | changes
        kept = {name: value for name, value in values.items() if value is not None}
        (folder / "config.json").write_text(json.dumps(kept), encoding="utf-8")

    return change


def test_one_matrix_does_it_all_only_if_pieces_and_arrays_are_the_same():
    """Either of them alone would give a side the rows of other pieces, or of another matrix."""
    one, other = (Vocabulary.of_pieces(["</s>", "<unk>", piece], "vocab.yml") for piece in "ab")
    matrix, copy = np.zeros((3, 2)), np.zeros((3, 2))
    shared = Tokens(one, one, matrix, matrix, matrix, np.zeros(3))
    assert shared.is_shared
    changes = {"target": other, "embed_source": copy, "embed_target": copy, "logits": copy}
    assert not any(shared._replace(**{name: value}).is_shared for name, value in changes.items())


def test_each_family_has_a_reader():
    assert READERS.keys() == FAMILIES.keys()


HUGGINGFACE_DAMAGES = {
    "bert": (settings(model_type="bert"), "model_type: 'bert'; only marian, m2m_100, mbart"),
    "no text": (settings(model_type=["marian"]), r"model_type: \['marian'\]; only marian, m2m_100, mbart"),
    "scale": (settings(scale_embedding=False), "scale_embedding: False; only True"),
    "no_scale": (settings(scale_embedding=None), "scale_embedding: False; only True"),  # as MarianConfig has it
    "before": (settings(normalize_before=True), "normalize_before: True; only False"),
    "heads": (
        settings(decoder_attention_heads=2),
        "decoder_attention_heads: 2; only that of encoder_attention_heads, 4",
    ),
    "activation": (settings(activation_function="glu"), "activation_function: 'glu'; only relu, swish, silu, gelu"),
    "no_layers": (settings(encoder_layers=None), "no 'encoder_layers'"),
    "many_layers": (settings(encoder_layers=10**9), "no array model.encoder.layers.2.self_attn.q_proj.weight"),
    "few_layers": (settings(decoder_layers=1), "26 arrays .* such as model.decoder.layers.1"),
    "text": (settings(encoder_layers="two"), "config.json does not describe a model: .*encoder_layers is 'two'"),
    "list": (settings(activation_function=["relu"]), r"activation_function: \['relu'\]; only relu"),
    "beams": (settings(num_beams=0), "config.json has a num_beams that no search can have: beam_size is 0"),
    "penalty": (settings(length_penalty=-1), "config.json has a length_penalty that no search can have"),
    "no_pad": (settings(pad_token_id=None), "pad_token_id: None; it must be an id"),
    "far_pad": (settings(pad_token_id=152), "152 pieces: there is none with the id 152"),
    "width": (settings(d_model=64), r"model.shared.weight of .*\(152, 48\); .* \(152, 64\)"),
    "untied": (settings(tie_word_embeddings=False), "no array lm_head.weight"),
    "separate": (settings(share_encoder_decoder_embeddings=False), "no array model.encoder.embed_tokens.weight"),
    "json": (write("config.json", "{"), "config.json is damaged"),
    "no object": (write("config.json", "[]"), "config.json is damaged"),
    "no_weights": (lambda folder: (folder / "model.safetensors").unlink(), "no model.safetensors or pytorch_model.bin"),
    "cut_weights": (cut("model.safetensors"), "model.safetensors is damaged"),
    "pickle": (
        lambda folder: [(folder / "model.safetensors").unlink(), (folder / "pytorch_model.bin").write_bytes(b"x" * 99)],
        "pytorch_model.bin is damaged",
    ),
    "vocabulary": (write("vocab.json", '{"</s>": 0, "<unk>": 1}'), "2 pieces: there is none with the id 151"),
    "no_spm": (lambda folder: (folder / "source.spm").unlink(), "no source.spm"),
    "generation": (write("generation_config.json", "{"), "generation_config.json is damaged"),
}


@pytest.mark.parametrize("kind", HUGGINGFACE_DAMAGES)
def test_a_folder_of_hugging_face_that_lacks_something_is_refused(huggingface, kind):
    damage, why = HUGGINGFACE_DAMAGES[kind]
    damage(huggingface)
    refused(huggingface, why)


def test_two_models_in_a_folder_are_told_apart_by_their_path(marian):
    (marian / "decoder.yml").unlink()
    assert import_folder(marian).search["length_penalty"] == 0
    shutil.copy(marian / NPZ, marian / "other.npz")
    shutil.copy(marian / NPZ, marian / "model.npz.optimizer.npz")
    refused(marian, "has 2 models, such as other.npz and self-attention.npz: name one by its path")
    assert import_folder(marian / "other.npz").config.d_model == 48


def vocabulary_model(**ids):
    """A small SentencePiece model that is a vocabulary, as Marian trains it, and its processor."""
    model = trained_model(lines("train.en")[:200], vocab_size=50, eos_id=0, unk_id=1, **ids)
    return model, sentencepiece.SentencePieceProcessor(model_proto=model)


@pytest.mark.parametrize("ids", [{"bos_id": -1}, {"bos_id": 2}])
def test_a_sentencepiece_model_can_be_the_vocabulary(marian, ids):
    """A piece <s> of its own is a class like any other: Marian's decoder begins with zeros."""
    spm, processor = vocabulary_model(**ids)
    (marian / "vocab.spm").write_bytes(spm)
    (marian / "decoder.yml").write_text(f"models: [{NPZ}]\nvocabs: [vocab.spm, vocab.spm]\n", encoding="utf-8")
    matrix = np.arange(50 * 48, dtype=np.float32).reshape(50, 48)
    changed_arrays(marian, Wemb=matrix, decoder_ff_logit_out_b=matrix[:, :1].T)
    model = import_folder(marian)
    embeddings, bias = model.values["embedding/matrix"], model.values["embedding/bias"]
    assert model.config.vocab_size == 52 and not embeddings[[PAD, BOS]].any() and (bias[[PAD, BOS]] == -100).all()
    for text in lines("test.en")[:20]:
        ours, theirs = model.tokenizer.encode(text), processor.encode(text)
        np.testing.assert_array_equal(bias[ours], matrix[theirs, 0])
        np.testing.assert_array_equal(embeddings[ours][:, 0], matrix[theirs, 0])
        assert model.tokenizer.decode(ours) == processor.decode(theirs)


def test_what_is_not_there_is_named(tmp_path, marian):
    refused(tmp_path / "none", "There is no folder .*none")
    with pytest.raises(ImportedModelError, match="positions can be marian alone"):
        import_folder(marian, "huggingface")
    with pytest.raises(ImportedModelError, match="positions is 'paper'"):
        import_folder(marian, "paper")


@pytest.mark.parametrize("name", ["vocab.yml", "decoder.yml", "source.spm"])
def test_a_text_that_ends_early_is_refused_or_leaves_a_model(marian, name):
    content = (marian / name).read_bytes()
    for part in cuts(content, most=12):
        (marian / name).write_bytes(part)
        try:
            import_folder(marian)
        except kt.UserError as error:
            assert "\n" not in str(error) and str(pathlib.Path(marian)) in str(error)
