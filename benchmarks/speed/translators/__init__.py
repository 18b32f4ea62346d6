"""The contestants of `benchmarks/speed/translate.py`: modules with a function `load` that returns a Translates."""

import importlib
import pathlib
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

Setting = dict[str, Any]  # what a contestant may choose for the sake of speed: batch size, threads
BATCH_SIZES = (16, 32, 64)  # with 128 lines to try on, two workers then have a batch each


class Translates(Protocol):
    """A contestant in its own process.

    `translate` returns the translations of `lines` in their order. With `forced`, every output has exactly that number
    of tokens, EOS included. The model that it is given never ends an output by itself then.
    """

    def translate(self, lines: list[str], beam_size: int, forced: int | None, setting: Setting) -> list[str]: ...


class Contestant(NamedTuple):
    """`module` has `load(folder, **options)`, `settings(cores)` and, to be run as a program, a `__main__` part."""

    title: str
    module: str
    options: dict[str, str]
    package: str | None = None  # which it needs


OURS = {  # name -> what it appends to a key of `ratios`
    "ours": "",
    "ours_bfloat16": "/bfloat16",
    "saved_model": "/saved_model",
    "saved_model_bfloat16": "/saved_model/bfloat16",
    "litert_float32": "/litert",
    "litert_int8": "/litert/int8",
}
BFLOAT16 = ("ours_bfloat16", "saved_model_bfloat16")
CONTESTANTS = {
    "ours": Contestant("Translator, float32", "ours", {}),
    "ours_bfloat16": Contestant("Translator, bfloat16", "ours", {"precision": "bfloat16"}),
    "saved_model": Contestant("SavedModel without XLA, float32", "saved_model", {"precision": "float32"}),
    "saved_model_bfloat16": Contestant("SavedModel without XLA, bfloat16", "saved_model", {"precision": "bfloat16"}),
    "litert_float32": Contestant("LiteRT, float32", "litert_model", {"precision": "float32"}, "ai_edge_litert"),
    "litert_int8": Contestant("LiteRT, int8", "litert_model", {"precision": "int8"}, "ai_edge_litert"),
    "ctranslate2_float32": Contestant(
        "CTranslate2, float32", "ctranslate2_model", {"compute_type": "float32"}, "ctranslate2"
    ),
    "ctranslate2_int8": Contestant("CTranslate2, int8", "ctranslate2_model", {"compute_type": "int8"}, "ctranslate2"),
    "marian": Contestant("`MarianMTModel.generate`, PyTorch", "marian", {}, "transformers"),
}
MARIAN = {  # which translates with models that it trained
    "marian_float32": Contestant("Marian, float32", "marian_decoder", {"precision": "float32"}, "pymarian"),
    "marian_int8": Contestant("Marian, int8", "marian_decoder", {"precision": "int8"}, "pymarian"),
}
ALL = CONTESTANTS | MARIAN


def module_of(name: str):
    """The module of a contestant, imported."""
    return importlib.import_module(f"benchmarks.speed.translators.{ALL[name].module}")


def load(name: str, folder: pathlib.Path) -> Translates:
    """The contestant, loaded from the folder that `benchmarks.speed.translate_work` prepared."""
    return module_of(name).load(folder, **ALL[name].options)


def in_batches(lines: list[str], size: int, translate: Callable[[list[str]], list[str]]) -> list[str]:
    """Translate `lines` in batches of similar length, shortest first; return translations in the order of the lines."""
    order = sorted(range(len(lines)), key=lambda index: len(lines[index]))
    results = [""] * len(lines)
    for first in range(0, len(order), size):
        indices = order[first : first + size]
        for index, text in zip(indices, translate([lines[index] for index in indices]), strict=True):
            results[index] = text
    return results
