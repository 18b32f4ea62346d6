"""Where a score is won and lost: by the length of sentences, and by how often words occur in the training text."""

import bisect
import collections
import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import sacrebleu

from keras_transformer.ground.errors import ConfigError
from keras_transformer.inspection.bleu import CHRF, RAW_BLEU, Measure, Score, score_by
from keras_transformer.inspection.samples import Sample
from keras_transformer.pieces.languages import tokenizer_of

from ..config.data import DataSection
from ..data.corpus import CorpusError, Split
from ..data.prepare import load_corpus
from .tables import Table

LENGTHS = (5, 10, 15, 20, 30, 40, 60)  # words of the longest sentence of each bin; the last bin is longer
FREQUENCIES = (0, 1, 4, 9, 99, 999)  # occurrences of the most frequent word of each bin; the last bin is more frequent
MOST_PAIRS = 200_000  # training pairs whose words are counted, which takes some seconds


class SentenceBin(NamedTuple):
    """The sentences of about one length, or of one part of the text."""

    name: str  # as printed: words of the source sentence, "6 to 10", or the part, "en to de"
    sentences: int
    bleu: Score
    chrf: Score
    length_ratio: float | None  # words of the translations per word of the references; None without any of these

    def as_json(self, head: str) -> dict[str, Any]:
        """What a program reads; its name is called `head`."""
        rest = self._asdict() | {"bleu": self.bleu.as_json(), "chrf": self.chrf.as_json()}
        return {head: rest.pop("name"), **rest}


class FrequencyBin(NamedTuple):
    """The words that occur about equally often in the training text. Shares are in per cent.

    A word of a reference is found if the translation of its sentence has it too, as many times as the reference.
    """

    occurrences: str  # as printed: "2 to 4"
    words: int  # in the references
    found: float  # share of them that the translations have (recall)
    right: float | None  # share of such words in the translations that the references have (precision); None: no words
    f1: float
    of_missed: float  # share of all missed words that are missed here


class WordCounts(NamedTuple):
    """How often each word occurs in a text."""

    counts: collections.Counter
    text: str  # as printed: "the training text (29,000 pairs)"
    language: str = ""  # which decides what a word is


class Breakdown(NamedTuple):
    """The scores of one set of translations, by length and by frequency."""

    lengths: list[SentenceBin]
    frequencies: list[FrequencyBin]
    text: str  # in which the frequencies were counted
    parts: list[SentenceBin] = []  # if there are several

    def tables(self, other: "Breakdown | None" = None) -> list[Table]:
        """Tables by part, by length and by frequency. other: of other translations, which gets columns of its own."""
        tables = [
            bins_table(title, head, bins, theirs)
            for title, head, bins, theirs in (
                ("By part of the text", "part", self.parts, other.parts if other else None),
                ("By words of the source sentence", "words", self.lengths, other.lengths if other else None),
            )
            if bins
        ]
        heads: tuple[str, ...] = ("occurrences", "words", "found %", "right %", "F1", "of all missed %")
        rows: list[tuple[str, ...]] = [
            (
                frequency.occurrences,
                f"{frequency.words:,}",
                f"{frequency.found:.1f}",
                "n/a" if frequency.right is None else f"{frequency.right:.1f}",
                f"{frequency.f1:.1f}",
                f"{frequency.of_missed:.1f}",
            )
            for frequency in self.frequencies
        ]
        if other:
            heads += ("other F1",)
            rows = [(*row, f"{theirs.f1:.1f}") for row, theirs in zip(rows, other.frequencies, strict=True)]
        return [*tables, Table(f"By occurrences of the reference's words in {self.text}", heads, rows)]

    def as_json(self) -> dict[str, Any]:
        """What a program reads."""
        parts = {"by_part": [each.as_json("part") for each in self.parts]} if self.parts else {}
        return {
            **parts,
            "by_length": [each.as_json("words") for each in self.lengths],
            "by_frequency": {"text": self.text, "bins": [frequency._asdict() for frequency in self.frequencies]},
        }


def bins_table(title: str, head: str, bins: Sequence[SentenceBin], other: Sequence[SentenceBin] | None) -> Table:
    """The scores of bins, whose names are in the column `head`. other: of other translations, in columns of its own."""
    heads: tuple[str, ...] = (head, "sentences", "BLEU", "chrF", "length ratio")
    rows: list[tuple[str, ...]] = [
        (
            each.name,
            f"{each.sentences:,}",
            str(each.bleu),
            str(each.chrf),
            "n/a" if each.length_ratio is None else f"{each.length_ratio:.2f}",
        )
        for each in bins
    ]
    if other is not None:
        heads += ("other BLEU", "other chrF")
        rows = [(*row, str(theirs.bleu), str(theirs.chrf)) for row, theirs in zip(rows, other, strict=True)]
    why = next((f" (n/a: {each.bleu.undefined})" for each in bins if each.bleu.undefined), "")
    return Table(f"{title}, BLEU of {bins[0].bleu.form}{why}", heads, rows)


def break_down(
    samples: Sequence[Sample],
    counted: WordCounts,
    bleu: Measure = RAW_BLEU,
    chrf: Measure = CHRF,
    parts: Sequence[str] = (),
) -> Breakdown:
    """Return the Breakdown of translations. `bleu`, `chrf`: the forms of scores that bins of sentences have.

    parts: the name of the part that each sample belongs to; none if nobody names parts.
    """
    by_words = by_frequency(samples, counted.counts, counted.language)
    return Breakdown(by_length(samples, bleu, chrf), by_words, counted.text, by_part(samples, parts, bleu, chrf))


