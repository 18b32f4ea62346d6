"""Shifted positions: one number per segment, of equal chances, that changes no distance, and none outside training."""

import keras
import numpy as np
import pytest

from keras_transformer.config import base
from keras_transformer.ground.errors import ConfigError
from keras_transformer.layers.shift import ShiftedPositions, shifted
from keras_transformer.masks import positions_in_segment
from keras_transformer.model import Transformer
from tests.support.models import as_numpy, batch_of, randomise

SEGMENTS = np.array([[1, 1, 1, 2, 2, 3, 0, 0], [1, 1, 2, 3, 4, 4, 4, 4]])
SMALL = base.replace(vocab_size=11, encoder_layers=1, decoder_layers=1, d_model=4, d_ff=6, num_heads=2, dropout=0.0)


def shifts_of(segments, most, seed):
    """What was added to each position."""
    positions = positions_in_segment(segments)
    return as_numpy(shifted(positions, segments, most, seed)) - as_numpy(positions)


def test_all_positions_of_a_segment_move_by_the_same_number_of_0_to_the_most():
    shifts = shifts_of(SEGMENTS, 5, (3, 7))
    for row, segments in zip(shifts, SEGMENTS, strict=True):
        for segment in set(segments) - {0}:
            assert len(set(row[segments == segment])) == 1
    assert shifts.min() >= 0 and shifts.max() <= 5


def test_segments_rows_and_seeds_move_by_other_numbers():
    drawn = {int(row[0]) for seed in range(5) for row in shifts_of(SEGMENTS, 10_000, (1, seed))}
    assert len(drawn) == 10
    first = shifts_of(SEGMENTS, 10_000, (1, 1))[0]
    assert len({first[0], first[3], first[5]}) == 3


def test_every_number_has_the_same_chance():
    segments = np.tile(np.arange(1, 129), (256, 1))  # 32,768 segments of one token
    counts = np.unique(shifts_of(segments, 3, (1, 2)), return_counts=True)[1]
    assert len(counts) == 4
    assert abs(counts - 8192).max() < 5 * np.sqrt(32_768 * 3 / 16)  # standard deviations of a count


def test_the_same_seed_moves_by_the_same_numbers():
    np.testing.assert_array_equal(shifts_of(SEGMENTS, 50, (4, 2)), shifts_of(SEGMENTS, 50, (4, 2)))


def test_the_layer_moves_positions_in_training_alone_each_time_by_others():
    layer, positions = ShiftedPositions(1000, seed=1), positions_in_segment(SEGMENTS)
    np.testing.assert_array_equal(as_numpy(layer(positions, SEGMENTS)), as_numpy(positions))
    first, second = (as_numpy(layer(positions, SEGMENTS, training=True)) for _ in range(2))
    assert (first != second).any() and (first >= as_numpy(positions)).all()


def test_a_layer_comes_back_from_its_config():
    layer = ShiftedPositions(9, seed=7, name="source_shift")
    restored = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
    assert restored.get_config() == layer.get_config()
    positions = positions_in_segment(SEGMENTS)
    moved = [as_numpy(each(positions, SEGMENTS, training=True)) for each in (layer, restored)]
    np.testing.assert_array_equal(*moved)


def test_a_model_computes_the_same_with_it_but_in_training():
    batch = batch_of([[([5, 6, 3], [0, 7, 8])], [([9, 3], [0, 4])]], 4, 4)
    plain, shifting = Transformer(SMALL), Transformer(SMALL.replace(shift_positions=500))
    randomise(plain)
    shifting.set_weights(plain.get_weights())
    np.testing.assert_array_equal(as_numpy(plain(batch)), as_numpy(shifting(batch)))
    in_training = [as_numpy(model(batch, training=True)) for model in (plain, shifting)]
    assert abs(in_training[0] - in_training[1]).max() > 1e-3


def test_a_shift_of_none_is_no_layer():
    assert not [layer for layer in Transformer(SMALL).layers if isinstance(layer, ShiftedPositions)]
    with pytest.raises(ValueError, match=r"most must be at least 1\. Received: most=0"):
        ShiftedPositions(0)


@pytest.mark.parametrize("positions", ["rotary", "relative", "alibi"])
def test_positions_that_tell_distances_alone_refuse_it(positions):
    with pytest.raises(ConfigError, match=f'"{positions}".*shift_positions is 3'):
        SMALL.replace(positions=positions, shift_positions=3)


@pytest.mark.parametrize("value", [-1, 1.5, True, "3"])
def test_a_shift_is_a_whole_number(value):
    with pytest.raises(ConfigError, match="model.shift_positions"):
        SMALL.replace(shift_positions=value)


def test_a_shift_beyond_every_learned_position_is_refused():
    learned = SMALL.replace(positions="learned", max_positions=8)
    assert learned.replace(shift_positions=7).shift_positions == 7
    with pytest.raises(ConfigError, match=r"model\.shift_positions is 8; it must be less than max_positions \(8\)"):
        learned.replace(shift_positions=8)
