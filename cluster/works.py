"""What is done with a batch on a worker: for each command a small function over one signature of an export."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from keras_transformer.normalization import is_blank
from keras_transformer.text.cleaning import Cleaner

from .engines import GraphEngine, LiteEngine, Outputs, Refused
from .errors import ClusterError

Rows = list[tuple[str, ...]]
Inputs = tuple[tuple[str, float], ...]  # of the signature translate: those that shall not have the export's value
TEXT, NUMBER, TRUTH = "string", "double", "boolean"  # as Spark calls the types of columns
NO_SCORE = -1e8  # below every score of a translation that was found; the graph writes -1e9 in place of one
OF_TRANSLATION = {"translation": TEXT, "score": NUMBER, "is_cut": TRUTH}


class Work(Protocol):
    """An object of it goes to the workers, so it must be picklable.

    outputs: the columns that a row gets, with their types. example: a row without text.
    """

    outputs: dict[str, str]
    example: tuple[str, ...]

    def on(self, engine: GraphEngine | LiteEngine) -> Callable[[Rows], Outputs]:
        """Return the function of a batch. Raises ClusterError if the export cannot do this work."""


class Translate(NamedTuple):
    """A text to its translation, as `keras-transformer translate-export` does; with `inputs`, as they say.

    tag: is put before each translation, with a space.
    """

    inputs: Inputs = ()
    tag: str = ""
    example = ("",)

    @property
    def outputs(self) -> dict[str, str]:
        return OF_TRANSLATION | ({"truncated": TRUTH} if self.inputs else {})

    def on(self, engine: GraphEngine | LiteEngine) -> Callable[[Rows], Outputs]:
        if self.inputs:
            best = candidates_of(engine, self.inputs, n_best=1)
            return lambda rows: [self.tagged(candidates[0]) for candidates in best([text for (text,) in rows])]
        if isinstance(engine, LiteEngine):
            return lambda rows: [self.tagged(outputs) for outputs in engine.translate([text for (text,) in rows])]
        engine.require("serving_default", ("translation", "score"))

        def translate(rows: Rows) -> Outputs:
            columns = engine.call("serving_default", text=[text for (text,) in rows])
            is_cut = columns.get("is_cut", [None] * len(rows))  # older exports do not tell
            translations = zip(columns["translation"], columns["score"], is_cut, strict=True)
            return [self.tagged(translation_of(*translation)) for translation in translations]

        return translate

    def tagged(self, outputs: dict[str, Any]) -> dict[str, Any]:
        if self.tag:
            outputs["translation"] = f"{self.tag} {outputs['translation']}".rstrip()
        return outputs


class Nearest(NamedTuple):
    """A text and its reference to that translation of the beam which is nearest to the reference by sentence chrF.

    Kim and Rush 2016, section 3.3, with chrF (Popović 2015) in place of BLEU. Of equals, the most probable one.
    """

    inputs: Inputs = ()
    example = ("", "")
    outputs = OF_TRANSLATION | {"truncated": TRUTH, "chrf": NUMBER}

    def on(self, engine: GraphEngine | LiteEngine) -> Callable[[Rows], Outputs]:
        from sacrebleu import sentence_chrf

        candidates_in = candidates_of(engine, self.inputs)  # as many as the beam has

        def nearest(rows: Rows) -> Outputs:
            outputs = []
            for candidates, (_, reference) in zip(candidates_in([text for text, _ in rows]), rows, strict=True):
                for candidate in candidates:
                    chrf = sentence_chrf(candidate["translation"], [reference]).score
                    candidate["chrf"] = round(chrf, 2)
                outputs.append(max(candidates, key=lambda candidate: candidate["chrf"]))
            return outputs

        return nearest


class Clean(NamedTuple):
    """A pair to the reason why a training would drop it, by the rules of data.clean; None if none does.

    settings: a value for each key of RULES (keras_transformer/text/cleaning.py) that shall count. Needs no export.
    """

    settings: tuple[tuple[str, Any], ...] = ()
    example = ("", "")
    outputs = {"dropped": TEXT}

    def on(self, engine: None) -> Callable[[Rows], Outputs]:
        cleaner = Cleaner(dict(self.settings))
        return lambda rows: [{"dropped": cleaner.reason_to_drop(*pair)} for pair in rows]


class Score(NamedTuple):
    """A text and a translation to the log-probability of the translation, EOS included."""

    example = ("", "")
    outputs = {"score": NUMBER, "log_probability": NUMBER, "truncated": TRUTH}

    def on(self, engine: GraphEngine | LiteEngine) -> Callable[[Rows], Outputs]:
        graph_only(engine).require("score", tuple(self.outputs))

        def score(rows: Rows) -> Outputs:
            texts, translations = zip(*rows, strict=True)
            columns = engine.call("score", text=list(texts), translation=list(translations))
            values = zip(*(columns[name] for name in self.outputs), strict=True)
            return [dict(zip(self.outputs, rounded(row), strict=True)) for row in values]

        return score


def candidates_of(
    engine: GraphEngine | LiteEngine, inputs: Inputs, n_best: int | None = None
) -> Callable[[Sequence[str]], list[Outputs]]:
    """Return a function of texts to the translations of each, best first: at least one, at most `n_best`.

    n_best: None is as many as the beam has. Raises ClusterError if the export has no signature translate, or not these
    inputs.
    """
    graph_only(engine).require("translate", ("translations", "scores", "is_cut", "truncated"), dict(inputs))
    beam_size = dict(inputs).get("beam_size", engine.default("translate", "beam_size"))
    inputs = (*inputs, ("n_best", beam_size if n_best is None else n_best))

    def candidates(texts: Sequence[str]) -> list[Outputs]:
        columns = engine.call("translate", text=list(texts), **{name: [value] for name, value in inputs})
        for text, scores in zip(texts, columns["scores"], strict=True):
            if scores[0] < NO_SCORE and not is_blank(text):
                raise Refused("The model's probabilities are NaN, so that the line has no translation.")
        rows = zip(*(columns[name] for name in ("translations", "scores", "is_cut", "truncated")), strict=True)
        return [
            [
                translation_of(*translation) | {"truncated": truncated}
                for rank, translation in enumerate(zip(translations, scores, is_cut, strict=True))
                if rank == 0 or translation[0]  # beyond n_best there is nothing
            ]
            for translations, scores, is_cut, truncated in rows
        ]

    return candidates


def graph_only(engine: GraphEngine | LiteEngine) -> GraphEngine:
    """Return the engine. Raises ClusterError if it is a LiteRT model, which searches in one way."""
    if isinstance(engine, LiteEngine):
        raise ClusterError(
            "A LiteRT model translates in the one way that it was exported with: leave out the options of the search, "
            "or take an export without --format litert."
        )
    return engine


def translation_of(text: bytes, score: float, is_cut: bool | None) -> dict[str, Any]:
    """Return a translation of a graph as outputs."""
    return {"translation": text.decode(), "score": 0.0 if score < NO_SCORE else round(score, 4), "is_cut": is_cut}


def rounded(row: Sequence[Any]) -> list[Any]:
    """Return the values of a row, numbers with four decimals."""
    return [round(value, 4) if isinstance(value, float) else value for value in row]
