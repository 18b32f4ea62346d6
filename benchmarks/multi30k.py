"""The text of Multi30k, as `make multi30k` puts it into data/multi30k."""

import gzip
import pathlib

from benchmarks.errors import BenchmarkError


def text_of(data: pathlib.Path, name: str) -> str:
    """Return the text of a file such as "train.en" in the folder `data`. Raises BenchmarkError if it is not there."""
    path = data / f"{name}.gz"
    if not path.is_file():
        raise BenchmarkError(f"There is no {path}: run `make multi30k`, or name the folder with --data.")
    return gzip.decompress(path.read_bytes()).decode("utf-8")


def lines_of(text: str) -> list[str]:
    """Return the lines of a text. Unlike `str.splitlines`, it ends none at a character that a sentence may hold."""
    return text.removesuffix("\n").split("\n")
