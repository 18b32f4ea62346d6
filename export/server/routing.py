"""Which of the served models translate from one language to another: one of them, or two by way of a third language."""

import collections
import functools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.language_marks import named
from keras_transformer.pieces.languages import short_code

from .errors import RequestError, invalid, shown
from .models import Models
from .version import Version

USUAL_PIVOT = "en"  # the third language, if it can be: most models have it on one side
ALIASES = {"zt": "zh-hant", "pb": "pt-br"}  # codes of LibreTranslate


class Side(NamedTuple):
    """The languages on one side of a version: by the code that clients use, that of the model."""

    codes: Mapping[str, str]


@functools.lru_cache(maxsize=128)  # two per model
def side_of(*own: str) -> Side:
    """Return a side with the codes of a model. Its "deu_Latn" is "de"; "zho_Hans" beside another "zh" is "zh-Hans"."""
    counts = collections.Counter(map(short_code, own))
    codes = {}
    for code in own:
        short, variant = short_code(code), code.replace("_", "-").split("-")[1:]
        codes[short if counts[short] == 1 else "-".join([short, *variant])] = code
    return Side(codes)


class Served(NamedTuple):
    """A model that is served, with its highest version and the languages on both sides of it."""

    model: str
    version: Version
    source: Side
    target: Side


class Hop(NamedTuple):
    """A translation by one model; the codes are its own, "" for one that it does not know by name."""

    model: str
    source: str
    target: str


class Route(NamedTuple):
    """How a text gets from one language to another; both in codes that clients use.

    hops: none if they are the same language. through: the language between two hops, or "".
    """

    source: str
    target: str
    hops: tuple[Hop, ...]
    through: str = ""


class Languages(NamedTuple):
    """The languages of all models that are served."""

    served: tuple[Served, ...]

    @classmethod
    def of(cls, models: Models) -> "Languages":
        """Return those of the highest version of each model that tells both what it reads and what it writes."""
        versions = [(folder.name, folder.versions[0]) for folder in models if folder.versions]
        return cls(
            tuple(
                Served(name, version, side_of(*version.languages.source), side_of(*version.languages.target))
                for name, version in versions
                if version.languages.source and version.languages.target
            )
        )

    def of_model(self, model: str) -> "Languages":
        """Return those of one model."""
        return Languages(tuple(each for each in self.served if each.model == model))

    @property
    def sources(self) -> list[str]:
        """Codes of what can be translated, in the order of the models."""
        return list(dict.fromkeys(code for each in self.served for code in each.source.codes))

    @property
    def all(self) -> list[str]:
        """Codes of all languages on any side."""
        targets = (code for each in self.served for code in each.target.codes)
        return list(dict.fromkeys([*self.sources, *targets]))

    def targets(self, source: str) -> list[str]:
        """Return the codes of what a language can become, itself included: directly, then through a third one."""
        direct = self._from(source)
        readers = (each for each in self.served if not each.source.codes.keys().isdisjoint(direct))
        return list(dict.fromkeys([source, *direct, *(code for each in readers for code in each.target.codes)]))

    def _from(self, source: str) -> list[str]:
        return [code for each in self.served if source in each.source.codes for code in each.target.codes]

    def _hops(self, source: str, target: str) -> Iterator[Hop]:
        for each in self.served:
            if source in each.source.codes and target in each.target.codes:
                yield Hop(each.model, each.source.codes[source], each.target.codes[target])

    def code(self, asked: str) -> str:
        """Return the code of a language as this server has it: "de" for "DE", "deu" and "de-AT".

        Raises RequestError if it is not served, or if several variants of it are.
        """
        known = {code.lower(): code for code in self.all}
        first, *variant = asked.lower().replace("_", "-").split("-")
        lowered = "-".join([short_code(first), *variant])
        lowered = ALIASES.get(lowered, lowered)
        if lowered in known:
            return known[lowered]
        found = [code for code in known.values() if short_code(code) == short_code(lowered)]
        if len(found) == 1:
            return found[0]
        if found:
            raise invalid(f"{shown(asked)} is {named(found)} here: name one of them.")
        raise not_served(asked, self.all)

    def route(self, source: str, target: str) -> Route:
        """Return the way between two languages, in codes of `code`. Raises RequestError if there is none."""
        if source == target:
            return Route(source, target, ())
        if direct := next(self._hops(source, target), None):
            return Route(source, target, (direct,))
        pivots = sorted(dict.fromkeys(self._from(source)), key=lambda code: code != USUAL_PIVOT)  # stable
        for pivot in pivots:
            first, second = (next(self._hops(*pair), None) for pair in ((source, pivot), (pivot, target)))
            if first and second:
                return Route(source, target, (first, second), pivot)
        others = [code for code in self.targets(source) if code != source]
        raise invalid(f"No model here translates {source} to {target}; {source} becomes {named(others) or 'nothing'}.")


def route_of_model(version: Version, model: str, source: str, target: str) -> Route:
    """Return the way through one model that a client names; a language may be "". Raises RequestError."""
    try:
        own_source, own_target = version.languages.chosen(source, target)
    except ConfigError as error:
        raise invalid(str(error)) from None
    return Route(source or own_source, target or own_target, (Hop(model, own_source, own_target),))


def not_served(code: str, known: list[str]) -> RequestError:
    """Return the error of a language that no model has."""
    if not known:
        return invalid(
            "No model here tells its languages: export it from a run that names them, or ask it by /v1/models/NAME."
        )
    return invalid(f"{shown(code)} is not supported; this server has {named(known)}.")
