"""Laws of confidences: a rising curve between 0 and 1 that is fitted to shares, and how well it fits."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from keras_transformer.ground.errors import InputError
from keras_transformer.runs.confidence import (
    FEWEST_IN_GROUP,
    Calibration,
    calibration_of,
    expected_calibration_error,
    fitted,
    isotonic,
    reliability,
    score_per_token,
)
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.translator import Translator
from tests.support.runs import SENTENCES, random_run

CURVE = Calibration((-2.0, -1.0, -0.5), (0.1, 0.4, 0.9), "sentence chrF of at least 60", 100)
PLAIN = SearchOptions(length_penalty=0.0)
numbers = st.lists(st.floats(0, 1), min_size=1, max_size=8)


def test_a_confidence_lies_on_the_line_between_two_points_and_level_beyond_them():
    confidences = [CURVE.confidence(score, 1, PLAIN) for score in (-9.0, -2.0, -1.5, -0.75, -0.5, 0.0)]
    assert confidences == pytest.approx([0.1, 0.1, 0.25, 0.65, 0.9, 0.9])
    assert CURVE.confidence(0.0, 0, PLAIN) == 1.0  # of nothing


def test_a_curve_may_be_level_and_reach_0_and_1_and_its_points_rise():
    for confidences in ((0.0, 0.5, 0.5), (0.3, 0.3, 1.0)):
        CURVE._replace(confidences=confidences).check()
    for wrong in (
        {"confidences": (0.1, 0.4, 0.3)},
        {"confidences": (-0.1, 0.4, 0.5)},
        {"confidences": (0.1, 0.4, 1.1)},
    ):
        with pytest.raises(ValueError, match="its confidences fall, or are not between 0 and 1"):
            CURVE._replace(**wrong).check()
    for points in ((-2.0, -2.0, -0.5), (-2.0, -1.0, -1.5), (-2.0, -1.0, math.inf)):
        with pytest.raises(ValueError, match="its points do not rise"):
            CURVE._replace(points=points).check()


@pytest.mark.parametrize("options", [SearchOptions(length_penalty=0.6), SearchOptions(length_normalization="tokens")])
def test_the_score_per_token_is_the_log_probability_over_the_tokens(options):
    log_probability, tokens = -6.0, 7
    divisor = (12 / 6) ** 0.6 if options.length_normalization == "gnmt" else 7**options.length_penalty
    assert score_per_token(log_probability / divisor, tokens, options) == pytest.approx(-6 / 7)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # of a busy machine, which says nothing of it
@given(numbers, st.randoms())
def test_isotonic_numbers_rise_keep_the_sum_and_are_the_closest(values, random):
    """Pooled neighbours are the projection on rising numbers: no step towards any rising numbers brings them closer."""
    weights = [random.choice([1, 2, 5]) for _ in values]
    rising = np.array(isotonic(values, weights))
    assert (np.diff(rising) >= 0).all()
    assert np.dot(weights, rising) == pytest.approx(np.dot(weights, values))
    other = np.sort([random.random() for _ in values])
    towards = np.sum(np.array(weights) * (np.array(values) - rising) * (other - rising))
    assert towards <= 1e-9


def test_isotonic_numbers_are_those_of_scipy():
    scipy = pytest.importorskip("scipy.optimize", reason="SciPy is an oracle that nothing else needs")
    generator = np.random.default_rng(1)
    values, weights = generator.random(50), generator.integers(1, 9, 50)
    expected = scipy.isotonic_regression(values, weights=weights).x
    np.testing.assert_allclose(isotonic(values, weights), expected, atol=1e-12)


@given(st.lists(st.tuples(st.floats(-20, 0), st.booleans()), min_size=1, max_size=300))
def test_a_fit_rises_and_stays_within_0_and_1(pairs):
    scores, is_good = zip(*pairs, strict=True)
    calibration = fitted(scores, is_good, "a measure")
    calibration.check()
    assert 0 < min(calibration.confidences) and max(calibration.confidences) < 1
    confidences = [calibration.confidence(score, 1, PLAIN) for score in sorted(scores)]
    assert all(low <= high for low, high in itertools.pairwise(confidences))


def test_a_fit_finds_the_shares_that_it_was_drawn_from():
    generator = np.random.default_rng(2)
    scores = generator.uniform(-3, 0, 20_000)
    chances = 1 / (1 + np.exp(-3 * (scores + 1.5)))
    calibration = fitted(scores, generator.random(20_000) < chances, "a measure")
    fresh = generator.uniform(-3, 0, 20_000)
    confidences = [calibration.confidence(score, 1, PLAIN) for score in fresh]
    np.testing.assert_allclose(confidences, 1 / (1 + np.exp(-3 * (fresh + 1.5))), atol=0.06)
    is_good = generator.random(20_000) < 1 / (1 + np.exp(-3 * (fresh + 1.5)))
    assert expected_calibration_error(reliability(confidences, is_good)) < 0.02


def test_a_few_sentences_are_one_group_with_laplaces_share():
    calibration = fitted([-1.0, -2.0, -3.0], [True, True, False], "a measure")
    assert calibration == Calibration((-2.0,), (3 / 5,), "a measure", 3)
    two = fitted(range(-2 * FEWEST_IN_GROUP, 0), [False] * FEWEST_IN_GROUP + [True] * FEWEST_IN_GROUP, "a measure")
    assert two.confidences == pytest.approx((1 / 27, 26 / 27))


def test_reliability_compares_confidence_and_share_by_bin():
    rows = reliability([0.05, 0.75, 0.7, 1.0], [False, True, False, True])
    assert [row.sentences for row in rows] == [1, 0, 0, 0, 0, 0, 0, 2, 0, 1]
    assert (rows[7].confidence, rows[7].good) == pytest.approx((0.725, 0.5))
    assert expected_calibration_error(rows) == pytest.approx((0.05 + 2 * 0.225 + 0.0) / 4)
    assert rows[1].as_json() == {"low": 0.1, "high": 0.2, "sentences": 0, "confidence": None, "good": None}


def test_a_file_gives_back_what_was_saved(tmp_path):
    CURVE.save(tmp_path / "calibration.json")
    assert Calibration.load(tmp_path / "calibration.json") == CURVE


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": [-1.0, -2.0, -0.5]},
        {"points": [-1.0, -1.0, -0.5]},
        {"points": [-1.0]},
        {"points": []},
        {"points": ["a", "b", "c"]},
        {"points": [-1.0, -0.5, 10**400]},
        {"confidences": [0.1, 0.4, 1.5]},
        {"confidences": [0.4, 0.1, 0.9]},
        {"confidences": [0.1, float("nan"), 0.9]},
        {"measures": "one key too many"},
    ],
)
def test_a_damaged_file_is_named_in_a_sentence(tmp_path, wrong):
    path = tmp_path / "calibration.json"
    path.write_text(json.dumps(CURVE._asdict() | wrong), encoding="utf-8")
    with pytest.raises(InputError, match=f"{path} is damaged: .*Remove it, or run"):
        Calibration.load(path)


@pytest.mark.usefixtures("eager")
def test_a_calibrated_run_gives_confidences_and_another_one_none(random_folder, tmp_path):
    folder = RunFolder(random_run(tmp_path / "run"))
    options = SearchOptions(beam_size=2, n_best=2, extra_length=2)
    lines = [*SENTENCES[0].split()[:2], ""]
    plain = Translator.load(folder.path, options).translate_n_best(lines)
    assert {each.confidence for candidates in plain for each in candidates} == {None}
    CURVE.save(folder.calibration)
    calibrated = Translator.load(folder.path, options).translate_n_best(lines)
    for with_confidence, without in zip(calibrated, plain, strict=True):
        assert [each._replace(confidence=None) for each in with_confidence] == without
        for each in with_confidence:
            assert each.confidence == CURVE.confidence(each.score, len(each.ids), options)
    assert calibrated[2][0].confidence == 1.0
    assert Translator.load([folder.path, random_folder], options).translate(lines)[0].confidence is None


def test_a_calibration_of_other_weights_does_not_count(tmp_path, caplog):
    folder = RunFolder(tmp_path)
    folder.weights.write_bytes(b"weights")
    CURVE._replace(weights="of others").save(folder.calibration)
    assert calibration_of(folder) is None and "calibrate` again" in caplog.text


def test_a_file_that_cannot_be_read_and_a_calibration_of_nothing_are_refused(tmp_path):
    with pytest.raises(InputError, match=f"^{tmp_path} cannot be read: Is a directory.$"):
        Calibration.load(tmp_path)
    with pytest.raises(ValueError, match="at least one sentence"):
        fitted([], [], "measure")
