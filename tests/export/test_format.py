"""`--format ctranslate2` hands every option of the export on, whether CTranslate2 is installed or not."""

import pytest

from export.ctranslate2 import convert
from export.ctranslate2.format import CTranslate2
from export.job import ExportJob
from keras_transformer.decoding.options import SearchOptions
from tests.support.runs import SENTENCES


class Comparison:
    def __init__(self, calls):
        self.calls = calls

    def refuse_beyond(self):
        self.calls["refuse_beyond"] = ()


def recorded(calls, name, arguments):
    calls[name] = arguments
    return Comparison(calls)


@pytest.mark.parametrize("quantization", [None, "int8"])
def test_every_option_arrives_in_the_model_the_readme_and_the_comparison(
    random_folder, tmp_path, monkeypatch, quantization
):
    calls = {}
    monkeypatch.setattr(convert, "require", lambda *arguments: calls.update(require=arguments))
    for name in ("write_model", "write_readme", "compare_scores"):
        monkeypatch.setattr(convert, name, lambda *arguments, name=name: recorded(calls, name, arguments))
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in SENTENCES), encoding="utf-8")
    options = SearchOptions(beam_size=3, length_penalty=1.5, extra_length=7)
    folder = tmp_path / "model"
    job = ExportJob(random_folder, folder, options, max_source_tokens=19, sentences=tmp_path / "lines")
    assert CTranslate2(quantization).export(job) == folder
    assert calls["require"] == (quantization,) and calls["write_model"][3] == quantization
    translator = calls["write_readme"][2]
    assert (translator.options, translator.max_source_tokens) == (options, 19)
    assert calls["write_readme"][1] == folder.name and calls["compare_scores"][1:] == (translator, SENTENCES)
    assert ("refuse_beyond" in calls) == (quantization is None)
