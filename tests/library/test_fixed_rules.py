"""What a line asks of a LiteRT model has the room of its inputs, or is refused by one sentence."""

import numpy as np
import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import BOS, PAD
from keras_transformer.lite.fixed_rules import fixed_rules
from keras_transformer.pieces.prefixes import Prefix
from keras_transformer.runs.lite_folder import ENDING_TOKENS, PHRASE_TOKENS, PHRASES, SEQUENCE_TOKENS
from keras_transformer.text.constraints import NO_CONSTRAINTS, Constraints, rules_of
from keras_transformer.text.required import Phrase

TOKENS = tuple(range(10, 40))
LONGEST = Phrase("a", TOKENS[: PHRASE_TOKENS - 1], TOKENS[1:PHRASE_TOKENS], TOKENS[2 : PHRASE_TOKENS + 1])
FULL = Constraints(
    Prefix([5, 6], [TOKENS[:ENDING_TOKENS], (7,)]), (TOKENS[:SEQUENCE_TOKENS], (9,)), (LONGEST,) * PHRASES
)


@pytest.mark.parametrize(
    "asked",
    [NO_CONSTRAINTS, FULL, FULL._replace(phrases=(Phrase("b", (8,)),)), FULL._replace(forbidden=((9,), (8, 9)))],
)
def test_what_a_line_asks_is_all_there_and_the_rest_is_padding(asked):
    rules, fixed = rules_of([asked]), fixed_rules(asked)
    assert {name: array.shape[2:] for name, array in fixed.items()} == {
        "prefixes": (),
        "endings": (ENDING_TOKENS,),
        "forbidden": (SEQUENCE_TOKENS,),
        "required": (3, PHRASE_TOKENS),
    }
    for name, array in fixed.items():
        assert array.dtype == np.int32
        assert array[array != PAD].tolist() == rules[name][rules[name] != PAD].tolist()
    for row, of_rule in zip(fixed["forbidden"][0], rules["forbidden"][0], strict=False):
        assert row[-1] == of_rule[-1]  # padding stands before a sequence
    assert (fixed["required"][0, : len(asked.phrases), 1:, 0] == BOS).all() or asked.phrases != FULL.phrases


def test_of_a_long_sequence_that_must_not_come_the_end_must_not():
    forbidden = fixed_rules(NO_CONSTRAINTS._replace(forbidden=(TOKENS,)))["forbidden"]
    assert forbidden[0, 0].tolist() == list(TOKENS[-SEQUENCE_TOKENS:])


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        (FULL._replace(phrases=(LONGEST,) * (PHRASES + 1)), f"has {PHRASES + 1} phrases, .* at most {PHRASES}, of"),
        (FULL._replace(phrases=(Phrase("a", (5,), TOKENS[:PHRASE_TOKENS]),)), "the longest of 8 .* of 7 tokens: give"),
        (FULL._replace(prefix=Prefix([], [TOKENS[: ENDING_TOKENS + 1]])), "a word of more than 8 tokens"),
    ],
)
def test_what_has_no_room_is_refused(asked, sentence):
    with pytest.raises(InputError, match=sentence):
        fixed_rules(asked)
