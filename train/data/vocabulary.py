"""The tokenizer of a run: found, copied, or learned from the training text; the same on every worker."""

import itertools
import logging
import os
import pathlib
import tempfile
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import resolved, write_atomically
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.text.placeholders import placeholders_in, symbols_of

from ..config.tokenizer import TokenizerConfig
from ..workers.tf_config import Worker
from .corpus import Corpus, Split, own_shards

if TYPE_CHECKING:  # it imports TensorFlow, which reading and packing do without
    from ..workers.workers import Workers

log = logging.getLogger("train")

TOKENIZER_PAIRS = 1_000_000  # most pairs that a tokenizer is learned from; more would hardly change it, at gigabytes

Item = TypeVar("Item")


def share_tokenizer(config: TokenizerConfig, corpus: Corpus, folder: RunFolder, workers: "Workers") -> Tokenizer:
    """The chief's tokenizer, on every worker: `prepare_tokenizer` on the chief, a copy of it on the others.

    If the corpus has several shards, the chief learns it from its own. A tokenizer in a run folder without a checkpoint
    is left over from an attempt that failed, perhaps on another text: it is made anew. In a run folder with a
    checkpoint, it must be the tokenizer that the run was begun with.
    """
    path = folder.tokenizer
    if workers.is_chief:
        shards = own_shards(corpus.train, workers.worker)
        if is_left_over(folder, config):
            fresh = path.with_name(f"{path.name}.new")
            fresh.unlink(missing_ok=True)
            prepare_tokenizer(config, shards, fresh, corpus.symbols)
            os.replace(fresh, path)
        tokenizer = prepare_tokenizer(config, shards, path, corpus.symbols)
        if folder.has_begun() or folder.weights.exists():
            folder.check_tokenizer()
        folder.keep_tokenizer_sum()
        workers.file_of_chief(path, path.parent)
        return tokenizer
    workers.file_of_chief(path, path.parent)
    return open_tokenizer(path)


def tokenizer_on_trial(config: TokenizerConfig, corpus: Corpus, folder: RunFolder, worker: Worker) -> Tokenizer:
    """The tokenizer that a run in `folder` goes on with, or would learn from this worker's shards. Keeps no file."""
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / folder.tokenizer.name
        if folder.has_begun():
            folder.check_tokenizer()
            path = folder.tokenizer
        return prepare_tokenizer(config, own_shards(corpus.train, worker), path, corpus.symbols)


def is_left_over(folder: RunFolder, config: TokenizerConfig) -> bool:
    """Whether the run folder's tokenizer is left over from an attempt without checkpoint or weights."""
    if not folder.tokenizer.exists() or folder.has_begun() or folder.weights.exists():
        return False
    return not config.model or resolved(config.model) != resolved(folder.tokenizer)


def prepare_tokenizer(
    config: TokenizerConfig, splits: Iterable[Split], path: pathlib.Path, symbols: Sequence[str] = ()
) -> Tokenizer:
    """The tokenizer at `path`. If there is none, the configured model is copied there, or one is learned.

    Each of `symbols` is a piece of one that is learned. Raises TokenizerError, CorpusError, or ConfigError if the
    tokenizer has another size than was asked for or divides a symbol.
    """
    if not path.exists():
        if config.model:
            tokenizer = open_tokenizer(config.model)  # refuses what cannot be used before it is copied
            check_size(tokenizer, config)
            check_normalization(tokenizer, config, config.model)
            check_not_trained(config)
            check_symbols(tokenizer, symbols, config.model)
            write_atomically(path, tokenizer.model_bytes)
        else:
            learn_tokenizer(config, splits, path, symbols)
    tokenizer = open_tokenizer(path)
    if not config.model and tokenizer.vocab_size != config.vocab_size:
        raise ConfigError(
            f"{path} has {tokenizer.vocab_size} pieces and tokenizer.vocab_size is {config.vocab_size}: the run was "
            "begun with another vocabulary. Use another run_folder."
        )
    if not config.model and tokenizer.is_lowercase != config.lowercase:
        raise ConfigError(
            f"tokenizer.lowercase is {str(config.lowercase).lower()}, but {path} was not trained so: the run was begun "
            "with another vocabulary. Use another run_folder."
        )
    if not config.model and (count := len(placeholders_in(tokenizer.pieces()))) != config.placeholders:
        raise ConfigError(
            f"tokenizer.placeholders is {config.placeholders}, and {path} has {count}: the run was begun with another "
            "vocabulary. Use another run_folder."
        )
    check_size(tokenizer, config)
    check_normalization(tokenizer, config, path)
    check_symbols(tokenizer, symbols, path)
    return tokenizer


