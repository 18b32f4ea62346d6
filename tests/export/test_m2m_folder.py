"""M2M-100 and NLLB-200 back in Hugging Face's format: the arrays, ids and languages that came in."""

import json

import numpy as np
import pytest

from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run, save_run
from tests.support.commands import assert_one_sentence
from tests.support.exchange import assert_the_same_model, exported
from tests.support.m2m import KINDS, M2M, NLLB, m2m_folder
from tests.support.runs import SENTENCES


@pytest.fixture
def run(tmp_path):
    """From a kind of model to an imported run of it."""

    def imported(kind):
        write_run(import_folder(m2m_folder(tmp_path / f"{kind}_there", kind)), tmp_path / kind, SENTENCES[:3])
        return tmp_path / kind

    return imported


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_imported_goes_out_and_comes_in_again_bit_for_bit(run, kind, tmp_path):
    folder = run(kind)
    result = exported(folder, tmp_path / "out", "--license", "mit", "--no-check")  # equal arrays say more
    assert result.exit_code == 0, result.output
    arrays, there = assert_the_same_model(tmp_path / "out", tmp_path / f"{kind}_there")
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, there[name])
    generation = json.loads((tmp_path / "out" / "generation_config.json").read_text())
    assert (generation["num_beams"], generation["decoder_start_token_id"]) == (5, 2)
    assert "forced_bos_token_id" not in generation
    card = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "M2M100ForConditionalGeneration" in card and "- m2m_100" in card and '- "de"' in card and "src_lang=" in card


@pytest.mark.slow
def test_languages_that_are_named_are_those_of_generate(run, tmp_path):
    folder = run(M2M)
    languages = "--source-language", "en", "--target-language", "de"
    result = exported(folder, tmp_path / "out", *languages)
    assert result.exit_code == 0, result.output
    generation, tokenizer = (
        json.loads((tmp_path / "out" / f"{name}_config.json").read_text()) for name in ("generation", "tokenizer")
    )
    pieces = import_folder(tmp_path / "out").tokenizer.pieces()
    assert pieces[generation["forced_bos_token_id"] + 1] == "__de__"  # BOS is one more here
    assert (tokenizer["src_lang"], tokenizer["tgt_lang"]) == ("en", "de")


@pytest.mark.slow
def test_what_transformers_cannot_express_is_one_sentence(run, tmp_path):
    model, tokenizer = load_run(folder := run(NLLB))
    inference = RunFolder(folder).inference()
    embedding = model.get_layer("embedding")
    embedding.bias.assign(np.where(np.arange(embedding.vocab_size) == 9, 1.0, embedding.bias))
    save_run(model, tokenizer, tmp_path / "biased", [], inference)
    assert_one_sentence(exported(tmp_path / "biased", tmp_path / "out", "--no-check"), "The logits of this run have a")
    path = folder / "model.json"
    path.write_text(path.read_text().replace('"eos"', '"bos"'))
    assert_one_sentence(exported(folder, tmp_path / "out", "--no-check"), "has the decoder_start 'bos'; Hugging Face's")
    assert not (tmp_path / "out").exists()
