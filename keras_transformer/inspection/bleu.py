"""BLEU in three forms, chrF and TER, with signatures and confidence intervals; the share of exact translations."""

import dataclasses
import logging
import math
from collections.abc import Sequence
from typing import Any

import sacrebleu
from sacrebleu.metrics.bleu import BLEUScore
from sacrebleu.significance import PairedTest, Result

from keras_transformer.pieces.languages import USUAL_TOKENIZER, moses_code, tokenizer_of

RESAMPLES = 1_000  # of the bootstrap, as the command `sacrebleu` takes
FEWEST_RESAMPLES = 100
MOST_RESAMPLED = 5_000_000  # sentences of all resamples together: sacreBLEU holds their counts in 72 bytes each

logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # it logs each step of a paired test


@dataclasses.dataclass(frozen=True)
class Measure:
    """A metric of sacreBLEU, and the form of the text that it is given."""

    name: str  # "BLEU", "chrF" or "TER"
    form: str  # "raw text", as it is printed
    lowercase: bool = False
    language: str | None = None  # Moses normalises and tokenises by its rules; None: sacreBLEU tokenises
    tokenizer: str = USUAL_TOKENIZER  # of sacreBLEU

    def metric(self) -> sacrebleu.metrics.base.Metric:
        """Return a new metric of sacreBLEU. It has a signature once it has scored something."""
        if self.name == "chrF":
            return sacrebleu.metrics.CHRF(lowercase=self.lowercase)
        if self.name == "TER":
            by_characters = self.tokenizer != USUAL_TOKENIZER  # of scripts without spaces
            return sacrebleu.metrics.TER(
                normalized=by_characters, asian_support=by_characters, case_sensitive=not self.lowercase
            )
        if self.language is not None:
            return sacrebleu.metrics.BLEU(tokenize="none", lowercase=self.lowercase, force=True)
        force = self.lowercase  # the other form has warned of tokenised text
        return sacrebleu.metrics.BLEU(lowercase=self.lowercase, force=force, tokenize=self.tokenizer)

    def texts(self, lines: Sequence[str]) -> Sequence[str]:
        """Return the lines as the metric takes them."""
        return lines if self.language is None else tokenise(lines, self.language)


RAW_BLEU = Measure("BLEU", "raw text")
LOWER_BLEU = Measure("BLEU", "raw text, lower-cased", lowercase=True)
CHRF = Measure("chrF", "raw text")
TER = Measure("TER", "raw text, lower-cased; lower is better", lowercase=True)  # Snover et al. 2006
LOWER_CHRF = dataclasses.replace(CHRF, form=LOWER_BLEU.form, lowercase=True)


def raw_bleu(language: str) -> Measure:
    """BLEU of raw text in a language, cased."""
    return dataclasses.replace(RAW_BLEU, tokenizer=tokenizer_of(language))


def lower_bleu(language: str) -> Measure:
    """BLEU of raw text in a language, lower-cased."""
    return dataclasses.replace(LOWER_BLEU, tokenizer=tokenizer_of(language))


def tokenised_bleu(language: str) -> Measure:
    """BLEU of Moses-tokenised, lower-cased text, as in papers on Multi30k. Not comparable with BLEU of raw text."""
    rules = "" if has_rules(language) else f" by Moses' general rules (it has none for {language!r})"
    return Measure("BLEU", f"tokenised{rules}, lower-cased", lowercase=True, language=language)


def all_measures(language: str) -> tuple[Measure, ...]:
    """BLEU in its three forms, chrF and TER. Without spaces in `language`, of the translations, Moses' form is missing.

    TER, the translation edit rate, is how many words a person would insert, leave out, replace or move, words that
    stand together as one, per word of the reference.
    """
    raw, lower = raw_bleu(language), lower_bleu(language)
    ter = dataclasses.replace(TER, tokenizer=raw.tokenizer)
    if raw.tokenizer != USUAL_TOKENIZER:
        return raw, lower, CHRF, ter
    return raw, lower, tokenised_bleu(language), CHRF, ter


