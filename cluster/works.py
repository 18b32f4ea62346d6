"""What is done with a batch on a worker: for each command a small function over one signature of an export."""

import dataclasses
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from keras_transformer.ground.errors import UserError
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.asks import NOTHING, SOURCE_LANGUAGE, TARGET_LANGUAGE, Ask
from keras_transformer.text.cleaning import DUPLICATE, DUPLICATES, Cleaner, detector
from keras_transformer.text.road import Candidates, Engine, refuse_beyond, translate

from .engines import Outputs, Refused
from .errors import ClusterError

Row = tuple[str, ...]
Inputs = tuple[tuple[str, Any], ...]  # options of the search that shall not have the export's value
Search = Callable[[Sequence[str]], list[Candidates]]  # of texts; raises Refused
Rows = list[Row]
TEXT, NUMBER, TRUTH = "string", "double", "boolean"  # as Spark calls the types of columns
OF_TRANSLATION = {"translation": TEXT, "score": NUMBER, "is_cut": TRUTH}


class Work(Protocol):
    """An object of it goes to the workers, so it must be picklable; what it prints says what the output depends on."""

    @property
    def outputs(self) -> dict[str, str]:
        """The columns that a row gets, with their types."""

    @property
    def example(self) -> Row:
        """A row without text."""

    def on(self, engine: Any) -> Callable[[Rows], Outputs]:
        """Return the function of a batch. Raises ClusterError if the export cannot do this work."""


@dataclasses.dataclass(frozen=True)
class Translate:
    """A text to its translation, as `keras-transformer translate-export` does; with `inputs`, as they say.

    tag: is put before each translation, with a space. ask: what each line asks for. confidence: whether there is
    a column of it, for an export of a calibrated run.
    """

    inputs: Inputs = ()
    tag: str = ""
    ask: Ask = NOTHING
    confidence: bool = False
    example = ("",)

    @property
    def outputs(self) -> dict[str, str]:
        more = {"truncated": TRUTH} if self.inputs or self.ask.names else {}
        more |= {"unplaced": TEXT} if self.ask.names else {}
        return OF_TRANSLATION | more | ({"confidence": NUMBER} if self.confidence else {})

    def on(self, engine: Engine) -> Callable[[Rows], Outputs]:
        search = search_of(engine, dict(self.inputs), self.ask)
        return lambda rows: [self.written(candidates) for candidates in search([text for (text,) in rows])]

    def written(self, candidates: Candidates) -> dict[str, Any]:
        best = candidates.translations[0]
        if self.confidence and best.confidence is None:
            raise ClusterError(
                "The export has no confidences, since its run was not calibrated: `keras-transformer calibrate RUN` "
                "does, then export it again; or leave out --confidence."
            )
        text = f"{self.tag} {best.text}".rstrip() if self.tag else best.text
        unplaced = "\n".join(best.unplaced) or None
        values = outputs_of(best) | {"translation": text, "truncated": candidates.truncated, "unplaced": unplaced}
        values["confidence"] = best.confidence and round(best.confidence, 4)
        return {name: values[name] for name in self.outputs}


@dataclasses.dataclass(frozen=True)
class Nearest:
    """A text and its reference to that translation of the beam which is nearest to the reference by sentence chrF.

    Kim and Rush 2016, section 3.3, with chrF (Popović 2015) in place of BLEU. Of equals, the most probable one.
    ask: the languages.
    """

    inputs: Inputs = ()
    ask: Ask = NOTHING
    example = ("", "")
    outputs = OF_TRANSLATION | {"truncated": TRUTH, "chrf": NUMBER}

    def on(self, engine: Engine) -> Callable[[Rows], Outputs]:
        from sacrebleu import sentence_chrf

        engine = engine.with_options(dict(self.inputs))
        search = search_of(engine, {"n_best": engine.beam_size}, self.ask)

        def nearest(rows: Rows) -> Outputs:
            outputs = []
            for candidates, (_, reference) in zip(search([text for text, _ in rows]), rows, strict=True):
                chrfs = [round(sentence_chrf(each.text, [reference]).score, 2) for each in candidates.translations]
                best = chrfs.index(max(chrfs))
                more = {"truncated": candidates.truncated, "chrf": chrfs[best]}
                outputs.append(outputs_of(candidates.translations[best]) | more)
            return outputs

        return nearest


