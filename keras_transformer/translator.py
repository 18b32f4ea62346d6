"""A trained run as a function from text to translations."""

import dataclasses
import logging
import os
from collections.abc import Iterable, Iterator

import numpy as np
import tensorflow as tf

from keras_transformer.batching import BATCH_SIZE, BYTES_PER_TOKEN, LONGEST_SOURCE, list_of_lines
from keras_transformer.config import ConfigError, SearchOptions, TransformerConfig
from keras_transformer.decoding import IncrementalDecoder, search
from keras_transformer.decoding.scores import NEVER
from keras_transformer.errors import first_line_of
from keras_transformer.model import Transformer
from keras_transformer.parallel import at_the_same_time
from keras_transformer.processor import has_bfloat16_products
from keras_transformer.run_folder import RunFolder
from keras_transformer.tokenizer import Tokenizer
from keras_transformer.tokens import EOS, PAD

log = logging.getLogger("keras_transformer")

DEFAULT_OPTIONS = SearchOptions()
PRECISIONS = ("float32", "bfloat16")


@dataclasses.dataclass(frozen=True)
class Translation:
    """One translation of one sentence.

    score: natural log-probability of the output, EOS included, over ((5 + tokens) / 6)^alpha; at most 0, higher is
    better. ids: the tokens of the output, EOS included; none if the line is empty.
    """

    text: str
    score: float
    ids: tuple[int, ...] = ()


class Translator:
    """Translates with a Transformer and its tokenizer.

        translator = Translator.load("runs/numbers")
        translator.translate(["two hundred and forty-one"])[0].text

    Sentences are sorted by length into batches, and as many batches as there are processor cores are searched at the
    same time; translations come back in the order of the sentences. Products of one thread then serve best: commands
    call `tune_for_translation()` before anything else of TensorFlow, and so should a script that translates much.

    Args:
        transformer, tokenizer: a trained pair.
        options: how to search.
        batch_size: sentences searched together, at most.
        max_source_tokens: longer sentences are truncated to this number of tokens, EOS included, with a warning
            that names the line; at most 512, and at most `max_positions` if positions are learned.
        precision: "float32" or "bfloat16", of the weights and the matrix products; softmax, LayerNorm and scores are
            float32 in any case. The weights of a Transformer of another precision are copied here; those of one of
            the same precision are read at each search. None means the precision of the Transformer.
    """

    def __init__(
        self,
        transformer: Transformer,
        tokenizer: Tokenizer,
        options: SearchOptions = DEFAULT_OPTIONS,
        batch_size: int = BATCH_SIZE,
        max_source_tokens: int = LONGEST_SOURCE,
        precision: str | None = "float32",
    ):
        if not 2 <= max_source_tokens <= LONGEST_SOURCE:
            raise ConfigError(f"max_source_tokens is {max_source_tokens}; it must be from 2 to {LONGEST_SOURCE}.")
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}; it must be at least 1.")
        config = transformer.transformer_config
        if config.positions == "learned":
            max_source_tokens = min(max_source_tokens, config.max_positions)
        self.tokenizer, self.options = tokenizer, options
        self.batch_size, self.max_source_tokens = batch_size, max_source_tokens
        decoder = IncrementalDecoder(in_precision(transformer, precision or transformer.precision))
        self._search = tf.function(
            lambda ids: tuple(search(decoder, ids, options)),
            input_signature=[tf.TensorSpec((None, None), tf.int32)],
            autograph=False,
        )

    @classmethod
    def load(cls, run_folder: str | os.PathLike, options: SearchOptions = DEFAULT_OPTIONS, **kwargs) -> "Translator":
        """Open a run folder. Raises UserError if a file is missing or damaged, as before training has finished."""
        return cls(*load_run(run_folder), options, **kwargs)

    def translate(self, lines: Iterable[str], first_line: int = 1) -> list[Translation]:
        """Return the best translation of each line, in the order of the lines.

        `first_line` is the number of the first line in warnings, for lines that are part of a longer text.
        """
        return [candidates[0] for candidates in self.translate_n_best(lines, first_line)]

    def translate_n_best(self, lines: Iterable[str], first_line: int = 1) -> list[list[Translation]]:
        """Return up to `options.n_best` different translations of each line, best first."""
        lines = list_of_lines(lines)
        results = [[Translation("", 0.0)]] * len(lines)
        encoded = {index: ids for index, ids in enumerate(self._encode(lines, first_line)) if ids}
        lengths = {index: len(ids) for index, ids in encoded.items()}

        def translate_batch(indices: list[int]) -> None:
            ids, scores = self._search(padded([encoded[index] for index in indices]))
            for index, *hypotheses in zip(indices, ids.numpy(), scores.numpy(), strict=True):
                results[index] = self._read(*hypotheses)

        at_the_same_time(translate_batch, lengths, self.batch_size)
        return results

    def _encode(self, lines: list[str], first_line: int) -> Iterator[list[int]]:
        """Yield the token ids of each line, ending in EOS; [] for a blank line. Truncate long lines with a warning."""
        most_bytes = self.max_source_tokens * BYTES_PER_TOKEN
        cut = [first_bytes(line, most_bytes) for line in lines]
        for number, (line, ids) in enumerate(zip(cut, self.tokenizer.encode_batch(cut), strict=True), first_line):
            if not lines[number - first_line].strip():
                yield []
                continue
            if len(line) < len(lines[number - first_line]):
                log.warning("line %d is longer than %d bytes; only these are translated", number, most_bytes)
            if len(ids) >= self.max_source_tokens:
                longest = self.max_source_tokens - 1
                log.warning("line %d has %d tokens; only the first %d are translated", number, len(ids), longest)
                ids = ids[:longest]
            yield [*ids, EOS]

    def _read(self, ids: np.ndarray, scores: np.ndarray) -> list[Translation]:
        """Return the hypotheses of one sentence, ids (K, L) and scores (K,), as Translations with different texts."""
        translations = {}
        for hypothesis, score in zip(ids, scores, strict=True):
            if score > NEVER / 2:
                tokens = tuple(int(token) for token in hypothesis if token != PAD)
                text = self.tokenizer.decode(tokens)
                translations.setdefault(text, Translation(text, float(score), tokens))
        return list(translations.values())[: self.options.n_best]


