"""The table of phrases: what each row asks, and what a Translator that copies has of it."""

from benchmarks.recipes.phrases import (
    FORBIDDEN,
    WithoutPlaceholders,
    drawn,
    rows_of,
    ways_of,
    ways_of_placeholders,
    with_placeholder,
)
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.placeholders import placeholders_in, symbols_of
from tests.support.runs import SENTENCES

LINES = ["Over a field a small dog runs over the field.", "two men are cooking a meal.", "it is he"]


class Copying:
    """What translates a line as itself, with the phrases behind it."""

    def translate(self, lines, protect, required):
        return [Translation(" ".join([line, *phrases]), 0.0) for line, phrases in zip(lines, required, strict=True)]


class Silent:
    def translate(self, lines, protect, required):
        return [Translation("", 0.0)] * len(lines)


def cells_of(ways):
    return [tuple(cell.strip() for cell in row.strip("|").split("|"))[:4] for row in rows_of(ways, 1)]


def test_words_that_a_translation_lacks_are_drawn_from_their_reference_from_a_seed():
    texts = ["Over and over a small field", "", ""]
    words = drawn(LINES, texts, 2)
    assert words == drawn(LINES, texts, 2) and [len(of_line) for of_line in words] == [1, 2, 0] and words[0] == ["runs"]
    assert all(word in line and len(word) >= 4 for line, of_line in zip(LINES, words, strict=True) for word in of_line)


def test_phrases_count_where_they_came_and_a_copy_scores_100():
    ways = ways_of(Copying(), LINES, LINES)
    assert [name for name, *_ in cells_of(ways)] == [way.name for way in ways]
    assert cells_of(ways)[0][1:] == ("", "100.00", "100.00")  # its words are those of the references: it lacks none
    assert ways[-1].protection.forbidden.terms and len(ways[-1].protection.forbidden.terms) <= FORBIDDEN
    assert [cells[1:] for cells in cells_of(ways_of(Silent(), LINES, LINES))] == [
        ("", "0.00", "0.00"), ("0.0", "0.00", "0.00"), ("0.0", "0.00", "0.00"), ("0.0", "0.00", "0.00"),
        ("", "0.00", "0.00"),
    ]  # fmt: skip
    reversed_lines = ways_of(Copying(), LINES[::-1], LINES)
    assert [cells[1] for cells in cells_of(reversed_lines)][1:4] == ["100.0"] * 3


def test_a_placeholder_counts_where_it_came_once():
    assert [with_placeholder(line) for line in LINES[1:]] == [
        "two men are \u27e61\u27e7 a meal.",
        "it is he \u27e61\u27e7",
    ]
    assert [cells[1:] for cells in cells_of(ways_of_placeholders(Copying(), Silent(), LINES))] == [
        ("100.0", "", ""),
        ("0.0", "", ""),
    ]


def test_a_tokenizer_without_placeholders_differs_in_nothing_else(tmp_path):
    path = tmp_path / "tokenizer.model"
    train_tokenizer(SENTENCES, path, 300, symbols_of(2))
    known, hidden = Tokenizer(path), WithoutPlaceholders(path)
    assert len(placeholders_in(known.pieces())) == 2 and placeholders_in(hidden.pieces()) == ()
    assert hidden.encode("the \u27e61\u27e7") == known.encode("the \u27e61\u27e7")
