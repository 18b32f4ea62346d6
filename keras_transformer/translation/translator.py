"""A trained run as a function from text to translations."""

import functools
import os
from collections.abc import Iterable, Sequence

import keras
import numpy as np

from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.ground.files import sha256_of
from keras_transformer.models.presets import folder_of, save_with_tokenizer
from keras_transformer.parsing.balanced import TreeDecoder
from keras_transformer.pieces.batching import BATCH_SIZE, LONGEST_SOURCE, list_of_lines
from keras_transformer.pieces.hypotheses import translations_in
from keras_transformer.pieces.prefixes import NO_PREFIX, Prefix, PrefixReader
from keras_transformer.pieces.sources import (
    are_longer,
    check_backend,
    check_batch_size,
    check_vocabulary,
    encoded_lines,
    encoded_prefix,
    longest_source,
    padded,
)
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.confidence import Calibration, calibration_of, confidence_by
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.kinds import config_of, joint_decoder
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_runs
from keras_transformer.search.options import ON, RUN_OPTIONS, SearchOptions, check_coverage, check_options
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.scores import NAN_PROBABILITIES, NEVER
from keras_transformer.shortlist.shortlist import Shortlist, shortlist_of
from keras_transformer.text.documents import Document, DocumentTranslator
from keras_transformer.text.forbidden import Sequences, search_without, warn_of_remaining
from keras_transformer.text.glossary import Glossary
from keras_transformer.text.placeholders import placeholders_in
from keras_transformer.text.protected import Abilities, translate_protected
from keras_transformer.text.required import PhraseReader, Phrases, check_not_forbidden, loss_allowed, with_missing
from keras_transformer.text.spans import Protection
from keras_transformer.translation.aligner import Aligner
from keras_transformer.translation.compiled_search import Asked, CompiledSearch, SearchHow, table_for
from keras_transformer.translation.parallel import map_batches
from keras_transformer.translation.precision import in_precision

DEFAULT_OPTIONS = SearchOptions()


