"""A trained model as a graph from text to text: tokenizer, search and tokenizer again, in one tf.Module."""

import functools

import keras
import tensorflow as tf

from keras_transformer.ground.tokens import PAD
from keras_transformer.pieces.batching import BYTES_PER_TOKEN
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.aligned_by import LAST_BUT_ONE, AlignedBy
from keras_transformer.runs.confidence import Calibration
from keras_transformer.search.options import SearchOptions, check_coverage, check_reads_no_text
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.placeholders import rule_of_placeholders
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.scores import NAN_PROBABILITIES, NEVER
from keras_transformer.search.scores import length_penalty as length_penalty_of
from keras_transformer.search.search import search, search_with_phrases
from keras_transformer.search.short_vocabulary import ShortlistTable
from keras_transformer.search.trace import EXPLAINED_TOKENS
from keras_transformer.shortlist.shortlist import Shortlist
from keras_transformer.text.placeholders import placeholders_in
from keras_transformer.translation.aligner import of_reading_steps
from keras_transformer.translation.compiled_search import table_for
from keras_transformer.translation.forced import Forced, ForcedDecoder

from ..versions import ExportError
from .confidences import Confidences
from .explained import EXPLAINED_LINES, explained_line, no_explanation
from .forbidden import Found, found_in, read_forbidden, search_without
from .languages import GraphLanguages, LineMarks
from .phrases import (
    GraphPhraseReader,
    LineRules,
    check_not_forbidden,
    is_blank,
    is_letterless,
    loss_allowed,
    texts_of,
    with_phrases_of_source,
)
from .prefixes import GraphPrefixReader
from .prepared import prepared_decoder
from .ragged_rows import firsts, kept, of_values
from .request import (
    FORBIDDEN,
    PREFIX,
    REQUIRED,
    SOURCE_LANGUAGE,
    TARGET_LANGUAGE,
    agreeing,
    alpha_of,
    checked,
    inputs_of,
    of_each_line,
    signature,
)
from .slices import first_bytes, in_slices, lengths_of, padded, with_end
from .text_outputs import EMPTY, alignments, fill_up, joined, written


