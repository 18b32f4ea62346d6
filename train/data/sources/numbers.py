"""Numbers spelled out in two languages: sentence pairs that need no download, and whose translation follows rules."""

import functools
import hashlib
import itertools
import random
from collections.abc import Iterator
from importlib.metadata import version

from ...config.sources.numbers import NumbersData
from ..corpus import Corpus, CorpusError, Pair, Split

SHORT = 100  # numbers below it are the words that others are made of: they are always in the training set


def read_corpus(data: NumbersData) -> Corpus:
    """The Corpus of spelled numbers, whose splits have no number in common.

    Raises CorpusError if num2words lacks a language, or if more pairs are asked for than there are numbers.
    """
    for field in ("source_language", "target_language"):
        _check_language(field, getattr(data, field))
    sizes = {name: getattr(data, f"{name}_pairs") for name in ("train", "validation", "test")}
    if data.train_pairs < data.shards:
        raise CorpusError(f"data.shards is {data.shards}, but there are only {data.train_pairs} train_pairs.")
    available = data.maximum - data.minimum + 1
    if available < sum(sizes.values()):
        raise CorpusError(
            f"data asks for {sum(sizes.values()):,} pairs (train_pairs + validation_pairs + test_pairs), but from "
            f"minimum {data.minimum:,} to maximum {data.maximum:,} there are {max(0, available):,} numbers."
        )
    chosen = draw_numbers(data.minimum, data.maximum, sum(sizes.values()), data.seed)
    numbers = iter(chosen)
    train, validation, test = (list(itertools.islice(numbers, size)) for size in sizes.values())
    shards = (_split("train", train[shard :: data.shards], data) for shard in range(data.shards))
    return Corpus(
        Split.of_shards("data.train_pairs", shards),
        _split("validation", validation, data),
        _split("test", test, data),
        data.source_language,
        data.target_language,
    )


def draw_numbers(minimum: int, maximum: int, count: int, seed: int) -> list[int]:
    """`count` different numbers in minimum .. maximum, equally many of one digit, of two, of three and so on.

    If a magnitude has fewer numbers than that, all of them are drawn and the other magnitudes share the rest. So 5 per
    cent of 20,000 numbers below a million are below 1,000; a uniform draw would have 0.1 per cent there. Numbers below
    `SHORT` come first, the rest in random order; the same seed draws the same numbers.
    """
    rng = random.Random(seed)
    magnitudes = sorted(_magnitudes(minimum, maximum), key=len)
    chosen = []
    for i, numbers in enumerate(magnitudes):
        quota = (count - len(chosen)) // (len(magnitudes) - i)
        chosen += rng.sample(numbers, min(quota, len(numbers)))
    rng.shuffle(chosen)
    return sorted(chosen, key=lambda number: abs(number) >= SHORT)


def _magnitudes(minimum: int, maximum: int) -> Iterator[range]:
    """The ranges of numbers with equally many digits and the same sign, cut to minimum .. maximum."""
    low, high = 0, 9
    while low <= max(maximum, -minimum):
        yield range(max(minimum, low), min(maximum, high) + 1)
        yield range(max(minimum, -high), min(maximum, -max(low, 1)) + 1)
        low, high = high + 1, high * 10 + 9


def _split(name: str, numbers: list[int], data: NumbersData) -> Split:
    source, target = languages = data.source_language, data.target_language

    @functools.cache  # a spelling takes about 0.1 ms; a split is read once for the vocabulary and once for its ids
    def pairs() -> list[Pair]:
        return [(spell(number, source), spell(number, target)) for number in numbers]

    def fingerprint() -> dict:
        digest = hashlib.sha256(repr(numbers).encode()).hexdigest()
        return {"source": "numbers", "numbers": digest, "languages": languages, "num2words": version("num2words")}

    return Split(f"data.{name}_pairs", lambda: iter(pairs()), fingerprint, told=[data.codes])


def spell(number: int, language: str) -> str:
    """The words for `number`, as num2words writes them. Raises CorpusError if it cannot."""
    from num2words import num2words

    try:
        return num2words(number, lang=language)
    except Exception as error:  # each language fails in its own way: OverflowError, KeyError, TypeError
        raise CorpusError(
            f"num2words cannot spell {number:,} in {language!r} ({type(error).__name__}: {error}): "
            "narrow data.minimum and data.maximum."
        ) from None


def _check_language(field: str, language: str) -> None:
    try:
        from num2words import CONVERTER_CLASSES
    except ImportError:
        raise CorpusError('data.source = "numbers" needs the package num2words: pip install num2words.') from None
    if language not in CONVERTER_CLASSES:
        raise CorpusError(
            f"data.{field} is {language!r}, which num2words does not have; "
            f"it has {', '.join(sorted(CONVERTER_CLASSES))}."
        )
