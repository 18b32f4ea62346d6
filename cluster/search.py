"""What an export finds for texts, with every protected span: three roads, one shape."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from keras_transformer.ground.errors import InputError
from keras_transformer.pieces.normalization import is_blank
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.placeholders import placeholders_in, placeholders_known
from keras_transformer.text.placing import Alignment, alignment_of
from keras_transformer.text.protected import Abilities, translate_protected
from keras_transformer.text.spans import Protection

from .engines import Engine, GraphEngine, LiteEngine, Refused
from .errors import ClusterError

Inputs = tuple[tuple[str, float], ...]  # of the signature translate: those that shall not have the export's value
NO_SCORE = -1e8  # below every score of a translation that was found; the graph writes -1e9 in place of one


class Candidates(NamedTuple):
    """The translations of a text, best first and at least one; their word alignments, if the export tells them.

    truncated: whether the text was longer than the model takes; None if the export does not tell.
    """

    translations: list[Translation]
    truncated: bool | None = None
    alignments: tuple[str, ...] = ()


Search = Callable[[Sequence[str]], list[Candidates]]  # of texts; raises Refused


def best_of(engine: Engine) -> Search:
    """Return the search of an export as it was made, for the best translation. Raises ClusterError if it has none."""
    if isinstance(engine, LiteEngine):
        return lambda texts: [Candidates([translation]) for translation in engine.translate(texts)]
    engine.require("serving_default", ("translation", "score"))

    def best(texts: Sequence[str]) -> list[Candidates]:
        columns = engine.call("serving_default", text=list(texts))
        nothing = [None] * len(texts)  # older exports do not tell what is cut, and uncalibrated ones no confidence
        is_cut, confidences = (columns.get(name, nothing) for name in ("is_cut", "confidence"))
        rows = zip(columns["translation"], columns["score"], is_cut, confidences, strict=True)
        return [Candidates([translation_of(*row)]) for row in rows]

    return best


def candidates_of(engine: Engine, inputs: Inputs, n_best: int | None = None) -> Search:
    """Return the search for at most `n_best` translations with some inputs of the signature translate.

    n_best: None is as many as the beam has. Raises ClusterError if the export has no such signature, or not these
    inputs.
    """
    engine = graph_only(engine)
    outputs = ("translations", "scores", "is_cut", "truncated", "alignments")
    engine.require("translate", outputs, dict(inputs))
    beam_size = dict(inputs).get("beam_size", engine.default("translate", "beam_size"))
    values = dict(inputs) | {"n_best": beam_size if n_best is None else n_best}

    def candidates(texts: Sequence[str]) -> list[Candidates]:
        columns = engine.call("translate", text=list(texts), **{name: [value] for name, value in values.items()})
        for text, scores in zip(texts, columns["scores"], strict=True):
            if scores[0] < NO_SCORE and not is_blank(text):
                raise Refused("The model's probabilities are NaN, so that the line has no translation.")
        confidences = columns.get("confidences", [[None] * len(scores) for scores in columns["scores"]])
        of_translation = [columns["translations"], columns["scores"], columns["is_cut"], confidences]
        return [
            Candidates(
                [
                    translation_of(*translation)
                    for rank, translation in enumerate(zip(*row, strict=True))
                    if rank == 0 or translation[0]  # beyond n_best there is nothing
                ],
                truncated,
                tuple(alignment.decode() for alignment in alignments),
            )
            for *row, truncated, alignments in zip(
                *of_translation, columns["truncated"], columns["alignments"], strict=True
            )
        ]

    return candidates


def protecting(engine: Engine, inputs: Inputs, protection: Protection) -> Search:
    """Return the search for the best translation that has every span of `protection`.

    From alignments of words each span is put in its place; a LiteRT model has none, so that spans which it does not
    copy are unplaced. Raises ClusterError as `candidates_of`.
    """
    aligns = not isinstance(engine, LiteEngine) or bool(inputs)
    if isinstance(engine, LiteEngine) and not inputs:
        search, known = best_of(engine), len(placeholders_in(engine.pieces()))
    else:
        search, known = candidates_of(engine, inputs, n_best=1), placeholders_of(graph_only(engine))

    def protected(texts: Sequence[str]) -> list[Candidates]:
        rows: list[Candidates] = []
        alignments: dict[tuple[str, str], str] = {}

        def translate(lines: list[str]) -> list[list[Translation]]:
            rows.extend(search(lines))
            for line, row in zip(lines, rows, strict=True):
                of_row = zip(row.translations, row.alignments, strict=False)
                alignments.update({(line, each.text): alignment for each, alignment in of_row})
            return [row.translations for row in rows]

        def align(pairs: list[tuple[str, Translation]]) -> list[Alignment]:
            return [alignment_of(alignments.get((line, each.text), "")) for line, each in pairs]

        try:
            found = translate_protected(texts, protection, translate, align, abilities=Abilities(known, aligns=aligns))
        except InputError as error:  # a regular expression of a glossary takes too long for a line
            raise Refused(str(error)) from None
        return [row._replace(translations=each) for row, each in zip(rows, found, strict=True)]

    return protected


def placeholders_of(engine: GraphEngine) -> int:
    """Return how many placeholders of protected spans the model of an export knows; 0 if it does not tell."""
    if not engine.has("tokenize"):
        return 0
    return placeholders_known(lambda text: engine.call("tokenize", text=[text])["pieces"][0].decode().split(" "))


def graph_only(engine: Engine) -> GraphEngine:
    """Return the engine. Raises ClusterError if it is a LiteRT model, which searches in one way."""
    if isinstance(engine, LiteEngine):
        raise ClusterError(
            "A LiteRT model translates in the one way that it was exported with: leave out the options of the search, "
            "or take an export without --format litert."
        )
    return engine


def translation_of(text: bytes, score: float, is_cut: bool | None, confidence: float | None) -> Translation:
    """Return a translation of a graph."""
    return Translation(text.decode(), 0.0 if score < NO_SCORE else score, (), is_cut, confidence=confidence)