def by_part(samples: Sequence[Sample], parts: Sequence[str], bleu: Measure, chrf: Measure) -> list[SentenceBin]:
    """Return the bins of the parts of a text, in the order of their first sentences; [] if there is only one."""
    bins = collections.defaultdict(list)
    for part, sample in zip(parts, samples, strict=bool(parts)):
        bins[part].append(sample)
    return [sentence_bin(part, bins[part], bleu, chrf) for part in bins] if len(bins) > 1 else []


def by_length(samples: Sequence[Sample], bleu: Measure = RAW_BLEU, chrf: Measure = CHRF) -> list[SentenceBin]:
    """Return the bins of source lengths that have sentences, in words between spaces, the shortest first."""
    bins = collections.defaultdict(list)
    for sample in samples:
        bins[bisect.bisect_left(LENGTHS, len(sample.source.split()))].append(sample)
    return [sentence_bin(label(LENGTHS, place), bins[place], bleu, chrf) for place in sorted(bins)]


def sentence_bin(name: str, samples: Sequence[Sample], bleu: Measure, chrf: Measure) -> SentenceBin:
    translations, references = [sample.translation for sample in samples], [sample.reference for sample in samples]
    bleu_score, chrf_score = (score_by(measure, translations, references) for measure in (bleu, chrf))
    lengths = [sum(len(line.split()) for line in lines) for lines in (translations, references)]
    ratio = lengths[0] / lengths[1] if lengths[1] else None
    return SentenceBin(name, len(samples), bleu_score, chrf_score, ratio)


def by_frequency(samples: Sequence[Sample], counts: collections.Counter, language: str = "") -> list[FrequencyBin]:
    """Return the bins of frequencies that have words of references, the rarest first."""
    expected, written, matched = (collections.Counter() for _ in range(3))  # words by bin
    for sample in samples:
        reference, translation = (words_of([text], language) for text in (sample.reference, sample.translation))
        for text, totals in ((reference, expected), (translation, written), (reference & translation, matched)):
            for word, count in text.items():
                totals[bisect.bisect_left(FREQUENCIES, counts[word])] += count
    missed = expected.total() - matched.total()
    return [
        FrequencyBin(
            occurrences=label(FREQUENCIES, place),
            words=expected[place],
            found=100 * matched[place] / expected[place],
            right=100 * matched[place] / written[place] if written[place] else None,
            f1=200 * matched[place] / (expected[place] + written[place]),
            of_missed=100 * (expected[place] - matched[place]) / missed if missed else 0.0,
        )
        for place in sorted(expected)
    ]


def label(bounds: Sequence[int], place: int) -> str:
    """Return the range of a bin in words: "0", "up to 5", "2 to 4", "1,000 and more"."""
    if place == len(bounds):
        return f"{bounds[-1] + 1:,} and more"
    if place == 0:
        return f"up to {bounds[0]:,}" if bounds[0] else "0"
    low, high = bounds[place - 1] + 1, bounds[place]
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def words_of(lines: Iterable[str], language: str = "") -> collections.Counter:
    """Count the words of some lines as BLEU tokenises raw text: punctuation stands alone, case is kept."""
    tokenize = word_splitter(tokenizer_of(language))
    return collections.Counter(word for line in lines for word in tokenize(line).split())


@functools.cache
def word_splitter(tokenizer: str) -> Callable[[str], str]:
    """The function of sacreBLEU that puts spaces between words, by the name of its tokenizer."""
    return sacrebleu.metrics.BLEU(tokenize=tokenizer).tokenizer


def words_in_training(
    splits: Iterable[Split],
    language: str,
    restored: Callable[[list[str]], list[str]],
    name: str,
) -> WordCounts:
    """Count the target words of the training text, of its first MOST_PAIRS pairs. Raises CorpusError without it.

    restored: gives the text as the model knows it, such as `Tokenizer.restored`. name: of the text, as printed.
    """
    pairs = itertools.islice(itertools.chain.from_iterable(splits), MOST_PAIRS + 1)
    targets = [target for _, target in pairs]
    words = words_of(restored(targets[:MOST_PAIRS]), language)
    if len(targets) > MOST_PAIRS:
        return WordCounts(words, f"the first {MOST_PAIRS:,} pairs of {name}", language)
    return WordCounts(words, f"{name} ({len(targets):,} pairs)", language)


def words_known(
    splits: Callable[[], Iterable[Split]],
    references: Sequence[str],
    language: str,
    restored: Callable[[list[str]], list[str]],
    name: str,
) -> WordCounts:
    """Count the words of the training text, whose Splits `splits` returns, or of the references if it is not there."""
    try:
        return words_in_training(splits(), language, restored, name)
    except (CorpusError, ConfigError) as error:  # data.clean may ask for a package that is not here
        text = f"these references themselves, because {name} cannot be read ({error})"
        return WordCounts(words_of(restored(list(references)), language), text, language)


def training_splits(data: DataSection | None) -> tuple[Split, ...]:
    """The Splits of the training text of a configuration. Downloads nothing. Raises CorpusError, for None as well."""
    return load_corpus(recorded(data).offline()).train.shards


def recorded(data: DataSection | None) -> DataSection:
    """The section `data` of a run. Raises CorpusError for None, that of a run without a configuration."""
    if data is None:
        raise CorpusError("the run has no config.toml")
    return data