def check_size(tokenizer: Tokenizer, config: TokenizerConfig) -> None:
    """Raises ConfigError if the configured model has another number of pieces than the configuration asks for."""
    if config.model and "vocab_size" in config.model_fields_set and tokenizer.vocab_size != config.vocab_size:
        raise ConfigError(
            f"tokenizer.vocab_size is {config.vocab_size}, and the tokenizer of the run, {config.model}, has "
            f"{tokenizer.vocab_size} pieces: leave tokenizer.vocab_size out."
        )


def check_normalization(tokenizer: Tokenizer, config: TokenizerConfig, path: str | os.PathLike) -> None:
    """Raises ConfigError if the configuration asks for a normalization that the tokenizer at `path` does not have."""
    if "normalization" in config.model_fields_set and tokenizer.normalization != config.normalization:
        raise ConfigError(
            f'tokenizer.normalization is "{config.normalization}", and the tokenizer of the run, {path}, has '
            f'"{tokenizer.normalization}": leave tokenizer.normalization out, or use another run_folder.'
        )


def check_not_trained(config: TokenizerConfig) -> None:
    """Raises ConfigError if the configuration names a model and also how to train one."""
    for name in ("lowercase", "dummy_prefix", "split_digits", "placeholders"):
        if config.model and getattr(config, name):
            raise ConfigError(
                f"tokenizer.{name} is for a tokenizer that is trained, and this run takes the trained {config.model}: "
                f"leave tokenizer.{name} out, or have a tokenizer trained in another run_folder, without "
                "tokenizer.model and training.start_from."
            )


def check_symbols(tokenizer: Tokenizer, symbols: Iterable[str], path: str | os.PathLike) -> None:
    """Raises ConfigError if a symbol is not one piece of the tokenizer at `path`: the model would read it as a text."""
    for symbol in symbols:
        before = "." if symbol.startswith(" ") else ""  # most tokenizers leave out a space that begins a text
        if (pieces := len(tokenizer.encode(before + symbol)) - len(tokenizer.encode(before))) != 1:
            raise ConfigError(
                f"[data] has the symbol {symbol}, which the tokenizer {path} divides into {pieces} pieces; it must be "
                "one piece. Name a tokenizer.model that has it as a user-defined symbol, or have a tokenizer trained "
                "with it: in another run_folder, without tokenizer.model and training.start_from."
            )


def learn_tokenizer(
    config: TokenizerConfig, splits: Iterable[Split], path: str | os.PathLike, symbols: Sequence[str] = ()
) -> None:
    """Train a tokenizer on the source and target text of all `splits`, or on evenly spaced pairs of very many."""
    log.info("training a tokenizer of %d pieces", config.vocab_size)
    sample, distance = evenly_spaced(itertools.chain.from_iterable(splits), TOKENIZER_PAIRS)
    if distance > 1:
        log.info("it is trained on one pair in %d, %s pairs from beginning to end", distance, f"{len(sample):,}")
    text = itertools.chain.from_iterable(sample)
    symbols = [*symbols, *symbols_of(config.placeholders)]
    how = {name: getattr(config, name) for name in ("lowercase", "dummy_prefix", "normalization", "split_digits")}
    train_tokenizer(text, path, config.vocab_size, symbols, **how)


def evenly_spaced(items: Iterable[Item], limit: int) -> tuple[list[Item], int]:
    """At most `limit` of the items, at equal distances; and the distance: 1, 2, 4, 8, ... The limit must be even.

    Once `limit` items are kept, every other one is dropped and the distance doubles. So one pass and the memory of
    what is kept suffice; and since nothing is random, the same text makes the same tokenizer.
    """
    kept, distance = [], 1
    for number, item in enumerate(items):
        if number % distance == 0:
            if len(kept) == limit:
                kept, distance = kept[::2], 2 * distance
            kept.append(item)
    return kept, distance
