"""What a validation tells of a training that goes wrong: one sentence for each symptom that it shows."""

import collections
import math
from collections.abc import Iterator
from typing import Any

from .progress import Progress

FEW = 4  # different sentences: of fewer, half may well be translated alike
KNOWS_WHAT_COMES = 0.9  # share of tokens that are right, each after the reference up to it
TRANSLATES_NOTHING = 30.0  # chrF; two texts of one language that have nothing to do with each other have about 15


def symptoms(validation: Any, progress: Progress) -> Iterator[str]:
    """Yield a sentence on each symptom of a train.validation.validation.Validation; docs/trouble.md has causes."""
    if not progress.has_learned:
        yield (
            f"no step up to {progress.step} had a loss below that of guessing, ln(number of pieces): wait for the end "
            "of training.warmup_steps, or change the learning rate"
        )
    translation_of = {sample.source: sample.translation for sample in validation.samples}
    [(text, count)] = collections.Counter(translation_of.values()).most_common(1) or [("", 0)]
    if len(translation_of) >= FEW and 2 * count >= len(translation_of):
        yield (
            f"{count} of {len(translation_of)} different sentences have the translation {text!r:.60}: the decoder does "
            "not read the source yet. If the loss still falls, wait; else lower the learning rate, or take model.norm "
            '= "pre"'
        )
    chrf = validation.plotted().get("chrf", math.nan)
    if validation.token_accuracy > KNOWS_WHAT_COMES and chrf < TRANSLATES_NOTHING:
        yield (
            f"given the reference, {validation.token_accuracy:.0%} of its tokens are predicted, but translations have "
            f"chrF {chrf:.1f}: the model sees what it is to predict, as through a mask that leaks, or searches other "
            "than it was trained"
        )
