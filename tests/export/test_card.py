"""The model card of a Hugging Face folder: what the run knows stands in it, and nothing else."""

import json

import pytest
import yaml
from huggingface_hub import ModelCard

import keras_transformer as kt
from export.huggingface.card import all_codes, languages_of, model_card
from export.huggingface.settings import Languages
from keras_transformer.pieces.language_marks import Languages as Told
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.run_folder import RunFolder
from tests.support.runs import RUN_MODEL

SCORES = {
    "split": "data.test",
    "beam_size": 4,
    "length_penalty": 0.6,
    "sentences": 1000,
    "scores": [
        {
            "name": "BLEU",
            "form": "raw text",
            "value": 39.016,
            "margin": 1.0,
            "interval": [38.0, 40.0],
            "signature": "nrefs:1|tok:13a",
            "undefined": None,
        },
        {
            "name": "BLEU",
            "form": "tokenised",
            "value": None,
            "margin": None,
            "interval": None,
            "signature": "nrefs:1",
            "undefined": "no reference has four tokens",
        },
        {
            "name": "chrF",
            "form": "raw text",
            "value": 62.9,
            "margin": None,
            "interval": None,
            "signature": "nc:6",
            "undefined": None,
        },
    ],
}


def card_of(folder, license=None, options=kt.SearchOptions(), **changes):  # noqa: B008 (it is immutable)
    return model_card("mine", RunFolder(folder), RUN_MODEL.replace(**changes), options, license)


def head_of(card):
    _, head, _ = card.split("---\n", 2)
    return yaml.safe_load(head)


def test_the_card_of_a_run_that_was_scored_tells_the_hub_its_scores(tmp_path):
    (tmp_path / "config.toml").write_text('[data]\nsource_language = "en"\ntarget_language = "no"\n')
    (tmp_path / "scores.json").write_text(json.dumps(SCORES))
    card = card_of(tmp_path, license="cc-by-4.0")
    head = head_of(card)
    assert head["language"] == ["en", "no"] and head["license"] == "cc-by-4.0"  # "no" and not False
    assert (head["library_name"], head["pipeline_tag"]) == ("transformers", "translation")
    [model] = head["model-index"]
    [result] = model["results"]
    assert model["name"] == "mine" and result["task"] == {"type": "translation"}
    assert result["metrics"] == [
        {"type": "bleu", "value": 39.02, "name": "BLEU, raw text (38.00 to 40.00)"},
        {"type": "chrf", "value": 62.9, "name": "chrF, raw text"},
    ]
    assert head["metrics"] == ["bleu", "chrf"]
    read = ModelCard(card).data.eval_results  # by the hub's own reader
    assert [(result.metric_type, result.metric_value) for result in read] == [("bleu", 39.02), ("chrf", 62.9)]
    assert "| BLEU | raw text | 39.02 (38.00 to 40.00) | nrefs:1\\|tok:13a |" in card
    assert "translates en into no" in card and "data.test, 1,000 sentences, beam 4, length penalty 0.6" in card


@pytest.mark.parametrize(
    "damage",
    [
        {},
        *({"config.toml": text} for text in ("[data", "data = 3", "[[data]]", "other = 1", "\udcff")),
        *(
            {"scores.json": text}
            for text in (
                "{",
                "[]",
                "{}",
                '{"scores": 3}',
                '{"scores": [3]}',
                '{"scores": [{}]}',
                '{"scores": [{"value": 1, "name": []}]}',
                "\udcff",
            )
        ),
    ],
)
def test_the_card_of_a_run_that_says_nothing_makes_nothing_up(damage, tmp_path):
    for name, text in damage.items():
        (tmp_path / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    card = card_of(tmp_path)
    assert head_of(card).keys() == {"library_name", "pipeline_tag", "tags"}
    assert "## Scores" not in card and "None" not in card


def test_the_card_names_what_differs(tmp_path):
    assert "LayerNorm's epsilon is 1e-05 in MarianMTModel, which has no setting for it, and 1e-06" in card_of(tmp_path)
    assert "LayerNorm's epsilon is 1e-05 in both" in card_of(tmp_path, norm_epsilon=1e-5)
    assert "table of positions" not in card_of(tmp_path)
    assert "table of positions is in model.safetensors" in card_of(tmp_path, sinusoids="tensor2tensor")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ('source_language = "en"\ntarget_language = "de"', ("en", "de")),
        ('source_language = ""\ntarget_language = 7', (None, None)),
        ('target_language = "de"', (None, "de")),
        ("", (None, None)),
    ],
)
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "byte order mark"])
def test_languages_are_the_texts_that_the_configuration_names(data, expected, mark, tmp_path):
    (tmp_path / "config.toml").write_text(f"{mark}[data]\n{data}\n", encoding="utf-8")
    assert languages_of(RunFolder(tmp_path)) == Languages(*expected)


@pytest.mark.parametrize(
    ("told", "pair", "codes"),
    [
        (Told({"en": ""}, {"de": ""}), ("en", "de"), ["de", "en"]),
        (Told({}, {"deu": ">>deu<<", "fra": ">>fra<<"}, source_first="target"), (None, None), ["de", "fr"]),
    ],
)
def test_languages_that_the_run_itself_tells_win(told, pair, codes, tmp_path):
    (tmp_path / "config.toml").write_text('[data]\nsource_language = "x"\ntarget_language = "y"\n', encoding="utf-8")
    Inference(languages=told).save(tmp_path / "inference.json")
    assert languages_of(RunFolder(tmp_path)) == Languages(*pair) and all_codes(told) == codes
