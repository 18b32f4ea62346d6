"""SearchOptions: how to search. Its fields are the one table of all options of a search.

A row has the name, type and default of an option, its limits, what it does, and the rule with which a sentence asks for
another value than the rest of its batch. From the table come the options of every command (commands/options.py), the
inputs of the served graph (export/graph/request.py), the controls of the page, and the table in docs/serving.md. So a
new option is a row here, and code where it acts.
"""

import dataclasses
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

from keras_transformer.ground.errors import ConfigError

LONGEST_NGRAM = 8  # the largest no_repeat_ngram_size
LONGEST_OUTPUT = 100_000  # tokens, more than any sentence has
WIDEST_BEAM = 10_000  # a wider one fills the memory of the machine before anything is searched
LARGEST = 2**31 - 1
GNMT, TOKENS = "gnmt", "tokens"  # kinds of length normalization
OFF, ON = "off", "on"
SEARCH, OUTPUT, REPETITION, SAMPLING = "Search", "Output", "Repetition", "Sampling"  # groups on the page
# what `target_prefix` is
TARGET_PREFIX = (
    "The text with which a translation begins, to the character: Ei may go on as Ein. Its log-probability counts."
)


@dataclasses.dataclass(frozen=True)
class Option:
    """A row of the table.

    choices: the texts among which it chooses; () if it is a number, which has limits.
    rule: its name among the rules of a sentence (search/rules/); "" if all sentences of a search share its value.
    not_served: why a request to an export cannot ask for it; "" if it can.
    in_run: whether a run folder may have a value of its own, in inference.json; [translation] in the configuration has
    most of these keys.
    needs: the option without which it does nothing.
    reads_text: whether it is about the text of a sentence, of which the search itself knows nothing.
    """

    name: str
    is_whole: bool
    default: int | float | str | None
    lowest: float
    highest: float
    help: str
    group: str
    choices: tuple[str, ...] = ()
    rule: str = ""
    not_served: str = ""
    in_run: bool = False
    needs: str = ""
    reads_text: bool = False


def row(
    default: int | float | str | None, lowest: float, highest: float, help: str, group: str = SEARCH, **more: Any
) -> Any:
    """Return a field of SearchOptions that carries its row of the table; arguments as for Option."""
    return dataclasses.field(
        default=default, metadata=dict(lowest=lowest, highest=highest, help=help, group=group, **more)
    )


def choice(choices: tuple[str, ...], help: str, **more: Any) -> Any:
    """Return a field of SearchOptions that is one of several texts, the first by default; arguments as for Option."""
    return row(choices[0], 0, 0, help, choices=choices, **more)


@dataclasses.dataclass(frozen=True)
class SearchOptions:
    """How to search (Vaswani et al. 2017, section 6.1).

    Raises ConfigError for a value that is not a number, not a whole one, beyond its limits, or none of its choices, and
    for two options that contradict each other.
    """

    beam_size: int = row(
        4, 1, WIDEST_BEAM, "Hypotheses per sentence; 1 is greedy search.", rule="beam_sizes", in_run=True
    )
    length_penalty: float = row(  # ((5 + n) / 6)^9 of 100,000 tokens is a float32, the 10th power is not
        0.6,
        0,
        9,
        "The exponent alpha of score = log P / ((5 + tokens) / 6)^alpha, unless length_normalization is "
        "another; 0 is no penalty.",
        rule="length_penalties",
        in_run=True,
    )
    extra_length: int = row(
        50,
        1,
        LONGEST_OUTPUT,
        "A translation has at most as many tokens as its source, plus this number.",
        in_run=True,
        not_served="an export has one longest output for all requests, and max_length lowers it",
    )
    _: dataclasses.KW_ONLY
    length_normalization: str = choice(  # Wu et al. 2016, eq. 14; Marian's --normalize, and Hugging Face
        (GNMT, TOKENS),
        "By what log P is divided in a score: gnmt, ((5 + tokens) / 6)^alpha, or tokens, tokens^alpha, "
        "as Marian and Hugging Face do; alpha is length_penalty.",
        in_run=True,
        not_served="an export compares translations in one way, that of its run",
    )
    coverage_penalty: float = row(  # Wu et al. 2016 try at most 1; its rounding error grows with it
        0.0,
        0,
        10,
        "Beta of what is added to a score, beta x sum(log(min(a, 1))) over the tokens of the source; a is "
        "the sum of the attention that such a token got. It is against leaving out parts of a sentence; 0 is no "
        "penalty.",
        in_run=True,
        not_served="the graph of an export counts attention for all sentences, or for none",
    )
    shortlist: str = choice(
        (OFF, ON),
        "on: search over the pieces that the run's shortlist has for a sentence, in place of all pieces. "
        "Scores are then over these pieces.",
        in_run=True,
        not_served="an export searches with the shortlist of its run, or without one",
    )
    n_best: int = row(
        1, 1, WIDEST_BEAM, "Different translations per sentence, best first; at most beam_size.", rule="n_best"
    )
    sibling_penalty: float = row(  # gamma of Li et al. 2016
        0.0,
        0,
        100,
        "Makes hypotheses differ: when the beam is chosen, a continuation loses this much log-probability "
        "per better continuation of the same hypothesis. Scores are without it; 0: no such rule.",
        rule="sibling_penalties",
    )
    min_length: int = row(
        1,
        1,
        LONGEST_OUTPUT,
        "Tokens of the shortest translation, end of sentence included, if extra_length allows as many.",
        OUTPUT,
        rule="min_lengths",
    )
    max_length: int | None = row(
        None,
        1,
        LONGEST_OUTPUT,
        "Tokens of the longest translation, end of sentence included, if extra_length allows more.",
        OUTPUT,
        rule="limits",
    )
    require_numbers: int = row(
        0,
        0,
        1,
        "1: each number that the source has in digits must come in the translation as the source writes it; 0: no such "
        "rule.",
        OUTPUT,
        rule="require_numbers",
        reads_text=True,
    )
    keep_letterless: int = row(
        1,
        0,
        1,
        "1: a line without a letter of any script, such as 12345 or an emoji, comes back as it is; 0: it is "
        "translated, as by a model that reads numbers in digits.",
        OUTPUT,
        rule="keep_letterless",
        in_run=True,
        reads_text=True,
    )
    no_repeat_ngram_size: int = row(  # Paulus et al. 2018
        0,
        0,
        LONGEST_NGRAM,
        "No sequence of so many tokens comes twice in a translation; 0: no such rule.",
        REPETITION,
        rule="no_repeat_ngram_sizes",
        in_run=True,
    )
    repetition_penalty: float = row(  # after Keskar et al. 2019
        1.0,
        0.01,
        100,
        "Log-probabilities of tokens that a translation already has are multiplied by it, and count so "
        "in its score; 1: no such rule.",
        REPETITION,
        rule="repetition_penalties",
        in_run=True,
    )
    temperature: float = row(
        0.0,
        0,
        100,
        "Above 0: draw tokens from P^(1/temperature) instead of searching, beam_size times.",
        SAMPLING,
        rule="temperatures",
    )
    top_k: int = row(  # Fan et al. 2018
        0,
        0,
        LARGEST,
        "With a temperature: draw among the k most probable tokens; 0: among all.",
        SAMPLING,
        rule="top_ks",
        needs="temperature",
    )
    top_p: float = row(  # Holtzman et al. 2020
        1.0,
        0,
        1,
        "With a temperature: draw among the fewest most probable tokens whose sum reaches p; 1: among all.",
        SAMPLING,
        rule="top_ps",
        needs="temperature",
    )
    seed: int = row(
        0,
        -LARGEST - 1,
        LARGEST,
        "With a temperature: the same seed draws the same translation of a sentence, whatever else is translated.",
        SAMPLING,
        rule="seeds",
        needs="temperature",
    )

    def __post_init__(self):
        for option in OPTIONS.values():
            object.__setattr__(self, option.name, checked(option, getattr(self, option.name)))
        for law in LAWS:
            value, other = getattr(self, law.name), getattr(self, law.other)
            if None not in (value, other) and not law.holds(value, other):
                raise ConfigError(f"{law.name} is {value} and {law.other} is {other}: {law.sentence}")


