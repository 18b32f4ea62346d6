"""This project's exported SavedModel, which runs without XLA; one export per beam size."""

import functools
import pathlib

from benchmarks.speed.translators import Setting
from keras_transformer.ground.errors import UserError
from keras_transformer.translation.exported import ExportedTranslator
from keras_transformer.translation.parallel import tune_for_translation


def settings(cores: int) -> list[Setting]:
    return [{"batch_size": size} for size in (32, 64)]


class SavedModel:
    def __init__(self, folder: pathlib.Path, precision: str):
        self.folder, self.precision = folder, precision

    def translate(self, lines: list[str], beam_size: int, forced: int | None, setting: Setting) -> list[str]:
        return [translation.text for translation in self.translator(beam_size, **setting).translate(lines)]

    @functools.cache  # noqa: B019  (one object per process)
    def translator(self, beam_size: int, **setting) -> ExportedTranslator:
        return ExportedTranslator(exported(self.folder, self.precision, beam_size), **setting)


def exported(folder: pathlib.Path, precision: str, beam_size: int) -> pathlib.Path:
    """Where `benchmarks.speed.translate_work` exports to."""
    return folder / f"saved_model_{precision}_beam{beam_size}"


def load(folder: pathlib.Path, precision: str) -> SavedModel:
    if not exported(folder, precision, 4).is_dir():
        raise UserError(f"`keras-transformer export` has not written a SavedModel in {precision}.")
    tune_for_translation()  # as `keras-transformer translate-export` does
    return SavedModel(folder, precision)
