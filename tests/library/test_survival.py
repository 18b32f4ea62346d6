"""What came through a translation."""

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


def test_kinds_are_told_in_their_own_order():
    found = survival([("7 {x} https://x.org", ""), ("<b>", "<b>")])
    assert list(found) == [kind for kind in KINDS if kind in found] and len(found) == 4
    assert found["tags"].per_cent == 100 and found["numbers"].per_cent == 0