class ServedGraph(tf.Module):
    """`Translator.translate` as a graph that needs neither Python nor XLA.

    Args:
        transformer, tokenizer: a trained pair.
        options: how to search by default; the beam of a request is at most as large as this one.
        max_source_tokens: longer sentences are truncated to this number of tokens, EOS included.
        aligned_by: the attention that aligns words. If the decoder does not attend to the source, alignments are
            empty.
        calibration: of the run; None: outputs have no confidences.
        shortlist: of the run, for options whose `shortlist` is "on".
        languages: which the model reads and writes, and which of them a request means that names none.

    Only the weights and the tokenizer's model are tracked, and so saved: no layer, no optimizer.
    Raises ExportError if weights and products are neither all float32 nor all bfloat16, and ConfigError if there is no
    such block and for a coverage penalty of a model that does not attend to its source.
    """

    def __init__(
        self,
        transformer: keras.Model,
        tokenizer: Tokenizer,
        options: SearchOptions,
        max_source_tokens: int,
        aligned_by: AlignedBy = LAST_BUT_ONE,
        calibration: Calibration | None = None,
        shortlist: Shortlist | None = None,
        languages: Languages = NO_LANGUAGES,
    ):
        super().__init__(name="translator")
        dtypes = {weight.dtype for weight in transformer.weights}
        dtypes |= {layer.compute_dtype for layer in transformer.layers if layer.weights}
        if dtypes not in ({"float32"}, {"bfloat16"}):
            raise ExportError(
                f"The model computes in {', '.join(sorted(dtypes))}; float32 alone or bfloat16 alone can be exported."
            )
        check_coverage(transformer.model_config, options.coverage_penalty)
        check_reads_no_text(options, "an export, but a request to it,")
        self.weights = {weight.path: weight.value for weight in transformer.weights}
        self.tokenizer = graph_tokenizer(tokenizer.model_bytes)
        self._prefixes = GraphPrefixReader(tokenizer, self.tokenizer.encode_target)
        self._phrases = GraphPhraseReader(tokenizer, self.tokenizer.encode_target)
        self._placeholders = functools.partial(rule_of_placeholders, placeholders_in(tokenizer.pieces()))
        self.options, self.max_source_tokens = options, max_source_tokens
        self._confidences = Confidences(calibration, options)
        table = table_for(options, shortlist, tokenizer)
        self._table = table and ShortlistTable(*(tf.Variable(part, False) for part in table[:2]))  # saved once
        self._plan = SearchPlan(options, shortlist=self._table)
        self._decoder, self._prepared = prepared_decoder(transformer, self._table)
        self.aligned_by = aligned_by.in_model(transformer.model_config.memory_attentions)
        self._forced = ForcedDecoder(transformer)
        self.longest_output = max_source_tokens + options.extra_length
        if (positions := transformer.model_config.position_limit) is not None:
            self.longest_output = min(self.longest_output, positions)
        self._inputs = inputs_of(options, self.longest_output)
        self.languages, self._languages = languages, GraphLanguages(languages, tokenizer)

    def signatures(self) -> dict:
        """Return the functions that a server offers, by name."""
        text = tf.TensorSpec([None], tf.string, name="text")
        translation = tf.TensorSpec([None], tf.string, name="translation")
        codes = [SOURCE_LANGUAGE, TARGET_LANGUAGE] if self._languages.are_known else []
        return {
            "serving_default": signature(self.translate_best, [text]),
            "translate": signature(self.translate, [text], [*self._inputs, PREFIX, REQUIRED, FORBIDDEN, *codes]),
            "score": signature(self.score, [text, translation], [alpha_of(self._inputs), *codes]),
            "tokenize": signature(self.tokenize, [text]),
            "explain": signature(self.explain, [text], [*self._inputs, PREFIX, REQUIRED, *codes]),
        }

    def translate_best(self, text) -> dict:
        """Translate a batch of lines; a blank line has an empty translation with score 0, one without a letter itself.

        The graph fails if a line has no translation, since its logits are NaN or infinite.
        Shapes: text string (B,) -> {"translation": string (B,), "score": float32 (B,), "is_cut": bool (B,),
        "truncated": bool (B,)}, and with a calibration "confidence": float32 (B,).
        """
        is_kept = is_letterless(text) & bool(self.options.keep_letterless)
        marks = self.marks_of({}, text)
        ids, truncated = self.encode(tf.where(is_kept, "", text), self.max_source_tokens, marks)

        def run(indices) -> dict:
            source_ids = padded(tf.gather(ids, indices))
            of_lines = {name: tf.gather(rule, indices) for name, rule in self._languages.rules(marks).items()}
            plan = self._plan.replace(rules=Rules.of(self._placeholders(source_ids) | of_lines))
            hypotheses = search(self._decoder, source_ids, plan)
            best = hypotheses.scores[:, 0]
            with tf.control_dependencies(
                [tf.debugging.Assert(tf.reduce_all(best > NEVER / 2), [f"A line {NAN_PROBABILITIES}"])]
            ):
                return {
                    "translation": self.tokenizer.decode(hypotheses.ids[:, 0]),
                    "score": tf.identity(best),
                    "is_cut": hypotheses.is_cut[:, 0],
                    **self._confidences.of_best(hypotheses),
                }

        empty = {"translation": "", "score": 0.0, "is_cut": False, **self._confidences.of_blank_line}
        nothing = {name: tf.fill(tf.shape(text), value) for name, value in empty.items()}
        nothing["translation"] = tf.where(is_kept, text, "")
        return in_slices(lengths_of(ids), run, nothing) | {"truncated": truncated}

    def translate(self, text, **inputs) -> dict:
        """Translate a batch of lines; each of `inputs` has one value for all lines, or one per line.

        Returns, for B lines and the K hypotheses of the largest beam, best first:

            translations (B, K) string, scores and log_probabilities (B, K) float32
            pieces (B, K) string: the pieces of each translation, with spaces in between, EOS last
            piece_log_probabilities (B, K) string: of each piece, with spaces in between
            alignments (B, K) string: "0-0 1-2", numbers of words of the source and of the translation
            is_cut (B, K) bool: its limit ended the translation, which the model would have continued
            is_forced (B, K) bool: required phrases made it so improbable that it hardly makes sense
            confidences (B, K) float32: with a calibration, how likely each translation is good
            truncated (B,) bool: the line, or its prefix, was longer than the model takes

        Columns beyond `n_best`, or beyond what the search found, have empty strings and the score NEVER.
        """
        lines, decode = tf.size(text), self.tokenizer.decode
        marks = self.marks_of(inputs, text)
        rules, is_cut = self.rules_of_lines(inputs, text, self.max_source_tokens, marks)
        is_kept = is_letterless(text) & (rules.rules.pop("keep_letterless") > 0)
        ids, truncated = self.encode(tf.where(is_kept, "", text), self.max_source_tokens, marks)
        truncated |= is_cut

        forbidden = read_forbidden(of_each_line(FORBIDDEN.name, inputs[FORBIDDEN.name], lines))
        phrases = texts_of(rules.required, decode)
        allowed = loss_allowed(phrases)
        with tf.control_dependencies([check_not_forbidden(phrases, forbidden)]):
            forbidden = forbidden.with_flat_values(tf.identity(forbidden.flat_values))

        def run(indices) -> dict:
            source_ids = padded(tf.gather(ids, indices))

            def search_rows(rows, sequences) -> Found:
                of_rows, slice_ids = rules.of(tf.gather(indices, rows)), tf.gather(source_ids, rows)
                of_rows |= self._placeholders(slice_ids) | {"forbidden": sequences}
                found = search_with_phrases(self._decoder, slice_ids, self._plan.replace(rules=Rules.of(of_rows)))
                return found_in(found, of_rows["n_best"], tf.gather(allowed, tf.gather(indices, rows)), decode)

            found = search_without(search_rows, tf.gather(forbidden, indices), decode, self.options.beam_size)
            return self.outputs_of(source_ids, found, rules.of(indices))

        empty = EMPTY | self._confidences.of_nothing
        nothing = {name: tf.fill([lines, self.options.beam_size], value) for name, value in empty.items()}
        is_first = tf.one_hot(0, self.options.beam_size, True, False, dtype=tf.bool) & is_kept[:, tf.newaxis]  # (B, K)
        nothing["translations"] = tf.where(is_first, text[:, tf.newaxis], "")
        nothing |= {name: tf.where(is_first, 0.0, nothing[name]) for name in ("scores", "log_probabilities")}
        return in_slices(lengths_of(ids), run, nothing) | {"truncated": truncated}

    def marks_of(self, inputs: dict, text) -> LineMarks:
        """Return the marks of lines, string (B,), whose languages are among these inputs, or the default ones."""
        names, lines = (SOURCE_LANGUAGE.name, TARGET_LANGUAGE.name), tf.size(text)
        if not inputs.keys() >= set(names):
            return self._languages.default_marks(lines)
        return self._languages.marks(*(of_each_line(name, inputs[name], lines) for name in names))

    def rules_of_lines(self, inputs: dict, text, most: int, marks: LineMarks):
        """Return the LineRules of lines, string (B,), and whether their prefixes were cut: bool (B,)."""
        lines = tf.size(text)
        rules = agreeing({each.rule: checked(each, inputs[each.name], lines) for each in self._inputs})
        prefix, required = (of_each_line(each.name, inputs[each.name], lines) for each in (PREFIX, REQUIRED))
        prefixes, endings, is_cut = self._prefixes.read(prefix, most)
        required = self._phrases.read(with_phrases_of_source(required, text, rules), most)
        rules |= self._languages.rules(marks)
        return LineRules(rules, prefixes, endings, required, self._phrases.word_edges), is_cut

    def explain(self, text, **inputs) -> dict:
        """Show how the best translation of each line comes about: attention, and the beam as a tree.

        Takes at most EXPLAINED_LINES lines, and reads and writes at most EXPLAINED_TOKENS tokens of each.
        Returns, for B lines, the outputs that explained.py describes, each (B,), and `truncated` (B,) bool.
        """
        lines = tf.size(text)
        message = f"explain takes at most {EXPLAINED_LINES} lines."
        with tf.control_dependencies([tf.debugging.Assert(lines <= EXPLAINED_LINES, [message, lines])]):
            marks = self.marks_of(inputs, text)
            ids, truncated = self.encode(text, min(EXPLAINED_TOKENS, self.max_source_tokens), marks)
        rules, is_cut = self.rules_of_lines(inputs, text, EXPLAINED_TOKENS, marks)
        del rules.rules["keep_letterless"]
        rules.rules["limits"] = tf.minimum(rules.rules["limits"], EXPLAINED_TOKENS)
        truncated |= is_cut

        def explain_line(line) -> dict:
            source_ids = padded(ids[line : line + 1])
            line_rules = Rules.of(rules.of(line[tf.newaxis]) | self._placeholders(source_ids))
            plan = self._plan.replace(rules=line_rules)
            parts = self._decoder, self._forced, self.pieces_of
            return tf.cond(
                tf.size(ids[line]) > 0,
                lambda: explained_line(*parts, source_ids, plan),
                no_explanation,
            )

        specs = {name: tf.TensorSpec([], value.dtype) for name, value in no_explanation().items()}
        outputs = tf.map_fn(explain_line, tf.range(lines), fn_output_signature=specs, parallel_iterations=1)
        return outputs | {"truncated": truncated}

    def outputs_of(self, source_ids, found: Found, rules: dict) -> dict:
        """Return the outputs of `translate` for a slice: R sentences, source_ids (R, S), rules (R, ...) -> (R, K)."""
        ids, of_search = found.ids, found.outputs()
        source_pieces = self._languages.words_of(self.pieces_of(source_ids), rules)

        def outputs_of_rank(rank):
            target_ids = ids[:, rank]
            forced = self._forced(source_ids, target_ids)
            pieces = self.pieces_of(target_ids)
            has_token, log_probs = target_ids != PAD, self._languages.priced(forced.log_probs)
            return {
                "log_probabilities": tf.reduce_sum(log_probs, axis=1),
                "pieces": joined(pieces, has_token),
                "piece_log_probabilities": joined(written(log_probs), has_token),
                "alignments": self.alignments_of(forced, source_pieces, self._languages.without_opening(pieces)),
            }

        specs = {name: tf.TensorSpec([None], value.dtype) for name, value in EMPTY.items() if name not in of_search}
        ranks = tf.range(tf.reduce_max(rules["n_best"]))
        rows = tf.map_fn(outputs_of_rank, ranks, fn_output_signature=specs, parallel_iterations=1)  # (n, R)
        missing = self.options.beam_size - tf.size(ranks)
        columns = {
            name: tf.where(found.is_wanted, fill_up(tf.transpose(values), missing, EMPTY[name]), EMPTY[name])
            for name, values in rows.items()
        }
        return columns | of_search | self._confidences.of_all(found.scores, ids, rules[alpha_of(self._inputs).rule])

    def alignments_of(self, forced: Forced, source_pieces, target_pieces):
        """Align the words of R sentences and their outputs: string (R, S), string (R, T) -> string (R,)."""
        attention = forced.attention.get(f"decoder_block_{self.aligned_by.block}/memory")  # (R, h, T, S)
        if attention is None:
            return tf.fill(tf.shape(source_pieces)[:1], "")
        of_steps = tf.reduce_mean(tf.cast(attention, tf.float32), axis=1)
        of_tokens = of_reading_steps(of_steps) if self.aligned_by.reads else of_steps
        return alignments(of_tokens, source_pieces, target_pieces)

    def score(self, text, translation, length_penalty, **languages) -> dict:
        """Compute the log-probability of a translation of each line.

        An empty translation is EOS alone. A line without text has the log-probability 0. The outputs are those of
        `translate` for one translation per line, all (B,). Of a translation that is longer than any output, the
        beginning is scored, and `truncated` is true.
        """
        marks = self.marks_of(languages, text)
        ids, truncated = self.encode(text, self.max_source_tokens, marks)
        lines = tf.size(text)
        alpha = checked(alpha_of(self._inputs), length_penalty, lines)
        targets = self.tokenizer.encode_target(of_each_line("translation", translation, lines))
        most = self.longest_output - self._languages.has_openings
        truncated |= lengths_of(targets) >= most
        targets = self._languages.of_target(targets[:, : most - 1], marks)

        def run(indices) -> dict:
            source_ids, target_ids = (padded(tf.gather(side, indices)) for side in (ids, targets))
            forced = self._forced(source_ids, target_ids)
            log_probs = self._languages.priced(forced.log_probs)
            total, has_token = tf.reduce_sum(log_probs, axis=1), target_ids != PAD
            count = tf.reduce_sum(tf.cast(has_token, tf.int32), axis=1)
            score = total / length_penalty_of(count, tf.gather(alpha, indices), self.options.length_normalization)
            if self.options.coverage_penalty:
                score += self.options.coverage_penalty * forced.log_coverage(source_ids)
            return {
                "score": score,
                "log_probability": total,
                "pieces": joined(self.pieces_of(target_ids), has_token),
                "piece_log_probabilities": joined(written(log_probs), has_token),
            }

        empty = {"score": 0.0, "log_probability": 0.0, "pieces": "", "piece_log_probabilities": ""}
        nothing = {name: tf.fill([lines], value) for name, value in empty.items()}
        longest = tf.where(lengths_of(ids) > 0, tf.maximum(lengths_of(ids), lengths_of(targets)), 0)
        return in_slices(longest, run, nothing) | {"truncated": truncated}

    def tokenize(self, text) -> dict:
        """Return the pieces of each line and their ids, with spaces in between, as the model reads them.

        Shapes: text string (B,) -> {"pieces": string (B,), "ids": string (B,), "truncated": bool (B,)}.
        """
        ids, truncated = self.encode(text, self.max_source_tokens)
        ids = padded(ids)
        texts = {"pieces": self.pieces_of(ids), "ids": tf.strings.as_string(ids)}
        return {name: joined(values, ids != PAD) for name, values in texts.items()} | {"truncated": truncated}

    def encode(self, text, most: int, marks: LineMarks | None = None):
        """Return the tokens of each line, EOS last, none for a blank line; and whether the line was cut.

        With marks, those of the languages are among them.

        Shapes: text string (B,) -> int32 RaggedTensor (B, None), at most `most` tokens each; bool (B,).
        """
        longest = most * BYTES_PER_TOKEN
        has_text = ~is_blank(text)
        pieces = self.tokenizer.encode(tf.where(has_text, first_bytes(text, longest), ""))
        lengths = lengths_of(pieces)
        limits = self._languages.limits(pieces, marks, most) if marks else tf.fill(tf.shape(lengths), most - 1)
        is_long = (tf.strings.length(text) > longest) | (lengths > limits)
        pieces = firsts(pieces, limits)
        ids = self._languages.of_source(pieces, marks) if marks else with_end(pieces)
        return kept(ids, of_values(has_text, ids)), has_text & is_long

    def pieces_of(self, ids):
        """Return the written form of each id: int32 (B, L) -> string (B, L)."""
        return tf.reshape(self.tokenizer.id_to_string(tf.reshape(ids, [-1])), tf.shape(ids))
