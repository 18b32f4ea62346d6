"""What a line asks of its search, in the fixed shapes of a signature of a LiteRT file."""

from collections.abc import Sequence

import numpy as np

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import PAD
from keras_transformer.runs.lite_folder import (
    ENDING_TOKENS,
    PHRASE_TOKENS,
    PHRASES,
    PREFIX_TOKENS,
    SEQUENCE_TOKENS,
    WAYS,
)
from keras_transformer.text.constraints import Constraints, rules_of


def fixed_rules(asked: Constraints) -> dict[str, np.ndarray]:
    """Return the inputs of a constrained signature for one line: see `lite_model`.

    Raises InputError if they have not enough room for what it asks. Of a longer sequence that must not come, its end
    must not.
    """
    asked = asked._replace(opening=())  # which every signature takes
    rules = rules_of([asked._replace(forbidden=tuple(tokens[-SEQUENCE_TOKENS:] for tokens in asked.forbidden))])
    shapes = {
        "prefixes": (1, PREFIX_TOKENS),
        "endings": (1, rules["endings"].shape[1], ENDING_TOKENS),
        "required": (1, PHRASES, WAYS, PHRASE_TOKENS),
    }
    if rules["endings"].shape[2] > ENDING_TOKENS:
        raise InputError(
            f"The prefix ends in a word of more than {ENDING_TOKENS} tokens, the most of a LiteRT model: let it end "
            "elsewhere."
        )
    if len(asked.phrases) > PHRASES or any(len(way) > PHRASE_TOKENS for each in asked.phrases for way in each.ways()):
        most = max(phrase.most_tokens for phrase in asked.phrases)
        raise InputError(
            f"A line has {len(asked.phrases)} phrases, the longest of {most} tokens; a LiteRT model takes at most "
            f"{PHRASES}, of {PHRASE_TOKENS - 1} tokens: give fewer or shorter ones."
        )
    fixed = {name: padded_to(rules[name], shape) for name, shape in shapes.items()}
    sequences = rules["forbidden"]  # PAD stands before the tokens
    missing = SEQUENCE_TOKENS - sequences.shape[2]
    return fixed | {"forbidden": np.pad(sequences, ((0, 0), (0, 1), (missing, 0)), constant_values=PAD)}


def padded_to(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return int32 of a larger shape, with PAD behind."""
    widths = [(0, size - there) for size, there in zip(shape, array.shape, strict=True)]
    return np.pad(array, widths, constant_values=PAD).astype(np.int32)
