"""Translate with a LiteRT model. Importing this module imports neither TensorFlow nor Keras."""

import copy
import dataclasses
import functools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np

from keras_transformer.ground.errors import UserError
from keras_transformer.ground.machine import processor_cores
from keras_transformer.ground.tokens import PAD
from keras_transformer.lite.fixed_rules import fixed_rules
from keras_transformer.lite.interpreters import InterpreterPool, cannot_be_opened
from keras_transformer.pieces.hypotheses import translations_in
from keras_transformer.pieces.language_marks import MarkReader
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.pieces.sources import are_longer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.confidence import Calibration, confidence_by
from keras_transformer.runs.lite_folder import PREFIX_TOKENS, Description, LiteFolder, Room, why_damaged
from keras_transformer.search.options import LONGEST_OUTPUT, SearchOptions
from keras_transformer.text.asks import CONSTRAINTS, SPANS, Ask
from keras_transformer.text.constraints import NO_CONSTRAINTS, Constraints, LineReader, rule_of_openings, search_under
from keras_transformer.text.placeholders import placeholders_in
from keras_transformer.text.placing import Alignment
from keras_transformer.text.required import Phrases, loss_allowed
from keras_transformer.text.road import Candidates, Engine, refuse_beyond
from keras_transformer.text.word_alignment import Sequences, WordAligner


