"""What an export as a SavedModel asks for arrives: at the graph, at the Translator, and at what compares the two."""

import inspect
import types

import pytest

from export import saved_model
from export.certificate import certificate
from export.graph import operations, served_graph, version_folder
from export.job import ExportJob
from export.litert import write
from export.saved_model import SavedModel
from export.versions import ExportError
from keras_transformer.lite import translator as lite
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation import precision, translator

OPTIONS = SearchOptions(beam_size=3, shortlist="on")


class Job(ExportJob):
    """An export of a run that need not be there."""

    def load_run(self):
        return "model", "tokenizer"

    def load_shortlist(self):
        return "shortlist"


@pytest.fixture
def arrived(monkeypatch):
    """What each stand-in was given, by the names of the parameters of what it stands for."""
    arrived = {}

    def stand_in(module, name, result):
        signature = inspect.signature(getattr(module, name))

        def call(*args, **kwargs):
            values = arrived[name] = signature.bind(*args, **kwargs).arguments
            return result(types.SimpleNamespace(**values))

        monkeypatch.setattr(module, name, call)

    stand_in(precision, "in_precision", lambda given: f"{given.transformer} in {given.precision}")
    stand_in(translator, "Translator", lambda given: given)
    stand_in(served_graph, "ServedGraph", lambda given: given)
    stand_in(version_folder, "write_saved_model", lambda given: None)
    stand_in(operations, "refuse_xla", lambda given: None)
    stand_in(write, "write_model", lambda given: None)
    stand_in(lite, "require_litert", lambda given: None)
    stand_in(certificate, "certify", lambda given: {})
    stand_in(certificate, "summary", lambda given: "the summary")
    monkeypatch.setattr(saved_model, "calibration_of", lambda run: "calibration")
    return arrived


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_what_is_asked_for_arrives_at_the_graph_and_at_what_it_is_compared_with(kind, arrived, tmp_path):
    (tmp_path / "lines").write_text("a\nb\n", encoding="utf-8")
    job = Job(tmp_path / "run", tmp_path / "to", OPTIONS, 99, tmp_path / "lines")
    asked = SavedModel(precision=kind, alignment_layer=2, signatures=["serving_default"])
    assert asked.export(job) == tmp_path / "to" / "1"
    of_both = {
        "transformer": f"model in {kind}",
        "tokenizer": "tokenizer",
        "options": OPTIONS,
        "max_source_tokens": 99,
        "calibration": "calibration",
        "shortlist": "shortlist",
    }
    assert arrived["Translator"] == of_both | {"precision": kind}
    assert arrived["ServedGraph"] == of_both | {"alignment_layer": 2}
    assert arrived["write_saved_model"]["names"] == ("serving_default",)
    compared = arrived["certify"]
    assert (vars(compared["translator"]), compared["precision"]) == (arrived["Translator"], kind)
    assert (compared["lines"], compared["alignment_layer"]) == (["a", "b"], 2)


@pytest.mark.parametrize("litert", [False, True])
@pytest.mark.parametrize("is_compared", [False, True])
def test_the_version_has_a_litert_model_if_it_is_asked_for_and_is_compared_if_there_are_sentences(
    litert, is_compared, arrived, tmp_path, capsys
):
    (tmp_path / "lines").write_text("a\n", encoding="utf-8")
    job = Job(tmp_path / "run", tmp_path / "mine", OPTIONS, 99, tmp_path / "lines" if is_compared else None)
    version = SavedModel(litert=litert).export(job)
    assert version == tmp_path / "mine" / "1" and arrived["write_saved_model"]["names"] == ()
    unfinished = arrived["write_saved_model"]["folder"]
    assert arrived["refuse_xla"] == {"version": unfinished}
    assert ("write_model" in arrived) is ("require_litert" in arrived) is litert
    if litert:
        written = arrived["write_model"]
        assert (written["folder"], written["name"]) == (unfinished / "assets.extra" / "litert", "mine")
        assert written["quantization"] is None and vars(written["translator"]) == arrived["Translator"]
        assert written["transformer"] == "model in float32"
    assert ("certify" in arrived) is is_compared
    assert capsys.readouterr().out == ("the summary\n" if is_compared else "")
    if is_compared:
        assert arrived["certify"]["version"] == unfinished and arrived["certify"]["run"].path == tmp_path / "run"


def test_litert_is_float32_alone(arrived, tmp_path):
    job = Job(tmp_path / "run", tmp_path / "mine", OPTIONS, 99, None)
    with pytest.raises(ExportError, match="--litert is float32 and --precision is bfloat16: leave one of them out"):
        SavedModel(precision="bfloat16", litert=True).export(job)
    assert arrived == {} and not (tmp_path / "mine").exists()
