"""Marian itself, on a model that it trained: pymarian's Translator, which is Marian's decoder in this process.

Its folder has `model.npz`, `vocab.yml`, `source.spm` and `target.spm`.
"""

import functools
import pathlib

import pymarian
import sentencepiece

from benchmarks.speed.translators import BATCH_SIZES, Setting
from keras_transformer.ground.errors import UserError

CPU = pathlib.Path("/proc/cpuinfo")
WIDTH = "avx512" if CPU.exists() and "avx512f" in CPU.read_text() else "avx2"
PRECISIONS: dict[str, dict] = {"float32": {}, "int8": {"optimize": True, "gemm_type": f"packed8{WIDTH}"}}


def settings(cores: int) -> list[Setting]:
    """Threads, which Marian gives a batch each, and sizes of batches, which it sorts by length."""
    return [{"threads": cores, "batch_size": size} for size in BATCH_SIZES]


class Marian:
    def __init__(self, folder: pathlib.Path, precision: str):
        self.folder, self.precision = folder, precision
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(model_file=str(folder / f"{side}.spm"))
            for side in ("source", "target")
        )

    def translate(self, lines: list[str], beam_size: int, forced: int | None, setting: Setting) -> list[str]:
        pieces = [" ".join(row) for row in self.source.encode(lines, out_type=str)]
        outputs = self.translator(beam_size, setting["threads"], setting["batch_size"]).translate(pieces)
        return [self.target.decode(output.split()) for output in outputs]

    @functools.lru_cache(maxsize=1)  # noqa: B019  (one object per process; the weights of another setting are freed)
    def translator(self, beam_size: int, threads: int, batch_size: int) -> pymarian.Translator:
        return pymarian.Translator(
            models=str(self.folder / "model.npz"),
            vocabs=[str(self.folder / "vocab.yml")] * 2,
            beam_size=beam_size,
            normalize=1,
            cpu_threads=threads,
            mini_batch=batch_size,
            maxi_batch=100,
            maxi_batch_sort="src",
            quiet=True,
            quiet_translation=True,
            **PRECISIONS[self.precision],
        )


def load(folder: pathlib.Path, precision: str) -> Marian:
    if not (folder / "marian" / "model.npz").is_file():
        raise UserError("Marian can translate with models that it trained, and this is none.")
    return Marian(folder / "marian", precision)
