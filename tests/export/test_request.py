"""The bounds of a request's options: those of docs/serving.md, and as narrow as those of SearchOptions."""

import inspect
import itertools

import pytest
import tensorflow as tf

from export.graph.request import FORBIDDEN, PREFIX, REQUIRED, agreeing, checked, inputs_of, of_each_line, signature
from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.batching import LONGEST_SOURCE
from keras_transformer.search.options import LAWS, SearchOptions
from keras_transformer.search.options import OPTIONS as TABLE
from tests.support.places import ROOT

PAGE = ROOT / "docs" / "serving.md"
EXPORTED, LONGEST_OUTPUT = SearchOptions(beam_size=5), 46
OPTIONS = {option.name: option for option in inputs_of(EXPORTED, LONGEST_OUTPUT)}


def documented(*head):
    """The rows of the table in docs/serving.md that has this head."""
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    begin = lines.index(f"| {' | '.join(head)} |") + 2
    return list(itertools.takewhile(lambda line: line.startswith("|"), lines[begin:]))


def test_the_document_has_the_options_of_an_export_with_the_defaults_of_its_command():
    """If this fails, its message has the lines that belong there."""
    exported = inputs_of(SearchOptions(), LONGEST_SOURCE + SearchOptions.extra_length)
    rows = [f"| `{one.name}` | {one.default} | {one.lowest} to {one.highest} | {one.help} |" for one in exported]
    assert documented("option", "default", "bounds", "meaning") == [
        *rows,
        f'| `target_prefix` | "" | | {PREFIX.help} |',
        f'| `required` | "" | | {REQUIRED.help} |',
        f'| `forbidden` | "" | | {FORBIDDEN.help} |',
    ]


def test_the_document_has_the_options_that_no_request_can_ask_for_with_the_reason():
    options = [option for option in TABLE.values() if option.not_served]
    rows = [f"| `{option.name}` | {option.help} | {option.not_served} |" for option in options]
    assert documented("option of the export", "meaning", "why no request can ask for it") == rows


def test_a_request_cannot_ask_for_more_than_the_export_has_room_for():
    highest = {name: option.highest for name, option in OPTIONS.items()}
    narrower = {"beam_size": 5, "n_best": 5, "min_length": 46, "max_length": 46}
    assert highest == {name: TABLE[name].highest for name in highest} | narrower
    assert {name: option.lowest for name, option in OPTIONS.items()} == {name: TABLE[name].lowest for name in OPTIONS}


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


def test_the_graph_takes_the_bounds_of_an_input_and_nothing_beyond():
    beam_size = OPTIONS["beam_size"]
    assert checked(beam_size, tf.constant([1, 5]), 2).numpy().tolist() == [1, 5]
    for value in (0, 6):
        with pytest.raises(tf.errors.InvalidArgumentError, match="beam_size must be from 1 to 5"):
            checked(beam_size, tf.constant([value]), 2)


HARMLESS = {"n_best": 1, "beam_size": 4, "min_length": 0, "max_length": 9, "top_k": 0, "top_p": 1.0, "temperature": 0.0}
CONTRADICTIONS = {"n_best": (5, 4), "min_length": (9, 8), "top_k": (5, 0.0), "top_p": (0.5, 0.0)}


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.name)
def test_what_contradicts_itself_in_one_line_is_refused_with_the_sentence_of_search_options(law):
    rules = {TABLE[name].rule: tf.constant([value] * 2) for name, value in HARMLESS.items()}
    found = agreeing(rules)
    assert {name: values.numpy().tolist() for name, values in found.items()} == {
        name: values.numpy().tolist() for name, values in rules.items()
    }
    for name, value in zip((law.name, law.other), CONTRADICTIONS[law.name], strict=True):
        rules[TABLE[name].rule] = tf.constant([HARMLESS[name], value])  # the second line alone
    with pytest.raises(tf.errors.InvalidArgumentError, match=law.sentence):
        agreeing(rules)


def test_a_value_holds_for_every_line_or_there_is_one_per_line():
    for values, lines, expected in (([7], 3, [7, 7, 7]), ([7, 8, 9], 3, [7, 8, 9]), ([7], 1, [7]), ([7], 0, [])):
        assert of_each_line("beam_size", tf.constant(values), lines).numpy().tolist() == expected
    for values, lines in (([7, 8], 3), ([7, 8, 9, 9], 3), ([], 3), ([7, 8], 1)):
        with pytest.raises(tf.errors.InvalidArgumentError, match="beam_size must have one value, or one per line"):
            of_each_line("beam_size", tf.constant(values, tf.int32), lines)


def test_whole_numbers_are_integers_and_every_option_has_the_default_of_the_export():
    for name, option in OPTIONS.items():
        default = getattr(EXPORTED, name)
        assert option.dtype is (tf.int32 if TABLE[name].is_whole else tf.float32)
        assert option.default == (option.highest if default is None else default) and option.rule == TABLE[name].rule


def test_a_signature_hands_each_input_on_by_its_name_and_has_the_defaults():
    function = signature(
        lambda **given: given, [tf.TensorSpec([None], tf.string, "text")], [OPTIONS["beam_size"], PREFIX]
    )
    found = function(text=tf.constant(["a"]), beam_size=tf.constant([3]), target_prefix=tf.constant(["p"]))
    assert {name: value.numpy().tolist() for name, value in found.items()} == {
        "text": [b"a"],
        "beam_size": [3],
        "target_prefix": [b"p"],
    }
    parameters = inspect.signature(function.python_function).parameters
    assert list(parameters) == ["text", "beam_size", "target_prefix"]
    assert [parameters[name].default.numpy().tolist() for name in ("beam_size", "target_prefix")] == [[5], [b""]]
