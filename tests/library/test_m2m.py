"""M2M-100 and NLLB-200 as run folders: their languages and pieces, and what cannot be imported, in one sentence."""

import json
import logging

import numpy as np
import pytest

from keras_transformer.commands.import_model import app
from keras_transformer.commands.translate import app as translate_app
from keras_transformer.ground.errors import UserError
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.models import hub
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.fairseq import MASK
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.hub import Hub, asked, files_in
from tests.support.imported import assert_refused, cut, remove, with_arrays
from tests.support.m2m import (
    KINDS,
    LEGACY,
    M2M,
    NLLB,
    NLLB_CODES,
    UNNAMED,
    added_pieces,
    changed,
    m2m_folder,
    text_pieces,
)
from tests.support.marian_files import safetensors
from tests.support.runs import SENTENCES

PLACES = {M2M: ("source", ""), NLLB: ("source", ""), LEGACY: ("", "source")}


@pytest.mark.parametrize("kind", KINDS)
def test_languages_are_the_pieces_after_those_of_text(tmp_path, kind):
    model = import_folder(m2m_folder(tmp_path / kind, kind))
    languages, pieces = model.languages, model.tokenizer.pieces()
    assert languages.source == languages.target
    assert (languages.source_first, languages.source_last) == PLACES[kind] and languages.target_first == "target"
    assert list(languages.source.values()) == [piece for piece in added_pieces(kind) if piece != MASK]
    codes = {M2M: ("de", "__de__")}.get(kind, ("deu_Latn", "deu_Latn"))
    assert codes in languages.source.items() and languages.chosen("de", "eng") != ("", "")
    assert pieces[5:] == [*text_pieces()[4:], *added_pieces(kind), *(f"madeupword000{n}" for n in range(UNNAMED))]
    assert model.search == {"beam_size": 5, "length_penalty": 1.0, "length_normalization": "tokens"}
    assert model.inference().languages == languages and model.kind == "Hugging Face M2M100"
    assert (model.config.first_position, model.config.norm, model.config.sinusoids) == (2, "pre", "tensor2tensor")


def test_the_special_rows_are_those_of_fairseqs_ids(tmp_path):
    folder = m2m_folder(tmp_path / "m")
    model, theirs = import_folder(folder), read_safetensors(folder / "model.safetensors")["model.shared.weight"]
    matrix, bias = model.values["embedding/matrix"], model.values["embedding/bias"]
    for here, there in {PAD: 1, UNK: 3, BOS: 2, EOS: 2, 4: 0, 5: 4}.items():  # the decoder starts with </s>
        np.testing.assert_array_equal(np.sort(matrix[here]), np.sort(theirs[there]))
    assert bias[BOS] == -100 and not np.delete(bias, BOS).any()


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_languages_are_of_no_text_in_python_and_in_the_graph(tmp_path, kind):
    tokenizer = import_folder(m2m_folder(tmp_path / kind, kind)).tokenizer
    silent = [number for number, piece in enumerate(tokenizer.pieces()) if piece in added_pieces(kind)]
    texts = [
        "__de__ two",
        "deu_Latn",
        " eng_Latn two",
        "<mask>",
        "<s>' </s> <unk>",
        ">>deu<< two",
        "madeupword0000",
        "",
    ]
    ids, graph = tokenizer.encode_batch(texts), graph_tokenizer(tokenizer.model_bytes)
    assert graph.encode(texts).to_list() == graph.encode_target(texts).to_list() == ids
    assert not {*silent} & {number for row in ids for number in row}
    row = tokenizer.encode_target("two hundred")
    assert tokenizer.decode([silent[0], *row, silent[-1], tokenizer.vocab_size - 1]) == "two hundred"
    assert graph.decode([[silent[0], *row, silent[-1]]]).numpy().tolist() == [b"two hundred"]
    assert tokenizer.decode(tokenizer.encode(">>deu<< two")).endswith("two") and len(tokenizer.encode(">>deu<<")) > 1
    assert tokenizer.tags == [] and tokenizer.unknown_tag(">>deu<< two") == ""
    assert {tokenizer.surfaces()[number] for number in silent} == {b""}


