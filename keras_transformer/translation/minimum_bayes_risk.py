"""Minimum Bayes risk: of several candidates, the one that is nearest to what the model would say in all.

A search returns what is most probable (MAP). Where much is possible, that one may be odd: too short, or a copy.
Eikema and Aziz (2020) draw translations from the model, and take the candidate with the highest expected utility over
them. The utility here is chrF (Popović 2015), whose counts of character n-grams can be averaged over all that was drawn
(Vamvas and Sennrich 2024): so the time grows with the number of candidates, not with its square.
"""

import collections
import contextlib
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.options import OPTIONS, SearchOptions, checked
from keras_transformer.text.asks import Ask
from keras_transformer.text.placing import Alignment
from keras_transformer.text.road import Candidates, Engine

ORDER, BETA = 6, 2.0  # of chrF: characters of the longest n-gram, and how much more recall counts
MOST_SAMPLES = 1024
USUAL_TEMPERATURE = 0.7
DRAWS = {"temperature", "beam_size", "n_best", "length_penalty", "seed"}  # options of a search that draws
AMONG = "top_k", "top_p"  # options that leave tokens out, after which log P does not tell how often a text is drawn

NGrams = Sequence[Mapping[str, float]]  # for each n, how often each n-gram occurs


class MinimumBayesRisk(Engine):
    """An engine that decides by expected chrF among what another one finds and draws.

        engine = kt.MinimumBayesRisk(kt.Translator.load("runs/mine"), samples=32)
        engine.translate(["A dog runs."])[0].text

    It takes what that engine takes, and returns as many of the candidates. The score of a Translation is its expected
    chrF, from 0 to 1; it has no confidence.

    Args:
        engine: a Translator, an ExportedTranslator, or a ServingClient: what draws with a temperature. All that its own
            search finds are candidates too.
        samples: translations that are drawn for each line, 1 to 1024. An export draws as many at once as its beam is
            wide.
        temperature: of what is drawn; the expectation is over P^(1 / temperature). None: that of the engine, which then
            searches without one, or 0.7 if it has none.
        seed: the same one draws the same. None: that of the engine.

    Raises ConfigError for a number beyond its limits, for an engine that does not draw, and for one that draws among
    some tokens alone (`top_k`, `top_p`).
    """

    def __init__(self, engine: Engine, samples: int = 32, temperature: float | None = None, seed: int | None = None):
        if type(samples) is not int or not 1 <= samples <= MOST_SAMPLES:
            raise ConfigError(f"samples is {samples!r:.60}; it must be a whole number from 1 to {MOST_SAMPLES}.")
        self._made_with = (samples, temperature, seed)
        if temperature is None:
            temperature = engine.own_option("temperature") or USUAL_TEMPERATURE
        if checked(OPTIONS["temperature"], temperature) == 0:
            raise ConfigError("temperature is 0, with which nothing is drawn; it must be above 0.")
        if not DRAWS <= engine.searches:
            raise ConfigError(
                f"{engine.name} does not draw translations, among which minimum Bayes risk decides: take a run, or a "
                "SavedModel of one."
            )
        for name in AMONG:
            if (value := engine.own_option(name)) not in (None, OPTIONS[name].default):
                raise ConfigError(f"{name} is {value}; minimum Bayes risk draws among all tokens: leave it out.")
        self.engine, self.name = engine, engine.name
        self.abilities, self.placeholders, self.aligns = engine.abilities, engine.placeholders, engine.aligns
        self.languages, self.options = engine.languages, engine.options
        beam_size, self.shown = engine.own_option("beam_size") or engine.beam_size, engine.own_option("n_best") or 1
        changed = {"n_best": beam_size} if beam_size > self.shown else {}
        changed |= {"temperature": 0.0} if engine.own_option("temperature") else {}
        self.beam = engine.with_options(changed) if changed else engine
        # an export searches with beams as wide as its own
        width = samples if isinstance(engine.options, SearchOptions) else min(samples, beam_size)
        draws = {"temperature": temperature, "beam_size": width, "n_best": width, "length_penalty": 0.0}
        draws |= {"coverage_penalty": 0.0} if "coverage_penalty" in engine.searches else {}  # a score is then log P
        first = engine.own_option("seed") or 0 if seed is None else seed
        rounds = range(math.ceil(samples / width))
        self.samplers = [(width, engine.with_options({**draws, "seed": first + number})) for number in rounds]

    def with_options(self, options: Mapping[str, Any]) -> Self:
        return type(self)(self.engine.with_options(options), *self._made_with)

    @property
    def beam_size(self) -> int:  # type: ignore[override]
        return self.engine.beam_size + sum(width for width, _ in self.samplers)

    def own_option(self, name: str) -> Any:
        return self.engine.own_option(name)

    @property
    def keeps_letterless(self) -> bool:
        return self.engine.keeps_letterless

    def told(self, ask: Ask) -> Ask:
        return self.engine.told(ask)

    def check_prefix(self, text: str) -> None:
        self.engine.check_prefix(text)

    def are_too_long(self, lines: list[str]) -> Sequence[bool]:
        return self.engine.are_too_long(lines)

    def align(self, pairs: Sequence[tuple[str, Translation]], asks: Sequence[Ask]) -> Sequence[Alignment]:
        return self.engine.align(pairs, asks)

    def search(self, lines: list[str], asks: Sequence[Ask], first_line: int) -> list[Candidates]:
        found = self.beam.search(lines, asks, first_line)
        with warned_already():
            drawn = [(width, sampler.search(lines, asks, first_line)) for width, sampler in self.samplers]
        return [
            decided(of_line, [(width, of_lines[number].translations) for width, of_lines in drawn], self.shown)
            for number, of_line in enumerate(found)
        ]


