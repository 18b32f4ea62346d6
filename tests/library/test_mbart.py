"""mBART-50, mBART-25 and BART's shape as run folders: languages, pieces, positions, and what cannot be imported."""

import json
import logging

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.commands.import_model import app
from keras_transformer.commands.translate import app as translate_app
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.models import hub
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.fairseq import MASK
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.grown import with_language
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.hub import Hub, asked, files_in
from tests.support.imported import assert_refused, cut, remove, with_arrays
from tests.support.m2m import changed
from tests.support.mbart import BART, CODES, FIFTY, KINDS, ONE_TARGET, POSITIONS, UNSCALED, mbart_folder, text_pieces
from tests.support.runs import SENTENCES

PLACES = {FIFTY: ("source", ""), UNSCALED: ("source", ""), ONE_TARGET: ("", "source"), BART: ("", "source")}
TABLE = "model.encoder.embed_positions.weight"


@pytest.mark.parametrize("kind", KINDS)
def test_languages_are_those_of_the_tokenizer(tmp_path, kind):
    model = import_folder(mbart_folder(tmp_path / kind, kind))
    languages, config = model.languages, model.config
    assert (languages.source_first, languages.source_last) == PLACES[kind]
    assert list(languages.source) == list(languages.source.values()) == CODES[kind]
    if kind == ONE_TARGET:  # its decoder begins with the piece of the one language that it writes
        assert languages.target == {"ro_RO": ""} and languages.target_first == "" and config.decoder_start == "bos"
    else:
        assert languages.target == languages.source and config.decoder_start == "eos"
        assert languages.target_first == "target" and languages.chosen("en", "deu") == ("en_XX", "de_DE")
    assert languages.chosen("en", "ro") == ("en_XX", "ro_RO")
    assert model.tokenizer.pieces()[5:] == [*text_pieces()[4:], *CODES[kind], MASK]
    assert (config.positions, config.max_positions, config.embedding_norm) == ("learned", POSITIONS, True)
    assert config.norm == ("post" if kind == BART else "pre") and model.kind == "Hugging Face MBart"


def test_the_decoder_begins_as_generate_does(tmp_path):
    """generation_config.json comes before config.json, and may alone have the start."""
    folder = mbart_folder(tmp_path / "m", ONE_TARGET)
    start = json.loads((folder / "config.json").read_text())["decoder_start_token_id"]
    changed(folder, "generation_config.json", decoder_start_token_id=start)
    expected = import_folder(folder)
    for other in (None, 2):
        changed(folder, "config.json", decoder_start_token_id=other)
        model = import_folder(folder)
        assert (model.config, model.languages) == (expected.config, expected.languages)
        np.testing.assert_array_equal(*(each.values["embedding/matrix"][BOS] for each in (model, expected)))


def test_the_special_rows_are_those_of_fairseqs_ids_and_two_positions_are_dropped(tmp_path):
    folder = mbart_folder(tmp_path / "m", ONE_TARGET)
    model, theirs = import_folder(folder), read_safetensors(folder / "model.safetensors")
    start = json.loads((folder / "config.json").read_text())["decoder_start_token_id"]
    for here, there in {PAD: 1, UNK: 3, BOS: start, EOS: 2, 4: 0, 5: 4}.items():
        row = theirs["model.shared.weight"][there]
        np.testing.assert_array_equal(np.sort(model.values["embedding/matrix"][here]), np.sort(row))
    bias, expected = model.values["embedding/bias"], theirs["final_logits_bias"][0]
    np.testing.assert_array_equal(bias[[PAD, UNK, EOS, 4, 5]], expected[[1, 3, 2, 0, 4]])
    assert bias[BOS] == -100
    table = model.values["source_positions/table"]
    np.testing.assert_array_equal(np.sort(table), np.sort(theirs[TABLE][2:]))


