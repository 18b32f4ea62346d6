"""Each format hands every option of the export on, whether what it is for is installed or not."""

import inspect
import types

import pytest

from export.ctranslate2 import convert
from export.ctranslate2.format import CTranslate2
from export.huggingface import card, comparison, settings, weights
from export.huggingface.format import HuggingFace
from export.job import ExportJob
from export.litert import format as litert_format
from export.litert import write
from export.litert.format import LiteRT
from export.versions import ExportError
from keras_transformer.lite import translator as lite
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation import translator

OPTIONS = SearchOptions(beam_size=3, length_penalty=1.5, extra_length=7, shortlist="on")
WITHOUT = SearchOptions(beam_size=3, length_penalty=1.5, extra_length=7)
LONGEST = 15  # tokens that the Translator of these tests reads, if it is told 19


class Comparison:
    def __init__(self, arrived):
        self.arrived = arrived

    def refuse_beyond(self):
        self.arrived["refuse_beyond"] = {}

    def __str__(self):
        return "compared"


class Job(ExportJob):
    """An export of a run that need not be there."""

    def load_run(self):
        config = types.SimpleNamespace(name="config")
        return types.SimpleNamespace(transformer_config=config, model_config=config), "tokenizer"

    def load_shortlist(self):
        return "shortlist" if self.options.shortlist == "on" else None


def stand_in(monkeypatch, arrived, module, name, result=lambda given: None):
    """Let a function keep what it is given, by the names of its parameters."""
    signature = inspect.signature(getattr(module, name))

    def call(*args, **kwargs):
        arrived[name] = signature.bind(*args, **kwargs).arguments
        return result(types.SimpleNamespace(**arrived[name]))

    monkeypatch.setattr(module, name, call)


@pytest.fixture
def arrived(monkeypatch):
    """What each stand-in was given, by the names of the parameters of what it stands for."""
    arrived = {}

    def translating(given):
        asked = dict(vars(given))
        return types.SimpleNamespace(asked=asked, max_source_tokens=min(asked["max_source_tokens"], LONGEST))

    compared = lambda given: Comparison(arrived)  # noqa: E731
    stand_in(monkeypatch, arrived, translator, "Translator", translating)
    for name in ("require", "write_model", "write_readme", "write_vocabulary_map"):
        stand_in(monkeypatch, arrived, convert, name)
    stand_in(monkeypatch, arrived, convert, "compare_scores", compared)
    stand_in(monkeypatch, arrived, lite, "require_litert")
    stand_in(monkeypatch, arrived, lite, "LiteTranslator", lambda given: ("opened", given.folder))
    stand_in(monkeypatch, arrived, write, "compare", compared)
    stand_in(monkeypatch, arrived, write, "refuse_disagreement")
    monkeypatch.setattr(litert_format, "calibration_of", lambda run: ("calibration of", run.path))
    stand_in(monkeypatch, arrived, weights, "refuse_other_models")
    stand_in(monkeypatch, arrived, weights, "arrays_of", lambda given: {})
    for name in ("config_json", "generation_json"):
        stand_in(monkeypatch, arrived, settings, name, lambda given: {})
    stand_in(monkeypatch, arrived, settings, "write_tokenizer")
    stand_in(monkeypatch, arrived, card, "model_card", lambda given: "the card")
    stand_in(monkeypatch, arrived, card, "languages_of", lambda given: ("languages of", given.run.path))
    stand_in(monkeypatch, arrived, comparison, "compare", compared)
    return arrived


def job_in(folder, options=OPTIONS, is_compared=True):
    """An export into the empty folder `mine`, which a link names."""
    (folder / "lines").write_text("a\nb\n", encoding="utf-8")
    (folder / "mine").mkdir()
    (folder / "link").symlink_to("mine")
    return Job(folder / "run", folder / "link", options, 19, folder / "lines" if is_compared else None)


