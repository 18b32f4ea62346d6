"""Each kind of folder that holds a model is opened by its name, and translates as it does when it is opened by hand."""

import pytest

import keras_transformer as kt
from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.translation.opening import open_engine
from tests.support.echo import write_echo
from tests.support.hub import Hub, asked, files_in
from tests.support.marian import SELF_ATTENTION, best_by_marian, huggingface_folder, lines, marian_folder
from tests.support.places import ROOT
from tests.support.processes import python
from tests.support.runs import SENTENCES


def texts(found):
    return [each["translation_text"] for each in found]


@pytest.mark.slow
def test_a_run_folder_and_a_preset_translate_as_their_translator(random_folder, tmp_path):
    translator = kt.Translator.load(random_folder)
    expected = [best.text for best in translator.translate(SENTENCES)]
    assert texts(kt.pipeline("translation", model=random_folder)(SENTENCES)) == expected
    translator.save_to_preset(tmp_path / "preset")
    assert texts(kt.pipeline("translation", model=str(tmp_path / "preset"))(SENTENCES)) == expected


@pytest.mark.slow
def test_options_of_a_call_are_those_of_a_translator_and_leave_the_next_call_alone(random_folder):
    translate = kt.pipeline("translation", model=random_folder)
    options = kt.SearchOptions(beam_size=2, n_best=2, length_penalty=1.0, length_normalization="tokens")
    expected = kt.Translator.load(random_folder, options).translate_n_best(SENTENCES[:3])
    before = translate(SENTENCES[:3])
    found = translate(SENTENCES[:3], num_beams=2, num_return_sequences=2, length_penalty=1.0)
    assert [texts(of_text) for of_text in found] == [[each.text for each in of_text] for of_text in expected]
    assert translate(SENTENCES[:3]) == before


@pytest.mark.slow
@pytest.mark.parametrize("folder_of", [marian_folder, huggingface_folder])
def test_a_folder_of_others_is_imported_and_nothing_is_written(folder_of, tmp_path):
    folder = folder_of(tmp_path / "opus")
    before = sorted(tmp_path.rglob("*"))
    found = texts(kt.pipeline("translation_en_to_de", model=folder)(lines("test.en"), num_beams=6))
    assert sorted(tmp_path.rglob("*")) == before
    expected = [best for best, _ in best_by_marian(SELF_ATTENTION)]
    equal = sum(one == other for one, other in zip(found, expected, strict=True))
    assert equal == len(expected) if folder_of is marian_folder else equal > 40  # of other sinusoids


@pytest.mark.nightly
def test_a_name_as_transformers_writes_it_is_one_on_the_hub_unless_there_is_such_a_folder(tmp_path, monkeypatch):
    folder = huggingface_folder(tmp_path / "opus")
    local = Hub()
    local.add("them/opus-mt-en-de", files_in(folder))
    expected = texts(kt.pipeline("translation", model=folder)(lines("test.en")[:5], num_beams=1))
    with asked(local, tmp_path):
        for name, more in (("them/opus-mt-en-de", {}), ("them/opus-mt-en-de", {"revision": "main"})):
            translate = kt.pipeline("translation", model=name, tokenizer=name, **more)
            assert texts(translate(lines("test.en")[:5], num_beams=1)) == expected
    assert "model.safetensors" in local.downloaded()
    monkeypatch.chdir(tmp_path)
    folder.rename(tmp_path / "opus-mt-en-de")
    (tmp_path / "them").symlink_to(tmp_path)
    assert texts(kt.pipeline("translation", model="them/opus-mt-en-de")(lines("test.en")[:5], num_beams=1)) == expected


def test_an_export_is_opened_by_its_folder_or_version(tmp_path):
    write_echo(tmp_path / "to" / "1")
    for name in (tmp_path / "to", tmp_path / "to" / "1"):
        translate = kt.pipeline("translation", model=name)
        assert texts(translate(["a dog", "b"])) == ["a dog", "b"]
        with pytest.raises(ConfigError, match="This export does not take num_beams"):
            translate("a", num_beams=3)
    with pytest.raises(ConfigError, match="leave bfloat16 out"):
        kt.pipeline("translation", model=tmp_path / "to", dtype="bfloat16")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nothing", "There is no run folder nothing"),
        ("/nothing/here", "There is no run folder /nothing/here"),
        (
            "nobody/nothing",
            "There is no folder nobody/nothing, which may be a name on the hub; but hf://nobody/nothing",
        ),
        ("hf://nobody", "hf://nobody is not a name on the hub"),
    ],
)
def test_a_name_that_nothing_has_is_one_sentence(name, sentence, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=sentence):
        open_engine(name)


def test_an_empty_folder_is_one_sentence(tmp_path):
    with pytest.raises(UserError, match="it is not a run folder"):
        open_engine(tmp_path)


@pytest.mark.slow
def test_a_litert_model_is_opened_without_tensorflow_and_keras():
    pytest.importorskip("ai_edge_litert")
    script = """
import sys
import keras_transformer as kt
translate = kt.pipeline("translation_en_to_de", model=sys.argv[1])
print(translate("A dog runs across the field.")[0]["translation_text"])
assert not {"tensorflow", "keras"} & set(sys.modules)
"""
    process = python("-c", script, ROOT / "presets/multi30k_en_de/litert")
    assert process.returncode == 0, process.stderr
    assert process.stdout == "Ein Hund rennt über das Feld.\n"
