"""Is one set of translations better than another of the same text? Paired tests, and the lines that differ most."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

import sacrebleu
from sacrebleu.significance import PairedTest, Result

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import on_one_line
from keras_transformer.inspection.bleu import MOST_RESAMPLED, RESAMPLES, Measure, affordable

from .tables import Table

MOST_SHOWN = 10  # sentences that differ most


class Resampling(NamedTuple):
    """How a paired test draws other sets of outputs."""

    abbreviation: str  # sacreBLEU's name
    resamples: int
    most: int  # sentences of all resamples together, which must fit in memory


DEFAULT_TEST = "randomization"
PAIRED_TESTS = {
    "bootstrap": Resampling("bs", RESAMPLES, MOST_RESAMPLED),  # Koehn 2004
    "randomization": Resampling("ar", 10_000, 10 * MOST_RESAMPLED),  # Riezler and Maxwell 2005
}
DRAWN = re.compile(
    r"(ar|bs):\d++\|seed:\d++|(?<![\d,])[\d,]++ resamples, seed \d+"
)  # in a signature: how often, and from what


class Difference(NamedTuple):
    """One measure of two sets of translations."""

    name: str
    form: str
    ours: float  # per cent
    theirs: float
    p_value: float | None  # None: the text is too long for the test
    signature: str  # of the test: its resamples and seed

    @property
    def verdict(self) -> str:
        """The p-value as it is printed."""
        return "n/a" if self.p_value is None else f"{self.p_value:.4f}"


class LineDifference(NamedTuple):
    """A sentence with two translations that differ."""

    line: int  # counted from 1, without pairs that were left out
    source: str
    reference: str
    ours: str
    theirs: str
    our_chrf: float  # of this sentence alone, per cent
    their_chrf: float

    def printed(self) -> list[str]:
        """The lines that a person reads."""
        return [
            f"  sentence {self.line}",
            f"    source            {on_one_line(self.source)}",
            f"    reference         {on_one_line(self.reference)}",
            f"    this   chrF {self.our_chrf:5.1f} {on_one_line(self.ours)}",
            f"    other  chrF {self.their_chrf:5.1f} {on_one_line(self.theirs)}",
        ]


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Other outputs for the same sentences, and how they differ. A kind of outputs has a subclass."""

    noun: ClassVar[str]  # what the outputs are called
    measure: ClassVar[str]  # by which the outputs for one sentence differ

    name: str  # of the run folder or the file
    paired_test: str
    differences: list[Difference]
    lines: list[Any]  # the sentences that differ most, as NamedTuples

    def sentences(self) -> list[str]:
        """The sentences that differ most, as printed lines."""
        if not self.lines:
            return [f"No two {self.noun} differ in {self.measure}."]
        heading = f"The {len(self.lines)} {self.noun} that differ most, by {self.measure}:"
        return [heading, *(line for difference in self.lines for line in difference.printed())]

    def table(self) -> Table:
        rows = [
            (
                f"{difference.name}, {difference.form}",
                f"{difference.ours:.2f}",
                f"{difference.theirs:.2f}",
                f"{difference.ours - difference.theirs:+.2f}",
                difference.verdict,
            )
            for difference in self.differences
        ]
        title = f"Against {self.name}, with a paired {self.paired_test} test"
        if drawn := DRAWN.search(self.differences[0].signature if self.differences else ""):
            title += f" ({drawn[0]})"
        return Table(title, ("", "this", "other", "difference", "p-value"), rows)

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "paired_test": self.paired_test,
            "differences": [difference._asdict() for difference in self.differences],
            "lines": [line._asdict() for line in self.lines],
        }


def check_paired_test(name: str) -> None:
    """Raises ConfigError if there is no such test."""
    if name not in PAIRED_TESTS:
        raise ConfigError(f"--paired-test is {name!r}; it must be {' or '.join(PAIRED_TESTS)}.")


def differences(
    ours: Sequence[str],
    theirs: Sequence[str],
    references: Sequence[str],
    measures: Sequence[Measure],
    paired_test: str = DEFAULT_TEST,
) -> list[Difference]:
    """Compare two sets of translations by each measure, with a paired test of sacreBLEU.

    The p-value is the probability of a difference at least this large between two equally good systems. That of
    randomization is two-sided. That of sacreBLEU's bootstrap is about half of it: it counts how often the size of a
    difference exceeds the mean of these sizes by as much as was observed, and is never above about 0.4.
    """
    resampling = PAIRED_TESTS[paired_test]
    return [difference(measure, ours, theirs, references, resampling) for measure in measures]


def difference(
    measure: Measure, ours: Sequence[str], theirs: Sequence[str], references: Sequence[str], resampling: Resampling
) -> Difference:
    """Return the Difference by one measure. The first system of sacreBLEU's test, its baseline, is `theirs`.

    sacreBLEU counts the resamples with a larger difference and not those with the same, so that two equal systems would
    get the smallest p-value, and so would one sentence, of which all resamples are the same. Therefore: no difference
    has a p-value of 1. And if k sentences differ, of the 2^k ways to exchange translations two have the observed
    difference, none and all: no test gives less than 2^(1 - k).
    """
    resamples = affordable(resampling.resamples, len(references), resampling.most)
    systems = [("theirs", measure.texts(theirs)), ("ours", measure.texts(ours))]
    test = PairedTest(
        systems,
        {measure.name: measure.metric()},
        [measure.texts(references)],
        test_type=resampling.abbreviation,
        n_samples=resamples or 1,
    )
    signatures, results = test()
    ((name, signature),) = signatures.items()  # sacreBLEU's own name, such as "chrF2"
    their_result, our_result = (result for result in results[name] if isinstance(result, Result))
    p_value = our_result.p_value if resamples else None
    if our_result.score == their_result.score:
        p_value = 1.0
    elif p_value is not None:
        differing = sum(one != other for one, other in zip(systems[0][1], systems[1][1], strict=True))
        p_value = max(p_value, least_p_value(differing))
    return Difference(measure.name, measure.form, our_result.score, their_result.score, p_value, str(signature))


def least_p_value(differing: int) -> float:
    """Return the smallest p-value that so many sentences, at least one, can have: 2^(1 - differing)."""
    return 2.0 ** (1 - differing)


def largest_differences(samples: Sequence[tuple[str, str, str]], theirs: Sequence[str]) -> list[LineDifference]:
    """Return the MOST_SHOWN sentences whose translations differ most in sentence chrF, the largest difference first.

    samples: (source, reference, our translation). Sentences with equal chrF are left out. chrF and not BLEU, because
    BLEU of one sentence is 0 or rests on smoothing unless four words in a row are right.
    """
    chrf = sacrebleu.metrics.CHRF()
    differing = []
    for line, ((source, reference, ours), other) in enumerate(zip(samples, theirs, strict=True), start=1):
        if ours != other:
            scores = (chrf.sentence_score(text, [reference]).score for text in (ours, other))
            differing.append(LineDifference(line, source, reference, ours, other, *scores))
    differing.sort(key=lambda line: -abs(line.our_chrf - line.their_chrf))
    return [line for line in differing[:MOST_SHOWN] if line.our_chrf != line.their_chrf]
