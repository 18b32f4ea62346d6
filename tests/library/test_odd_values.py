"""Whatever the files of a folder of Hugging Face say: it is a model, or refused in one sentence."""

import json

import pytest

import keras_transformer as kt
from keras_transformer.models.imported.folder import import_folder
from tests.support.damage import flips
from tests.support.m2m import LEGACY, M2M, NLLB, m2m_folder
from tests.support.marian import huggingface_folder
from tests.support.mbart import BART, FIFTY, ONE_TARGET, mbart_folder

ODD = (None, True, -1, 0, 2, 10**9, 2**70, 0.5, "", "x", "</s>", "de_DE", [], ["x"], [None], {}, {"x": 1}, {"1": "x"})
FOLDERS = {
    "marian": huggingface_folder,
    **{kind: (lambda path, kind=kind: m2m_folder(path, kind)) for kind in (M2M, NLLB, LEGACY)},
    **{kind: (lambda path, kind=kind: mbart_folder(path, kind)) for kind in (FIFTY, ONE_TARGET, BART)},
}
MORE = {  # keys that a file may have beside those of the folder
    "config.json": ("forced_bos_token_id", "tie_word_embeddings", "length_penalty", "scale_embedding"),
    "generation_config.json": ("forced_bos_token_id", "length_penalty", "bad_words_ids", "eos_token_id", "max_length"),
    "tokenizer_config.json": ("language_codes", "added_tokens_decoder", "extra_special_tokens", "legacy_behaviour"),
    "tokenizer.json": ("added_tokens",),
    "added_tokens.json": ("x", "fr_XX", "__fr__"),
}


def assert_a_model_or_one_sentence(folder):
    try:
        import_folder(folder)
    except kt.UserError as error:
        assert "\n" not in str(error) and (str(folder) in str(error) or "No such" in str(error)), str(error)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", FOLDERS)
def test_a_value_of_any_key_is_one_of_a_model_or_refused(tmp_path, kind):
    folder = FOLDERS[kind](tmp_path / "folder")
    for name in sorted({*MORE} | {path.name for path in folder.glob("*.json")} - {"vocab.json"}):
        before = (folder / name).read_bytes() if (folder / name).exists() else None
        values = json.loads(before or b"{}")
        for key in {**values, **dict.fromkeys(MORE.get(name, ()))}:
            for odd in ODD:
                (folder / name).write_text(json.dumps({**values, key: odd}), encoding="utf-8")
                assert_a_model_or_one_sentence(folder)
        if before is None:
            (folder / name).unlink()
        else:
            (folder / name).write_bytes(before)


@pytest.mark.parametrize("kind", [NLLB, FIFTY])
def test_a_changed_byte_of_any_file_is_of_a_model_or_refused(tmp_path, kind):
    folder = FOLDERS[kind](tmp_path / "folder")
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for damaged in flips(content, 15):
            path.write_bytes(damaged)
            assert_a_model_or_one_sentence(folder)
        path.write_bytes(content)
