"""What data.clean drops from training text, with examples, and what it would drop with keys that are not set."""

import collections
import dataclasses
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import on_one_line
from keras_transformer.inspection.markdown import escaped, table_of
from keras_transformer.text.cleaning import RULES, Cleaner, can_detect, check_languages, script_of

from ..config.data import DataSection
from .corpus import MOST_EXAMPLES, Pair, Split
from .encoding import EncodedPairs

MOST_TRIED = 30_000  # pairs at the beginning of a text on which rules are tried: seconds
FEWEST_OF_SCRIPT = 0.1  # of the letters of a side: a script that belongs to its language
LONGEST_SHOWN = 60  # characters of a side in the log


def cleaning_settings(data: DataSection) -> dict[str, Any]:
    """The rules of data.clean as a Cleaner takes them.

    Raises ConfigError for languages that are not known, or that the tags of a text with several languages decide.
    """
    settings = data.clean.settings() if data.clean else {}
    if settings.get("languages"):
        if data.tags:
            raise ConfigError(
                "data.clean.languages is true, but entries of data.train have tags, and so perhaps another language "
                "each: leave it out."
            )
        settings["languages"] = [data.source_language, data.target_language]
        check_languages(settings["languages"])
    return settings


def joined_examples(parts: Iterable[EncodedPairs]) -> dict[str, list[Pair]]:
    """Examples of what was dropped from several parts of a text: the first ones of each reason."""
    examples = collections.defaultdict(list)
    for part in parts:
        for reason, pairs in part.examples.items():
            examples[reason] = (examples[reason] + [tuple(pair) for pair in pairs])[:MOST_EXAMPLES]
    return dict(examples)


def dropped_table(parts: Iterable[EncodedPairs]) -> str:
    """Markdown of examples of the pairs that data.clean dropped from the parts of a text; "" if it dropped none."""
    examples = joined_examples(parts)
    rows = [(reason, *map(escaped, pair)) for reason, pairs in sorted(examples.items()) for pair in pairs]
    return table_of(("left out by `data.clean`, for example", "source", "target"), rows) if rows else ""


def dropped_lines(parts: Iterable[EncodedPairs]) -> Iterator[str]:
    """A line for the log per reason why data.clean dropped pairs, with one of them."""
    for reason, pairs in sorted(joined_examples(parts).items()):
        yield f"data.clean: {reason}, such as {shown(pairs[0])}"


def shown(pair: Pair) -> str:
    """A pair for the log, its beginning if it is long."""
    sides = (on_one_line(side) for side in pair)
    return " ||| ".join(side if len(side) <= LONGEST_SHOWN else f"{side[:LONGEST_SHOWN]}..." for side in sides)


@dataclasses.dataclass(frozen=True)
class Proposal:
    """A key of data.clean that would drop pairs: its line in TOML, how many pairs it drops alone, and one of them."""

    line: str
    count: int
    example: Pair


def proposals(split: Split, settings: dict[str, Any], data: DataSection) -> tuple[list[Proposal], int]:
    """Try every rule that is not among `settings` on the beginning of a text; languages if they can be detected.

    Returns the Proposals, in the order of RULES, and how many pairs were looked at.
    """
    pairs = list(itertools.islice(split, MOST_TRIED))
    values = {key: rule.proposal for key, rule in RULES.items() if rule.proposal is not None} | {"duplicates": True}
    values["source_scripts"], values["target_scripts"] = (scripts_of(side) for side in zip(*pairs, strict=True))
    languages = [data.source_language, data.target_language]
    if not data.tags and can_detect(languages):
        values["languages"] = languages
    found = []
    for key in (*RULES, "duplicates"):
        if key in settings or not values.get(key):
            continue
        cleaner = Cleaner({key: values[key]}, data.tags)
        dropped = [pair for pair in pairs if cleaner.reason_to_drop(*pair)]
        if dropped:
            value = True if key == "languages" else values[key]
            found.append(Proposal(f"{key} = {json.dumps(value)}", len(dropped), dropped[0]))
    return found, len(pairs)


def scripts_of(texts: Iterable[str]) -> list[str]:
    """The scripts that belong to a language: each has at least FEWEST_OF_SCRIPT of the letters; most frequent first."""
    counts = collections.Counter(filter(None, map(script_of, itertools.chain.from_iterable(texts))))
    return [script for script, count in counts.most_common() if count >= FEWEST_OF_SCRIPT * counts.total()]


def proposal_lines(split: Split, data: DataSection) -> Iterator[str]:
    """Lines for the log: which keys of data.clean would drop pairs that are trained on now, and how many."""
    found, looked_at = proposals(split, cleaning_settings(data), data)
    if not found:
        yield f"data.clean: no other rule would drop any of the first {looked_at:,} training pairs"
        return
    yield f"data.clean: keys that would drop some of the first {looked_at:,} training pairs; look at what, then choose"
    for proposal in found:
        yield f"data.clean.{proposal.line} would drop {proposal.count:,}, such as {shown(proposal.example)}"
