"""The table of robustness: what each row changes, and what a Translator that copies scores in it."""

import types

from benchmarks.recipes.robustness import ROWS, joined, table, with_mistakes

PAIRS = [
    ("a small dog runs over the field.", "a small dog runs over the field."),
    ("two men are cooking a meal.", "two men are cooking a meal."),
    ("three girls play in the snow.", "three girls play in the snow."),
]


def test_every_row_but_the_plain_ones_changes_every_source():
    for row in ROWS:
        changed = row.changed(PAIRS)
        assert len(changed) == len(PAIRS)
        is_plain = row.name.startswith("as it is")
        assert all((new[0] == old[0]) == is_plain for new, old in zip(changed, PAIRS, strict=True)), row.name


def test_joined_sentences_have_joined_references():
    source, target = joined(PAIRS)[2]
    assert source == target == f"{PAIRS[2][0]} {PAIRS[0][0]}"
    assert joined(PAIRS, 4)[1][0] == " ".join(PAIRS[place][0] for place in (1, 2, 0, 1)) and joined(PAIRS, 1) == PAIRS


def test_a_typing_mistake_follows_from_the_sentence_alone():
    assert with_mistakes(PAIRS)[1] == with_mistakes(PAIRS[1:])[0]


def test_a_translator_that_copies_scores_100_where_the_reference_is_the_source():
    copying = types.SimpleNamespace(translate=lambda lines: [types.SimpleNamespace(text=line) for line in lines])
    lines = list(table({"one": copying, "other": copying}, PAIRS))
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines[2 : 2 + len(ROWS)]}
    whole = {"as it is", "as it is, scored without case", "in capitals, scored without case", "two sentences joined"}
    assert {name for name, values in cells.items() if values == ["100.00", "100.00"]} == whole
    assert all(float(values[0]) < 100 for name, values in cells.items() if name not in whole)
