"""CTranslate2, on the model that `keras-transformer export --format ctranslate2` wrote.

It searches with its own length penalty and stops as it does by default. The settings of the exported README.md find
more of the Translator's translations, and take longer.
"""

import functools
import os
import pathlib
import sys

import ctranslate2
import sentencepiece

from benchmarks.speed.translators import BATCH_SIZES, Setting
from keras_transformer.ground.errors import UserError
from keras_transformer.ground.machine import processor_cores
from keras_transformer.search.options import SearchOptions


def settings(cores: int) -> list[Setting]:
    """Workers and threads per worker, and batch sizes. CTranslate2 itself sorts by length."""
    threads = sorted({(1, cores), (cores, 1)})
    return [{"threads": pair, "batch_size": size} for pair in threads for size in BATCH_SIZES]


class CTranslate2:
    def __init__(self, folder: pathlib.Path, compute_type: str):
        self.path, self.compute_type = str(folder / f"ctranslate2_{compute_type}"), compute_type
        files = [os.path.join(self.path, name) for name in ("tokenizer.model", "source.spm", "target.spm")]
        models = [sentencepiece.SentencePieceProcessor(model_file=file) for file in files if os.path.exists(file)]
        self.source, self.target = models[0], models[-1]

    def translate(self, lines: list[str], beam_size: int, forced: int | None, setting: Setting) -> list[str]:
        length = {"max_decoding_length": forced, "min_decoding_length": forced} if forced else {}
        results = self.translator(*setting["threads"]).translate_batch(
            self.source.encode(lines, out_type=str),
            max_batch_size=setting["batch_size"],
            beam_size=beam_size,
            length_penalty=SearchOptions.length_penalty,
            **length,
        )
        return self.target.decode([result.hypotheses[0] for result in results])

    @functools.lru_cache(maxsize=1)  # noqa: B019  (one object per process; the weights of another setting are freed)
    def translator(self, workers: int, threads: int) -> ctranslate2.Translator:
        return ctranslate2.Translator(
            self.path, compute_type=self.compute_type, inter_threads=workers, intra_threads=threads
        )


def load(folder: pathlib.Path, compute_type: str) -> CTranslate2:
    if not (folder / f"ctranslate2_{compute_type}").is_dir():
        raise UserError(f"`keras-transformer export --format ctranslate2` has not written a model in {compute_type}.")
    return CTranslate2(folder, compute_type)


if __name__ == "__main__":
    from benchmarks.speed.translators.as_program import translate_stdin

    folder, compute_type = sys.argv[1:3]
    translate_stdin(load(pathlib.Path(folder), compute_type), settings(processor_cores())[0], sys.argv[3:])
