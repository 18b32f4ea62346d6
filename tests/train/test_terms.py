"""Terms in training text: which words of the reference stand beside which words of the source."""

import collections
from concurrent.futures import CancelledError

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS, UNK
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.text.placeholders import SYMBOL, symbols_of
from keras_transformer.text.terms import SHOWN, has_terms, without_terms
from tests.train.test_word_pairs import TEXT
from train.config.run import load_config
from train.config.training import RowLengths, TrainingConfig
from train.data.encoding import EncodedPairs, Sentences
from train.data.placeholders import Placeholders
from train.data.prepare import redraw_of
from train.data.terms import Terms
from train.data.terms import drawn as draw
from train.record.changes import inference_of

PAIRS = [*TEXT, ("<2de>the Dog sleeps", "der Hund schläft"), ("the dog¦ cat", "der Hund"), ("the bird", "der Vogel")]
ROWS = RowLengths(90, 90)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    train_tokenizer([text for pair in PAIRS for text in pair] * 4, path, 310, [*symbols_of(2), "<2de>"])
    return Tokenizer(path)


@pytest.fixture(scope="module")
def pairs(tokenizer):
    sides = ([[*tokenizer.encode(text), EOS] for text in side] for side in zip(*PAIRS * 4, strict=True))
    return EncodedPairs(*(Sentences.of(side, np.uint16) for side in sides), collections.Counter())


def texts(tokenizer, sentences):
    return [tokenizer.decode(sentences[number].tolist()) for number in range(len(sentences))]


def drawn(tokenizer, pairs, share=1.0, seed=3, rows=ROWS, tags=("<2de>",)):
    return Terms(tokenizer, share, rows, tags)(pairs, np.random.default_rng(seed))


def test_a_source_has_words_of_its_reference_and_is_the_same_without_them(tokenizer, pairs):
    result = drawn(tokenizer, pairs)
    assert result.target is pairs.target
    numbers = collections.Counter()
    for text, before, target in zip(
        *(texts(tokenizer, s) for s in (result.source, pairs.source, pairs.target)), strict=True
    ):
        if has_terms(text):
            assert without_terms(text) == before
            terms = [found[2:-1] for found in SHOWN.findall(text)]
            assert all(term.lower()[:3] in target.lower().replace("ä", "a") or term in target for term in terms)
            assert "Hund" not in target or {"Hund", "Hunde"}.isdisjoint(terms) or "og" in before
            numbers[len(terms)] += 1
        else:
            assert text == before
    assert set(numbers) == {1, 2, 3} or set(numbers) == {1, 2}


def test_a_tag_gets_no_term_and_neither_does_a_source_with_our_signs(tokenizer, pairs):
    found = texts(tokenizer, drawn(tokenizer, pairs).source)
    assert {text for text in found if "¦ cat" in text} == {"the dog¦ cat"}
    tagged = [text for text in found if text.startswith("<2de>")]
    assert len(tagged) == 4 and all(text.startswith("<2de>the") and has_terms(text) for text in tagged)


def test_a_tag_stays_one_piece_though_it_has_a_word_of_the_target(tokenizer):
    tagged = [*TEXT, ("<dog>the cat sleeps", "der Hund und die Katze schläft")] * 4
    sides = ([[*tokenizer.encode(text), EOS] for text in side] for side in zip(*tagged, strict=True))
    pairs = EncodedPairs(*(Sentences.of(side, np.uint16) for side in sides), collections.Counter())
    found = texts(tokenizer, drawn(tokenizer, pairs, tags=("<dog>",)).source)[len(TEXT) :: len(TEXT) + 1]
    assert all(text.startswith("<dog>the") and has_terms(text) for text in found)
    assert any("<dog¦" in text for text in texts(tokenizer, drawn(tokenizer, pairs, tags=()).source))


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_share_of_the_pairs_has_terms(tokenizer, pairs, share):
    count = sum(map(has_terms, texts(tokenizer, drawn(tokenizer, pairs, share).source)))
    possible = 4 * (len(PAIRS) - 1)
    assert abs(count - share * possible) <= 4 * (possible * share * (1 - share)) ** 0.5


def test_what_is_drawn_follows_from_the_pairs_and_the_generator(tokenizer, pairs):
    first, other = Terms(tokenizer, 0.5, ROWS), Terms(tokenizer, 0.5, ROWS)
    first(pairs, np.random.default_rng(9))  # an epoch before changes nothing

    def ids(terms, seed):
        return terms(pairs, np.random.default_rng(seed)).source.ids.tolist()

    assert ids(first, 1) == ids(other, 1) != ids(first, 2)