class Translator:
    """Translates with a Transformer, or a RecurrentModel, and its tokenizer.

        translator = Translator.load("runs/numbers")
        translator.translate(["two hundred and forty-one"])[0].text

    Sentences are sorted by length into batches, and one batch per processor core is searched at the same time.
    Translations come back in the order of the sentences. A script that translates much should call
    `tune_for_translation()` before it uses TensorFlow, as the commands do: each product then takes one thread.

    Args:
        transformer, tokenizer: a trained pair. In place of one model, several over the same pieces may be given: an
            ensemble, which predicts the mean of their probabilities.
        options: how to search.
        batch_size: sentences searched together, at most.
        max_source_tokens: longer sentences are truncated to this number of tokens, EOS included, with a warning
            that names the line; at most 512, and at most `max_positions` if positions are learned.
        precision: "float32" or "bfloat16", of the weights and the matrix products; softmax, LayerNorm and scores are
            float32 in any case. None means the precision of the Transformer. If the Transformer has another precision,
            its weights are copied now; otherwise each search reads them as they then are.
        trained_tokens: tokens of the longest source sentence of the training text, EOS included. Longer lines are
            counted in `longer_than_trained`. None: not known.
        shortlist: of the run, for options whose `shortlist` is "on".
        trees_only: search only for outputs that are trees over the words; for a run that was trained on a treebank.
        calibration: from a score to the `confidence` of a Translation; None: it has none. `load` takes that of the run.

    Raises ConfigError for a coverage penalty of a model that does not attend to its source, and if the backend of Keras
    is not TensorFlow, and TypeError if `options` are not SearchOptions.
    """

    def __init__(
        self,
        transformer: keras.Model | Sequence[keras.Model],
        tokenizer: Tokenizer,
        options: SearchOptions = DEFAULT_OPTIONS,
        batch_size: int = BATCH_SIZE,
        max_source_tokens: int = LONGEST_SOURCE,
        precision: str | None = "float32",
        trees_only: bool = False,
        trained_tokens: int | None = None,
        calibration: Calibration | None = None,
        shortlist: Shortlist | None = None,
    ):
        check_backend(type(self).__name__)
        check_options(options)
        models = list(transformer) if isinstance(transformer, list | tuple) else [transformer]
        for config in map(config_of, models):
            check_vocabulary(config, tokenizer)
            check_coverage(config, options.coverage_penalty)
        check_batch_size(batch_size)
        self._models, self._inference = models, Inference()  # what save_to_preset writes
        decoder = joint_decoder([in_precision(model, precision) for model in models])
        self.tokenizer, self.options, self.trees_only = tokenizer, options, trees_only
        self.shortlist = shortlist if options.shortlist == ON else None
        self.batch_size, self.max_source_tokens = batch_size, longest_source(decoder.config, max_source_tokens)
        self.trained_tokens, self.longer_than_trained = trained_tokens, 0  # lines, of all texts so far
        self.calibration, self._confidence = calibration, confidence_by(calibration, options)
        self._aligner = Aligner(models[0], tokenizer, self.max_source_tokens)
        self._longest_output = decoder.config.position_limit or LONGEST_SOURCE
        if trees_only:
            decoder = TreeDecoder(decoder, tokenizer.pieces(), options)
        self._placeholders = placeholders_in(tokenizer.pieces())
        plan = SearchPlan(options, shortlist=table_for(options, shortlist, tokenizer))
        self._phrase_reader = PhraseReader(tokenizer)
        self._search = CompiledSearch(
            SearchHow(decoder, plan, self._placeholders), lambda: self._phrase_reader.word_edges
        )

    @classmethod
    def load(
        cls,
        run_folder: str | os.PathLike | Sequence[str | os.PathLike],
        options: SearchOptions | None = None,
        **kwargs,
    ) -> "Translator":
        """Open a run folder, or several, whose models are an ensemble.

        Without `options`, it searches as the inference.json of the first folder says, which commands do too. A
        shortlist is that of the first folder.

        Raises UserError if a file is missing or damaged, as before training has finished, or if the tokenizers differ.
        """
        folders = [run_folder] if isinstance(run_folder, str | os.PathLike) else list(run_folder)
        models, tokenizer = load_runs(folders)
        inferences = [RunFolder(folder).inference() for folder in folders]
        longest = [length for inference in inferences if (length := inference.longest_source) is not None]
        options = options or inferences[0].options()
        of_run = {
            "trained_tokens": min(longest) if len(longest) == len(folders) else None,
            "calibration": calibration_of(RunFolder(folders[0])) if len(folders) == 1 else None,
            "shortlist": shortlist_of(RunFolder(folders[0]), options),
        }
        translator = cls(models, tokenizer, options, **of_run | kwargs)
        translator._inference = inferences[0]
        return translator

    @classmethod
    def from_preset(cls, name: str | os.PathLike, options: SearchOptions | None = None, **kwargs) -> "Translator":
        """Open a preset by its name, and search as it says unless there are `options`; `kwargs` as for Translator.

            kt.Translator.from_preset("hf://Helsinki-NLP/opus-mt-en-de").translate(["Good morning."])[0].text

        `name` is a folder that `save_to_preset` wrote, a run folder, or hf://USER/MODEL[@REVISION]: such a folder, or a
        MarianMT model, on the Hugging Face hub. A MarianMT model is imported and kept in the hub's cache, next to what
        was downloaded. Raises UserError if it cannot be had or is damaged.
        """
        return cls.load(folder_of(name), options, **kwargs)

    def save_to_preset(
        self, folder: str | os.PathLike, check_lines: Iterable[str] = (), dtype: str = "float32"
    ) -> None:
        """Write the model, its tokenizer, its calibration and how to search as a preset in the layout of keras-hub.

        `check_lines` and errors are those of `save_run`. `dtype` is that of the file of weights, "float32" or
        "float16": half as large, its weights rounded, to give away. A preset that is there is overwritten; if a run
        folder is there, this is an ensemble, or a weight is too large for the dtype, that is a ConfigError.
        """
        if len(self._models) > 1:
            raise ConfigError(f"A preset holds one model, and this ensemble has {len(self._models)}: save one of them.")
        search = {name: getattr(self.options, name) for name in RUN_OPTIONS}
        inference = self._inference._replace(search=search, longest_source=self.trained_tokens)
        save_with_tokenizer(self._models[0], self.tokenizer, folder, check_lines, inference, dtype)
        saved = RunFolder(folder)
        if self.shortlist is not None:
            self.shortlist.save(saved.shortlist)
        if self.calibration is not None:  # of the rounded weights it holds as well
            self.calibration._replace(weights=sha256_of(saved.weights)).save(saved.calibration)

    def translate(
        self,
        lines: Iterable[str],
        first_line: int = 1,
        prefixes: Iterable[str] | None = None,
        protect: Protection | str = "",
        required: Iterable[Iterable[str]] | None = None,
    ) -> list[Translation]:
        """Return the best translation of each line, in the order of the lines.

        `first_line` is the number of the first line in warnings, for lines that are part of a longer text. `prefixes`
        are the texts with which the translations must begin, one per line; "" for none. `protect` is what must come
        through: a Protection, or kinds of spans such as "urls,numbers"; what does not is in `unplaced`. `required`
        are the phrases that the translations must have, a list per line; one that does not fit is in `unplaced` too.
        Raises ConfigError if there is not one prefix, or list, per line, for an unknown kind, or if the search writes
        trees only and there are prefixes or phrases, and InputError if they are longer than any translation, and for
        a phrase without pieces.
        """
        return [best for best, *_ in self.translate_n_best(lines, first_line, prefixes, protect, required)]

    def translate_n_best(
        self,
        lines: Iterable[str],
        first_line: int = 1,
        prefixes: Iterable[str] | None = None,
        protect: Protection | str = "",
        required: Iterable[Iterable[str]] | None = None,
    ) -> list[list[Translation]]:
        """Return up to `options.n_best` different translations of each line, best first.

        Raises UserError if a line has none, since the model's probabilities are NaN.
        """
        lines, protection = list_of_lines(lines), Protection.of(protect)
        begins = self._read_prefixes(prefixes, len(lines))
        phrases = self._read_phrases(required, len(lines), first_line)
        check_not_forbidden(phrases, protection.forbidden)
        search = functools.partial(
            self._search_lines, first_line=first_line, prefixes=begins, phrases=phrases, forbidden=protection.forbidden
        )
        abilities = Abilities(len(self._placeholders), self._aligner.aligns)
        align, kept = self._aligner.align_lines, [[phrase.text for phrase in of_line] for of_line in phrases]
        results = translate_protected(lines, protection, search, align, first_line, abilities, kept)
        warn_of_remaining(results, protection.forbidden, first_line)
        return with_missing(results, phrases, first_line)

    def translate_document(
        self, text: str, language: str = "en", protect: Protection | str = "", prefix: str = ""
    ) -> Document:
        """Return the translation of a text of many sentences, with its own spaces, line breaks and empty lines.

        `language` is the code of the text's language, such as "de", by which its sentences are found; `protect` as for
        `translate`; `prefix` begins the translation of the first sentence. A sentence that is longer than the model
        takes is translated in parts. Raises UserError if the package sentencex is not installed.
        """
        translate = functools.partial(self.translate, protect=protect)
        return DocumentTranslator(translate, language, self.are_too_long).document(text, prefix)

    def are_too_long(self, lines: list[str]) -> list[bool]:
        """Return of each line whether it has more tokens than the model takes, or than it was trained on."""
        return are_longer(self.tokenizer, lines, min(self.max_source_tokens, self.trained_tokens or LONGEST_SOURCE))

    def _search_lines(
        self, lines: list[str], first_line: int, prefixes: list[Prefix], phrases: list[Phrases], forbidden: Glossary
    ) -> list[list[Translation]]:
        encoded = list(encoded_lines(self.tokenizer, lines, self.max_source_tokens, first_line))
        if self.trained_tokens is not None:
            self.longer_than_trained += sum(len(ids) > self.trained_tokens for ids in encoded)

        def search(rows: list[int], without: list[Sequences]) -> list[list[Translation]]:
            asked = [Asked(prefixes[n], tokens, phrases[n]) for n, tokens in zip(rows, without, strict=True)]
            return self._search_ids([encoded[row] for row in rows], asked)

        results = search_without(search, len(lines), forbidden, self.tokenizer.decode)
        if lost := [number for number, translations in enumerate(results) if not translations]:
            raise UserError(
                f"Line {first_line + lost[0]} {NAN_PROBABILITIES} Take an earlier checkpoint, or train again at a "
                "lower learning rate."
            )
        return results

    def _search_ids(self, sources: list[list[int]], asked: list[Asked]) -> list[list[Translation]]:
        results = [[] if ids else [Translation("", 0.0, confidence=self._confidence(0.0, 0))] for ids in sources]

        def translate_batch(batch: list[int]) -> None:
            hypotheses = self._search(padded([sources[index] for index in batch]), [asked[index] for index in batch])
            for index, *of_line in zip(batch, *(leaf.numpy() for leaf in hypotheses), strict=True):
                results[index] = self._read(asked[index].phrases, *of_line)

        map_batches(translate_batch, {index: len(ids) for index, ids in enumerate(sources) if ids}, self.batch_size)
        return results

    def _read_prefixes(self, texts: Iterable[str] | None, lines: int) -> list[Prefix]:
        if texts is None:
            return [NO_PREFIX] * lines
        prefixes = list_of_lines(texts, "Prefix")
        if self.trees_only:
            raise ConfigError("trees_only and prefixes contradict each other: give one of them.")
        return self._prefix_reader.read_each(prefixes, lines, self._longest_output)

    def _read_phrases(self, required: Iterable[Iterable[str]] | None, lines: int, first_line: int) -> list[Phrases]:
        if required is None:
            return [()] * lines
        if self.trees_only:
            raise ConfigError("trees_only and required contradict each other: give one of them.")
        return self._phrase_reader.read_each(required, lines, self._longest_output, first_line)

    @functools.cached_property
    def _prefix_reader(self) -> PrefixReader:
        return PrefixReader(self.tokenizer)

    def check_prefix(self, text: str) -> None:
        """Raises InputError if no translation can begin with a text."""
        encoded_prefix(self.tokenizer, text, self._longest_output)

    def _read(self, phrases: Phrases, ids, scores, is_cut, lost) -> list[Translation]:
        """Return hypotheses of a sentence as Translations with different texts: ids (K, L), the others (K,)."""
        filled, is_forced = np.flatnonzero(scores > NEVER / 2), lost > loss_allowed(phrase.text for phrase in phrases)
        found = translations_in(self.tokenizer, ids, scores, is_cut, is_forced, filled, self._confidence)
        return found[: self.options.n_best]
