"""What an export as a SavedModel asks for arrives: at the graph, at the Translator, and at what compares the two."""

import inspect
import types

import pytest

from export import saved_model
from export.certificate import certificate
from export.graph import operations, served_graph, version_folder
from export.job import ExportJob
from export.saved_model import SavedModel
from keras_transformer import precision, translator
from keras_transformer.decoding.options import SearchOptions

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
    stand_in(certificate, "certify", lambda given: {})
    stand_in(certificate, "summary", lambda given: "")
    monkeypatch.setattr(saved_model, "calibration_of", lambda run: "calibration")
    return arrived


@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_what_is_asked_for_arrives_at_the_graph_and_at_what_it_is_compared_with(kind, arrived, tmp_path):
    (tmp_path / "lines").write_text("a\nb\n", encoding="utf-8")
    job = Job(tmp_path / "run", tmp_path / "to", OPTIONS, 99, tmp_path / "lines")
    asked = SavedModel(precision=kind, alignment_layer=2, signatures=["serving_default"])
    assert asked.export(job) == tmp_path / "to" / "1"
    of_both = {
        "transformer": f"model in {kind}", "tokenizer": "tokenizer", "options": OPTIONS, "max_source_tokens": 99,
        "calibration": "calibration", "shortlist": "shortlist",
    }  # fmt: skip
    assert arrived["Translator"] == of_both | {"precision": kind}
    assert arrived["ServedGraph"] == of_both | {"alignment_layer": 2}
    assert arrived["write_saved_model"]["names"] == ("serving_default",)
    compared = arrived["certify"]
    assert (vars(compared["translator"]), compared["precision"]) == (arrived["Translator"], kind)
    assert (compared["lines"], compared["alignment_layer"]) == (["a", "b"], 2)
