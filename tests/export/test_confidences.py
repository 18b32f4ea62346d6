"""Confidences in the graph are those of Python."""

import numpy as np
import pytest
import tensorflow as tf

from export.graph.confidences import Confidences, interpolated
from export.graph.served_graph import ServedGraph
from keras_transformer.runs.confidence import Calibration
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import Hypotheses
from keras_transformer.translation.translator import Translator
from tests.support.exports import asker
from tests.support.runs import SENTENCES

CURVE = Calibration((-3.0, -1.0, -0.5, -0.25), (0.1, 0.4, 0.4, 0.9), "a measure", 100)
OPTIONS = SearchOptions(beam_size=3, extra_length=6)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_interpolation_is_that_of_numpy(count):
    points, values = CURVE.points[:count], CURVE.confidences[:count]
    x = np.array([[-1e9, -4, -3, -2], [-1, -0.75, -0.3, 0.0]], np.float32)
    np.testing.assert_allclose(interpolated(tf.constant(x), points, values), np.interp(x, points, values), atol=1e-6)


@pytest.mark.parametrize("normalization", ["gnmt", "tokens"])
def test_a_confidence_is_that_of_python_whatever_the_length(normalization):
    options = SearchOptions(length_normalization=normalization)
    ids = np.array([[[5, 6, 2, 0], [5, 2, 0, 0]], [[7, 7, 7, 2], [0, 0, 0, 0]]], np.int32)
    scores = np.array([[-2.0, -1.0], [-3.0, NEVER]], np.float32)
    alpha = np.array([options.length_penalty, 0.2], np.float32)
    outputs = Confidences(CURVE, options)
    found = outputs.of_all(tf.constant(scores), tf.constant(ids), tf.constant(alpha))["confidences"].numpy()
    for row, column, tokens in ((0, 0, 3), (0, 1, 2), (1, 0, 4)):
        of_row = SearchOptions(length_normalization=normalization, length_penalty=float(alpha[row]))
        expected = CURVE.confidence(float(scores[row, column]), tokens, of_row)
        assert found[row, column] == pytest.approx(expected, abs=1e-6)
    assert found[1, 1] == 0.0
    hypotheses = Hypotheses(tf.constant(ids), tf.constant(scores), tf.zeros((2, 2), tf.bool))
    best = outputs.of_best(hypotheses)["confidence"].numpy()
    expected = [CURVE.confidence(float(scores[row, 0]), tokens, options) for row, tokens in ((0, 3), (1, 4))]
    np.testing.assert_allclose(best, expected, atol=1e-6)


def test_what_does_not_exist_has_no_confidence():
    """A hypothesis without tokens, and one that was never found, beside one that was."""
    ids = tf.constant([[[5, 2], [0, 0], [5, 2], [5, 2]]])
    scores = tf.constant([[-1.0, -1.0, NEVER, NEVER / 2]])
    found = Confidences(CURVE, OPTIONS).of_all(scores, ids, tf.constant([0.6]))["confidences"].numpy()
    assert found[0, 0] > 0 and found[0, 1:].tolist() == [0, 0, 0]


def test_without_a_calibration_there_is_no_output():
    outputs = Confidences(None, OPTIONS)
    assert (
        outputs.of_all(None, None, None) == outputs.of_best(None) == outputs.of_blank_line == outputs.of_nothing == {}
    )


@pytest.mark.nightly
def test_both_signatures_have_the_confidences_of_the_translator(pair):
    lines = [*SENTENCES[:4], " "]
    ask = asker(ServedGraph(*pair, OPTIONS, 40, calibration=CURVE))
    expected = Translator(*pair, OPTIONS, max_source_tokens=40, calibration=CURVE).translate(lines)
    found = ask("serving_default", lines)
    np.testing.assert_allclose(found["confidence"], [each.confidence for each in expected], atol=1e-4)
    found = ask("translate", lines, n_best=2, length_penalty=1.0)
    options = SearchOptions(beam_size=3, extra_length=6, n_best=2, length_penalty=1.0)
    for row, candidates in enumerate(
        Translator(*pair, options, max_source_tokens=40, calibration=CURVE).translate_n_best(lines[:4])
    ):
        confidences = [each.confidence for each in candidates]
        np.testing.assert_allclose(found["confidences"][row], [*confidences, 0.0], atol=1e-4)
    assert found["confidences"][4].tolist() == [0.0] * 3
