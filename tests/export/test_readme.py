"""The README.md of a CTranslate2 and of a LiteRT model: its Python searches with the options of the export."""

import ast
import re
import types

import pytest

from export.ctranslate2.readme import readme
from export.litert.readme import readme as readme_of_litert
from keras_transformer.runs.lite_folder import Room
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import length_penalty


def search_of(text):
    """The arguments of translate_batch, by name."""
    [code] = re.findall(r"```python\n(.+?)```", text, re.DOTALL)
    [call] = re.findall(r"translate_batch\(sources, (.+)\)\n", code)
    return {keyword.arg: keyword.value.value for keyword in ast.parse(f"f({call})").body[0].value.keywords}


@pytest.mark.parametrize(
    ("max_source_tokens", "positions", "source", "output"), [(20, 100, 20, 27), (100, 100, 100, 100), (200, 50, 50, 50)]
)
def test_lengths_are_bounded_by_the_export_and_by_the_table_of_positions(max_source_tokens, positions, source, output):
    text = readme(
        "model", "4.8.5", ["tokenizer.model"], SearchOptions(beam_size=3, extra_length=7), max_source_tokens, positions
    )
    search = search_of(text)
    assert (search["max_input_length"], search["max_decoding_length"]) == (source, output)
    assert search["beam_size"] == search["num_hypotheses"] == 3
    assert f"Positions in the table: {positions}." in text and "ends an output 7 tokens after" in text


def code_of(text):
    [code] = re.findall(r"```python\n(.+?)```", text, re.DOTALL)
    return code


RANKED = {  # log-probabilities whose best score is by a hair that of the third, of four tokens
    (normalization, alpha): [-1.001 * float(length_penalty(length, alpha, normalization)) for length in (1, 2)]
    + [-float(length_penalty(4, alpha, normalization)), -1.001 * float(length_penalty(10, alpha, normalization))]
    for normalization in ("gnmt", "tokens")
    for alpha in (0.0, 0.6, 2.0)
}


@pytest.mark.parametrize(("normalization", "alpha"), RANKED)
def test_the_hypothesis_that_is_chosen_is_that_with_the_best_score_of_the_run(normalization, alpha):
    """CTranslate2 gives the log-probability of pieces without EOS, which the length counts."""
    options = SearchOptions(beam_size=3, length_penalty=alpha, length_normalization=normalization)
    text = readme("model", "4.8.5", ["tokenizer.model"], options, 20, 100)
    search = search_of(text)
    assert (search["length_penalty"], search["min_decoding_length"], search["return_scores"]) == (0, 0, True)
    [line] = re.findall(r"^best = .+$", code_of(text), re.MULTILINE)
    hypotheses, log_probs = [["a"] * length for length in (0, 1, 3, 9)], RANKED[normalization, alpha]
    found = eval(
        line.removeprefix("best = "), {"results": [types.SimpleNamespace(hypotheses=hypotheses, scores=log_probs)]}
    )
    assert found == [hypotheses[2]]
    assert ("hypothesis by length^alpha" in text) is (normalization == "tokens")


@pytest.mark.parametrize("models", [["tokenizer.model"], ["source.spm", "target.spm"]])
def test_the_tokenizer_is_opened_from_the_files_of_the_model(models):
    text = readme("mine", "4.8.5", models, SearchOptions(), 20, 100)
    assert re.findall(r'model_file="mine/(.+?)"', code_of(text)) == models
    assert text.startswith("# mine\n") and "CTranslate2 4.8.5, with " in text
    ast.parse(code_of(text))


@pytest.mark.parametrize(("quantization", "weights"), [(None, "float32"), ("int8", "weights of 8-bit integers")])
def test_a_litert_model_is_asked_by_its_first_signature_and_all_are_in_the_table(quantization, weights):
    rooms = (Room(1, 32), Room(1, 16, 20), Room(8, 16, 20))
    text = readme_of_litert("mine", SearchOptions(beam_size=3), iter(rooms), quantization)
    assert f"builtin operations, {weights}: ids in" in text and text.startswith("# mine\n")
    code = code_of(text)
    assert 'get_signature_runner("translate_1x32")' in code and "[: 32 - 1] + [3]" in code and "(32 - len(ids))" in code
    assert all(f"`{name}`" in text for name in ("source_ids", "n_best", "ids", "scores", "is_cut", "is_done"))
    assert len(re.findall(r"\(rows, 3[,)]", text)) == 4  # a beam of 3
    assert re.findall(r"^\| `(.+)` \| (\d+) \| (\d+) \| (\w+) \|$", text, re.MULTILINE) == [
        ("translate_1x32", "1", "32", "any"),
        ("translate_1x16_to_20", "1", "16", "20"),
        ("translate_8x16_to_20", "8", "16", "20"),
    ]