def first_bytes(line: str, most: int) -> str:
    """Return the line, cut to so many bytes of UTF-8. A character that the cut divides is gone."""
    if len(line) * 4 <= most:
        return line
    return line.encode("utf-8")[:most].decode("utf-8", "ignore")


def padded(rows: list[list[int]]) -> tf.Tensor:
    """Return lists of ids as int32 (rows, longest); missing ids are PAD."""
    batch = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, ids in zip(batch, rows, strict=True):
        row[: len(ids)] = ids
    return tf.constant(batch)


def in_precision(transformer: Transformer, precision: str) -> Transformer:
    """Return the transformer if it has this precision, else a copy that has it: "float32" or "bfloat16".

    Raises ConfigError for any other.
    """
    if precision == transformer.precision:
        return transformer
    if precision not in PRECISIONS:
        raise ConfigError(f"precision is {precision!r}; it must be one of {', '.join(PRECISIONS)}.")
    if precision == "bfloat16" and not has_bfloat16_products():
        log.warning("this processor has no instructions for bfloat16 products: float32 will be faster")
    converted = Transformer(transformer.transformer_config, dtype=precision)
    for weight, value in zip(converted.weights, transformer.weights, strict=True):
        weight.assign(value)
    return converted


def load_run(path: str | os.PathLike) -> tuple[Transformer, Tokenizer]:
    """Return the Transformer and the Tokenizer of a run folder. Raises UserError if a file is missing or damaged."""
    folder = RunFolder(path)
    if not folder.path.is_dir():
        raise ConfigError(f"There is no run folder {folder.path}. `python -m train CONFIG` makes one.")
    for file in (folder.model, folder.tokenizer, folder.weights):
        if not file.exists():
            raise ConfigError(
                f"{folder.path} has no {file.name}: it is not a run folder, or its training has not finished. "
                "`python -m train CONFIG` finishes it."
            )
    tokenizer = Tokenizer(folder.tokenizer)
    config = TransformerConfig.load(folder.model)
    if config.vocab_size != tokenizer.vocab_size:
        raise ConfigError(
            f"{folder.path}: model.json has a vocabulary of {config.vocab_size} and tokenizer.model one of "
            f"{tokenizer.vocab_size}: they do not belong together."
        )
    return with_weights(Transformer(config), folder.weights), tokenizer


def with_weights(transformer: Transformer, path: str | os.PathLike) -> Transformer:
    """Load the weights at `path` into the transformer. Raises ConfigError if they are damaged or of another model."""
    try:
        transformer.load_weights(path)
    except (OSError, ValueError, RuntimeError, LookupError) as error:  # HDF5 reports damage by any of these
        raise ConfigError(
            f"{path} is damaged, or does not hold the weights of the model that model.json describes: "
            f"{first_line_of(error)}"
        ) from None
    for weight in transformer.weights:
        if not np.isfinite(weight.numpy()).all():
            raise ConfigError(f"{path} is damaged: {weight.path} has values that are NaN or infinite.")
    return transformer
