"""Callbacks that inspect a Transformer while it trains: scores, sample translations, pictures of attention.

They work with stock `model.fit`, after each epoch, and in `keras-transformer train`, after each validation.
"""

import importlib.util
import os
import pathlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

import keras
from tensorboard.compat.proto.summary_pb2 import Summary

from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.inspection.attention import AttentionReader, head_measures
from keras_transformer.inspection.bleu import CHRF, Scores, raw_bleu, score
from keras_transformer.inspection.event_file import EventFile, event_files, read_events
from keras_transformer.inspection.markdown import escaped
from keras_transformer.inspection.pictures import draw_attention, picture_summary
from keras_transformer.inspection.samples import SHOWN, Sample, inspected_table, translate_pairs
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Codes, Languages, MarkReader
from keras_transformer.pieces.languages import warn_of_unspaced
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.forced import ATTENTIONS

Pairs = Iterable[tuple[str, str]]  # sentences and their translations
GREEDY = SearchOptions(beam_size=1)


class Writer(Protocol):
    """What an Inspection writes to: the log of a run of `keras-transformer train`, or a LogFolder."""

    def write(self, step: int, values: dict[str, float | str]) -> None:
        """Write numbers and texts (Markdown) by name; the part of the name before the first "/" is the writer."""

    def add(self, writer: str, step: int, summary: Summary) -> None:
        """Write a summary of any other kind."""


class Inspection(keras.callbacks.Callback):
    """Writes to TensorBoard what `inspect(step)` finds; `model.fit` calls it after each epoch, from epoch 0.

    log: the folder that `keras.callbacks.TensorBoard` writes to, or any other, in which the inspection makes a
    subfolder with its `name`, a run of TensorBoard; or a Writer. A folder takes one inspection of each kind.
    """

    name = ""

    def __init__(self, log: str | os.PathLike | Writer):
        super().__init__()
        self.log = LogFolder(pathlib.Path(log) / self.name) if isinstance(log, str | os.PathLike) else log

    def inspect(self, step: int) -> None:
        """Look at the model as it is now, and write what is found."""
        raise NotImplementedError  # each inspection looks at something else

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self.inspect(epoch)


class BleuScore(keras.callbacks.Callback):
    """Translates sentences after each epoch, and adds `val_bleu` and `val_chrf` to its logs (sacreBLEU, raw text).

        bleu = BleuScore(transformer, tokenizer, validation_pairs)
        stop = keras.callbacks.EarlyStopping("val_bleu", mode="max", patience=3)
        keep = keras.callbacks.ModelCheckpoint("best.keras", monitor="val_bleu", mode="max", save_best_only=True)
        transformer.fit(dataset, epochs=50, callbacks=[bleu, stop, keep, keras.callbacks.TensorBoard("logs")])

    List it before the callbacks that read these logs. `val_bleu` is NaN if no reference has the four tokens that BLEU
    needs. It needs TensorFlow as the backend of Keras, as Translator does.

    Args:
        transformer: the model that is trained, or one that shares its weights.
        pairs: sentences and their references, which are compared in lower case if the tokenizer makes all text so.
        options: how to search; greedy by default.
        batch_size: sentences translated together, at most.
        language: of the translations, such as "zh" or "zho_Hans". BLEU splits languages without spaces into characters.
        languages: of a model that is told those of a sentence; codes: those of each pair, such as ("en", "de").

    Attributes: `samples` and `scores` of the last epoch.
    """

    def __init__(
        self,
        transformer: keras.Model,
        tokenizer: Tokenizer,
        pairs: Pairs,
        options: SearchOptions = GREEDY,
        batch_size: int = BATCH_SIZE,
        language: str = "",
        languages: Languages = NO_LANGUAGES,
        codes: Sequence[Codes] = (),
    ):
        super().__init__()
        from keras_transformer.translation.translator import Translator  # here, because it alone needs TensorFlow

        pairs = list(pairs)
        references = tokenizer.restored(reference for _, reference in pairs)
        self.pairs = [(source, reference) for (source, _), reference in zip(pairs, references, strict=True)]
        if not self.pairs:
            raise ConfigError("There are no sentence pairs to translate: give at least one.")
        self.translator = Translator(transformer, tokenizer, options, batch_size, precision=None, languages=languages)
        warn_of_unspaced(references, language)
        self.codes = codes
        self.measures = raw_bleu(language), CHRF
        self.samples: list[Sample] = []
        self.scores: Scores | None = None

    def inspect(self, step: int | None = None) -> Scores:
        """Translate and score with the weights as they are."""
        self.samples = translate_pairs(self.translator, self.pairs, self.codes)
        _, references, translations = zip(*self.samples, strict=True)
        self.scores = score(translations, references, self.measures)
        return self.scores

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        scores = self.inspect(epoch)
        if logs is not None:
            logs.update(val_bleu=scores.plotted_bleu, val_chrf=scores.chrf)


