"""Positions that act in self-attention: rotations and biases by hand, and the laws of a model that has them."""

import keras_hub
import numpy as np
import pytest

from keras_transformer.layers.attention import rotated
from keras_transformer.layers.positions import (
    POSITIONS,
    AlibiPositions,
    RelativePositions,
    RotaryPositions,
    alibi_slopes,
    bucket_of,
    rotation_of,
)
from keras_transformer.model import Transformer
from tests.support.models import SMALL, as_numpy, assert_close, normal, randomise
from tests.support.peers import needs

KINDS = {
    "rotary": SMALL.replace(positions="rotary"),
    "relative": SMALL.replace(positions="relative", relative_buckets=8, relative_distance=6),
    "alibi": SMALL.replace(positions="alibi"),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
PLACES = np.arange(4)[None]


def test_position_2_turns_3_4_by_two_radians():
    # and the slower pair, 1 0 at a hundredth of the angle: (cos 0.02, sin 0.02); channel i is paired with i + 2
    heads = np.array([[[[3.0, 1.0, 4.0, 0.0]]]], "float32")
    expected = [3 * np.cos(2) - 4 * np.sin(2), np.cos(0.02), 4 * np.cos(2) + 3 * np.sin(2), np.sin(0.02)]
    assert_close(rotated(heads, rotation_of(np.array([[2]]), 4))[0, 0, 0], expected)


def test_a_rotation_is_that_of_keras_hub():
    heads = normal(2, 3, 7, 8)
    theirs = keras_hub.layers.RotaryEmbedding(sequence_axis=2)(heads)
    assert_close(rotated(heads, RotaryPositions(8)(np.arange(7)[None])), theirs)


def test_the_score_of_rotated_vectors_depends_on_their_distance_alone():
    query, key = normal(1, 1, 1, 8), normal(1, 1, 1, 8, seed=1)

    def score(first, second):
        turned = (as_numpy(rotated(x, rotation_of(np.array([[n]]), 8))) for x, n in ((query, first), (key, second)))
        return np.sum(np.prod(list(turned), axis=0))

    assert score(3, 5) == pytest.approx(score(40, 42), abs=1e-4)
    assert abs(score(3, 5) - score(3, 6)) > 1e-2


def test_an_odd_width_cannot_be_rotated():
    with pytest.raises(ValueError, match="even"):
        RotaryPositions(5)


def test_the_buckets_of_distances_by_hand():
    # 8 buckets to a distance of 16, one direction: 0 to 3 alone, then 4 * 4^(n / 4): from 4, 5.7, 8 and 11.3 on
    assert [bucket_of(-d, 8, 16, False) for d in (-3, 0, 1, 3, 4, 5, 6, 8, 11, 12, 99)] == [
        0,
        0,
        1,
        3,
        4,
        4,
        5,
        6,
        6,
        7,
        7,
    ]
    # two directions: 4 buckets each, 0 and 1 alone, then from 2 and from 2 * 8^(1/2) = 5.7 on; later keys after 4
    assert [bucket_of(d, 8, 16, True) for d in (0, -1, -2, -5, -6, -99, 1, 2, 5, 6, 99)] == [
        0,
        1,
        2,
        2,
        3,
        3,
        5,
        6,
        6,
        7,
        7,
    ]


@pytest.mark.slow
@needs("transformers", "torch")
@pytest.mark.parametrize("bidirectional", [True, False])
def test_every_bucket_is_that_of_t5(bidirectional):
    import torch
    from transformers.models.t5.modeling_t5 import T5Attention

    distances = torch.arange(-300, 301)
    for buckets, longest in ((32, 128), (8, 20)):
        theirs = T5Attention._relative_position_bucket(distances, bidirectional, buckets, longest)
        layer = RelativePositions(1, buckets, longest, bidirectional)
        ours = layer.buckets[np.clip(distances.numpy(), -longest, longest) + longest]
        assert ours.tolist() == theirs.tolist()


def test_a_relative_bias_is_the_row_of_the_bucket_of_each_head():
    layer = RelativePositions(2, relative_buckets=4, relative_distance=3, bidirectional=False)
    layer.build((1, 3))
    layer.table.assign([[1.0, -1.0], [2.0, -2.0], [3.0, -3.0], [4.0, -4.0]])
    bias = as_numpy(layer(PLACES[:, :3]))
    assert bias[0, 0].tolist() == [[1, 1, 1], [2, 1, 1], [3, 2, 1]]
    assert_close(bias[0, 1], -bias[0, 0])


def test_the_slopes_of_alibi_are_those_of_the_paper():
    assert alibi_slopes(8) == [2.0**-n for n in range(1, 9)]
    assert alibi_slopes(16)[:3] == [2**-0.5, 2**-1, 2**-1.5]
    assert alibi_slopes(3) == [2**-4, 2**-8, 2**-2]
    assert alibi_slopes(1) == [2**-8]


@pytest.mark.slow
@needs("transformers", "torch")
@pytest.mark.parametrize("heads", [1, 2, 3, 6, 8, 12])
def test_the_bias_of_alibi_is_that_of_bloom_up_to_a_constant_of_the_query(heads):
    import torch
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    theirs = build_alibi_tensor(torch.ones(1, 4), heads, torch.float32).numpy()  # (h, 1, 4): of the last query
    ours = as_numpy(AlibiPositions(heads)(PLACES))[0]
    assert_close(ours[:, 3] - ours[:, 3, :1], theirs[:, 0] - theirs[:, 0, :1])


def test_alibi_is_minus_slope_times_distance_in_both_directions():
    bias = as_numpy(AlibiPositions(2)(PLACES[:, :3]))[0]
    assert_close(bias[0], -np.array([[0, 1, 2], [1, 0, 1], [2, 1, 0]]) / 16)


@pytest.mark.parametrize("layer", [RotaryPositions(4), RelativePositions(2, 8, 6, False), AlibiPositions(2)])
def test_one_step_gets_what_its_position_has_of_the_whole(layer):
    whole, step = as_numpy(layer(PLACES)), as_numpy(layer.at_step(3, PLACES))
    assert_close(step, whole[:, 3:] if layer.argument == "rotation" else whole[:, :, 3:])


@pytest.fixture(scope="module")
def models():
    return {kind: randomise(Transformer(config)) for kind, config in KINDS.items()}


@every_kind
def test_a_stack_has_one_table_for_all_its_blocks_and_the_memory_none(models, kind):
    paths = [weight.path for weight in models[kind].weights if "positions" in weight.path]
    sides = [f"{side}_positions/table" for side in ("source", "target")]
    assert sorted(paths) == (sides if kind == "relative" else [])
    if kind == "relative":
        assert [models[kind].get_layer(f"{side}_positions").bidirectional for side in ("source", "target")] == [
            True,
            False,
        ]


def test_every_kind_acts_in_one_place():
    assert {name: kind.argument for name, kind in POSITIONS.items()} == {
        "sinusoidal": None,
        "learned": None,
        "rotary": "rotation",
        "relative": "bias",
        "alibi": "bias",
    }