OPTIONS = {
    field.name: Option(field.name, field.type not in (float, str), getattr(SearchOptions, field.name), **field.metadata)
    for field in dataclasses.fields(SearchOptions)
}
RUN_OPTIONS = tuple(option.name for option in OPTIONS.values() if option.in_run)


class Law(NamedTuple):
    """What must hold between two options of a sentence. `holds` takes two numbers, or two tensors (B,)."""

    name: str
    other: str
    sentence: str
    holds: Callable


LAWS = (
    Law("n_best", "beam_size", "n_best must not exceed beam_size.", lambda n, k: n <= k),
    Law("min_length", "max_length", "min_length must not exceed max_length.", lambda least, most: least <= most),
    Law(
        "top_k",
        "temperature",
        "top_k needs a temperature above 0, without which nothing is drawn.",
        lambda k, temperature: (k == 0) | (temperature > 0),
    ),
    Law(
        "top_p",
        "temperature",
        "top_p needs a temperature above 0, without which nothing is drawn.",
        lambda p, temperature: (p == 1) | (temperature > 0),
    ),
)


def check_options(options: Any) -> None:
    """Raises TypeError if these are no SearchOptions."""
    if not isinstance(options, SearchOptions):
        raise TypeError(f"options must be SearchOptions, such as SearchOptions(beam_size=4). Received: {options!r:.60}")


def check_reads_no_text(options: SearchOptions, what: str) -> None:
    """Raises ConfigError for an option that reads text, in a search of `what`, which gets none."""
    for option in OPTIONS.values():
        if option.reads_text and not option.in_run and (value := getattr(options, option.name)) != option.default:
            raise ConfigError(f"{option.name} is {value}, which {what} does not know: leave it out.")


def checked(option: Option, value: Any) -> int | float | str | None:
    """Return a value as Python's own int, float or str.

    Raises ConfigError if it is no number, beyond the limits, or none of the choices.
    """
    if value is None and option.default is None:
        return None
    if option.choices:
        if not isinstance(value, str) or value not in option.choices:
            raise ConfigError(f"{option.name} is {value!r}; it must be one of {', '.join(option.choices)}.")
        return str(value)
    is_number = isinstance(value, numbers.Integral if option.is_whole else numbers.Real) and not isinstance(value, bool)
    if not is_number or not option.lowest <= value <= option.highest:
        what = "a whole number" if option.is_whole else "a number"
        raise ConfigError(f"{option.name} is {value!r}; it must be {what} from {option.lowest} to {option.highest}.")
    return int(value) if option.is_whole else float(value)


def check_coverage(config: Any, beta: float, key: str = "coverage_penalty") -> None:
    """Raises ConfigError, which names `key`, for a coverage penalty of a model that does not attend to its source.

    config: of the model.
    """
    if beta and not config.memory_attentions:
        raise ConfigError(f"{key} is {beta}, but this model does not attend to its source: make it 0.")