def test_an_embedding_that_is_not_scaled_is_the_same_function(tmp_path):
    """With d_model 32: E / sqrt(32), read as E; the logits, E / sqrt(32) @ sqrt(32) * norm(states), as of E."""
    scaled = import_folder(mbart_folder(tmp_path / "scaled", UNSCALED, scale_embedding=True))
    found = import_folder(mbart_folder(tmp_path / "not", UNSCALED))
    root = 32**0.5
    np.testing.assert_allclose(found.values["embedding/matrix"] * root, scaled.values["embedding/matrix"], rtol=1e-6)
    np.testing.assert_allclose(
        found.values["decoder_norm/gamma"] / root, scaled.values["decoder_norm/gamma"], rtol=1e-6
    )
    np.testing.assert_array_equal(found.values["encoder_norm/gamma"], scaled.values["encoder_norm/gamma"])


@pytest.mark.parametrize("kind", [FIFTY, ONE_TARGET])
def test_pieces_of_languages_are_of_no_text_in_python_and_in_the_graph(tmp_path, kind):
    tokenizer = import_folder(mbart_folder(tmp_path / kind, kind)).tokenizer
    silent = [number for number, piece in enumerate(tokenizer.pieces()) if piece in (*CODES[kind], MASK)]
    texts = ["de_DE two", " en_XX", "<mask>", "<s>' </s> <unk>", ">>deu<< two", ""]
    ids, graph = tokenizer.encode_batch(texts), graph_tokenizer(tokenizer.model_bytes)
    assert graph.encode(texts).to_list() == graph.encode_target(texts).to_list() == ids
    assert not {*silent} & {number for row in ids for number in row}
    row = tokenizer.encode_target("two hundred")
    assert tokenizer.decode([silent[0], *row, silent[-1]]) == "two hundred"


def test_what_generate_is_forced_to_begin_with_is_the_default_language(tmp_path):
    """As of mBART-50 many-to-one, whose every output is English."""
    folder = mbart_folder(tmp_path / "m")
    first = len(text_pieces())
    number = first + CODES[FIFTY].index("en_XX")
    changed(folder, "generation_config.json", forced_bos_token_id=number)
    for _ in range(2):
        languages = import_folder(folder).languages
        assert languages.chosen("de") == ("de_DE", "en_XX") and languages.chosen("en", "de") == ("en_XX", "de_DE")
        changed(folder, "config.json", forced_bos_token_id=number)
        (folder / "generation_config.json").unlink(missing_ok=True)


@pytest.mark.nightly
def test_the_commands_import_and_translate_and_cut_at_the_last_position(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="keras_transformer")
    mbart_folder(tmp_path / "there")
    assert invoke(app, tmp_path / "there", tmp_path / "run").exit_code == 0
    assert any("52 languages: ar_AR" in record.message for record in caplog.records)
    assert any(f"learned positions: {POSITIONS}," in record.message for record in caplog.records)
    translator = Translator.load(RunFolder(tmp_path / "run").path, kt.SearchOptions(beam_size=2, extra_length=9))
    long = "two hundred and " * POSITIONS
    expected = [
        translation.text
        for translation in translator.translate([*SENTENCES[:2], long], source_language="en", target_language="de")
    ]
    stdin = "".join(f"{line}\n" for line in [*SENTENCES[:2], long])
    options = "--from", "en", "--to", "de", "--beam-size", "2", "--extra-length", "9"
    found = invoke(translate_app, tmp_path / "run", *options, stdin=stdin)
    assert found.stdout.splitlines() == expected
    assert any(f"only the first {POSITIONS - 2} are used" in record.message for record in caplog.records)
    assert_one_sentence(invoke(translate_app, tmp_path / "run", "--from", "en", stdin=stdin), "say which is the target")


def test_a_language_that_is_new_begins_as_a_related_one(tmp_path):
    model = import_folder(mbart_folder(tmp_path / "m"))
    grown = with_language(model, "gsw_CH", "de")
    row = model.tokenizer.pieces().index("de_DE")
    np.testing.assert_array_equal(grown.values["embedding/matrix"][-1], model.values["embedding/matrix"][row])
    assert grown.languages.target["gsw_CH"] == "gsw_CH"
    with pytest.raises(kt.ConfigError, match="codes of this model are as ar_AR, cs_CZ, de_DE: give one of that form"):
        with_language(model, "gsw_Latn", "de")
    with pytest.raises(kt.ConfigError, match="mBART-50, and this is Hugging Face MBart"):
        with_language(import_folder(mbart_folder(tmp_path / "one", ONE_TARGET)), "gsw_CH", "de_DE")


