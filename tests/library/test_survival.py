"""What came through a translation."""

import pytest

from keras_transformer.text.spans import KINDS
from keras_transformer.text.survival import Survival, survival


def test_a_span_counts_as_often_as_source_and_translation_both_have_it():
    pairs = [
        ("2 dogs and 2 cats at https://x.org", "2 Hunde und zwei Katzen auf https://x.org"),
        ("{a} is 25", "{a} {a} ist 250"),
        ("nothing", "2"),
    ]
    assert survival(pairs) == {"urls": Survival(1, 1), "placeholders": Survival(1, 1), "numbers": Survival(3, 1)}
    assert survival(pairs)["numbers"].per_cent == 100 / 3


@pytest.mark.parametrize(
    "source, translation, is_there",
    [
        ("costs $50", "kostet $50", True),
        ("costs $50", "kostet 50", False),
        ("costs $50", "kostet 50 $", False),
        ("5% of all", "5 aller", False),
        ("5 of all", "5% aller", False),
        ("-5\u00b0C", "5\u00b0C", False),
        ("5 dogs", "-5 Hunde", False),
        ("in (2024)", "in (2024", False),
        ("in (2024)", "in (2024).", True),
        ("1.5GB", "1.5", False),
        ("at 2026-11-28T12:00", "um 2026-11-28", False),
        ("1 000 000", "1 000 und 000", False),
    ],
)
def test_a_number_is_there_with_its_sign_currency_unit_and_brackets(source, translation, is_there):
    assert survival([(source, translation)]) == {"numbers": Survival(1, int(is_there))}


def test_kinds_are_told_in_their_own_order():
    found = survival([("7 {x} https://x.org", ""), ("<b>", "<b>")])
    assert list(found) == [kind for kind in KINDS if kind in found] and len(found) == 4
    assert found["tags"].per_cent == 100 and found["numbers"].per_cent == 0
