"""A trained run as a function from text to translations."""

import copy
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import keras
import numpy as np

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import sha256_of
from keras_transformer.models.presets import folder_of, save_with_tokenizer
from keras_transformer.parsing.balanced import TreeDecoder
from keras_transformer.pieces.batching import BATCH_SIZE, LONGEST_SOURCE
from keras_transformer.pieces.hypotheses import translations_in
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages, MarkReader
from keras_transformer.pieces.sources import (
    are_longer,
    check_backend,
    check_batch_size,
    check_vocabulary,
    encoded_prefix,
    longest_source,
    padded,
)
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.aligned_by import LAST_BUT_ONE, AlignedBy
from keras_transformer.runs.confidence import Calibration, calibration_of, confidence_by
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.kinds import config_of, joint_decoder
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_runs
from keras_transformer.search.options import ON, OPTIONS, RUN_OPTIONS, SearchOptions, check_coverage, check_options
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.scores import NAN_PROBABILITIES, NEVER, NotFiniteError
from keras_transformer.shortlist.shortlist import Shortlist, shortlist_of
from keras_transformer.text.asks import CONSTRAINTS, SPANS, Ask
from keras_transformer.text.constraints import Constraints, LineReader, search_under
from keras_transformer.text.placeholders import placeholders_in
from keras_transformer.text.placing import Alignment
from keras_transformer.text.required import Phrases, loss_allowed
from keras_transformer.text.road import Candidates, Engine, refusal
from keras_transformer.translation.aligner import Aligner
from keras_transformer.translation.compiled_search import CompiledSearch, SearchHow, table_for
from keras_transformer.translation.parallel import map_batches
from keras_transformer.translation.precision import in_precision
from keras_transformer.translation.traced import TracedAgain

DEFAULT_OPTIONS = SearchOptions()


