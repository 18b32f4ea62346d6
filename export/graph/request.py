"""What a request may ask of the served graph: optional inputs, their defaults, and the bounds that the graph checks."""

import inspect
from collections.abc import Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.search.options import LAWS, OPTIONS, OUTPUT, TARGET_PREFIX, SearchOptions

LONGEST_SHOWN = 60  # characters of a text that a refusal shows


class Input(NamedTuple):
    """An optional input of rank 1: one value for the whole batch, or one per line."""

    name: str
    default: Any
    dtype: tf.DType
    lowest: float
    highest: float
    rule: str  # its name among the arrays of `keras_transformer/search/rules/table.py`
    help: str
    group: str  # on the page


PREFIX = Input("target_prefix", "", tf.string, 0, 0, "prefixes", TARGET_PREFIX, OUTPUT)
REQUIRED_HELP = "Phrases that a translation must have, one per line of this text."
REQUIRED = Input("required", "", tf.string, 0, 0, "required", REQUIRED_HELP, OUTPUT)
FORBIDDEN_HELP = "Words and phrases that no translation may have, one per line of this text; capitals do not count."
LANGUAGES = "Languages"  # the group on the page
SOURCE_LANGUAGE = Input(
    "source_language", "", tf.string, 0, 0, "", "The code of the language of the text, such as en.", LANGUAGES
)
TARGET_LANGUAGE = Input(
    "target_language", "", tf.string, 0, 0, "", "The code of the language to translate into, such as de.", LANGUAGES
)
TEXT = "Text"  # the group on the page, of inputs that `explain` does not have
FORBIDDEN = Input("forbidden", "", tf.string, 0, 0, "forbidden", FORBIDDEN_HELP, TEXT)


def inputs_of(options: SearchOptions, longest_output: int) -> list[Input]:
    """Return the numerical inputs of an export that was made with these SearchOptions: a request has them as defaults.

    An export has room for its own beam and its own longest output, so a request cannot ask for more.
    """
    highest = {
        "beam_size": options.beam_size,
        "n_best": options.beam_size,
        "min_length": longest_output,
        "max_length": longest_output,
    }
    inputs = []
    for option in OPTIONS.values():
        if not option.not_served:
            default, most = getattr(options, option.name), highest.get(option.name, option.highest)
            inputs.append(
                Input(
                    option.name,
                    most if default is None else default,
                    tf.int32 if option.is_whole else tf.float32,
                    option.lowest,
                    most,
                    option.rule,
                    option.help,
                    option.group,
                )
            )
    return inputs


def signature(
    function, required: list[tf.TensorSpec], optional: Sequence[Input] = ()
) -> tf.types.experimental.GenericFunction:
    """Return `function` as a signature with these inputs. TensorFlow Serving fills in an optional one that is missing.

    The defaults stand in the SavedModel; `tf.saved_model.load` in Python ignores them.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(spec.name, kind) for spec in required]
    parameters += [
        inspect.Parameter(each.name, kind, default=tf.constant([each.default], each.dtype)) for each in optional
    ]

    def call(*arguments, **named):
        return function(**dict(zip((parameter.name for parameter in parameters), arguments, strict=False)), **named)

    call.__dict__["__signature__"] = inspect.Signature(parameters)
    specs = [*required, *(tf.TensorSpec([None], each.dtype, name=each.name) for each in optional)]
    return tf.function(call, input_signature=specs, autograph=False)


def alpha_of(inputs: list[Input]) -> Input:
    """Return the input that is the exponent of the length penalty."""
    return next(each for each in inputs if each.name == "length_penalty")


def checked(given: Input, value, lines):
    """Return an input per line. The graph fails with a sentence if it has another length or is out of bounds.

    Shapes: value (1,) or (B,); lines int () is B -> (B,).
    """
    value = of_each_line(given.name, value, lines)
    is_valid = tf.reduce_all((value >= given.lowest) & (value <= given.highest))  # NaN is not
    message = f"{given.name} must be from {given.lowest} to {given.highest}."
    with tf.control_dependencies([tf.debugging.Assert(is_valid, [message, value])]):
        return tf.identity(value)


def agreeing(rules: dict) -> dict:
    """Return the rules, by name and each (B,). The graph fails with a sentence if two contradict each other in a line.

    What SearchOptions refuses, a request is refused too, and not searched in another way than it asked.
    """
    checks = []
    for law in LAWS:
        holds = law.holds(rules[OPTIONS[law.name].rule], rules[OPTIONS[law.other].rule])
        checks.append(tf.debugging.Assert(tf.reduce_all(holds), [law.sentence]))
    with tf.control_dependencies(checks):
        return {name: tf.identity(rule) for name, rule in rules.items()}


def shown(texts):
    """Return the first of some texts as a refusal shows it: string (N,) -> string (1,), or (0,) of none.

    If a refusal is not UTF-8, TensorFlow raises UnicodeDecodeError in its place, in Python.
    """
    return tf.strings.substr(tf.strings.unicode_transcode(texts[:1], "UTF-8", "UTF-8"), 0, LONGEST_SHOWN, "UTF8_CHAR")


def of_each_line(name: str, value, lines):
    """Return one value per line: (1,) or (B,) -> (B,)."""
    fits = (tf.size(value) == 1) | (tf.size(value) == lines)
    message = f"{name} must have one value, or one per line of text."
    with tf.control_dependencies([tf.debugging.Assert(fits, [message, tf.size(value), lines])]):
        return tf.broadcast_to(value, [lines])
