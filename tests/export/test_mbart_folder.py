"""mBART and BART's shape back in Hugging Face's format: the arrays, ids and languages that came in."""

import json

import numpy as np
import pytest

from export.__main__ import app
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.models.imported.grown import with_language
from keras_transformer.runs.run_folder import RunFolder
from tests.support.commands import assert_one_sentence, invoke
from tests.support.exchange import assert_the_same_model, exported
from tests.support.mbart import BART, FIFTY, KINDS, ONE_TARGET, UNSCALED, mbart_folder
from tests.support.runs import SENTENCES

TABLE = "embed_positions.weight"


@pytest.fixture
def run(tmp_path):
    """From a kind of model to an imported run of it."""

    def imported(kind):
        write_run(import_folder(mbart_folder(tmp_path / f"{kind}_there", kind)), tmp_path / kind, SENTENCES[:3])
        return tmp_path / kind

    return imported


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_imported_goes_out_and_comes_in_again_bit_for_bit(run, kind, tmp_path):
    result = exported(run(kind), tmp_path / "out", "--no-check")  # equal arrays say more
    assert result.exit_code == 0, result.output
    arrays, there = assert_the_same_model(tmp_path / "out", tmp_path / f"{kind}_there")
    for name in arrays if kind not in (UNSCALED, BART) else ():  # scaled now: another file, the same function
        used = slice(2, None) if name.endswith(TABLE) else slice(None)  # of no position
        np.testing.assert_array_equal(arrays[name][used], there[name][used])
    config, generation = (
        json.loads((tmp_path / "out" / f"{name}.json").read_text()) for name in ("config", "generation_config")
    )
    assert config["model_type"] == ("bart" if kind == BART else "mbart") and "forced_bos_token_id" not in generation
    start = (
        import_folder(tmp_path / "out").tokenizer.pieces().index("ro_RO") - 1 if kind == ONE_TARGET else 2
    )  # BOS is one more here
    assert (config["decoder_start_token_id"], generation["num_beams"]) == (start, 5)
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert f"{'Bart' if kind == BART else 'MBart'}ForConditionalGeneration" in card and "has at most 120 tokens" in card
    assert 'src_lang="ar_AR"' in card and ("forced_bos" in card) == (kind != ONE_TARGET)


@pytest.mark.nightly
def test_languages_that_are_named_are_those_of_generate_and_of_the_next_import(run, tmp_path):
    result = exported(run(FIFTY), tmp_path / "out", "--source-language", "en", "--target-language", "de")
    assert result.exit_code == 0, result.output
    again = import_folder(tmp_path / "out")
    assert again.languages.default_target == "de_DE"
    tokenizer = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert (tokenizer["src_lang"], tokenizer["tgt_lang"]) == ("en_XX", "de_DE")


@pytest.mark.nightly
def test_what_transformers_cannot_express_is_one_sentence(run, tmp_path):
    folder = run(FIFTY)
    path = folder / "model.json"
    path.write_text(path.read_text().replace('"eos"', '"bos"'))
    assert_one_sentence(exported(folder, tmp_path / "out", "--no-check"), "has the decoder_start 'bos'; Hugging Face's")
    grown = with_language(import_folder(tmp_path / f"{FIFTY}_there"), "gsw_CH", "de_DE")
    write_run(grown, tmp_path / "grown", SENTENCES[:3])
    assert_one_sentence(exported(tmp_path / "grown", tmp_path / "out", "--no-check"), "lists of languages of their own")
    assert not (tmp_path / "out").exists()
    assert RunFolder(tmp_path / "grown").inference().languages.target["gsw_CH"] == "gsw_CH"
    options = "--format", "ctranslate2", "--no-check", "--source-language", "en", "--target-language", "ro"
    other = invoke(app, run(ONE_TARGET), "--to", tmp_path / "ct2", *options)
    assert_one_sentence(other, "told languages by pieces at the ends of a sentence")
