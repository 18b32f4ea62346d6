"""What `keras-transformer doctor` says of damage in what a run remembers."""

import json
import shutil

import pytest

from keras_transformer.doctor import folders
from keras_transformer.doctor.finding import MISSING
from tests.support.findings import states, the_missing

PART = json.dumps({"step": 0, "commit": None, "changes": {}}) + "\n"
TEXT = {"step": 4, "pairs": 2, "shards": ["ab"], "files": {"a.en": [1, 2]}, "before": None}
WHOLE = {
    "config.toml": '\ufeff[data]\nsource = "numbers"\n',
    "history.jsonl": PART + PART,
    "training_text.json": json.dumps(TEXT | {"before": TEXT}),
    "scores.json": json.dumps({"step": 4, "scores": [{"name": "bleu", "form": "raw", "value": 1.0}]}),
    "calibration.json": json.dumps(
        {"points": [-1.0, 0.0], "confidences": [0.1, 0.9], "measure": "chrF", "sentences": 50}
    ),
    "validation.src.txt": "eins\n",
    "metrics.jsonl": '{"step": 1}\n{"step": 2, "train/loss": null}\n',
}


@pytest.fixture
def run(random_folder, tmp_path):
    run = shutil.copytree(random_folder, tmp_path / "run")
    for name, content in WHOLE.items():
        (run / name).write_text(content, encoding="utf-8")
    return run


def test_what_is_whole_is_named_in_one_line(run):
    findings = list(folders.folder(run))
    assert MISSING not in states(findings)
    (line,) = [finding.text for finding in findings if finding.text.startswith("readable: ")]
    assert set(line.removeprefix("readable: ").split(", ")) == WHOLE.keys() - {"metrics.jsonl"}


@pytest.mark.parametrize(
    ("name", "content", "said", "advice"),
    [
        ("config.toml", "[data\n", "config.toml is damaged: ", "copy it again"),
        ("config.toml", "# nothing\n", "config.toml is damaged: it is empty", "write it again"),
        ("config.toml", "[training]\nsteps = 3\n", "it has no section [data]", "copy it again"),
        ("config.toml", "data = 3\n", "it has no section [data]", "copy it again"),
        ("history.jsonl", PART + PART[:20], "history.jsonl is damaged: ", "report.md"),
        ("history.jsonl", PART + "[3]\n", "it holds no object of JSON", "copy it again"),
        ("training_text.json", json.dumps(TEXT)[:30], "training_text.json is damaged: ", "train does not see"),
        ("scores.json", "[]", "scores.json is damaged: it holds no object of JSON", "training command again"),
        ("calibration.json", '{"points": []}', "calibration.json is damaged", "keras-transformer calibrate"),
        ("shortlist.npz", "PK", "shortlist.npz", "keras-transformer shortlist"),
        ("validation.src.txt", b"\xff\n", "line 1 is not UTF-8: its byte 1 is 0xff", "--check FILE"),
    ],
)
def test_damage_is_one_line_that_says_what_is_wrong_and_another_what_to_do(run, name, content, said, advice):
    (run / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    found = the_missing(folders.folder(run))
    assert name in found.text and said in found.text and advice in found.advice
