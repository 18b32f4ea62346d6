"""What generation_config.json asks of `generate`: a run keeps it, or one sentence names it, whatever the family."""

import json

import pytest

from export.huggingface.settings import generation_json
from keras_transformer.ground.errors import UserError
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.translation.opening import open_engine
from tests.support.m2m import changed, m2m_folder
from tests.support.marian import huggingface_folder
from tests.support.mbart import mbart_folder
from tests.support.peers import Peer, needs
from tests.support.t5 import t5_folder

FOLDERS = {"marian": huggingface_folder, "m2m": m2m_folder, "mbart": mbart_folder, "t5": t5_folder}
GENERATION = "generation_config.json"
NOT_KEPT = "which a run does not keep: translations may differ from those of transformers"
NAMED = {
    "no_repeat_ngram_size": 9,  # more than a search here takes
    "repetition_penalty": -1.2,
    "suppress_tokens": [7, 8],
    "begin_suppress_tokens": [9],
    "early_stopping": True,
    "min_length": 5,
    "min_new_tokens": 5,
    "bad_words_ids": [[7, 8]],
    "do_sample": True,
    "num_beam_groups": 2,
    "diversity_penalty": 0.5,
    "encoder_no_repeat_ngram_size": 4,
    "sequence_bias": [[[7], -5.0]],
    "forced_decoder_ids": [[1, 7]],
    "force_words_ids": [[7]],
    "exponential_decay_length_penalty": [5, 1.1],
    "eos_token_id": [2, 7],
    "forced_eos_token_id": 7,
    "num_return_sequences": 3,
}
NEUTRAL = {
    "no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "early_stopping": False,
    "min_length": 0,
    "do_sample": False,
    "temperature": 0.7,  # without do_sample nothing is drawn
    "top_k": 50,
    "bad_words_ids": None,
    "renormalize_logits": True,
    "use_cache": False,
    "transformers_version": "4.49.0",
    "num_beam_groups": 1,
    "guidance_scale": None,
}


def notes_of(folder):
    return [note for note in import_folder(folder).notes if NOT_KEPT in note]


def only(folder, **values):
    """The folder with these keys alone in generation_config.json."""
    (folder / GENERATION).write_text(json.dumps(values), encoding="utf-8")
    return folder


@pytest.mark.parametrize("kind", FOLDERS)
def test_each_key_that_changes_translations_is_named_with_its_value(tmp_path, kind):
    folder = FOLDERS[kind](tmp_path / kind)
    for key, value in NAMED.items():
        [note] = notes_of(only(folder, **{key: value}))
        assert note.startswith(f"{GENERATION} has {key}: {value!r}, {NOT_KEPT}"), note
    [note] = notes_of(only(folder, **NAMED))
    assert all(f"{key}: " in note for key in NAMED) and "\n" not in note
    assert note.endswith("; ask for min_length in a call")
    assert notes_of(only(folder, **NEUTRAL)) == []


@pytest.mark.parametrize("kind", FOLDERS)
def test_rules_of_repetition_are_those_of_the_model(tmp_path, kind):
    """What a search here has, a run keeps, and an export for transformers has again."""
    folder, rules = FOLDERS[kind](tmp_path / kind), {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3}
    model = import_folder(only(folder, **rules))
    assert not [note for note in model.notes if NOT_KEPT in note]
    options = model.inference().options()
    assert {name: getattr(options, name) for name in rules} == rules
    assert rules.items() <= generation_json(options, 40).items()
    for name in ("repetition_penalty", "no_repeat_ngram_size"):
        assert name not in import_folder(only(folder, **{name: NEUTRAL.get(name, 1.0)})).search


@pytest.mark.parametrize("kind", FOLDERS)
def test_without_generation_config_it_is_config_that_asks(tmp_path, kind):
    folder = FOLDERS[kind](tmp_path / kind)
    (folder / GENERATION).unlink(missing_ok=True)
    [note] = notes_of(changed(folder, "config.json", min_length=3))
    assert note.startswith("config.json has min_length: 3")
    assert notes_of(only(folder, num_beams=2)) == []  # as in transformers, which then reads the other file alone


@pytest.mark.parametrize("kind", FOLDERS)
def test_beside_generation_config_nothing_of_config_is_asked(tmp_path, kind):
    folder = only(FOLDERS[kind](tmp_path / kind), num_beams=2)
    expected = import_folder(folder)
    changed(folder, "config.json", num_beams=7, length_penalty=2.0, forced_bos_token_id=9, repetition_penalty=1.3)
    model = import_folder(folder)
    assert (model.search, model.languages) == (expected.search, expected.languages)
    assert model.search["beam_size"] == 2 and model.search["length_penalty"] == 1.0


@pytest.mark.release
@needs("transformers", "torch")
@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("asked", [{}, {"num_beams": 3}, {"length_penalty": 0.5, "num_beams": 2}, None])
def test_a_run_searches_as_the_config_that_generate_reads(tmp_path, kind, asked):
    """asked: by generation_config.json, which is not there if it is None."""
    folder = FOLDERS[kind](tmp_path / kind)
    changed(folder, "config.json", num_beams=7, length_penalty=2.0)
    (folder / GENERATION).unlink(missing_ok=True) if asked is None else only(folder, **asked)
    theirs = Peer("transformers").AutoModelForSeq2SeqLM.from_pretrained(folder).generation_config
    found = import_folder(folder).search
    assert found["length_penalty"] == (1.0 if theirs.length_penalty is None else theirs.length_penalty)
    assert found.get("beam_size") == theirs.num_beams


@pytest.mark.parametrize("kind", FOLDERS)
def test_what_is_never_written_may_be_forbidden(tmp_path, kind):
    folder = FOLDERS[kind](tmp_path / kind)
    pad = json.loads((folder / "config.json").read_text())["pad_token_id"]
    assert notes_of(only(folder, bad_words_ids=[[pad]], suppress_tokens=[pad])) == []
    assert notes_of(only(folder, bad_words_ids=[[pad], [9]])) and notes_of(only(folder, suppress_tokens=[pad, 9]))


@pytest.mark.parametrize("kind", FOLDERS)
@pytest.mark.parametrize("key", ["max_length", "max_new_tokens"])
def test_another_longest_translation_is_named(tmp_path, kind, key):
    [note] = [note for note in import_folder(only(FOLDERS[kind](tmp_path / kind), **{key: 200})).notes if key in note]
    assert note.startswith(f"{GENERATION} has {key}: 200; here a translation has at most the tokens of its source and")


def test_a_first_token_that_nothing_here_writes_is_refused(tmp_path):
    folder = only(huggingface_folder(tmp_path / "marian"), forced_bos_token_id=5)
    with pytest.raises(UserError, match=r"generation_config.json has forced_bos_token_id: 5; only null, since Marian"):
        import_folder(folder)


def test_a_folder_that_is_opened_by_its_name_tells_it_too(tmp_path, caplog):
    open_engine(only(m2m_folder(tmp_path / "m2m"), min_length=3))
    assert [record.getMessage() for record in caplog.records if NOT_KEPT in record.getMessage()]