@dataclasses.dataclass(frozen=True)
class Score:
    """One measure of one set of translations, in per cent, with the sacreBLEU signature that makes it comparable."""

    name: str
    form: str
    value: float  # 0 if it is undefined
    signature: str
    undefined: str = ""  # why the value means nothing; empty if it means something
    mean: float | None = None  # of the bootstrap's resamples
    margin: float | None = None  # half of their 95 per cent confidence interval: mean - margin to mean + margin

    def __str__(self) -> str:
        if self.undefined:
            return "n/a"
        return f"{self.value:.2f}" if self.margin is None else f"{self.value:.2f} ± {self.margin:.2f}"

    @property
    def interval(self) -> list[float] | None:
        """The 95 per cent confidence interval; None if there is none, or the value is undefined."""
        if self.mean is None or self.margin is None or self.undefined:
            return None
        return [self.mean - self.margin, self.mean + self.margin]

    @property
    def note(self) -> str:
        """What is printed behind it: its signature, or why it is undefined."""
        return f"undefined: {self.undefined}" if self.undefined else self.signature

    def as_json(self) -> dict[str, Any]:
        """Return what JSON holds of it; the value is null if it is undefined."""
        return {
            "name": self.name,
            "form": self.form,
            "value": None if self.undefined else self.value,
            "margin": self.margin if self.interval else None,
            "interval": self.interval,
            "signature": self.signature,
            "undefined": self.undefined or None,
        }


@dataclasses.dataclass(frozen=True)
class Scores:
    """All scores of one set of translations."""

    measured: tuple[Score, ...]
    exact: float  # per cent of the translations that equal their reference letter by letter, case included
    sentences: int

    def first(self, name: str) -> Score:
        """Return the first Score of that name."""
        return next(score for score in self.measured if score.name == name)

    @property
    def bleu(self) -> float:
        """BLEU in its first form; 0 if it is undefined."""
        return self.first("BLEU").value

    @property
    def chrf(self) -> float:
        return self.first("chrF").value

    @property
    def plotted_bleu(self) -> float:
        """BLEU in its first form for curves: NaN if it is undefined."""
        return math.nan if self.first("BLEU").undefined else self.bleu

    @property
    def bleu_text(self) -> str:
        """BLEU in its first form as logs show it: "39.02", or "n/a" with the reason."""
        score = self.first("BLEU")
        return f"n/a ({score.undefined})" if score.undefined else f"{score.value:.2f}"

    @property
    def quality(self) -> float:
        """The number by which weights are chosen: BLEU in its first form; 0 if it is undefined."""
        return self.bleu

    @property
    def quality_text(self) -> str:
        """The same as logs show it."""
        return f"BLEU {self.bleu_text}"

    def plotted(self) -> dict[str, float]:
        """Return the numbers for curves, by name."""
        return {"bleu": self.plotted_bleu, "chrf": self.chrf, "exact": self.exact}

    def lines(self) -> list[str]:
        """One printed line per score. An undefined one has its reason in place of the signature."""
        values = [f"{score.name} {score}" for score in self.measured]
        widths = [max(map(len, values)), max(len(score.form) for score in self.measured)]
        lines = [
            f"{value:{widths[0]}}  {score.form:{widths[1]}}  {score.note}"
            for value, score in zip(values, self.measured, strict=True)
        ]
        return [*lines, f"exact {self.exact:.2f} per cent of {self.sentences:,} sentences"]

    def as_json(self) -> dict[str, Any]:
        """Return what JSON holds of them."""
        return {
            "sentences": self.sentences,
            "scores": [score.as_json() for score in self.measured],
            "exact": self.exact,
        }