def test_each_shard_has_the_words_of_its_own_text(tokenizer, pairs):
    """So what a shard gives does not depend on the other shards of a worker."""
    other = EncodedPairs(pairs.target, pairs.source, pairs.skipped)
    terms = Terms(tokenizer, 1.0, ROWS)
    terms(other, np.random.default_rng(1))
    assert (
        terms(pairs, np.random.default_rng(3)).source.ids.tolist()
        == drawn(tokenizer, pairs, tags=()).source.ids.tolist()
    )


def test_what_does_not_fit_stays_and_so_does_an_unknown_piece(tokenizer, pairs):
    tight = drawn(tokenizer, pairs, rows=RowLengths(3, 90))
    assert np.array_equal(tight.source.ids, pairs.source.ids)
    known, unknown = (
        [Sentences.of([[*first, *tokenizer.encode(text), EOS]] * 9, np.uint16) for text in TEXT[0]]
        for first in ([], [UNK])
    )
    for source, target in ((unknown[0], unknown[1]), (unknown[0], known[1]), (known[0], unknown[1])):
        with_unknown = EncodedPairs(source, target, pairs.skipped)
        assert np.array_equal(drawn(tokenizer, with_unknown).source.ids, source.ids)


@pytest.mark.parametrize(("found", "counts"), [(0, {0}), (1, {1}), (2, {1, 2}), (3, {1, 2, 3}), (10, {1, 2, 3})])
def test_one_to_three_terms_are_drawn_from_left_to_right(found, counts):
    drawn = [draw(list(range(found)), np.random.default_rng(seed)) for seed in range(40)]
    assert {len(numbers) for numbers in drawn} == counts
    assert all(numbers == sorted(set(numbers)) for numbers in drawn)


def test_it_looks_whether_to_give_up_once_per_many_pairs(tokenizer, pairs):
    asked = []
    Terms(tokenizer, 1.0, ROWS)(pairs, np.random.default_rng(1), lambda: bool(asked.append(1)))
    assert len(asked) == 2  # while words are learned, and while terms are drawn


def test_it_gives_up_when_it_is_told(tokenizer, pairs):
    with pytest.raises(CancelledError):
        Terms(tokenizer, 1.0, ROWS)(pairs, np.random.default_rng(1), lambda: True)


def test_terms_come_before_placeholders_which_leave_them_alone(tokenizer, pairs):
    names = [("Anna has a dog", "Anna hat einen Hund"), ("so is Anna", "so ist Anna")] * 4
    sides = ([[*tokenizer.encode(text), EOS] for text in side] for side in zip(*names, strict=True))
    named = EncodedPairs(*(Sentences.of(side, np.uint16) for side in sides), collections.Counter())
    replaced = Placeholders(tokenizer, 1.0, ROWS)(named, np.random.default_rng(1))
    assert all(SYMBOL.search(text) for text in texts(tokenizer, replaced.source)[1::2])
    data = load_config("configs/numbers.toml", ["data.terms=1.0", "data.placeholders=1.0"]).data
    redraw = redraw_of(TrainingConfig(row_length=90), tokenizer, (), data)
    both = redraw(pairs, np.random.default_rng(1), lambda: False)
    assert not any(has_terms(text) and SYMBOL.search(text) for text in texts(tokenizer, both.source))
    assert any(map(has_terms, texts(tokenizer, both.source)))


def test_a_tokenizer_that_loses_the_signs_is_refused(tokenizer, monkeypatch):
    monkeypatch.setattr(Tokenizer, "decode", lambda tokenizer, ids: "a a a")
    with pytest.raises(ConfigError, match="data.terms is 0.1, but the tokenizer does not keep the signs ¦ and ¬"):
        Terms(tokenizer, 0.1, ROWS)


def test_a_run_says_whether_it_learned_terms(tmp_path):
    for share, knows in (("0.2", True), ("0.0", False)):
        config = load_config("configs/numbers.toml", [f"data.terms={share}"])
        assert inference_of(config, tmp_path).terms is knows


def test_trees_have_no_terms():
    with pytest.raises(ConfigError, match="data.terms"):
        load_config("configs/parsing_sample.toml", ["data.terms=0.1"])
