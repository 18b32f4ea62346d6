"""Phrases that were forced on a model: told by a search without them, of doubtful lines alone."""

import numpy as np
import pytest
import tensorflow as tf

from export.server.forced import LOG_PROBABILITIES, run_forced, with_forced
from export.server.protection import FORCED, answered
from export.server.signature import Signature, Tensor
from keras_transformer.decoding.scores import NEVER
from keras_transformer.text.required import loss_allowed

FREE, ONE_WORD = -2.0, loss_allowed(["a"])
SIGNATURE = Signature(
    "translate",
    {name: Tensor(name, tf.string, (None,)) for name in ("text", "required")},
    {LOG_PROBABILITIES: Tensor("graph", tf.float32, (None, 3))},
    {},
)


def column(*values):
    array = np.empty(len(values), object)
    array[:] = [value.encode() for value in values]
    return array


def asked_of(texts, required, outputs=("scores", FORCED)):
    """The outputs, and the lines of each search; the text of a line is the log-probability that it has with phrases."""
    asked = []

    def compute(names, inputs):
        asked.append(inputs["text"].tolist())
        must = inputs["required"].tolist() * (len(inputs["text"]) if len(inputs["required"]) == 1 else 1)
        best = [float(text) if phrases else FREE for text, phrases in zip(inputs["text"], must, strict=True)]
        log_probs = np.array([[each, each - 1, NEVER] for each in best])
        return {name: log_probs if name == LOG_PROBABILITIES else np.zeros(len(best)) for name in names}

    return run_forced(compute, outputs, {"text": column(*texts), "required": column(*required)}), asked


def test_a_translation_is_forced_if_its_phrases_cost_more_than_they_may_by_word():
    far, near, likely = FREE - ONE_WORD - 0.5, FREE - ONE_WORD + 0.5, FREE - 1
    texts = list(map(str, (far, near, likely, far, far)))
    found, asked = asked_of(texts, ["a", "a", "a", "a b", ""])
    assert found[FORCED].tolist() == [[True, True, False], [False, True, False], *[[False] * 3] * 3]
    assert list(found) == ["scores", FORCED] and asked[1:] == [[texts[0].encode(), texts[1].encode()]]
    single, asked = asked_of(texts[:2], ["a"], (FORCED, LOG_PROBABILITIES))
    assert single[FORCED].tolist() == found[FORCED].tolist()[:2] and len(asked) == 2
    assert len(asked_of(texts[2:3], ["a"])[1]) == 1


@pytest.mark.parametrize(("name", "is_there"), [("translate", True), ("explain", False)])
def test_a_signature_of_phrases_has_the_output_and_answers_it_if_phrases_are_asked_for(name, is_there):
    signature = with_forced(SIGNATURE._replace(name=name))
    assert signature.outputs.get(FORCED) == (Tensor("", tf.bool, (None, 3)) if is_there else None)
    assert with_forced(SIGNATURE._replace(inputs={})).outputs == SIGNATURE.outputs
    for required, is_named, names in (("", False, ("x",)), ("a", False, ("x", FORCED)), ("", True, ("x", FORCED))):
        assert answered(("x", FORCED), {"required": column(required)}, is_named) == names