def score(
    translations: Sequence[str],
    references: Sequence[str],
    measures: Sequence[Measure] = (RAW_BLEU, CHRF),
    resamples: int = 0,
) -> Scores:
    """Score translations against one reference each.

    `resamples`: of the bootstrap that finds confidence intervals; 0 for none. It takes fewer if the text is long, and
    none if the text has one sentence or more than MOST_RESAMPLED / FEWEST_RESAMPLES.
    Raises ValueError if there is nothing to score, or not one reference per translation.
    """
    if len(translations) != len(references) or not translations:
        raise ValueError(
            "Scoring needs at least one translation, and one reference per translation. Received: "
            f"{len(translations):,} translations and {len(references):,} references."
        )
    count = len(references)
    resamples = affordable(resamples, count) if count > 1 else 0
    hits = sum(ours == theirs for ours, theirs in zip(translations, references, strict=True))
    measured = tuple(score_by(measure, translations, references, resamples) for measure in measures)
    return Scores(measured, exact=100 * hits / count, sentences=count)


def score_by(measure: Measure, translations: Sequence[str], references: Sequence[str], resamples: int = 0) -> Score:
    """Return the Score of one measure, with a confidence interval from `resamples` resamples."""
    metric, lines, expected = measure.metric(), measure.texts(translations), measure.texts(references)
    result = metric.corpus_score(lines, [expected])
    signature, mean, margin = str(metric.get_signature()), None, None
    undefined = why_undefined(metric, result, expected)
    if resamples > 1:
        signature, mean, margin = confidence(measure, lines, expected, resamples)
    return Score(measure.name, measure.form, result.score, signature, undefined, mean, margin)


def confidence(
    measure: Measure, lines: Sequence[str], references: Sequence[str], resamples: int
) -> tuple[str, float, float]:
    """Return the signature with the bootstrap, the mean of its resamples, and half of their 95 per cent interval.

    They are computed by a paired test without a second system: `corpus_score(n_bootstrap=...)` of sacreBLEU 2.6 gives
    the same, but raises TypeError if chrF is 0 in some resamples and not in others.
    """
    test = PairedTest([("", lines)], {measure.name: measure.metric()}, [references], "bs", n_samples=resamples)
    signatures, results = test()
    ((name, signature),) = signatures.items()  # sacreBLEU's own name, such as "chrF2"
    (result,) = (result for result in results[name] if isinstance(result, Result))
    mean, margin = (float(number) for number in (result.mean, result.ci) if number is not None)
    return str(signature), mean, margin


def why_undefined(
    metric: sacrebleu.metrics.base.Metric, result: sacrebleu.metrics.base.Score, references: Sequence[str]
) -> str:
    """Return why this metric says nothing about translations of these references; empty if it says something.

    BLEU multiplies the shares of matching sequences of one to four tokens. If no reference has four tokens, it is 0
    for every translation, that of the reference itself included.
    """
    if not isinstance(metric, sacrebleu.metrics.BLEU) or not isinstance(result, BLEUScore) or result.counts[-1]:
        return ""
    has_sequence = metric.corpus_score(references, [references]).totals[-1]
    return "" if has_sequence else "no reference has four tokens"


def affordable(resamples: int, sentences: int, most: int = MOST_RESAMPLED) -> int:
    """Return `resamples`, lowered until they have at most `most` sentences together; 0 if too few are left."""
    count = min(resamples, most // sentences)
    return count if count >= FEWEST_RESAMPLES else 0


def has_rules(language: str) -> bool:
    """Return whether Moses has rules for the language."""
    import sacremoses

    return moses_code(language) in sacremoses.corpus.NonbreakingPrefixes().available_langs.values()


def tokenise(lines: Sequence[str], language: str) -> list[str]:
    """Moses punctuation normalisation and tokenisation, then lower case, as in Multi30k's *.lc.norm.tok.* files.

    Of its validation and test lines 99.9 per cent become exactly the same (test_bleu.py). If Moses has no rules
    for a language, it splits abbreviations as in English and at every apostrophe.
    """
    import sacremoses

    code = moses_code(language)
    normaliser, tokeniser = sacremoses.MosesPunctNormalizer(code), sacremoses.MosesTokenizer(code)
    return [tokeniser.tokenize(normaliser.normalize(line), return_str=True, escape=True).lower() for line in lines]
