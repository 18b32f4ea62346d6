"""Translate with a LiteRT model. Importing this module imports neither TensorFlow nor Keras."""

import concurrent.futures
import contextlib
import importlib.util
import os
import pathlib
import queue
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from keras_transformer.batching import list_of_lines
from keras_transformer.confidence import Calibration, confidence_by
from keras_transformer.decoding.options import LONGEST_OUTPUT, SearchOptions
from keras_transformer.errors import UserError, first_line_of
from keras_transformer.hypotheses import translations_in
from keras_transformer.lite.folder import Description, LiteFolder, Room
from keras_transformer.lite.notice import without_notice
from keras_transformer.machine import processor_cores
from keras_transformer.model_config import ConfigError
from keras_transformer.pair_tokenizer import open_tokenizer
from keras_transformer.sources import encoded_lines
from keras_transformer.tokens import PAD
from keras_transformer.translation import Translation


class LiteTranslator:
    """Translates with a folder that `keras-transformer export --format litert` wrote.

        translator = LiteTranslator("exports/multi30k_litert")
        translator.translate(["A dog runs across the field."])[0].text

    It translates as the Translator of the run does, with the options that the export was made with. Several sentences
    are translated at once, each by one thread.

    Args:
        folder: the folder of the model.
        n_best: different translations of each line that `translate_n_best` returns, at most the beam size.
        threads: how many batches are translated at once; None: one per core.

    Raises UserError if the folder holds no LiteRT model, if it is damaged, and if ai-edge-litert is not installed.
    """

    def __init__(self, folder: str | os.PathLike, n_best: int = 1, threads: int | None = None):
        files = LiteFolder(folder)
        self.folder = files.path
        self.description = Description.load(files.description)
        self.options = SearchOptions(**self.description.search, n_best=n_best)
        self.tokenizer = open_tokenizer(files.tokenizer)
        calibration = Calibration.load(files.calibration) if files.calibration.exists() else None
        self._confidence = confidence_by(calibration, self.options)
        self._searches = SearchPool(files.model, processor_cores() if threads is None else threads)
        self._searches.prepare(self.description.rooms[0])

    def translate(self, lines: Iterable[str], first_line: int = 1) -> list[Translation]:
        """Return the best translation of each line, in the order of the lines; `first_line` as for Translator."""
        return [candidates[0] for candidates in self.translate_n_best(lines, first_line)]

    def translate_n_best(self, lines: Iterable[str], first_line: int = 1) -> list[list[Translation]]:
        """Return up to `n_best` different translations of each line, best first.

        Raises UserError if a line has none, since the model's probabilities are NaN.
        """
        lines = list_of_lines(lines)
        ids_of_lines = encoded_lines(self.tokenizer, lines, self.description.max_source_tokens, first_line)
        sources = {index: ids for index, ids in enumerate(ids_of_lines) if ids}
        results = [[Translation("", 0.0, confidence=self._confidence(0.0, 0))] for _ in lines]
        lengths = {index: len(ids) for index, ids in sources.items()}
        unfinished: dict[int, int] = {}  # lengths of sentences whose translation is longer than their room

        def translate_batch(batch: tuple[Room, list[int]]) -> None:
            room, indices = batch
            source_ids = np.full((room.rows, room.tokens), PAD, np.int32)
            for row, index in enumerate(indices):
                source_ids[row, : lengths[index]] = sources[index]
            outputs = self._searches.run(room, source_ids, self.options.n_best)
            for row, index in enumerate(indices):
                if room.outputs is not None and not outputs["is_done"][row]:
                    unfinished[index] = lengths[index]
                results[index] = self._read(outputs["ids"][row], outputs["scores"][row], outputs["is_cut"][row])

        rooms = self.description.rooms
        self._searches.map(translate_batch, batches_in_rooms(lengths, rooms))
        for_any_output = [room for room in rooms if room.outputs is None]
        self._searches.map(translate_batch, batches_in_rooms(unfinished, for_any_output))
        if lost := [index for index in sources if not results[index]]:
            raise UserError(
                f"Line {first_line + lost[0]} has no translation: the model's probabilities are NaN. Export a run with "
                "other weights."
            )
        return results

    def _read(self, ids: np.ndarray, scores: np.ndarray, is_cut: np.ndarray) -> list[Translation]:
        """Return the hypotheses of one sentence as Translations with different texts.

        Shapes: ids (K, L), scores (K,), -inf for what no hypothesis filled, is_cut (K,).
        """
        filled = np.flatnonzero(np.isfinite(scores))
        translations = translations_in(self.tokenizer, ids, scores, is_cut, filled, self._confidence)
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


class SearchPool:
    """The interpreters of one file, each of which has one thread and serves one call at a time."""

    def __init__(self, model: pathlib.Path, size: int):
        self._model, self._size = model, size
        self._idle: queue.LifoQueue[Any] = queue.LifoQueue()
        for _ in range(size - 1):
            self._idle.put(None)  # made when it is needed
        self._idle.put(first_interpreter(model))  # on top: it is taken first

    def prepare(self, room: Room) -> None:
        """Reserve the memory of a room in one interpreter, so that the first sentence does not wait for it."""
        with self._taken() as idle:
            idle.get_signature_runner(room.signature)

    def run(self, room: Room, source_ids: np.ndarray, n_best: int) -> dict[str, np.ndarray]:
        """Search for the sentences of a room, int32 (rows, tokens): see `lite_model`."""
        with self._taken() as idle:
            return idle.get_signature_runner(room.signature)(
                source_ids=source_ids, n_best=np.full(room.rows, n_best, np.int32)
            )

    def map(self, translate: Any, batches: Iterable[tuple[Room, list[int]]]) -> None:
        """Call `translate` for each batch, as many at once as there are interpreters."""
        batches = list(batches)
        if len(batches) <= 1 or self._size == 1:
            for batch in batches:
                translate(batch)
            return
        with concurrent.futures.ThreadPoolExecutor(self._size) as executor:
            for _ in executor.map(translate, batches):
                pass

    @contextlib.contextmanager
    def _taken(self) -> Iterator[Any]:
        idle = self._idle.get()
        try:
            idle = interpreter(self._model) if idle is None else idle
            yield idle
        finally:
            self._idle.put(idle)


def require_litert() -> None:
    """Raises ConfigError if LiteRT is not installed."""
    if importlib.util.find_spec("ai_edge_litert") is None:
        raise ConfigError(
            "LiteRT models need the package ai-edge-litert, which is not installed: "
            "pip install 'keras-transformer-mt[litert]'."
        )


def first_interpreter(model: pathlib.Path) -> Any:
    """Return an interpreter that has its memory: LiteRT's notice comes then, and only for the first one of a process.

    Raises ConfigError as `interpreter` does.
    """
    with without_notice():
        first = interpreter(model)
        try:
            first.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise cannot_be_opened(model, error) from None
    return first


def interpreter(model: pathlib.Path) -> Any:
    """Return an interpreter with one thread. Raises ConfigError if the file is damaged or LiteRT is not installed."""
    require_litert()
    from ai_edge_litert.interpreter import Interpreter

    try:
        return Interpreter(model_path=str(model), num_threads=1)
    except (ValueError, RuntimeError) as error:
        raise cannot_be_opened(model, error) from None


def cannot_be_opened(model: pathlib.Path, error: Exception) -> ConfigError:
    """Return the error of a file that LiteRT refuses."""
    return ConfigError(f"{model} cannot be opened: {first_line_of(error)} Export the run again.")
