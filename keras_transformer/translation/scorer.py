"""A trained run as a function from pairs of texts to the probability that it gives them."""

import dataclasses
import os
from collections.abc import Callable, Iterable

import tensorflow as tf

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.tokens import EOS
from keras_transformer.model import Transformer
from keras_transformer.pieces.batching import BATCH_SIZE, LONGEST_SOURCE, list_of_lines
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages, MarkReader
from keras_transformer.pieces.sources import (
    check_backend,
    check_batch_size,
    check_vocabulary,
    encoded_lines,
    longest_source,
    padded,
)
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.kinds import config_of
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions, check_coverage
from keras_transformer.search.scores import length_penalty as length_penalty_of
from keras_transformer.translation.forced import ForcedDecoder
from keras_transformer.translation.parallel import map_batches
from keras_transformer.translation.precision import in_precision
from keras_transformer.translation.traced import TracedAgain

LONGEST_TARGET = 2 * LONGEST_SOURCE  # tokens, EOS included, of a model without learned positions
OF_SCORES = ("length_penalty", "length_normalization", "coverage_penalty")  # the options that are in a score
MOST_LOGITS = 1 << 26  # of the tokens that are scored at once: 256 MiB


@dataclasses.dataclass(frozen=True)
class ScoredPair:
    """What the model makes of one pair.

    score: `log_probability` over the length penalty, and the coverage penalty, as a Translation has it without a
    repetition penalty.
    log_probability: natural logarithm, of all tokens, EOS included. pieces and piece_log_probabilities: of each token,
    EOS last. They are the pieces that the tokenizer divides the text into: a search may have written the same text in
    others, whose score is another.
    """

    score: float = 0.0
    log_probability: float = 0.0
    pieces: tuple[str, ...] = ()
    piece_log_probabilities: tuple[float, ...] = ()


class Scorer:
    """Scores given translations with a Transformer and its tokenizer (teacher forcing).

        scorer = Scorer.load("runs/numbers")
        scorer.score(["two hundred"], ["zweihundert"])[0].log_probability

    Args and errors: those of Translator. `length_penalty` is alpha of `beam_search`, `coverage_penalty` is beta, and
    `length_normalization` is that of SearchOptions. A source is truncated as by Translator. The piece of a language
    with which a target begins has the log-probability 0.
    """

    def __init__(
        self,
        transformer: Transformer,
        tokenizer: Tokenizer,
        length_penalty: float = SearchOptions.length_penalty,
        batch_size: int = BATCH_SIZE,
        max_source_tokens: int = LONGEST_SOURCE,
        coverage_penalty: float = SearchOptions.coverage_penalty,
        precision: str | None = "float32",
        length_normalization: str = SearchOptions.length_normalization,
        languages: Languages = NO_LANGUAGES,
    ):
        self.options = SearchOptions(  # raises ConfigError
            length_penalty=length_penalty, coverage_penalty=coverage_penalty, length_normalization=length_normalization
        )
        config = config_of(transformer)
        check_coverage(config, coverage_penalty)
        check_backend(type(self).__name__)
        check_vocabulary(config, tokenizer)
        check_batch_size(batch_size)
        self.tokenizer = tokenizer
        self._mark_reader, self.batch_size = MarkReader(languages, tokenizer), batch_size
        self.max_source_tokens = longest_source(config, max_source_tokens, self._mark_reader.most_in_source)
        self._longest_target = config.position_limit or LONGEST_TARGET
        self._most_tokens = max(1, MOST_LOGITS // config.vocab_size)
        self._pieces = tokenizer.pieces()
        transformer = in_precision(transformer, precision)
        forced, batch = ForcedDecoder(transformer), tf.TensorSpec((None, None), tf.int32)

        def log_probs_and_coverage(source, target) -> tuple:
            outputs = forced(source, target)
            coverage = outputs.log_coverage(source) if coverage_penalty else tf.zeros(tf.shape(source)[:1])
            return outputs.log_probs, coverage

        def trace() -> Callable:
            return tf.function(log_probs_and_coverage, input_signature=[batch, batch], autograph=False)

        self._forced = TracedAgain([transformer], trace)

    @classmethod
    def load(cls, run_folder: str | os.PathLike, **kwargs) -> "Scorer":
        """Open a run folder. What of a score is not given is as its inference.json says.

        Raises UserError if a file is missing or damaged, as before training has finished.
        """
        pair, inference = load_run(run_folder), RunFolder(run_folder).inference()
        of_run = {name: inference.search[name] for name in OF_SCORES if name in inference.search}
        return cls(*pair, **of_run | {"languages": inference.languages} | kwargs)

    def score(
        self, sources: Iterable[str], targets: Iterable[str], source_language: str = "", target_language: str = ""
    ) -> list[ScoredPair]:
        """Return what the model makes of each pair. A pair whose source is blank has the score 0 and no pieces.

        `source_language` and `target_language` are codes such as "de", for a model that knows several.
        Raises ConfigError if there is not one target per source, or the model lacks a language, and InputError if a
        target has more tokens than LONGEST_TARGET, or than the model has learned positions.
        """
        sources, targets = list_of_lines(sources, "Source"), list_of_lines(targets, "Target")
        if len(sources) != len(targets):
            raise ConfigError(
                f"There are {len(sources)} sources and {len(targets)} targets: give one target per source."
            )
        marks = self._mark_reader.marks(*self._mark_reader.languages.chosen(source_language, target_language))
        of_each = [marks] * len(sources)
        source_ids = list(
            encoded_lines(self.tokenizer, sources, self.max_source_tokens, tags=self._mark_reader.tags, marks=of_each)
        )
        target_ids = [[*marks.opening, *ids, EOS] for ids in self.tokenizer.encode_target_batch(targets)]
        for number, ids in enumerate(target_ids, 1):
            if len(ids) > self._longest_target:
                raise InputError(
                    f"Target {number} has {len(ids)} tokens, EOS included; at most {self._longest_target} are scored: "
                    "leave it out, or divide it."
                )
        results = [ScoredPair()] * len(sources)
        lengths = {index: max(len(ids), len(target_ids[index])) for index, ids in enumerate(source_ids) if ids}

        def score_batch(indices: list[int]) -> None:
            rows = max(1, self._most_tokens // max(len(target_ids[index]) for index in indices))
            for first in range(0, len(indices), rows):
                some = indices[first : first + rows]
                sources, targets = (padded([ids[index] for index in some]) for ids in (source_ids, target_ids))
                values = (of_pairs.numpy() for of_pairs in self._forced(sources, targets))
                for index, log_probs, coverage in zip(some, *values, strict=True):
                    log_probs[: len(marks.opening)] = 0.0
                    results[index] = self._scored(target_ids[index], log_probs, float(coverage))

        map_batches(score_batch, lengths, self.batch_size)
        return results

    def _scored(self, ids: list[int], log_probs, log_coverage: float) -> ScoredPair:
        log_probs = tuple(float(log_prob) for log_prob in log_probs[: len(ids)])
        total = sum(log_probs)
        options = self.options
        penalty = float(length_penalty_of(len(ids), options.length_penalty, options.length_normalization))
        score = total / penalty + options.coverage_penalty * log_coverage
        return ScoredPair(score, total, tuple(self._pieces[number] for number in ids), log_probs)
