"""This project's Translator."""

import functools
import pathlib

from benchmarks.speed.translators import Setting
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.parallel import tune_for_translation
from keras_transformer.translation.translator import Translator


def settings(cores: int) -> list[Setting]:
    """What is tried. Products have one thread each, and the Translator searches as many batches as there are cores."""
    return [{"batch_size": size} for size in (64, 128, 250)]


class Ours:
    def __init__(self, folder: pathlib.Path, **options):
        self.run, self.options = RunFolder(folder / "run"), options

    def translate(self, lines: list[str], beam_size: int, forced: int | None, setting: Setting) -> list[str]:
        translator = self.translator(beam_size, extra_length(self.run, lines, forced), **setting)
        return [translation.text for translation in translator.translate(lines)]

    @functools.cache  # noqa: B019  (one object per process)
    def translator(self, beam_size: int, extra_length: int, **setting) -> Translator:
        search = SearchOptions(beam_size, extra_length=extra_length)
        return Translator.load(self.run.path, search, **setting, **self.options)


def extra_length(run: RunFolder, lines: list[str], forced: int | None) -> int:
    """`extra_length` for outputs of `forced` tokens. All lines then have as many tokens as the first."""
    if forced is None:
        return SearchOptions.extra_length
    from keras_transformer.pieces.pair_tokenizer import open_tokenizer

    return forced - len(open_tokenizer(run.tokenizer).encode(lines[0])) - 1


def load(folder: pathlib.Path, **options) -> Ours:
    tune_for_translation()
    return Ours(folder, **options)
