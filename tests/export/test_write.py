"""A LiteRT folder holds all files of the run that a translation needs, and its certificate counts what differs."""

import json
import types

import pytest

from export.litert import write
from export.litert.write import LiteComparison, compare, refuse_disagreement, write_model
from export.versions import CERTIFICATE, ExportError
from keras_transformer.confidence import Calibration
from keras_transformer.decoding.options import RUN_OPTIONS, SearchOptions
from keras_transformer.lite.folder import Description
from keras_transformer.translation import Translation

OPTIONS = SearchOptions(beam_size=3, length_penalty=0.25, extra_length=7)
CALIBRATION = Calibration((-1.0,), (0.5,), "a measure", 9)


@pytest.mark.parametrize(("quantization", "calibration"), [(None, None), ("int8", CALIBRATION)])
def test_the_folder_has_the_search_of_the_translator_and_every_file_that_it_needs(
    quantization, calibration, tmp_path, monkeypatch
):
    asked = []
    tokenizer = types.SimpleNamespace(model_bytes=b"pieces", pieces=lambda: ["a", "<ph0>"])
    translator = types.SimpleNamespace(
        options=OPTIONS, shortlist="shortlist", tokenizer=tokenizer, max_source_tokens=40, calibration=calibration
    )  # fmt: skip
    monkeypatch.setattr(write, "lite_model", lambda *given: asked.append(given) or b"model")
    monkeypatch.setattr(write, "table_for", lambda *given: ("table of", *given))
    monkeypatch.setattr(write, "placeholders_in", lambda pieces: [pieces.index("<ph0>")])
    folder = tmp_path / "new" / "folder"
    write_model("transformer", translator, folder, "mine", quantization)
    rooms = write.rooms_up_to(40, 7)
    table = ("table of", OPTIONS, "shortlist", tokenizer)
    assert asked == [("transformer", OPTIONS, rooms, quantization, [1], table)]
    contents = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert (contents["search.tflite"], contents["tokenizer.model"]) == (b"model", b"pieces")
    search = {name: getattr(OPTIONS, name) for name in RUN_OPTIONS}
    assert Description.load(folder / "litert.json") == Description(search, rooms, quantization)
    assert contents["README.md"].startswith(b"# mine\n")
    assert ("8-bit integers" in contents["README.md"].decode()) is (quantization == "int8")
    assert ("calibration.json" in contents) is (calibration is not None)
    if calibration:
        assert Calibration.load(folder / "calibration.json") == calibration


RUN = [("same", -1.0), ("equal", 0.0), ("tie", -1.0), ("other score", -1.0), ("other text", -1.0), ("another", -1.0)]
LITE = [("same", -1.0), ("equal", 0.0), ("Tie", -1.0), ("other score", -2.0), ("Other text", -2.0), ("Another", -3.0)]


def translating(answers, **more):
    return types.SimpleNamespace(translate=lambda lines: [Translation(*answer) for answer in answers], **more)


def test_the_certificate_counts_equal_lines_ties_and_two_kinds_of_differences(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "package_versions", lambda packages: dict.fromkeys(packages, "9"))
    exported = translating(LITE, folder=tmp_path, description=Description({}, (), "int8"))
    found = compare(exported, translating(RUN), list("abcdef"))
    assert json.loads((tmp_path / CERTIFICATE).read_text(encoding="utf-8")) == {
        "made_with": dict.fromkeys(("tensorflow", "keras", "ai-edge-litert", "sentencepiece"), "9"),
        "quantization": "int8", "lines": 6, "same": 2, "ties": 1, "same_text_with_another_score": 1, "another_text": 2,
    }  # fmt: skip
    assert str(found) == (
        "compared 6 lines: 2 translations with the same text and score, 1 tie, 3 with another score, "
        "2 of them with another text"
    )
    with pytest.raises(ExportError, match="does not translate as the run does: first in line 4, 'd': .*Nothing was"):
        refuse_disagreement(found)
    refuse_disagreement(LiteComparison(6, found.agreement._replace(disagreements=[])))
