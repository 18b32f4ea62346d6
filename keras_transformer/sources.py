"""Lines of text as token ids: what the encoder reads."""

import logging
from collections.abc import Iterator

import numpy as np

from keras_transformer.batching import BYTES_PER_TOKEN
from keras_transformer.tokenizer import Tokenizer
from keras_transformer.tokens import EOS, PAD

log = logging.getLogger("keras_transformer")


def encoded_lines(tokenizer: Tokenizer, lines: list[str], longest: int, first_line: int = 1) -> Iterator[list[int]]:
    """Yield the token ids of each line, ending in EOS; [] for a blank line.

    Lines are cut to `longest` tokens, EOS included, with a warning that names them; the first is number `first_line`.
    A line of more than BYTES_PER_TOKEN bytes per token is cut to these before, so that no line costs more than that.
    """
    most = longest * BYTES_PER_TOKEN
    cut = [first_bytes(line, most) for line in lines]
    for number, (line, ids) in enumerate(zip(lines, tokenizer.encode_batch(cut), strict=True), first_line):
        if not line.strip():
            yield []
            continue
        if len(cut[number - first_line]) < len(line):
            log.warning("line %d has more than %d bytes; only the first of them are used", number, most)
        if len(ids) >= longest:
            log.warning("line %d has %d tokens; only the first %d are used", number, len(ids), longest - 1)
        yield [*ids[: longest - 1], EOS]


def first_bytes(line: str, most: int) -> str:
    """Return the line, cut to so many bytes of UTF-8. A character that the cut divides is gone."""
    if len(line) * 4 <= most:
        return line
    return line.encode("utf-8")[:most].decode("utf-8", "ignore")


def padded(rows: list[list[int]]) -> np.ndarray:
    """Return lists of ids as int32 (rows, longest); missing ids are PAD."""
    batch = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, ids in zip(batch, rows, strict=True):
        row[: len(ids)] = ids
    return batch
