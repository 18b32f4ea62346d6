"""The kinds of outputs, and how each is scored."""

from keras_transformer.runs.inference import TEXT, TREES

from .scored import Scored
from .scored_text import ScoredText
from .scored_trees import ScoredTrees

SCORED: dict[str, type[Scored]] = {TEXT: ScoredText, TREES: ScoredTrees}
