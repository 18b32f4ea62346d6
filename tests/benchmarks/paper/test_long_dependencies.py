"""Long dependencies: the tasks ask for what stands far away, the encoders are alike but for their kind, runs go on."""

import numpy as np
import pytest

from benchmarks.paper.dependencies.encoders import KINDS, inputs_of, model_of, parameters_of
from benchmarks.paper.dependencies.report import reach
from benchmarks.paper.dependencies.tasks import ASKED, KEYS, VALUES, VOCABULARY, rows_of
from benchmarks.trials.sizes import MOST_APART
from tests.support.models import as_numpy, randomise

every_distance = pytest.mark.parametrize("distance", [4, 8, 100])
every_task = pytest.mark.parametrize("task", VOCABULARY)


@every_task
@every_distance
def test_rows_have_the_length_and_the_words_of_their_task(task, distance):
    ids, answers = rows_of(task, distance, 50, seed=1)
    assert ids.shape == (50, distance + ASKED) and answers.shape == (50, ASKED)
    assert ids.min() >= 0 and ids.max() < VOCABULARY[task]
    assert set(np.unique(answers)) == set(range(VALUES))
    again, other = rows_of(task, distance, 50, seed=1), rows_of(task, distance, 50, seed=2)
    assert (again.ids == ids).all() and (again.answers == answers).all()
    assert (other.answers != answers).any()


@every_distance
def test_copy_asks_for_the_word_that_stands_the_distance_before(distance):
    ids, answers = rows_of("copy", distance, 20, seed=1)
    assert (answers == ids[:, -ASKED - distance : -distance]).all()
    assert (ids[:, ASKED:] >= VALUES).all()  # and nowhere else
    assert (ids[:, -ASKED:] == 2 * VALUES + np.arange(ASKED)).all()


@every_distance
def test_lookup_asks_for_the_value_of_a_key_that_is_there_once(distance):
    ids, answers = rows_of("lookup", distance, 20, seed=1)
    keys, values = np.divmod(ids[:, :-ASKED], VALUES)
    for row in range(20):
        for question, answer in zip(ids[row, -ASKED:] - KEYS * VALUES, answers[row], strict=True):
            [place] = np.flatnonzero(keys[row] == question)
            assert place < ASKED and values[row, place] == answer


def test_the_keys_are_not_asked_for_in_the_order_of_the_pairs():
    ids, _ = rows_of("lookup", 8, 200, seed=1)
    is_in_order = (ids[:, :ASKED] // VALUES == ids[:, -ASKED:] - KEYS * VALUES).all(axis=1)
    assert 0 < is_in_order.mean() < 0.15  # 1 / 4! = 0.04


@pytest.fixture(scope="module")
def models():
    return {kind: randomise(model_of(kind, "copy")) for kind in KINDS}


@pytest.mark.slow
def test_all_kinds_have_about_equally_many_parameters(models):
    counts = [model.count_params() for model in models.values()]
    assert max(counts) <= (1 + MOST_APART) * min(counts)


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_counted_without_a_model(models, kind):
    assert parameters_of(kind, "copy") == models[kind].count_params()


@pytest.mark.parametrize("kind", KINDS)
def test_a_stack_sees_as_far_as_the_report_says(models, kind):
    ids, _ = rows_of("copy", 36, 1, seed=1)
    before, last = as_numpy(models[kind](inputs_of(ids)))[0, -1], ids.shape[1] - 1
    changed = np.repeat(ids, last, axis=0)
    changed[np.arange(last), np.arange(last)] = (changed[np.arange(last), np.arange(last)] + 1) % VALUES
    logits = as_numpy(models[kind](inputs_of(changed)))[:, -1]
    seen = np.flatnonzero(np.abs(logits - before).max(axis=-1) > 1e-7)
    expected = 0 if kind in ("self_attention", "recurrent") else last - reach(kind)
    assert seen.min() == expected