class SampleTranslations(Inspection):
    """Shows translations among TensorBoard's texts: the first sentences, the worst and the best one by chrF.

        bleu = BleuScore(transformer, tokenizer, validation_pairs)
        samples = SampleTranslations(bleu, "logs")
        transformer.fit(dataset, epochs=50, callbacks=[bleu, samples])

    Words that changed since the last epoch are marked. It does not translate itself: list it after the BleuScore whose
    translations it shows.

    Args:
        bleu: a BleuScore, or anything else that has `samples`.
        log: see Inspection.
        shown: number of fixed sentences.
    """

    name = "samples"

    def __init__(self, bleu: BleuScore, log: str | os.PathLike | Writer, shown: int = SHOWN):
        super().__init__(log)
        self.bleu, self.shown = bleu, shown
        self.before: tuple[int, list[Sample]] | None = None  # step and samples of the last epoch

    def inspect(self, step: int) -> None:
        samples = self.bleu.samples
        if not samples:
            raise UserError("SampleTranslations found no translations: list it after the BleuScore that it shows.")
        text = inspected_table(samples, self.before and self.before[1], self.shown)
        if self.before:
            text = f"Compared with step {self.before[0]:,}: **new words**, *[−words left out]*.\n\n{text}"
        self.log.write(step, {"validation/samples": text})
        self.before = step, samples


class AttentionPictures(Inspection):
    """Shows what every head attends to in a few sentence pairs, and curves that tell dead and copying heads.

        pictures = AttentionPictures(transformer, tokenizer, validation_pairs[:3], "logs")
        transformer.fit(dataset, epochs=50, callbacks=[pictures])

    The decoder is given the reference (teacher forcing). The pictures are among TensorBoard's images, encoder-decoder
    attention first; the curves are those of `head_measures`. Short pairs are best: a picture has a row and a column per
    piece, and sides of more than 32 pieces are cut.

    Args:
        transformer: the model that is trained, or one that shares its weights.
        pairs: sentences and their translations.
        log: see Inspection.
        languages, codes: see BleuScore.
    """

    name = "attention"

    def __init__(
        self,
        transformer: keras.Model,
        tokenizer: Tokenizer,
        pairs: Pairs,
        log: str | os.PathLike | Writer,
        languages: Languages = NO_LANGUAGES,
        codes: Sequence[Codes] = (),
    ):
        super().__init__(log)
        if importlib.util.find_spec("matplotlib") is None:  # now, not after the first epoch
            raise UserError("AttentionPictures draws with matplotlib, which is not installed: pip install matplotlib.")
        self.pairs = list(pairs)
        self.read_attention = AttentionReader(
            transformer, tokenizer, self.pairs, MarkReader(languages, tokenizer).of_pairs(codes)
        )

    def inspect(self, step: int) -> None:
        attention = self.read_attention()
        self.log.write(
            step, {f"validation/attention/{name}": value for name, value in head_measures(attention).items()}
        )
        for order, kind in enumerate(ATTENTIONS, 1):
            for number, (pair, texts) in enumerate(zip(attention, self.pairs, strict=True), 1):
                if kind not in pair.weights:
                    continue  # a convolutional encoder, or a recurrent model, has no such attention
                tag = f"attention_pictures/{order}_{kind}_sentence_{number}"
                description = " → ".join(map(escaped, texts))
                self.log.add("validation", step, picture_summary(tag, draw_attention(pair, kind), description))


class LogFolder:
    """A folder with an event file for TensorBoard, which the first write creates.

    What an earlier process wrote there stays.
    """

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.file: EventFile | None = None

    def write(self, step: int, values: Mapping[str, float | str]) -> None:
        """Write numbers and texts (Markdown) by name: "validation/samples" becomes the tag "samples"."""
        values = {name.partition("/")[2]: value for name, value in values.items()}
        self._opened().write(step, time.time(), values)

    def add(self, writer: str, step: int, summary: Summary) -> None:
        """Write a summary of any other kind. There is one writer, the folder, whatever `writer` is."""
        self._opened().add(step, time.time(), summary)

    def _opened(self) -> EventFile:
        if self.file is None:
            events = (event for path in event_files(self.folder)[-1:] for event in read_events(path))
            self.file = EventFile(self.folder, (event for event in events if event.summary.value))
        return self.file
