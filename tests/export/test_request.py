"""The bounds of a request's options: those of docs/serving.md, and as narrow as those of SearchOptions."""

import pytest

from export.graph.request import inputs_of
from keras_transformer.config import ConfigError
from keras_transformer.decoding.options import SearchOptions

EXPORTED, LONGEST_OUTPUT = SearchOptions(beam_size=5), 46
OPTIONS = {option.name: option for option in inputs_of(EXPORTED, LONGEST_OUTPUT)}


def test_the_bounds_are_those_of_the_document():
    assert {name: (option.lowest, option.highest) for name, option in OPTIONS.items()} == {
        "beam_size": (1, 5), "length_penalty": (0, 9), "n_best": (1, 5), "min_length": (1, 46), "max_length": (1, 46),
        "no_repeat_ngram_size": (0, 8), "repetition_penalty": (0.01, 100), "temperature": (0, 100),
        "top_k": (0, 2**31 - 1), "top_p": (0, 1), "seed": (-(2**31), 2**31 - 1),
    }  # fmt: skip


def searched_with(name, value):
    """SearchOptions in which one option has this value; those of drawing need a temperature."""
    return SearchOptions(**{"beam_size": EXPORTED.beam_size, "temperature": 1.0, name: value})


@pytest.mark.parametrize("name", OPTIONS)
def test_each_bound_is_allowed_in_a_search(name):
    for value in (OPTIONS[name].lowest, OPTIONS[name].highest):
        assert getattr(searched_with(name, value), name) == value


@pytest.mark.parametrize("name", OPTIONS)
def test_a_search_allows_no_value_below_and_none_above_if_it_has_a_limit(name):
    option = OPTIONS[name]
    step = 1 if isinstance(option.default, int) else 0.01
    with pytest.raises(ConfigError, match=name):
        searched_with(name, option.lowest - step)
    if name not in ("beam_size", "min_length", "max_length"):  # those of an export are narrower
        with pytest.raises(ConfigError, match=name):
            searched_with(name, option.highest + step)