@pytest.mark.parametrize("quantization", [None, "int8"])
def test_every_option_arrives_in_the_model_of_ctranslate2_its_readme_and_the_comparison(
    arrived, quantization, tmp_path, capsys
):
    assert CTranslate2(quantization).export(job_in(tmp_path)) == tmp_path / "mine"
    assert arrived["require"]["quantization"] == arrived["write_model"]["quantization"] == quantization
    asked = arrived["write_readme"]["translator"].asked  # scores are compared over all pieces
    assert (asked["options"], asked["max_source_tokens"], asked["tokenizer"]) == (WITHOUT, 19, "tokenizer")
    assert (arrived["write_readme"]["name"], arrived["write_readme"]["config"].name) == ("mine", "config")
    compared = arrived["compare_scores"]
    assert compared["translator"] is arrived["write_readme"]["translator"] and compared["lines"] == ["a", "b"]
    assert arrived["write_vocabulary_map"]["shortlist"] == "shortlist" and capsys.readouterr().out == "compared\n"
    assert ("refuse_beyond" in arrived) == (quantization is None)


@pytest.mark.parametrize("quantization", [None, "int8"])
def test_every_option_arrives_in_the_model_of_litert_and_in_what_it_is_compared_with(
    arrived, quantization, tmp_path, monkeypatch, capsys
):
    stand_in(monkeypatch, arrived, write, "write_model")
    assert LiteRT(quantization).export(job_in(tmp_path)) == tmp_path / "mine"
    asked = arrived["write_model"]["translator"].asked
    assert (asked["options"], asked["max_source_tokens"], asked["tokenizer"]) == (OPTIONS, 19, "tokenizer")
    assert (asked["shortlist"], asked["calibration"]) == ("shortlist", ("calibration of", tmp_path / "run"))
    assert (arrived["write_model"]["name"], arrived["write_model"]["quantization"]) == ("mine", quantization)
    opened = "opened", arrived["write_model"]["folder"]
    compared = arrived["compare"]
    assert (compared["exported"], compared["lines"]) == (opened, ["a", "b"])
    assert compared["translator"] is arrived["write_model"]["translator"] and "require_litert" in arrived
    assert capsys.readouterr().out == "compared\n" and ("refuse_disagreement" in arrived) == (quantization is None)


def test_every_option_arrives_in_the_folder_of_hugging_face_and_in_its_comparison(arrived, tmp_path, capsys):
    assert HuggingFace("cc-by-4.0").export(job_in(tmp_path)) == tmp_path / "mine"
    made = {name: arrived[name] for name in ("generation_json", "write_tokenizer", "model_card")}
    assert (made["generation_json"]["options"], made["generation_json"]["max_source_tokens"]) == (WITHOUT, LONGEST)
    assert made["write_tokenizer"]["languages"] == ("languages of", tmp_path / "run")
    assert made["write_tokenizer"]["max_source_tokens"] == LONGEST
    card = made["model_card"]
    assert (card["name"], card["license"], card["options"], card["run"].path) == (
        "mine",
        "cc-by-4.0",
        WITHOUT,
        tmp_path / "run",
    )
    asked = arrived["compare"]["translator"].asked
    assert (asked["options"], asked["max_source_tokens"]) == (WITHOUT, 19) and arrived["compare"]["lines"] == ["a", "b"]
    assert "refuse_other_models" in arrived and capsys.readouterr().out == "compared\n"
    names = {"model.safetensors", "config.json", "generation_config.json", "README.md"}
    assert {path.name for path in (tmp_path / "mine").iterdir()} == names
    assert (tmp_path / "mine" / "README.md").read_text(encoding="utf-8") == "the card"


@pytest.mark.parametrize("kind", [CTranslate2, LiteRT, HuggingFace])
def test_without_sentences_nothing_is_compared_and_without_a_shortlist_none_is_written(
    kind, arrived, tmp_path, monkeypatch, capsys
):
    stand_in(monkeypatch, arrived, write, "write_model")
    assert kind().export(job_in(tmp_path, WITHOUT, is_compared=False)) == tmp_path / "mine"
    assert not {"compare", "compare_scores", "write_vocabulary_map"} & set(arrived)
    assert capsys.readouterr().out == "" and (tmp_path / "mine").is_dir()


@pytest.mark.parametrize("kind", [CTranslate2, HuggingFace])
def test_a_coverage_penalty_of_which_a_format_knows_nothing_is_refused(kind, tmp_path):
    job = job_in(tmp_path, SearchOptions(coverage_penalty=0.2))
    with pytest.raises(
        ExportError, match="The coverage penalty is 0.2, .*give --coverage-penalty 0, or --format saved"
    ):
        kind().export(job)


def test_a_quantization_that_litert_lacks_is_refused(tmp_path):
    with pytest.raises(ExportError, match="--quantization int4 does not exist; LiteRT models have int8"):
        LiteRT("int4").export(job_in(tmp_path))
