"""Numbers spelled in two languages: splits have nothing in common, and every number of a range can be drawn."""

import sys

import pydantic
import pytest

from train.config.sources.numbers import NumbersData
from train.data.corpus import CorpusError
from train.data.prepare import load_corpus
from train.data.sources.numbers import SHORT, draw_numbers


def numbers(**changes):
    sizes = {"maximum": 999, "train_pairs": 50, "validation_pairs": 10, "test_pairs": 20}
    return NumbersData(**{"source": "numbers"} | sizes | changes)


def train_pairs(**changes):
    return list(load_corpus(numbers(**changes)).train)


def test_numbers_are_spelled_in_both_languages():
    spelled = dict(load_corpus(numbers(train_pairs=970)).train)
    assert spelled["two hundred and forty-one"] == "zweihunderteinundvierzig"


def test_korean_is_among_the_languages():
    spelled = dict(load_corpus(numbers(train_pairs=970, target_language="ko")).train)
    assert spelled["two hundred and forty-one"] == "이백사십일"


def test_more_numbers_than_python_counts_are_refused():
    assert len(draw_numbers(-(10**18), 10**18, 30, seed=1)) == 30
    for name, value in (("maximum", 10**18 + 1), ("minimum", -(10**18) - 1)):
        with pytest.raises(pydantic.ValidationError, match=name):
            numbers(**{name: value})


def test_splits_have_the_sizes_asked_for_and_nothing_in_common():
    corpus = load_corpus(numbers())
    train, validation, test = map(set, (corpus.train, corpus.validation, corpus.test))
    assert (len(train), len(validation), len(test)) == (50, 10, 20)
    assert len(train | validation | test) == 80


def test_the_seed_decides_the_numbers():
    assert train_pairs(seed=3) == train_pairs(seed=3) != train_pairs(seed=4)


def test_magnitudes_share_alike_and_the_small_come_first():
    drawn = draw_numbers(0, 999_999, 6_000, seed=1)
    assert sorted(drawn[:100]) == list(range(100))
    digits = [len(str(number)) for number in drawn]
    assert [digits.count(n) for n in range(1, 7)] == [10, 90, 900, 1666, 1667, 1667]


def test_after_the_small_numbers_come_large_ones_in_random_order():
    """Otherwise the test set, which comes last, would have the largest alone."""
    large = [number for number in draw_numbers(-999_999, 999_999, 6_000, seed=1) if abs(number) >= SHORT]
    for part in (large[:500], large[-500:]):
        assert {len(str(abs(number))) for number in part} >= {4, 5, 6}
        assert 200 < sum(number < 0 for number in part) < 300


@pytest.mark.parametrize("minimum, maximum", [(0, 100), (-50, 50), (-7, -5), (95, 1203), (5, 5)])
def test_all_numbers_of_a_range_can_be_drawn(minimum, maximum):
    drawn = draw_numbers(minimum, maximum, maximum - minimum + 1, seed=1)
    assert sorted(drawn) == list(range(minimum, maximum + 1))


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"target_language": "klingon"}, "data.target_language is 'klingon'.* it has .*de, en,.* ko,"),
        ({"source_language": "klingon"}, "data.source_language is 'klingon'"),
        ({"shards": 9, "train_pairs": 8}, "data.shards is 9, but there are only 8 train_pairs"),
        ({"maximum": 78}, "asks for 80 pairs .* to maximum 78 there are 79 numbers"),
        ({"minimum": 1_000, "maximum": 1_000}, "from minimum 1,000 to maximum 1,000 there are 1 numbers"),
        ({"minimum": 5, "maximum": 4}, "there are 0 numbers"),
        (
            {"target_language": "en_IN", "minimum": 10**15, "maximum": 10**16},
            "cannot spell [1-9],\\d{3}.* in 'en_IN' \\([A-Z]\\w+: .*\\): narrow data.minimum",
        ),
    ],
)
def test_impossible_numbers_are_refused(changes, message):
    with pytest.raises(CorpusError, match=message):
        train_pairs(**changes)


def test_the_numbers_and_the_languages_decide_the_fingerprint():
    def fingerprint(**changes):
        data = NumbersData(**{"source": "numbers", "maximum": 99, "train_pairs": 20, "validation_pairs": 5} | changes)
        return str(load_corpus(data.model_copy(update={"test_pairs": 5})).train.fingerprint())

    assert fingerprint() == fingerprint()
    train = load_corpus(numbers()).train  # so that a text is known again which an earlier version has encoded
    assert train.name == "data.train_pairs" and set(train.fingerprint()) == {
        "source",
        "numbers",
        "languages",
        "num2words",
    }
    assert train.fingerprint()["source"] == "numbers"
    changes = [{}, {"seed": 2}, {"target_language": "fr"}, {"source_language": "fr"}, {"train_pairs": 21}]
    assert len({fingerprint(**change) for change in changes}) == len(changes)


def test_without_the_package_it_is_one_sentence(monkeypatch):
    monkeypatch.setitem(sys.modules, "num2words", None)
    with pytest.raises(CorpusError, match='data.source = "numbers" needs the package num2words: pip install num2words'):
        load_corpus(numbers())