def test_ids_that_files_give_to_languages_are_those_of_the_embedding(tmp_path):
    """The hub's NLLB has them in tokenizer.json; whoever adds a language has one after <mask>."""
    first = len(text_pieces())
    given = {piece: first + number for number, piece in enumerate(reversed(added_pieces(NLLB)))}
    given["tyv_Cyrl"] = first + len(given) + 1
    tokens = [{"id": number, "content": piece, "special": True} for piece, number in given.items()]
    by_id = {str(number): {"content": piece, "special": True} for piece, number in given.items()}
    files = {
        "tokenizer.json": {"added_tokens": tokens},
        "added_tokens.json": given,
        "tokenizer_config.json": {"added_tokens_decoder": by_id},
    }
    for number, (name, values) in enumerate(files.items()):
        model = import_folder(changed(m2m_folder(tmp_path / str(number), NLLB), name, **values))
        pieces = model.tokenizer.pieces()
        assert {piece: pieces.index(piece) - 1 for piece in given} == given
        assert model.languages.source.keys() == {*NLLB_CODES, "tyv_Cyrl"}


def test_weights_in_half_precision_are_those_rounded(tmp_path):
    folder = m2m_folder(tmp_path / "m")
    exact, arrays = import_folder(m2m_folder(tmp_path / "exact")), read_safetensors(folder / "model.safetensors")
    halves = {name: array.astype(np.float16) for name, array in arrays.items()}
    tables = {f"model.{side}.embed_positions.weights": table(20) for side in ("encoder", "decoder")}  # of old files
    (folder / "model.safetensors").write_bytes(safetensors(halves | tables))
    for name, value in import_folder(folder).values.items():
        np.testing.assert_allclose(value, exact.values[name], rtol=1e-3, atol=1e-6)


def table(positions, width=32):
    """fairseq's sinusoids; the row of <pad> is 0."""
    half = width // 2
    angles = np.arange(positions)[:, None] * np.exp(-np.arange(half) * np.log(10000) / (half - 1))
    found = np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)
    found[1] = 0
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_the_commands_import_and_translate(tmp_path, kind, caplog):
    caplog.set_level(logging.INFO, logger="keras_transformer")
    m2m_folder(tmp_path / kind, kind)
    assert invoke(app, tmp_path / kind, tmp_path / "run").exit_code == 0
    assert any(
        f"{len(added_pieces(M2M) if kind == M2M else NLLB_CODES)} languages: a" in r.message for r in caplog.records
    )
    translator = Translator.load(RunFolder(tmp_path / "run").path)
    expected = translator.translate_n_best(SENTENCES[:3], source_language="en", target_language="de")
    stdin = "".join(f"{line}\n" for line in SENTENCES[:3])
    found = invoke(translate_app, tmp_path / "run", "--from", "en", "--to", "de", stdin=stdin)
    assert found.stdout.splitlines() == [translations[0].text for translations in expected]
    for lines in (stdin, "", "\n12\n"):  # whether a line needs its language or not
        result = invoke(translate_app, tmp_path / "run", "--from", "en", stdin=lines)
        assert_one_sentence(result, "say which is the target")
        result = invoke(translate_app, tmp_path / "run", "--from", "en", "--to", "\udcff", stdin=lines)
        assert_one_sentence(result, "The target language is '\\udcff'; this model writes")


