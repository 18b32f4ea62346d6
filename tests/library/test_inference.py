"""inference.json: what is written is read, damage is one sentence, and a run of before there was one still opens."""

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.runs.inference import Inference, inference_in_config
from keras_transformer.runs.run_folder import RunFolder

TREEBANK = """
[data]
source = "treebank"
files = ["all.mrg"]

[training]
row_length = 64
source_row_length = 58

[translation]
beam_size = 7
length_penalty = 0.3
extra_length = 300
validation_beam_size = 1
"""


@pytest.mark.parametrize(
    "inference",
    [
        Inference(),
        Inference("trees", {"beam_size": 7, "length_penalty": 0.3}, 58),
        Inference(languages=Languages({"en": ""}, {"de": "<2de>"}, source_first="target")),
    ],
)
def test_what_is_written_is_read(inference, tmp_path):
    inference.save(tmp_path / "inference.json")
    assert RunFolder(tmp_path).inference() == inference


@pytest.mark.parametrize(
    ("inference", "parts"),
    [
        (Inference("pictures"), ["outputs is 'pictures'", "'text' or 'trees'"]),
        (Inference(search={"seed": 3}), ["search has seed", "beam_size"]),
        (Inference(search=[1]), ["search is \\[1\\]"]),
        (Inference(search={"beam_size": 0}), ["beam_size is 0"]),
        (Inference(longest_source=0), ["longest_source is 0"]),
        (Inference(longest_source=True), ["longest_source is True"]),
        (Inference(languages=Languages(source_first="both")), ["languages.source_first is 'both'"]),
    ],
)
def test_a_value_that_makes_no_sense_is_named(inference, parts):
    with pytest.raises(ConfigError, match=".*".join(parts)):
        inference.check()


@pytest.mark.parametrize("former", ['"terms": true', '"context": {"sentences": 2, "sides": "both"}', '"context": 3'])
def test_a_file_of_a_version_that_knew_soft_terms_or_the_sentences_before_one_is_read(former, tmp_path):
    (tmp_path / "inference.json").write_text(f'{{"outputs": "text", "longest_source": 140, {former}}}')
    assert RunFolder(tmp_path).inference() == Inference(longest_source=140)


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff", b'{"output": "trees"}', b'{"outputs": 3}', b'{"languages": 3}', b"3"]
)
def test_a_damaged_file_is_one_sentence(content, tmp_path):
    (tmp_path / "inference.json").write_bytes(content)
    with pytest.raises(ConfigError, match=r"inference.json is damaged: [^\n]*\. Restore it"):
        RunFolder(tmp_path).inference()


def test_a_run_of_before_there_was_an_inference_json_is_what_its_configuration_says(tmp_path):
    (tmp_path / "config.toml").write_text(TREEBANK, encoding="utf-8")
    search = {"beam_size": 7, "length_penalty": 0.3, "extra_length": 300}
    assert RunFolder(tmp_path).inference() == Inference("trees", search, 58)
    text = TREEBANK.replace("treebank", "files").replace("source_row_length = 58\n", "")
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    assert RunFolder(tmp_path).inference() == Inference("text", {}, 64)  # its commands have the usual search
    Inference("trees").save(tmp_path / "inference.json")
    assert RunFolder(tmp_path).inference() == Inference("trees")  # which is read alone, if it is there


@pytest.mark.parametrize("content", [None, b"[data", b"[data]\n", b"data = 3", b"\xff", b"[training]\nrow_length = []"])
def test_without_a_configuration_or_with_a_damaged_one_outputs_are_text(content, tmp_path, caplog):
    if content is not None:
        (tmp_path / "config.toml").write_bytes(content)
    assert inference_in_config(tmp_path / "config.toml") == Inference()
    assert (content is None) == (not caplog.messages)


def test_a_file_in_place_of_a_run_folder_is_no_run_of_trees(tmp_path):
    (tmp_path / "run").write_text("", encoding="utf-8")
    assert RunFolder(tmp_path / "run").inference() == Inference()


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ConfigError, match=f"^{tmp_path} cannot be read: Is a directory.$"):
        Inference.load(tmp_path)
