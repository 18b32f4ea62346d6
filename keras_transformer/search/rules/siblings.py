"""The rule `sibling_penalties` of a search, which makes hypotheses differ: gamma of Li et al. 2016."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.search.rules.rule import Rule, of_each
from keras_transformer.search.scores import NEVER


class SiblingPenalties(NamedTuple("SiblingPenalties", [("sibling_penalties", Any)]), Rule):  # float32 (B,)
    def ranked(self, log_probs):
        """Return log P - gamma (rank - 1), with the rank of a continuation among its siblings.

        Shapes: log_probs float32 (B, K, N), best first; the same is returned.
        """
        is_possible = ops.cast(log_probs > NEVER / 2, "float32")
        better = ops.cumsum(is_possible, axis=2) - is_possible
        return log_probs - of_each(self.sibling_penalties) * better