class Translator(Engine):
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
            its weights are copied now; otherwise each search reads them as they then are, and raises ConfigError after
            `quantize`.
        trained_tokens: tokens of the longest source sentence of the training text, EOS included. Longer lines are
            counted in `longer_than_trained`. None: not known.
        shortlist: of the run, for options whose `shortlist` is "on".
        languages: which the model reads and writes, and how it is told them. `load` takes those of the run.
        alignment: which attention aligns words, of the first model. `load` takes that of the run.
        trees_only: search only for outputs that are trees over the words; for a run that was trained on a treebank.
        calibration: from a score to the `confidence` of a Translation; None: it has none. `load` takes that of the run.

    Raises ConfigError for a coverage penalty of a model that does not attend to its source, and if the backend of Keras
    is not TensorFlow, and TypeError if `options` are not SearchOptions.
    """

    name = "The Translator"
    abilities = SPANS | CONSTRAINTS
    takes_limits = True

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
        languages: Languages = NO_LANGUAGES,
        alignment: AlignedBy = LAST_BUT_ONE,
    ):
        check_backend(type(self).__name__)
        check_options(options)
        models = list(transformer) if isinstance(transformer, list | tuple) else [transformer]
        for config in map(config_of, models):
            check_vocabulary(config, tokenizer)
            check_coverage(config, options.coverage_penalty)
        check_batch_size(batch_size)
        self._models, self._inference = models, Inference()  # what save_to_preset writes
        self._searched = [in_precision(model, precision) for model in models]
        self._decoder = joint_decoder(self._searched)
        self.tokenizer, self.trees_only = tokenizer, trees_only
        self.languages, self._mark_reader = languages, MarkReader(languages, tokenizer)
        marks = self._mark_reader.most_in_source
        self.batch_size = batch_size
        self.max_source_tokens = longest_source(self._decoder.config, max_source_tokens, marks)
        self.trained_tokens, self.longer_than_trained = trained_tokens, 0  # lines, of all texts so far
        self.calibration = calibration
        self._aligner = Aligner(models[0], tokenizer, self.max_source_tokens, alignment)
        self._longest_output = self._decoder.config.position_limit or LONGEST_SOURCE
        if trees_only:
            self.name, self.abilities = "A search for trees only", frozenset()
        elif not getattr(tokenizer, "has_surfaces", True):  # a tokenizer of one's own need not say it
            self.name, self.abilities = "A model with words of Moses", frozenset()
        self.takes_limits = bool(self.abilities)  # elsewhere the text of the first tokens is not that of all
        self._placeholders = placeholders_in(tokenizer.pieces())
        self.attentions = config_of(models[0]).memory_attentions  # decoder blocks that attend to the source
        self.placeholders, self.aligns = len(self._placeholders), self._aligner.aligns
        self.alignment = alignment
        longest = self.max_source_tokens, self._longest_output, self._longest_output
        self._reader = LineReader(tokenizer, self._mark_reader, *longest)
        self._search_as(options, shortlist)

    def _search_as(self, options: SearchOptions, shortlist: Shortlist | None) -> None:
        """Search with these options from now on; a search is compiled when it first finds something."""
        self.options, self._confidence = options, confidence_by(self.calibration, options)
        self.shortlist = shortlist if options.shortlist == ON else None
        decoder = TreeDecoder(self._decoder, self.tokenizer.pieces(), options) if self.trees_only else self._decoder
        plan = SearchPlan(options, shortlist=table_for(options, shortlist, self.tokenizer))
        how = SearchHow(decoder, plan, self._placeholders, bool(self.languages.target_first))
        self._search = TracedAgain(self._searched, lambda: CompiledSearch(how, lambda: self._reader.phrases.word_edges))

    @property
    def searches(self) -> frozenset[str]:
        return frozenset(OPTIONS)

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return a Translator of the same weights that searches with these options, by fields of SearchOptions.

        Its search is compiled anew. Raises ConfigError for a value that no search of this model can have.
        """
        if sentence := refusal(self.name, options, self.searches):
            raise ConfigError(sentence)
        changed = dataclasses.replace(self.options, **options)
        for model in self._models:
            check_coverage(config_of(model), changed.coverage_penalty)
        translator = copy.copy(self)
        translator._search_as(changed, self.shortlist)
        return translator

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
            "languages": inferences[0].languages,
            "alignment": inferences[0].alignment,
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
        inference = self._inference._replace(
            search=search,
            longest_source=self.trained_tokens,
            languages=self.languages,
            alignment=self.alignment,
        )
        save_with_tokenizer(self._models[0], self.tokenizer, folder, check_lines, inference, dtype)
        saved = RunFolder(folder)
        if self.shortlist is not None:
            self.shortlist.save(saved.shortlist)
        if self.calibration is not None:  # of the rounded weights it holds as well
            self.calibration._replace(weights=sha256_of(saved.weights)).save(saved.calibration)

    @property
    def keeps_letterless(self) -> bool:
        return super().keeps_letterless and not self.trees_only  # a tree has digits too

    def are_too_long(self, lines: list[str]) -> list[bool]:
        """Return of each line whether it has more tokens than the model takes, or than it was trained on."""
        longest = min(self.max_source_tokens, self.trained_tokens or LONGEST_SOURCE)
        return are_longer(self.tokenizer, lines, longest - self._mark_reader.most_in_source)

    def search(self, lines: list[str], asks: Sequence[Ask], first_line: int) -> list[Candidates]:
        sources, constraints = self._reader.read(lines, asks, first_line)
        if self.trained_tokens is not None:
            self.longer_than_trained += sum(len(ids) > self.trained_tokens for ids in sources)
        found = search_under(constraints, asks, sources, self._search_ids, self.tokenizer.decode)
        if [] in found:
            raise NotFiniteError(
                f"Line {first_line + found.index([])} {NAN_PROBABILITIES} Take an earlier checkpoint, or train again "
                "at a lower learning rate."
            )
        return list(map(Candidates, found))

    def align(self, pairs: Sequence[tuple[str, Translation]], asks: Sequence[Ask]) -> Sequence[Alignment]:
        return self._aligner.align_lines(pairs, self._reader.marks(asks))

    def align_by(
        self, ways: Sequence[AlignedBy], pairs: Sequence[tuple[str, Translation]], asks: Sequence[Ask]
    ) -> list[list[list[tuple[int, int]]]]:
        """Return the alignments by each of several ways, whose blocks are 1 to `attentions`: see `Engine.align`."""
        return self._aligner.align_lines_by(ways, pairs, self._reader.marks(asks))

    def _search_ids(self, sources: list[list[int]], asked: list[Constraints]) -> list[list[Translation]]:
        results = [[] if ids else [Translation("", 0.0, confidence=self._confidence(0.0, 0))] for ids in sources]

        def translate_batch(batch: list[int]) -> None:
            hypotheses = self._search(padded([sources[index] for index in batch]), [asked[index] for index in batch])
            for index, *of_line in zip(batch, *(leaf.numpy() for leaf in hypotheses), strict=True):
                results[index] = self._read(asked[index].phrases, *of_line)

        map_batches(translate_batch, {index: len(ids) for index, ids in enumerate(sources) if ids}, self.batch_size)
        return results

    def check_prefix(self, text: str) -> None:
        """Raises InputError if no translation can begin with a text."""
        encoded_prefix(self.tokenizer, text, self._longest_output)

    def _read(self, phrases: Phrases, ids, scores, is_cut, lost) -> list[Translation]:
        """Return hypotheses of a sentence as Translations with different texts: ids (K, L), the others (K,)."""
        filled, is_forced = np.flatnonzero(scores > NEVER / 2), lost > loss_allowed(phrase.text for phrase in phrases)
        found = translations_in(self.tokenizer, ids, scores, is_cut, is_forced, filled, self._confidence)
        return found[: self.options.n_best]
