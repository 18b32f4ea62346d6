"""A trained run as a function from a sentence to how its translation comes about."""

import dataclasses
import os
from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.batching import list_of_lines
from keras_transformer.pieces.hypotheses import different_outputs, tokens_of
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages, MarkReader
from keras_transformer.pieces.prefixes import PrefixReader, rules_of_prefixes
from keras_transformer.pieces.sources import check_vocabulary, encoded_lines
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.kinds import config_of, incremental_decoder
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions, check_coverage, check_options, check_reads_no_text
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.placeholders import rule_of_placeholders
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.scores import NAN_PROBABILITIES, NEVER, NotFiniteError
from keras_transformer.search.trace import EXPLAINED_TOKENS, Continuations, traced_search
from keras_transformer.shortlist.shortlist import Shortlist, shortlist_of
from keras_transformer.text.placeholders import placeholders_in
from keras_transformer.translation.compiled_search import table_for
from keras_transformer.translation.forced import Forced, ForcedDecoder
from keras_transformer.translation.precision import in_precision


@dataclasses.dataclass(frozen=True)
class ExplainedTranslation:
    """A translation with the pieces that it is made of, EOS last, and the natural log-probability of each.

    The log-probabilities are the model's own, over all pieces. In `score`, they are over the shortlist, if there is
    one; those that a repetition penalty multiplies count so, and the coverage penalty is added. is_cut: whether its
    limit ended it, though the model would have continued it.
    """

    text: str
    score: float
    log_probability: float
    pieces: list[str]
    piece_log_probabilities: list[float]
    is_cut: bool


@dataclasses.dataclass(frozen=True)
class Explanation:
    """How the translations of a sentence come about; `dataclasses.asdict` of it is JSON.

    translations: different ones, best first. attention: of the best one, by "memory", "encoder" and "decoder", lists
    of (block, head, query, key), empty if the model has no such attention. beam: what the search looked at,
    `Continuations` with pieces in place of tokens.
    """

    source: str
    options: dict[str, Any]
    source_pieces: list[str]
    truncated: bool
    translations: list[ExplainedTranslation]
    attention: dict[str, list]
    beam: list[dict[str, Any]]


