"""Numbers spelled out in two languages: sentence pairs that need no download, and whose translation has a rule."""

import functools
import random

from train.sources.split import CorpusError, Split

SHORT = 100  # numbers below it are the words that others are made of: they are learned, not asked


def numbers_splits(data):
    """NumbersData -> (train, validation, test) Splits without a number in common.

    Raises CorpusError for a language that num2words does not have, and for more pairs than there are numbers.
    """
    for field in ("source_language", "target_language"):
        _check_language(field, getattr(data, field))
    sizes = {name: getattr(data, f"{name}_pairs") for name in ("train", "validation", "test")}
    available = data.maximum - data.minimum + 1
    if available < sum(sizes.values()):
        raise CorpusError(
            f"data asks for {sum(sizes.values()):,} pairs (train_pairs + validation_pairs + test_pairs), but from "
            f"minimum {data.minimum:,} to maximum {data.maximum:,} there are {max(0, available):,} numbers."
        )
    chosen = draw_numbers(data.minimum, data.maximum, sum(sizes.values()), data.seed)
    splits, start = [], 0
    for name, size in sizes.items():
        splits.append(_split(name, chosen[start : start + size], data.source_language, data.target_language))
        start += size
    return tuple(splits)


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


def _split(name, numbers, source_language, target_language):
    @functools.cache  # a spelling takes about 0.1 ms; each split is read once for the vocabulary and once for its ids
    def pairs():
        return [(spell(number, source_language), spell(number, target_language)) for number in numbers]

    return Split(f"data.{name}_pairs", lambda: iter(pairs()))


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