class LiteTranslator(Engine):
    """Translates with a folder that `keras-transformer export --format litert` wrote.

        translator = LiteTranslator("exports/multi30k_litert")
        translator.translate(["A dog runs across the field."])[0].text

    It translates as the Translator of the run does, with the options that the export was made with, and aligns words
    as it does if its file has the signature for it. Several sentences are translated at once, each by one thread.

    Args:
        folder: the folder of the model.
        n_best: different translations of each line that `translate_n_best` returns, at most the beam size.
        threads: how many batches are translated at once; None: one per core.

    Raises UserError if the folder holds no LiteRT model, if it is damaged, and if ai-edge-litert is not installed.
    """

    name = "This LiteRT model"
    abilities = SPANS | {"n_best"}

    def __init__(self, folder: str | os.PathLike, n_best: int = 1, threads: int | None = None):
        files = LiteFolder(folder)
        self.folder = files.path
        self.description = Description.load(files.description)
        self.options = SearchOptions(**self.description.search, n_best=n_best)
        if any(room.is_constrained for room in self.description.rooms):
            self.abilities = self.abilities | CONSTRAINTS
        self.tokenizer = open_tokenizer(files.tokenizer)
        if why := why_damaged(self.tokenizer.model_bytes, self.description.tokenizer_sha256):
            raise cannot_be_opened(files.tokenizer, ValueError(why))
        if not self.tokenizer.has_surfaces:
            self.abilities = frozenset({"n_best"})
        calibration = Calibration.load(files.calibration) if files.calibration.exists() else None
        self.languages, self.aligns = self.description.languages, self.description.alignment is not None
        self._aligner = WordAligner(self.tokenizer, self.description.max_source_tokens)
        self._confidence = confidence_by(calibration, self.options)
        cores = processor_cores() if threads is None else threads
        self._interpreters = InterpreterPool(files.model, cores, self.description.sha256)
        self._interpreters.prepare(smallest(self.description.rooms))

    @functools.cached_property
    def placeholders(self) -> int:  # type: ignore[override]
        return len(placeholders_in(self.tokenizer.pieces()))

    @property
    def beam_size(self) -> int:  # type: ignore[override]
        return self.options.beam_size

    def with_options(self, options: Mapping[str, Any]) -> Self:
        refuse_beyond(self, options)
        translator = copy.copy(self)
        translator.options = dataclasses.replace(self.options, **options)
        return translator

    def search(self, lines: list[str], asks: Sequence[Ask], first_line: int) -> list[Candidates]:
        sources, constraints = self._reader.read(lines, asks, first_line)
        found = search_under(constraints, asks, sources, self._search_ids, self.tokenizer.decode)
        if [] in found:
            raise UserError(
                f"Line {first_line + found.index([])} has no translation: the model's probabilities are NaN. Export a "
                "run with other weights."
            )
        return list(map(Candidates, found))

    def align(self, pairs: Sequence[tuple[str, Translation]], asks: Sequence[Ask]) -> Sequence[Alignment]:
        if not self.aligns:
            return super().align(pairs, asks)
        [alignments] = self._aligner.align_lines(self._attend, pairs, self._reader.marks(asks))
        return alignments

    def _attend(self, sources: Sequences, outputs: Sequences) -> list[np.ndarray]:
        """Return the attention of each pair, one after the other in as many threads as there are: float32 (1, T, S)."""
        found: list[Any] = [None] * len(sources)

        def attend(number: int) -> None:
            pair = (np.array([side[number]], np.int32) for side in (sources, outputs))
            found[number] = self._interpreters.attention(*pair)

        self._interpreters.map(attend, range(len(sources)))
        return found

    def _search_ids(self, sources: list[list[int]], asked: list[Constraints]) -> list[list[Translation]]:
        results = [[] if ids else [Translation("", 0.0, confidence=self._confidence(0.0, 0))] for ids in sources]
        lengths = {index: len(ids) for index, ids in enumerate(sources) if ids}
        inputs = {n: fixed_rules(line) for n, line in enumerate(asked) if n in lengths and not line.is_free}
        unfinished: dict[int, int] = {}  # lengths of sentences whose translation is longer than their room

        def translate_batch(batch: tuple[Room, list[int]]) -> None:
            room, indices = batch
            source_ids = np.full((room.rows, room.tokens), PAD, np.int32)
            for row, index in enumerate(indices):
                source_ids[row, : lengths[index]] = sources[index]
            rules = rule_of_openings([asked[index] for index in indices]) | inputs.get(indices[0], {})
            outputs = self._interpreters.run(room, source_ids, self.options.n_best, **rules)
            for row, index in enumerate(indices):
                if room.outputs is not None and not outputs["is_done"][row]:
                    unfinished[index] = lengths[index]
                results[index] = self._read(asked[index].phrases, {name: of[row] for name, of in outputs.items()})

        free = {index: length for index, length in lengths.items() if index not in inputs}
        others = {index: lengths[index] for index in inputs}
        rooms = [room for room in self.description.rooms if not room.is_constrained]
        constrained = [room for room in self.description.rooms if room.is_constrained]
        batches = (*batches_in_rooms(free, rooms), *batches_in_rooms(others, constrained))
        self._interpreters.map(translate_batch, batches)
        for_any_output = [room for room in rooms if room.outputs is None]
        self._interpreters.map(translate_batch, batches_in_rooms(unfinished, for_any_output))
        return results

    @functools.cached_property
    def _mark_reader(self) -> MarkReader:
        return MarkReader(self.languages, self.tokenizer)

    @functools.cached_property
    def _reader(self) -> LineReader:
        longest = self.description.max_source_tokens, PREFIX_TOKENS + 1, LONGEST_OUTPUT
        return LineReader(self.tokenizer, self._mark_reader, *longest)

    def check_prefix(self, text: str) -> None:
        fixed_rules(NO_CONSTRAINTS._replace(prefix=self._reader.prefix(text)))

    def are_too_long(self, lines: list[str]) -> list[bool]:
        """Return of each line whether it has more tokens than the export reads."""
        longest = self.description.max_source_tokens - self._mark_reader.most_in_source
        return are_longer(self.tokenizer, lines, longest)

    def _read(self, phrases: Phrases, outputs: Mapping[str, np.ndarray]) -> list[Translation]:
        """Return the hypotheses of one sentence as Translations with different texts.

        Shapes: ids (K, L), scores (K,), -inf for what no hypothesis filled, is_cut (K,), and lost (K,) if constrained.
        """
        ids, scores, is_cut = (outputs[name] for name in ("ids", "scores", "is_cut"))
        is_forced = outputs.get("lost", np.zeros_like(scores)) > loss_allowed(phrase.text for phrase in phrases)
        filled = np.flatnonzero(np.isfinite(scores))
        translations = translations_in(self.tokenizer, ids, scores, is_cut, is_forced, filled, self._confidence)
        return translations[: self.options.n_best]


def batches_in_rooms(lengths: Mapping[int, int], rooms: Iterable[Room]) -> Iterator[tuple[Room, list[int]]]:
    """Yield sentences of similar length, by their numbers, with the smallest room that they fill, longest first.

    `lengths` is the number of tokens of each sentence by its number. A room for several sentences is taken only if all
    its rows are filled: an empty row takes as long as a full one. Of equal rooms, the one of the shortest outputs is.
    """
    rooms = sorted(rooms, key=lambda room: (-room.rows, room.tokens, room.outputs or LONGEST_OUTPUT))
    left = sorted(lengths, key=lengths.__getitem__, reverse=True)
    while left:
        room = next(room for room in rooms if room.rows <= len(left) and lengths[left[0]] <= room.tokens)
        yield room, left[: room.rows]
        left = left[room.rows :]


def smallest(rooms: Iterable[Room]) -> Room:
    """Return the room of one short sentence, which is the likeliest to be the first one."""
    return min(rooms, key=lambda room: (room.is_constrained, room.rows, room.tokens, room.outputs or LONGEST_OUTPUT))
