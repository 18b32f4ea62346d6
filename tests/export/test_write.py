"""A LiteRT folder holds all files of the run that a translation needs, and its certificate counts what differs."""

import json
import types

import pytest

from export.litert import write
from export.litert.write import LiteComparison, compare, refuse_disagreement
from export.versions import CERTIFICATE, ExportError
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.lite_folder import Description

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
        "quantization": "int8",
        "lines": 6,
        "same": 2,
        "ties": 1,
        "same_text_with_another_score": 1,
        "another_text": 2,
    }
    assert str(found) == (
        "compared 6 lines: 2 translations with the same text and score, 1 tie, 3 with another score, "
        "2 of them with another text"
    )
    with pytest.raises(ExportError, match="does not translate as the run does: first in line 4, 'd': .*Nothing was"):
        refuse_disagreement(found)
    refuse_disagreement(LiteComparison(6, found.agreement._replace(disagreements=[])))