@dataclasses.dataclass(frozen=True)
class Clean:
    """A pair to the reason why a training would drop it, by the rules of data.clean; None if none does.

    settings: a value for each key of RULES (keras_transformer/text/cleaning.py) that shall count, and of DUPLICATES: a
    row then has a third text, which is not empty if the pair came before (duplicates.py). Needs no export.
    """

    settings: tuple[tuple[str, Any], ...] = ()
    outputs = {"dropped": TEXT}

    @property
    def duplicates(self) -> bool:
        return bool(dict(self.settings).get(DUPLICATES))

    @property
    def example(self) -> Row:
        return ("", "", "") if self.duplicates else ("", "")

    def on(self, engine: None) -> Callable[[Rows], Outputs]:
        settings = dict(self.settings)
        check_languages(settings.get("languages", ()))
        cleaner = Cleaner({key: value for key, value in settings.items() if key != DUPLICATES})

        def dropped(source: str, target: str, repeated: str = "") -> str | None:
            return cleaner.reason_to_drop(source, target) or (DUPLICATE if repeated else None)

        return lambda rows: [{"dropped": dropped(*row)} for row in rows]


def check_languages(languages: Sequence[str]) -> None:
    """Raises ClusterError if the detector is not installed on a worker, or does not know these codes."""
    if not languages:
        return
    if importlib.util.find_spec("py3langid") is None:
        raise ClusterError("--languages needs the package py3langid on all workers: install it there, or leave it out.")
    if unknown := sorted(set(languages) - set(detector().labels)):
        raise ClusterError(
            f"--languages has {unknown[0]!r}, which the detector does not know; it knows "
            f"{', '.join(sorted(detector().labels))}."
        )


@dataclasses.dataclass(frozen=True)
class Score:
    """A text and a translation to the log-probability of the translation, EOS included. ask: the languages."""

    ask: Ask = NOTHING
    example = ("", "")
    outputs = {"score": NUMBER, "log_probability": NUMBER, "truncated": TRUTH}

    def on(self, engine: Any) -> Callable[[Rows], Outputs]:
        refuse_beyond(engine, ["score"])
        languages = {SOURCE_LANGUAGE: self.ask.source_language, TARGET_LANGUAGE: self.ask.target_language}

        def score(rows: Rows) -> Outputs:
            texts, translations = zip(*rows, strict=True)
            told = {name: [code] * len(rows) for name, code in languages.items() if code}
            columns = engine.call("score", {"text": list(texts), "translation": list(translations), **told})
            values = zip(*(columns[name] for name in self.outputs), strict=True)
            return [dict(zip(self.outputs, rounded(row), strict=True)) for row in values]

        return score


def outputs_of(translation: Translation) -> dict[str, Any]:
    """Return the outputs that every translation has."""
    score = round(translation.score, 4)
    return {"translation": translation.text, "score": score, "is_cut": translation.is_cut}


def rounded(row: Sequence[Any]) -> list[Any]:
    """Return the values of a row, numbers with four decimals."""
    return [round(value, 4) if isinstance(value, float) else value for value in row]


def search_of(engine: Engine, options: Mapping[str, Any], ask: Ask) -> Search:
    """Return the search of an export with these options, for lines each of which asks for this.

    Raises ConfigError for what the export is not able to do.
    """
    refuse_beyond(engine, ask.names)
    asked = engine.with_options(options)

    def search(texts: Sequence[str]) -> list[Candidates]:
        try:
            return translate(asked, texts, [ask] * len(texts), first_line=None)
        except UserError as error:  # such as a regular expression of a glossary that takes too long for a line
            raise Refused(str(error)) from None

    return search