def decided(found: Candidates, drawn: Sequence[tuple[int, Sequence[Translation]]], shown: int = 1) -> Candidates:
    """Return the best by expected chrF, as many as are `shown`, of the candidates of a line and what was drawn.

    drawn: of each round the number of draws, and the different translations among them, whose scores are log P.
    """
    counts: dict[str, float] = collections.defaultdict(float)
    for draws, translations in drawn:
        expected = counts_of_draws([translation.score for translation in translations], draws)
        for translation, count in zip(translations, expected, strict=True):
            counts[translation.text] += count
    different = {each.text: each for _, translations in drawn for each in translations}
    different |= {each.text: each for each in found.translations}
    of_texts = {text: ngrams_of(text) for text in different}
    mean = mean_ngrams(counts, of_texts.__getitem__)
    utilities = {text: chrf(ngrams, mean) for text, ngrams in of_texts.items()}
    best = sorted(different, key=lambda text: -utilities[text])[:shown]
    translations = [different[text]._replace(score=utilities[text], confidence=None) for text in best]
    return Candidates(translations, truncated=found.truncated)


def counts_of_draws(log_probabilities: Sequence[float], draws: int) -> list[float]:
    """Return how often texts come among draws that have these texts alone: in all, as many as there are draws.

    Their log P may all be too low by the same: a prefix, which every draw has, counts in it, and a temperature below 1
    makes what is drawn more probable.
    """
    low, high = -100.0, 1000.0  # between which what is added to each is found
    for _ in range(40):
        middle = (low + high) / 2
        counts = [expected_count(each + middle, draws) for each in log_probabilities]
        low, high = (middle, high) if sum(counts) < draws else (low, middle)
    return counts


def expected_count(log_probability: float, draws: int) -> float:
    """Return how often a text with log-probability log P comes among draws, if it comes at least once.

    That is n P / (1 - (1 - P)^n): a search returns a text that was drawn several times once.
    """
    probability = math.exp(min(log_probability, 0.0))
    if probability in (0.0, 1.0):
        return draws if probability else 1.0
    is_drawn = -math.expm1(draws * math.log1p(-probability))
    return draws * probability / is_drawn if is_drawn else 1.0


def ngrams_of(text: str) -> NGrams:
    """Return how often each sequence of 1 to ORDER characters occurs in a text without its spaces."""
    joined = "".join(text.split())
    return [
        collections.Counter(joined[start : start + n] for start in range(len(joined) - n + 1))
        for n in range(1, ORDER + 1)
    ]


def mean_ngrams(counts: Mapping[str, float], ngrams_of: Callable[[str], NGrams] = ngrams_of) -> NGrams:
    """Return the mean of how often n-grams occur in texts, each of which counts so often."""
    total = sum(counts.values())
    means: list[dict[str, float]] = [collections.defaultdict(float) for _ in range(ORDER)]
    for text, count in counts.items():
        for mean, ngrams in zip(means, ngrams_of(text), strict=True):
            for ngram, occurrences in ngrams.items():
                mean[ngram] += occurrences * count / total
    return means


def chrf(ngrams: NGrams, reference: NGrams) -> float:
    """Return chrF, from 0 to 1: of the means of precision and recall over all n that both have (sacreBLEU's too).

    Two texts without characters are equal.
    """
    precisions, recalls = [], []
    for of_text, of_reference in zip(ngrams, reference, strict=True):
        if not of_text or not of_reference:
            continue
        matches = sum(min(count, of_reference.get(ngram, 0.0)) for ngram, count in of_text.items())
        precisions.append(matches / sum(of_text.values()))
        recalls.append(matches / sum(of_reference.values()))
    if not precisions:
        return 1.0 if not any(ngrams) and not any(reference) else 0.0
    precision, recall = (sum(values) / len(values) for values in (precisions, recalls))
    weighted = BETA**2 * precision + recall
    return (1 + BETA**2) * precision * recall / weighted if weighted else 0.0


@contextlib.contextmanager
def warned_already() -> Iterator[None]:
    """Within it, nothing is logged of the lines: a search of the same lines has done so."""
    log, quiet = logging.getLogger("keras_transformer"), lambda record: False
    log.addFilter(quiet)
    try:
        yield
    finally:
        log.removeFilter(quiet)
