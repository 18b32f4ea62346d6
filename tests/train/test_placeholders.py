"""Placeholders in training text: which spans they replace, drawn from the seed alone."""

import collections

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.text.placeholders import SYMBOL, symbols_of
from train.config.training import RowLengths
from train.data.corpus import Split
from train.data.encoding import EncodedPairs, Sentences
from train.data.placeholders import Placeholders, placeholder_lines, spans_of, with_placeholders

PAIRS = [
    ("see https://x.org now", "sieh https://x.org jetzt"),
    ("2 dogs and 2 cats", "2 Hunde und 2 Katzen"),
    ("Nike shoes for Anna, size 42", "Schuhe von Nike für Anna, Nummer 42"),
    ("a dog", "ein Hund"),
]
ROWS = RowLengths(60, 60)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    train_tokenizer([text for pair in PAIRS for text in pair] * 4, path, 310, symbols_of(4))
    return Tokenizer(path)


def encoded(tokenizer):
    sides = ([[*tokenizer.encode(text), EOS] for text in side] for side in zip(*PAIRS * 20, strict=True))
    return EncodedPairs(*(Sentences.of(side, np.uint16) for side in sides), collections.Counter())


def texts(tokenizer, pairs):
    return [
        tuple(tokenizer.decode(side[n].tolist()) for side in (pairs.source, pairs.target)) for n in range(len(pairs))
    ]


def test_spans_and_names_that_stand_once_on_each_side_are_replaced():
    replaced = [with_placeholders(*pair, symbols_of(2)) for pair in PAIRS]
    assert replaced[0] == ("see ⟦1⟧ now", "sieh ⟦1⟧ jetzt")
    assert replaced[1] is None and replaced[3] is None
    assert replaced[2] == ("Nike shoes for ⟦1⟧, size ⟦2⟧", "Schuhe von Nike für ⟦1⟧, Nummer ⟦2⟧")
    assert list(spans_of("The BMX, {x} McX x3 a").values()) == ["BMX", "{x}", "McX", "x3"]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('see "Anna", (42) and [x3].', ["Anna", "(42)", "x3"]),
        ("Plan B is to ask Bo", ["Bo"]),  # a letter alone is no name, nor is the first word of a sentence
        ("make <b>it</b> <i>x3</i>", []),  # tags have a translation of their own
        ("Anna's x3 ...", ["x3"]),
    ],
)
def test_a_span_is_what_stands_at_its_place(text, values):
    spans = spans_of(text)
    assert [text[start:end] for start, end in spans] == list(spans.values()) == values


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_a_share_of_the_pairs_is_replaced_alike_on_both_sides(tokenizer, share):
    pairs = encoded(tokenizer)
    replaced = Placeholders(tokenizer, share, ROWS)(pairs, np.random.default_rng(3))
    with_any = 0
    for number, (before, after) in enumerate(zip(texts(tokenizer, pairs), texts(tokenizer, replaced), strict=True)):
        symbols = [sorted(SYMBOL.findall(text)) for text in after]
        assert symbols[0] == symbols[1] and len(set(symbols[0])) == len(symbols[0])
        with_any += bool(symbols[0])
        if not symbols[0]:
            assert before == after
            for side in ("source", "target"):
                assert np.array_equal(getattr(pairs, side)[number], getattr(replaced, side)[number])
    assert abs(with_any - share * 40) <= 12 * (0 < share < 1)


def test_what_is_drawn_follows_from_the_generator(tokenizer):
    def drawn(seed):
        return Placeholders(tokenizer, 0.5, ROWS)(encoded(tokenizer), np.random.default_rng(seed)).source.ids.tolist()

    assert drawn(1) == drawn(1) != drawn(2)


def test_a_pair_that_would_not_fit_keeps_its_text(tokenizer):
    pairs = encoded(tokenizer)
    replaced = Placeholders(tokenizer, 1.0, RowLengths(3, 3))(pairs, np.random.default_rng(3))
    assert np.array_equal(pairs.source.ids, replaced.source.ids)


def test_a_tokenizer_without_placeholders_is_refused(tmp_path):
    train_tokenizer([text for pair in PAIRS for text in pair], tmp_path / "t.model", 300)
    with pytest.raises(ConfigError, match="data.placeholders is 0.1, but the tokenizer has no placeholders"):
        Placeholders(Tokenizer(tmp_path / "t.model"), 0.1, ROWS)


def test_the_pairs_that_could_have_placeholders_are_counted_with_one_of_them():
    (line,) = placeholder_lines(Split("x", lambda: iter(PAIRS)))
    assert line.startswith("data.placeholders: 2 of the first 4 training pairs ")
    assert line.endswith("such as see https://x.org now ||| sieh https://x.org jetzt")
    assert list(placeholder_lines(Split("x", lambda: iter(PAIRS[1::2])))) == []
