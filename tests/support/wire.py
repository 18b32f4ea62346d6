"""Two workers in one process: what the chief sends is kept, and the other one receives it afterwards."""

import tensorflow as tf

from train.workers.tf_config import Worker
from train.workers.workers import Workers


class Wire:
    """Stands for the strategy: what the chief adds to each sum is kept for the other's same sum."""

    def __init__(self):
        self.sums = []

    def reduce(self, op, words, axis):
        assert op is tf.distribute.ReduceOp.SUM and axis is None
        self.sums.append(words)
        return words

    def of_the_other(self):
        wire, sums = Wire(), iter(self.sums)
        wire.reduce = lambda op, words, axis: words + next(sums)
        return Workers(wire, Worker(1, 2))
