"""kt.pipeline by an export: the translations of the run, with the arguments that the graph takes."""

import json

import pytest

import keras_transformer as kt
from export.litert.write import write_model
from keras_transformer.ground.errors import ConfigError
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from tests.support.exports import write_version
from tests.support.runs import SENTENCES, random_run

pytestmark = pytest.mark.slow
OPTIONS = SearchOptions(beam_size=3, extra_length=12, length_normalization="tokens")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("pipeline") / "run")


def texts(found):
    return [each["translation_text"] for each in found]


def test_a_saved_model_translates_as_the_run_and_takes_other_options(run, tmp_path):
    translator = write_version(run, tmp_path / "to" / "1", OPTIONS, names=("serving_default", "translate"))
    expected = [best.text for best in translator.translate(SENTENCES)]
    translate = kt.pipeline("translation_en_to_de", model=tmp_path / "to")
    assert texts(translate(SENTENCES)) == expected == texts(translate(SENTENCES, num_beams=3))
    greedy = [best.text for best in translator.with_options({"beam_size": 1}).translate(SENTENCES)]
    assert texts(translate(SENTENCES, num_beams=1)) == greedy
    two = translator.with_options({"n_best": 2}).translate_n_best(SENTENCES)
    found = translate(SENTENCES, num_return_sequences=2)
    assert [texts(each) for each in found] == [[best.text for best in each] for each in two]
    short = translator.with_options({"max_length": 4}).translate(SENTENCES)
    assert texts(translate(SENTENCES, max_new_tokens=4)) == [best.text for best in short]
    with pytest.raises(ConfigError, match="This export does not take length_penalty as transformers"):
        translate("a", length_penalty=2.0)  # how its run divides is not known without a certificate
    (tmp_path / "to" / "1" / "certificate.json").write_text(json.dumps({"search": {"length_normalization": "tokens"}}))
    longer = translator.with_options({"length_penalty": 2.0}).translate(SENTENCES)
    found = kt.pipeline("translation", model=tmp_path / "to")(SENTENCES, length_penalty=2.0)
    assert texts(found) == [best.text for best in longer]


@pytest.mark.nightly
def test_a_litert_model_translates_as_the_run_and_names_what_it_does_not_take(run, tmp_path):
    pytest.importorskip("ai_edge_litert")
    model, tokenizer = load_run(run)
    translator = kt.Translator(model, tokenizer, OPTIONS)
    write_model(model, translator, tmp_path / "lite", "lite", None)
    translate = kt.pipeline("translation", model=tmp_path / "lite")
    assert texts(translate(SENTENCES, num_beams=3)) == [best.text for best in translator.translate(SENTENCES)]
    two = translator.with_options({"n_best": 2}).translate_n_best(SENTENCES)
    found = translate(SENTENCES, num_return_sequences=2)
    assert [texts(each) for each in found] == [[best.text for best in each] for each in two]
    with pytest.raises(ConfigError, match="does not take num_beams; it takes num_return_sequences. The folder of the"):
        translate("a", num_beams=5)
