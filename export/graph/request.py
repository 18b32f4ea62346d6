"""What a request may ask of the served graph: optional inputs, their defaults, and the bounds that the graph checks."""

import inspect
from typing import Any, NamedTuple

import tensorflow as tf

from keras_transformer.config import LIMITS, SearchOptions


class Option(NamedTuple):
    """An optional input of rank 1: one value for the whole batch, or one per line."""

    name: str
    default: Any
    dtype: tf.DType
    lowest: float
    highest: float
    rule: str  # its name in `keras_transformer/decoding/rules.py`


PREFIX = Option("target_prefix", "", tf.string, 0, 0, "prefixes")  # the text with which the translation begins


def options_of(options: SearchOptions, longest_output: int) -> list[Option]:
    """Return the numerical options of an export that was made with these SearchOptions."""
    whole, real = tf.int32, tf.float32
    return [
        Option("beam_size", options.beam_size, whole, 1, options.beam_size, "beam_sizes"),
        Option("length_penalty", options.length_penalty, real, *LIMITS["length_penalty"], "length_penalties"),
        Option("n_best", 1, whole, 1, options.beam_size, "n_best"),
        Option("min_length", 1, whole, 1, longest_output, "min_lengths"),
        Option("max_length", longest_output, whole, 1, longest_output, "limits"),
        Option("no_repeat_ngram_size", 0, whole, *LIMITS["no_repeat_ngram_size"], "no_repeat_ngram_sizes"),
        Option("repetition_penalty", 1.0, real, *LIMITS["repetition_penalty"], "repetition_penalties"),
        Option("temperature", 0.0, real, *LIMITS["temperature"], "temperatures"),
        Option("top_k", 0, whole, *LIMITS["top_k"], "top_ks"),
        Option("top_p", 1.0, real, *LIMITS["top_p"], "top_ps"),
        Option("seed", 0, whole, *LIMITS["seed"], "seeds"),
    ]


def signature(
    function, required: list[tf.TensorSpec], optional: list[Option] = ()
) -> tf.types.experimental.GenericFunction:
    """Return `function` as a signature with these inputs. TensorFlow Serving fills in an optional one that is missing.

    The defaults stand in the SavedModel; `tf.saved_model.load` in Python ignores them.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(spec.name, kind) for spec in required]
    parameters += [
        inspect.Parameter(option.name, kind, default=tf.constant([option.default], option.dtype)) for option in optional
    ]

    def call(*arguments, **named):
        return function(**dict(zip((parameter.name for parameter in parameters), arguments, strict=False)), **named)

    call.__signature__ = inspect.Signature(parameters)
    specs = [*required, *(tf.TensorSpec([None], option.dtype, name=option.name) for option in optional)]
    return tf.function(call, input_signature=specs, autograph=False)


def alpha_of(options: list[Option]) -> Option:
    """Return the option that is the exponent of the length penalty."""
    return next(option for option in options if option.name == "length_penalty")


def checked(option: Option, value, lines):
    """Return an option per line. The graph fails with a sentence if it has another length or is out of bounds.

    Shapes: value (1,) or (B,); lines int () is B -> (B,).
    """
    value = of_each_line(option.name, value, lines)
    is_valid = tf.reduce_all((value >= option.lowest) & (value <= option.highest))  # NaN is not
    message = f"{option.name} must be from {option.lowest} to {option.highest}."
    with tf.control_dependencies([tf.debugging.Assert(is_valid, [message, value])]):
        return tf.identity(value)


def agreeing(rules: dict) -> dict:
    """Return the rules, by name and each (B,). The graph fails with a sentence if two contradict each other in a line.

    What SearchOptions refuses, a request is refused too, and not searched in another way than it asked.
    """
    draws = rules["temperatures"] > 0
    laws = {
        "n_best must not exceed beam_size.": rules["n_best"] <= rules["beam_sizes"],
        "min_length must not exceed max_length.": rules["min_lengths"] <= rules["limits"],
        "top_k needs a temperature above 0, without which nothing is drawn.": draws | (rules["top_ks"] == 0),
        "top_p needs a temperature above 0, without which nothing is drawn.": draws | (rules["top_ps"] == 1.0),
    }
    checks = [tf.debugging.Assert(tf.reduce_all(holds), [law]) for law, holds in laws.items()]
    with tf.control_dependencies(checks):
        return {name: tf.identity(rule) for name, rule in rules.items()}


def of_each_line(name: str, value, lines):
    """Return one value per line: (1,) or (B,) -> (B,)."""
    fits = (tf.size(value) == 1) | (tf.size(value) == lines)
    message = f"{name} must have one value, or one per line of text."
    with tf.control_dependencies([tf.debugging.Assert(fits, [message, tf.size(value), lines])]):
        return tf.broadcast_to(value, [lines])
