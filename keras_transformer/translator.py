"""A trained run as a function from text to translations."""

import dataclasses
import logging
import pathlib

import numpy as np
import tensorflow as tf

from keras_transformer.config import ConfigError, TransformerConfig
from keras_transformer.decoding import IncrementalDecoder, SearchOptions, search
from keras_transformer.decoding.scores import NEVER
from keras_transformer.model import Transformer
from keras_transformer.tokenizer import Tokenizer
from keras_transformer.tokens import EOS, PAD

log = logging.getLogger("keras_transformer")

DEFAULT_OPTIONS = SearchOptions()
LENGTHS = (16, 32, 64, 128, 256, 512)  # padded source lengths: one compilation for each that occurs


@dataclasses.dataclass(frozen=True)
class Translation:
    """One translation of one sentence.

    score: natural log-probability of the output, EOS included, over ((5 + tokens) / 6)^alpha; 0 or less, higher is
    better. ids: the output's tokens, EOS included; empty for an empty line.
    """

    text: str
    score: float
    ids: tuple[int, ...] = ()


class Translator:
    """Translates with a Transformer and its tokenizer.

        translator = Translator.load("runs/numbers")
        translator.translate(["two hundred and forty-one"])[0].text

    Sentences are sorted by length into batches of few static shapes, searched under XLA, and returned in their order.

    Args:
        transformer, tokenizer: a trained pair.
        options: how to search.
        batch_size: sentences searched together.
        max_source_tokens: what a sentence is cut to, EOS included, with a warning that names its line; at most 512.
        xla: compile the search. The first batch of each shape then takes seconds longer.
    """

    def __init__(
        self, transformer, tokenizer, options=DEFAULT_OPTIONS, batch_size=32, max_source_tokens=LENGTHS[-1], xla=True
    ):  # fmt: skip
        if not 2 <= max_source_tokens <= LENGTHS[-1]:
            raise ConfigError(f"max_source_tokens is {max_source_tokens}; it must be from 2 to {LENGTHS[-1]}.")
        if batch_size < 1:
            raise ConfigError(f"batch_size is {batch_size}; it must be at least 1.")
        config = transformer.transformer_config
        if config.positions == "learned":
            max_source_tokens = min(max_source_tokens, config.max_positions)
        self.tokenizer, self.options = tokenizer, options
        self.batch_size, self.max_source_tokens = batch_size, max_source_tokens
        decoder = IncrementalDecoder(transformer)
        self._search = tf.function(lambda ids: tuple(search(decoder, ids, options)), jit_compile=xla)

    @classmethod
    def load(cls, run_folder, options=DEFAULT_OPTIONS, **kwargs):
        """Open a run folder. Raises ConfigError if it is none, or if the training in it has not yet finished."""
        return cls(*load_run(run_folder), options, **kwargs)

    def translate(self, lines, first_line=1):
        """The best translation of each line, in their order: a list of Translation.

        `first_line` is the number that warnings give to the first of `lines`, which may be part of a longer text.
        """
        return [candidates[0] for candidates in self.translate_n_best(lines, first_line)]

    def translate_n_best(self, lines, first_line=1):
        """Up to `options.n_best` different translations of each line, best first: a list of lists of Translation."""
        if isinstance(lines, str):
            raise TypeError(f"lines must be a list of sentences, not one string. Received: {lines!r}")
        lines = list(lines)
        results = [[Translation("", 0.0)]] * len(lines)
        encoded = {number: ids for number, ids in enumerate(self._encode(lines, first_line)) if ids}
        for numbers in self._batches(encoded):
            hypotheses = self._search(self._padded([encoded[number] for number in numbers]))
            for number, ids, scores in zip(numbers, *(part.numpy() for part in hypotheses), strict=False):
                results[number] = self._read(ids, scores)
        return results

    def _encode(self, lines, first_line):
        """Ids of each line with EOS, none for a line without text; too long ones cut, and said."""
        for number, (line, ids) in enumerate(zip(lines, self.tokenizer.encode_batch(lines), strict=True), first_line):
            if not line.strip():
                yield []
                continue
            if len(ids) >= self.max_source_tokens:
                log.warning(
                    "line %d has %d tokens; only the first %d are translated",
                    number, len(ids), self.max_source_tokens - 1,
                )  # fmt: skip
                ids = ids[: self.max_source_tokens - 1]
            yield [*ids, EOS]

    def _batches(self, encoded):
        """Line numbers in groups of at most batch_size, of about one length each."""
        in_order = sorted(encoded, key=lambda number: (len(encoded[number]), number))
        by_shape = {}
        for number in in_order:
            by_shape.setdefault(self._padded_length(len(encoded[number])), []).append(number)
        for numbers in by_shape.values():
            for first in range(0, len(numbers), self.batch_size):
                yield numbers[first : first + self.batch_size]

    def _padded_length(self, length):
        return next(padded for padded in LENGTHS if length <= padded)

    def _padded(self, rows):
        """Lists of ids -> int32 (1 or batch_size, padded length); what is not needed is padding."""
        count = 1 if len(rows) == 1 else self.batch_size
        batch = np.full((count, self._padded_length(max(map(len, rows)))), PAD, np.int32)
        for row, ids in zip(batch, rows, strict=False):
            row[: len(ids)] = ids
        return tf.constant(batch)

    def _read(self, ids, scores):
        """One sentence's hypotheses (K, L) and scores (K,) -> Translations, no text twice."""
        translations = {}
        for hypothesis, score in zip(ids, scores, strict=True):
            if score > NEVER / 2:
                tokens = tuple(int(token) for token in hypothesis if token != PAD)
                text = self.tokenizer.decode(tokens)
                translations.setdefault(text, Translation(text, float(score), tokens))
        return list(translations.values())[: self.options.n_best]


def load_run(run_folder):
    """The Transformer and the Tokenizer of a run folder. Raises ConfigError if something is missing in it."""
    folder = pathlib.Path(run_folder)
    if not folder.is_dir():
        raise ConfigError(f"There is no run folder {folder}. `python -m train CONFIG` makes one.")
    for name in ("model.json", "tokenizer.model", "model.weights.h5"):
        if not (folder / name).exists():
            raise ConfigError(
                f"{folder} has no {name}: it is not a run folder, or its training has not finished. "
                "`python -m train CONFIG` finishes it."
            )
    tokenizer = Tokenizer(folder / "tokenizer.model")
    config = TransformerConfig.load(folder / "model.json")
    if config.vocab_size != tokenizer.vocab_size:
        raise ConfigError(
            f"{folder}: model.json has a vocabulary of {config.vocab_size} and tokenizer.model one of "
            f"{tokenizer.vocab_size}: the two do not belong together."
        )
    return with_weights(Transformer(config), folder / "model.weights.h5"), tokenizer


def with_weights(transformer, path):
    """The transformer, its weights read from `path`. Raises ConfigError where they are not its weights."""
    try:
        transformer.load_weights(path)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"{path} does not hold the weights of the model that model.json describes: {reason}"
        ) from None
    return transformer
