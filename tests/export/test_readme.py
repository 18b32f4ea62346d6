"""The README.md of a CTranslate2 model: its Python searches with the options of the export."""

import ast
import re

import pytest

from export.ctranslate2.readme import readme
from keras_transformer.decoding.options import SearchOptions


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
