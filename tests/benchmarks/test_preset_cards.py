"""The cards in presets/ as the hub's own reader reads them, and what their heads say beside their text."""

import re

import pytest
from huggingface_hub import ModelCard

import keras_transformer as kt
from benchmarks.quality.preset_cards import LIBRARY, PRESETS, TEST_SETS, with_head
from keras_transformer.ground.command_table import DISTRIBUTION
from keras_transformer.ground.errors import UserError

of_each = pytest.mark.parametrize("name", TEST_SETS)


def content_of(name):
    return (PRESETS / name / "README.md").read_text(encoding="utf-8")


def lines_of(name):
    """The lines of scores in the text of a card, as columns that two spaces or a `±` part."""
    text = content_of(name).partition("\n## Scores\n")[2].partition("\n## ")[0]
    return [line[2:].split() for line in text.splitlines() if line.startswith("- ")]


def test_each_preset_has_a_card():
    assert {path.name for path in PRESETS.iterdir()} == TEST_SETS.keys()


@of_each
def test_a_card_is_as_the_command_writes_it(name):
    assert with_head(content_of(name), name) == content_of(name), "run python -m benchmarks.quality.preset_cards"


@of_each
def test_the_hub_reads_the_scores_of_the_text(name):
    data = ModelCard(content_of(name)).data
    read = [(result.metric_type, result.metric_value, result.metric_args["signature"]) for result in data.eval_results]
    assert len(read) == 4
    assert read == [(line[0].lower(), float(line[1]), line[-1]) for line in lines_of(name)]
    assert {result.dataset_name for result in data.eval_results} == {TEST_SETS[name][0]}


@of_each
def test_the_hub_learns_what_it_is_and_what_opens_it(name):
    data = ModelCard(content_of(name)).data
    assert (data.library_name, data.pipeline_tag, data.language) == (DISTRIBUTION, "translation", ["en", "de"])
    assert LIBRARY == DISTRIBUTION and data.license and set(data.metrics) == {"bleu", "chrf", "ter"}
    named = {result.dataset_type for result in data.eval_results}
    assert (name == "software_en_de") or named == set(data.datasets)  # the hub has no corpus of software


@pytest.mark.nightly
@of_each
def test_the_lines_of_use_print_what_they_say(name, monkeypatch, capsys):
    (code,) = re.findall(r"```python\n(.*?)```", content_of(name), re.DOTALL)
    monkeypatch.chdir(PRESETS.parent)
    exec(code, {"kt": kt})
    assert capsys.readouterr().out.strip() == re.search(r"\[0\]\.text\)  # (.*)", code)[1]


def test_a_score_that_changes_in_the_text_changes_in_the_head():
    content = content_of("multi30k_en_de").replace("- BLEU 42.05 ±", "- BLEU 12.50 ±")
    values = [result.metric_value for result in ModelCard(with_head(content, "multi30k_en_de")).data.eval_results]
    assert values == [12.5, 42.41, 65.74, 43.14]


def test_a_card_without_scores_is_refused():
    with pytest.raises(UserError, match="no line such as"):
        with_head("---\nlicense: mit\n---\n\n# A card\n", "multi30k_en_de")
