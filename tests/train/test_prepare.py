"""From encoded text to batches: what the seed decides."""

import numpy as np
import pytest

from tests.support.training import TRAINING, copying_pairs
from train.data.encoding import EncodedShards
from train.data.prepare import packed_batches
from train.workers.tf_config import ONLY_WORKER


@pytest.mark.parametrize("shards", [1, 2])
def test_the_order_of_the_text_is_that_of_the_seed(shards):
    train = EncodedShards([copying_pairs()] * shards)
    first, same, other = (
        packed_batches(train, TRAINING.model_copy(update={"seed": seed}), shards, ONLY_WORKER).batch(0)["labels"]
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, same)
    assert (first != other).any()