def without_start(folder):
    for name in ("config.json", "generation_config.json"):
        changed(folder, name, decoder_start_token_id=None)


NORM = "model.encoder.layernorm_embedding.weight"
MISTAKES = {
    "scaled": (lambda f: changed(f, "config.json", scale_embedding="yes"), "scale_embedding: 'yes'; only"),
    "untied": (lambda f: changed(f, "config.json", tie_word_embeddings=False), "tie_word_embeddings: False; only True"),
    "positions": (lambda f: changed(f, "config.json", max_position_embeddings=9), f"({POSITIONS + 2}, 32); its option"),
    "no positions": (lambda f: changed(f, "config.json", max_position_embeddings=None), "max_positions is None"),
    "no start": (without_start, "config.json has decoder_start_token_id: None"),
    "start of generate": (
        lambda f: changed(f, "generation_config.json", decoder_start_token_id="x"),
        "generation_config.json has decoder_start_token_id: 'x'; it must be an id",
    ),
    "forced": (
        lambda f: changed(f, "generation_config.json", forced_bos_token_id=7),
        "generation_config.json has forced_bos_token_id: 7; only the id of a",
    ),
    "class": (
        lambda f: changed(f, "tokenizer_config.json", tokenizer_class="BarthezTokenizer"),
        "tokenizer_config.json has tokenizer_class: 'BarthezTokenizer'; only MBartTokenizer, MBartTokenizerFast",
    ),
    "added": (lambda f: changed(f, "added_tokens.json", xx_XX=9999), "has 10,000 pieces, and the embedding of the mod"),
    "no spm": (lambda f: remove(f, "sentencepiece.bpe.model"), "has no sentencepiece.bpe.model, the SentencePiece mod"),
    "half an spm": (lambda f: cut(f, "sentencepiece.bpe.model"), "is not a SentencePiece model, or is damaged"),
    "half of the weights": (lambda f: cut(f, "model.safetensors"), "is damaged, or is not a file of safetensors"),
    "nan": (lambda f: with_arrays(f, **{NORM: np.full(32, np.nan, "f4")}), f"{NORM} of .* NaN or infinite"),
    "no norm": (lambda f: with_arrays(f, **{NORM: None}), f"has no array {NORM}"),
    "no positions at all": (lambda f: with_arrays(f, **{TABLE: None}), f"has no array {TABLE}"),
    "bias": (lambda f: with_arrays(f, final_logits_bias=np.zeros((1, 9), "f4")), "final_logits_bias of .* shape (9,)"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_cannot_be_imported_is_one_sentence(tmp_path, mistake):
    change, sentence = MISTAKES[mistake]
    change(folder := mbart_folder(tmp_path / "mbart"))
    assert_refused(folder, sentence)


def test_barts_own_tokenizer_is_refused_by_name(tmp_path):
    folder = mbart_folder(tmp_path / "bart", BART)
    remove(folder, "tokenizer_config.json")
    with pytest.raises(kt.UserError, match="tokenizer_class: 'BartTokenizer'; only MBartTokenizer, "):
        import_folder(folder)


def test_a_language_forced_twice_is_refused(tmp_path):
    folder = mbart_folder(tmp_path / "m", ONE_TARGET)
    changed(folder, "generation_config.json", forced_bos_token_id=len(text_pieces()))
    with pytest.raises(kt.UserError, match="forced_bos_token_id: .* only null, with that decoder_start_token_id"):
        import_folder(folder)


def test_a_file_without_a_bias_of_the_logits_has_zeros(tmp_path):
    with_arrays(folder := mbart_folder(tmp_path / "m"), final_logits_bias=None)
    assert not np.delete(import_folder(folder).values["embedding/bias"], BOS).any()


@pytest.mark.parametrize("kind", [FIFTY, ONE_TARGET])
def test_a_model_of_the_hub_is_downloaded_whole(tmp_path, kind):
    files = files_in(mbart_folder(tmp_path / "mbart", kind)) | {"README.md": b""}
    with asked(Hub(), tmp_path / "cache") as local:
        local.add("facebook/mbart", files)
        folder = hub.download("hf://facebook/mbart")
        assert local.downloaded() == files.keys() - {"README.md"}
        assert import_folder(folder).config.positions == "learned"
