"""What a search found for a sentence, as texts; importing this module imports neither TensorFlow nor Keras."""

from collections.abc import Callable, Iterable

import numpy as np

from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation

Confidence = Callable[[float, int], float | None]  # from a score and a number of tokens, EOS included


def translations_in(
    tokenizer: Tokenizer,
    ids: np.ndarray,
    scores: np.ndarray,
    is_cut: np.ndarray,
    is_forced: np.ndarray,
    filled: Iterable[int],
    confidence: Confidence,
) -> list[Translation]:
    """Return the hypotheses of a sentence as Translations with different texts, best first.

    Shapes: ids (K, L), scores (K,), best first, is_cut and is_forced (K,); `filled`: the rows that hold an output.
    """
    rows = different_outputs(tokenizer, ids, filled).items()
    return [
        Translation(text, score, tokens, bool(is_cut[row]), (), confidence(score, len(tokens)), bool(is_forced[row]))
        for text, row in rows
        for score, tokens in [(float(scores[row]), tokens_of(ids[row]))]
    ]


def different_outputs(tokenizer: Tokenizer, ids: np.ndarray, filled: Iterable[int]) -> dict[str, int]:
    """Return the texts of the outputs of a sentence, best first, each with the row of the best output that has it.

    Shapes: ids (K, L), best first; `filled`: the rows that hold an output.
    """
    rows = {}
    for row in filled:
        rows.setdefault(tokenizer.decode(tokens_of(ids[row])), int(row))
    return rows


def tokens_of(ids: np.ndarray) -> tuple[int, ...]:
    """Return the tokens of a row, without PAD."""
    return tuple(ids[ids != PAD].tolist())