class Explainer:
    """Translates a sentence and shows how: attention of every head, probability of every piece, the beam as a tree.

        Explainer.load("runs/numbers").explain("two hundred").translations[0].pieces

    Reads at most EXPLAINED_TOKENS tokens of a sentence, and writes at most as many. `precision`, `shortlist` and
    errors are those of Translator.
    """

    def __init__(
        self,
        transformer: keras.Model,
        tokenizer: Tokenizer,
        options: SearchOptions | None = None,
        precision: str | None = "float32",
        shortlist: Shortlist | None = None,
        languages: Languages = NO_LANGUAGES,
    ):
        config = config_of(transformer)
        check_vocabulary(config, tokenizer)
        self.tokenizer, self.options = tokenizer, SearchOptions() if options is None else options
        check_options(self.options)
        check_reads_no_text(self.options, "an Explainer")
        check_coverage(config, self.options.coverage_penalty)
        self._shortlist = table_for(self.options, shortlist, tokenizer)
        self._transformer = in_precision(transformer, precision)
        self._decoder, self._forced = incremental_decoder(self._transformer), ForcedDecoder(self._transformer)
        self._pieces, self._mark_reader = tokenizer.pieces(), MarkReader(languages, tokenizer)
        self.most_tokens = min(EXPLAINED_TOKENS, config.position_limit or EXPLAINED_TOKENS)

    @classmethod
    def load(cls, run_folder: str | os.PathLike, options: SearchOptions | None = None) -> "Explainer":
        """Open a run folder; without `options`, it searches as its inference.json says.

        Raises UserError if a file is missing or damaged, as before training has finished.
        """
        pair = load_run(run_folder)
        folder = RunFolder(run_folder)
        inference = folder.inference()
        options = inference.options() if options is None else options
        return cls(*pair, options, shortlist=shortlist_of(folder, options), languages=inference.languages)

    def explain(
        self, sentence: str, prefix: str = "", source_language: str = "", target_language: str = ""
    ) -> Explanation:
        """Translate a sentence and return how; `prefix` is how the translation must begin, languages are codes.

        Raises ConfigError if the sentence is blank, the model lacks a language or `quantize` has replaced weights of
        it, UserError if its probabilities are NaN, and InputError if the prefix is longer than a translation may be.
        """
        config_of(self._transformer)
        [sentence], [prefix] = list_of_lines([sentence], "Sentence"), list_of_lines([prefix], "Prefix")
        marks = self._mark_reader.marks(*self._mark_reader.languages.chosen(source_language, target_language))
        [ids] = encoded_lines(self.tokenizer, [sentence], self.most_tokens, tags=self._mark_reader.tags, marks=[marks])
        if not ids:
            raise ConfigError("The sentence is blank: give one with words.")
        limit = min(self.options.max_length or self.most_tokens, self.most_tokens)
        rules = {"limits": ops.convert_to_tensor([limit], dtype="int32")}
        if prefix:
            of_prefix = rules_of_prefixes([PrefixReader(self.tokenizer).read(prefix, self.most_tokens)])
            rules |= {name: ops.convert_to_tensor(rule, dtype="int32") for name, rule in of_prefix.items()}
        if marks.opening:
            rules["openings"] = ops.convert_to_tensor(marks.opening, dtype="int32")
        source_ids = ops.convert_to_tensor([ids], dtype="int32")
        rules |= rule_of_placeholders(placeholders_in(self._pieces), source_ids)
        plan = SearchPlan(self.options, Rules.of(rules), self._shortlist)
        finished, continuations = traced_search(self._decoder, source_ids, plan)
        hypotheses, scores, is_cut = (ops.convert_to_numpy(leaf[0]) for leaf in finished)
        filled = np.flatnonzero(scores > NEVER / 2)
        rows = list(different_outputs(self.tokenizer, hypotheses, filled).values())[: self.options.n_best]
        if not rows:
            raise NotFiniteError(f"The sentence {NAN_PROBABILITIES}")
        hypotheses, scores, is_cut = hypotheses[rows], scores[rows], is_cut[rows]
        forced = self._forced(np.repeat([ids], len(rows), axis=0), hypotheses)
        return Explanation(
            source=sentence,
            options=dataclasses.asdict(self.options) | {"target_prefix": prefix},
            source_pieces=self._pieces_of(ids),
            truncated=len(self.tokenizer.encode(sentence)) >= self.most_tokens - self._mark_reader.most_in_source,
            translations=[
                self._translation(*row)
                for row in zip(hypotheses, scores, without_price(forced, len(marks.opening)), is_cut, strict=True)
            ],
            attention=self._attention(forced, int(np.count_nonzero(hypotheses[0] != PAD))),
            beam=self._beam(continuations),
        )

    def _translation(self, ids, score, log_probs, is_cut) -> ExplainedTranslation:
        ids = tokens_of(ids)
        log_probs = [float(log_prob) for log_prob in log_probs[: len(ids)]]
        return ExplainedTranslation(
            self.tokenizer.decode(ids), float(score), sum(log_probs), self._pieces_of(ids), log_probs, bool(is_cut)
        )

    def _attention(self, forced: Forced, length: int) -> dict[str, list]:
        """Return the weights of the best output, which has `length` tokens, with three decimals."""

        def weights(kind: str, queries: int | None, keys: int | None) -> list:
            of_blocks = (np.asarray(of_block[0], np.float64) for of_block in forced.weights_of(kind))
            return [np.round(of_block[:, :queries, :keys], 3).tolist() for of_block in of_blocks]

        return {
            "memory": weights("memory", length, None),
            "encoder": weights("encoder", None, None),
            "decoder": weights("decoder", length, length),
        }

    def _beam(self, continuations: Continuations) -> list[dict[str, Any]]:
        return [
            {
                "step": int(step),
                "parent": int(parent),
                "slot": int(slot),
                "piece": self._pieces[int(token)],
                "log_probability": round(float(log_prob), 4),
            }
            for step, parent, slot, token, log_prob in zip(*(np.array(leaf) for leaf in continuations), strict=True)
        ]

    def _pieces_of(self, ids: Iterable[int]) -> list[str]:
        return [self._pieces[number] for number in ids]


def without_price(forced: Forced, opening: int) -> np.ndarray:
    """Return the log-probabilities of outputs, (N, T), whose first tokens, as many as `opening`, have none."""
    log_probs = np.array(forced.log_probs)
    log_probs[:, :opening] = 0.0
    return log_probs
