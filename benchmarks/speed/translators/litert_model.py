"""This project's LiteRT export, which needs no TensorFlow; one export per beam size."""

import functools
import pathlib

from benchmarks.speed.translators import Setting
from keras_transformer.ground.errors import UserError
from keras_transformer.lite.translator import LiteTranslator


def settings(cores: int) -> list[Setting]:
    """Nothing is tried: an export has the sizes of its batches, and a thread per core."""
    return [{"batch_size": 8}]


class LiteRT:
    def __init__(self, folder: pathlib.Path, precision: str):
        self.folder, self.precision = folder, precision

    def translate(self, lines: list[str], beam_size: int, forced: int | None, setting: Setting) -> list[str]:
        return [translation.text for translation in self.translator(beam_size).translate(lines)]

    @functools.cache  # noqa: B019  (one object per process)
    def translator(self, beam_size: int) -> LiteTranslator:
        return LiteTranslator(exported(self.folder, self.precision, beam_size))


def exported(folder: pathlib.Path, precision: str, beam_size: int) -> pathlib.Path:
    """Where `benchmarks.speed.translate_work` exports to."""
    return folder / f"litert_{precision}_beam{beam_size}"


def load(folder: pathlib.Path, precision: str) -> LiteRT:
    if not exported(folder, precision, 4).is_dir():
        raise UserError(f"`keras-transformer export --format litert` has not written a model in {precision}.")
    return LiteRT(folder, precision)
