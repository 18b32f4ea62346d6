"""Lines of text as token ids: what the encoder reads."""

import logging
import numbers
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.tokens import PAD, UNK
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.pieces.batching import BYTES_PER_TOKEN, LONGEST_SOURCE
from keras_transformer.pieces.language_marks import NO_MARKS, Marks, Tag
from keras_transformer.pieces.normalization import is_blank

if TYPE_CHECKING:  # it needs sentencepiece, which not every engine has
    from keras_transformer.pieces.tokenizer import Tokenizer

log = logging.getLogger("keras_transformer")
SHOWN_TAGS = 5  # in a warning, of those that a model has
NO_PIECES = (  # of a prefix, for whoever asks for it
    "has characters for which this model has no piece, so no translation begins with it: leave them out, or write the "
    "word to its end."
)


def check_vocabulary(config: BaseModelConfig, tokenizer: "Tokenizer") -> None:
    """Raises ConfigError if the model and the tokenizer have different numbers of pieces, TypeError if it is none."""
    if not hasattr(tokenizer, "vocab_size"):
        raise TypeError(
            "The tokenizer must be a Tokenizer, as keras_transformer.open_tokenizer(FILE) returns it. Received: "
            f"{tokenizer!r:.60}"
        )
    if config.vocab_size != tokenizer.vocab_size:
        raise ConfigError(
            f"The model has a vocabulary of {config.vocab_size} pieces and the tokenizer one of "
            f"{tokenizer.vocab_size}: give the tokenizer that the model was trained with."
        )


def check_backend(name: str) -> None:
    """Raises ConfigError, which names the class, if Keras computes with another backend than its graphs do."""
    import keras  # here, since LiteRT translates without it

    if (backend := keras.backend.backend()) != "tensorflow":
        raise ConfigError(
            f"{name} computes with TensorFlow, but the backend of Keras is {backend}: write the model with save_run, "
            "and open it in a process with KERAS_BACKEND=tensorflow."
        )


def check_batch_size(batch_size: int) -> None:
    """Raises ConfigError for a number of sentences that makes no batch."""
    check_whole("batch_size", batch_size)
    if batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}; it must be at least 1.")


def check_whole(name: str, value: int) -> None:
    """Raises ConfigError for the value of an argument that is no whole number."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool):
        raise ConfigError(f"{name} is {value!r:.60}; it must be a whole number.")


def longest_source(config: BaseModelConfig, max_source_tokens: int, marks: int = 0) -> int:
    """Return how many tokens of a source, EOS included, a model reads if `max_source_tokens` are asked for.

    marks: how many of them tell it the languages, at most. Raises ConfigError if no other token has room, or more than
    LONGEST_SOURCE are asked for.
    """
    check_whole("max_source_tokens", max_source_tokens)
    if not 2 + marks <= max_source_tokens <= LONGEST_SOURCE:
        of_marks = f", of which {marks} tell the model its languages" if marks else ""
        raise ConfigError(
            f"max_source_tokens is {max_source_tokens}; it must be from {2 + marks} to {LONGEST_SOURCE}{of_marks}."
        )
    return min(max_source_tokens, config.position_limit or max_source_tokens)


def encoded_prefix(tokenizer: "Tokenizer", text: str, longest: int) -> list[int]:
    """Return the token ids of the text with which an output must begin: fewer than `longest`, since EOS follows.

    Raises InputError if there are more, or if the tokenizer has no piece for a part of the text.
    """
    ids = tokenizer.encode_target(text)
    if UNK in ids:
        raise InputError(f"The prefix {text[:60]!r} {NO_PIECES}")
    if len(ids) >= longest:
        raise InputError(
            f"The prefix {text[:60]!r} has {len(ids)} tokens; at most {longest - 1} are possible: give a shorter one."
        )
    return ids


LEAVE_OUT = "leave out the one in the line, or name no other language."


def encoded_lines(
    tokenizer: "Tokenizer",
    lines: list[str],
    longest: int,
    first_line: int = 1,
    are_targets: bool = False,
    marks: Sequence[Marks] = (),
    tags: Collection[Tag] = (),
) -> Iterator[list[int]]:
    """Yield the token ids of each line, ending in EOS; [] for a blank line.

    A line with line breaks in it is read as one sentence, with a warning: a model that was trained on sentences often
    drops what follows the first one. Lines are cut to `longest` tokens, EOS included, with a warning that names them;
    the first is number `first_line`. A line of more than BYTES_PER_TOKEN bytes per token is cut to these before, so
    that no line costs more than that. A source line that begins with a tag of a language which the tokenizer does not
    have is named too. are_targets: whether the lines are of the target side. marks: of each line, whose tokens then
    stand at both ends of its own, and count among the `longest`: see `Marks.around`. tags: the tokens of each language.
    Raises InputError for a line that begins with those of one, and has another one as its first mark.
    """
    most = longest * BYTES_PER_TOKEN
    cut = [first_bytes(line, most) for line in lines]
    encode = tokenizer.encode_target_batch if are_targets else tokenizer.encode_batch
    of_lines = marks or [NO_MARKS] * len(lines)
    for number, (line, ids, of_line) in enumerate(zip(lines, encode(cut), of_lines, strict=True), first_line):
        if is_blank(line):
            yield []
            continue
        if len(line.strip().splitlines()) > 1:
            log.warning(
                "line %d has line breaks and is read as one sentence, so parts of its translation may be missing: give "
                "each sentence a line of its own",
                number,
            )
        if not are_targets and (tag := tokenizer.unknown_tag(line)):
            known = ", ".join(tokenizer.tags[:SHOWN_TAGS])
            log.warning(
                "line %d begins with the tag %.40s, which is read as text: this model has %s", number, tag, known
            )
        if len(cut[number - first_line]) < len(line):
            log.warning("line %d has more than %d bytes; only the first of them are used", number, most)
        if other := of_line.other_tag(ids, tags):
            pieces = tokenizer.pieces()
            written, asked = (" ".join(pieces[token] for token in tag) for tag in (other, of_line.first))
            raise InputError(f"Line {number} begins with {written}, but its language is {asked}: {LEAVE_OUT}")
        if len(ids) > (room := of_line.room(ids, longest)):
            log.warning("line %d has %d tokens; only the first %d are used", number, len(ids), room)
        yield of_line.around(ids, longest)


def are_longer(tokenizer: "Tokenizer", lines: list[str], longest: int) -> list[bool]:
    """Return of each line whether it has more than `longest` tokens, EOS included, so that `encoded_lines` cuts it."""
    cut = [first_bytes(line, longest * BYTES_PER_TOKEN) for line in lines]
    return [
        len(ids) >= longest or len(start) < len(line)
        for line, start, ids in zip(lines, cut, tokenizer.encode_batch(cut), strict=True)
    ]


def first_bytes(line: str, most: int) -> str:
    """Return the line, cut to `most` bytes of UTF-8. A character that the cut divides is dropped."""
    if len(line) * 4 <= most:
        return line
    return line.encode("utf-8")[:most].decode("utf-8", "ignore")


def padded(rows: list[list[int]]) -> np.ndarray:
    """Return lists of ids as int32 (rows, longest); missing ids are PAD."""
    batch = np.full((len(rows), max(map(len, rows))), PAD, np.int32)
    for row, ids in zip(batch, rows, strict=True):
        row[: len(ids)] = ids
    return batch
