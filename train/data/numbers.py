"""Numbers spelled out in two languages: sentence pairs that need no download, and whose translation has a rule."""

import functools
import hashlib
import itertools
import random
from importlib.metadata import version

from train.data.corpus import CorpusError, Split

SHORT = 100  # numbers below it are the words that others are made of: they are learned, not asked


def numbers_splits(data):
    """NumbersData -> (train, validation, test) Splits without a number in common.

    Raises CorpusError for a language that num2words does not have, and for more pairs than there are numbers.
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
    return (
        Split.of_shards("data.train_pairs", shards),
        _split("validation", validation, data),
        _split("test", test, data),
    )


def draw_numbers(minimum, maximum, count, seed):
    """`count` different numbers in minimum .. maximum, as many of one digit as of two, of three and so on.

    A magnitude that has fewer numbers than its share gives all of them, and the others share the rest: of 20,000
    numbers below a million, 5 per cent lie below 1,000, where a uniform draw would leave 0.1. Those below `SHORT`
    come first, the rest in random order; the same seed draws the same.
    """
    rng = random.Random(seed)
    magnitudes = sorted(_magnitudes(minimum, maximum), key=len)
    chosen = []
    for i, numbers in enumerate(magnitudes):
        share = (count - len(chosen)) // (len(magnitudes) - i)
        chosen += rng.sample(numbers, min(share, len(numbers)))
    rng.shuffle(chosen)
    return sorted(chosen, key=lambda number: abs(number) >= SHORT)


def _magnitudes(minimum, maximum):
    """Ranges of numbers with equally many digits and the same sign, as far as they lie in minimum .. maximum."""
    low, high = 0, 9
    while low <= max(maximum, -minimum):
        yield range(max(minimum, low), min(maximum, high) + 1)
        yield range(max(minimum, -high), min(maximum, -max(low, 1)) + 1)
        low, high = high + 1, high * 10 + 9


def _split(name, numbers, data):
    languages = data.source_language, data.target_language

    @functools.cache  # a spelling takes about 0.1 ms; each split is read once for the vocabulary and once for its ids
    def pairs():
        return [tuple(spell(number, language) for language in languages) for number in numbers]

    def fingerprint():
        digest = hashlib.sha256(repr(numbers).encode()).hexdigest()
        return {"source": "numbers", "numbers": digest, "languages": languages, "num2words": version("num2words")}

    return Split(f"data.{name}_pairs", lambda: iter(pairs()), fingerprint)


def spell(number, language):
    """The words for `number`, as num2words writes them. Raises CorpusError where it has none."""
    from num2words import num2words

    try:
        return num2words(number, lang=language)
    except Exception as error:  # each language gives up in its own way: OverflowError, KeyError, TypeError
        raise CorpusError(
            f"num2words cannot spell {number:,} in {language!r} ({type(error).__name__}: {error}): "
            "narrow data.minimum and data.maximum."
        ) from None


def _check_language(field, language):
    try:
        from num2words import CONVERTER_CLASSES
    except ImportError:
        raise CorpusError('data.source = "numbers" needs the package num2words: pip install num2words.') from None
    if language not in CONVERTER_CLASSES:
        raise CorpusError(
            f"data.{field} is {language!r}, which num2words does not have; "
            f"it has {', '.join(sorted(CONVERTER_CLASSES))}."
        )