SHARED, NORM = "model.shared.weight", "model.encoder.layer_norm.weight"
MISTAKES = {
    "moe": (lambda f: changed(f, "config.json", model_type="nllb-moe"), "has model_type: 'nllb-moe'; only"),
    "unscaled": (lambda f: changed(f, "config.json", scale_embedding=False), "scale_embedding: False; only True"),
    "untied": (lambda f: changed(f, "config.json", tie_word_embeddings=False), "tie_word_embeddings: False; only True"),
    "widths": (lambda f: changed(f, "config.json", decoder_ffn_dim=7), "decoder_ffn_dim: 7; only that of encoder_ffn"),
    "activation": (lambda f: changed(f, "config.json", activation_function="glu"), "activation_function: 'glu'"),
    "no pad": (lambda f: changed(f, "config.json", pad_token_id=None), "pad_token_id: None; it must be an id"),
    "eos": (lambda f: changed(f, "config.json", eos_token_id=9999), "there is none with the id 9999"),
    "rows": (lambda f: changed(f, "config.json", vocab_size=9), "its options ask for (9, 32)"),
    "class": (
        lambda f: changed(f, "tokenizer_config.json", tokenizer_class="SMALL100Tokenizer"),
        "'SMALL100Tokenizer'",
    ),
    "legacy": (lambda f: changed(f, "tokenizer_config.json", legacy_behaviour="no"), "'no'; it must be true or false"),
    "codes": (lambda f: changed(f, "tokenizer_config.json", language_codes="x"), "language_codes: 'x'; only m2m100"),
    "added": (
        lambda f: changed(f, "added_tokens.json", __xx__=9999),
        "has 10,000 pieces, and the embedding of the mod",
    ),
    "twice": (lambda f: changed(f, "added_tokens.json", __de__=403), "'__de__' twice"),
    "no number": (
        lambda f: changed(f, "added_tokens.json", __xx__="x"),
        "is damaged, or is not a list of added tokens",
    ),
    "text": (
        lambda f: changed(f, "tokenizer.json", added_tokens=[{"id": 402, "content": "km/h", "special": False}]),
        "the added token 'km/h', which is not special",
    ),
    "foreign tokens": (
        lambda f: changed(f, "tokenizer.json", added_tokens=[5]),
        "tokenizer.json is damaged, or is not",
    ),
    "no spm": (lambda f: remove(f, "sentencepiece.bpe.model"), "has no sentencepiece.bpe.model, the SentencePiece mod"),
    "half an spm": (lambda f: cut(f, "sentencepiece.bpe.model"), "is not a SentencePiece model, or is damaged"),
    "half a vocabulary": (lambda f: cut(f, "vocab.json"), "vocab.json"),
    "half of the weights": (lambda f: cut(f, "model.safetensors"), "is damaged, or is not a file of safetensors"),
    "no weights": (lambda f: remove(f, "model.safetensors"), "has no model.safetensors or pytorch_model.bin"),
    "nan": (lambda f: with_arrays(f, **{NORM: np.full(32, np.nan, "f4")}), f"{NORM} of .* NaN or infinite"),
    "missing": (lambda f: with_arrays(f, **{NORM: None}), f"has no array {NORM}"),
    "more": (lambda f: with_arrays(f, x=np.zeros(2, "f4")), "has no place for, such as x"),
    "other head": (
        lambda f: with_arrays(f, **{"lm_head.weight": np.zeros((407, 32), "f4")}),
        "lm_head.weight",
    ),
    "positions": (
        lambda f: with_arrays(f, **{"model.encoder.embed_positions.weights": np.ones((9, 32), "f4")}),
        "is not a table of sinusoids",
    ),
    "beams": (lambda f: changed(f, "generation_config.json", num_beams=0), "has a num_beams that no search can have"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_imported_is_one_sentence(tmp_path, mistake):
    change, sentence = MISTAKES[mistake]
    change(folder := m2m_folder(tmp_path / "m2m"))
    assert_refused(folder, sentence)


def test_nllb_without_pieces_of_languages_is_refused(tmp_path):
    folder = m2m_folder(tmp_path / "nllb", NLLB)
    remove(folder, "special_tokens_map.json")
    with pytest.raises(UserError, match=r"names no languages: their pieces stand in tokenizer\.json"):
        import_folder(folder)
    with pytest.raises(UserError, match="is not of Marian: its positions can be huggingface alone"):
        import_folder(folder, "marian")


def test_unknown_keys_of_config_change_nothing(tmp_path):
    expected = import_folder(m2m_folder(tmp_path / "a"))
    found = import_folder(m2m_folder(tmp_path / "b", encoder_layerdrop=0.05, _name_or_path="x", use_cache=None))
    assert found.config == expected.config and found.languages == expected.languages


@pytest.mark.parametrize("kind", [M2M, NLLB])
def test_a_model_of_the_hub_is_downloaded_whole(tmp_path, kind):
    files = files_in(m2m_folder(tmp_path / "m2m", kind)) | {"added_tokens.json": b"{}", "README.md": b""}
    with asked(Hub(), tmp_path / "cache") as local:
        local.add("facebook/many", files)
        folder = hub.download("hf://facebook/many")
        assert local.downloaded() == files.keys() - {"README.md"}
        assert import_folder(folder).config.first_position == 2
        assert json.loads((folder / "config.json").read_text())["model_type"] == "m2m_100"
