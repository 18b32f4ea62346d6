"""The tokenizer of a run: found, copied, or learned from the training text; the same on every worker."""

import itertools
import logging
import shutil

from keras_transformer.config import ConfigError
from keras_transformer.tokenizer import Tokenizer, train_tokenizer
from train.data.batches import check_division
from train.data.corpus import own_shards

log = logging.getLogger("train")

TOKENIZER_PAIRS = 1_000_000  # at most, of which a tokenizer is learned: more would hardly change it, but take gigabytes


def share_tokenizer(config, corpus, folder, replicas, broadcast):
    """The chief's tokenizer, made now if there is none, in every worker's folder. Raises as `prepare_data` does."""
    check_division(config.training, config.data.shards, replicas, broadcast.worker)
    if broadcast.worker.is_chief:
        prepare_tokenizer(config.tokenizer, own_shards(corpus.train, broadcast.worker), folder)
    broadcast.file(folder.tokenizer, folder.path)


def prepare_tokenizer(settings, splits, folder):
    """The run folder's tokenizer; made first where there is none: the given model copied, or one trained."""
    if not folder.tokenizer.exists():
        if settings.model:
            Tokenizer(settings.model)  # refuses what cannot be used, before it is copied
            shutil.copyfile(settings.model, folder.tokenizer)
        else:
            learn_tokenizer(settings.vocab_size, splits, folder.tokenizer)
    tokenizer = Tokenizer(folder.tokenizer)
    if not settings.model and tokenizer.vocab_size != settings.vocab_size:
        raise ConfigError(
            f"{folder.tokenizer} has {tokenizer.vocab_size} pieces and tokenizer.vocab_size is {settings.vocab_size}: "
            "the run was begun with another vocabulary. Use another run_folder."
        )
    return tokenizer


def learn_tokenizer(vocab_size, splits, path):
    """Train a tokenizer on the text of all `splits`, or on pairs at equal distances where there are very many."""
    log.info("training a tokenizer of %d pieces", vocab_size)
    sample, distance = evenly_spaced(itertools.chain.from_iterable(splits), TOKENIZER_PAIRS)
    if distance > 1:
        log.info("it is trained on one pair in %d, %s pairs from beginning to end", distance, f"{len(sample):,}")
    train_tokenizer(itertools.chain.from_iterable(sample), path, vocab_size)


def evenly_spaced(items, limit):
    """At most `limit` of the items, an even number, at equal distances; and the distance: 1, 2, 4, 8, ...

    Whoever has kept `limit` of them drops every other one and goes on at twice the distance: one pass, in the memory
    of what is kept, and without chance, so that the same text makes the same tokenizer.
    """
    kept, distance = [], 1
    for number, item in enumerate(items):
        if number % distance == 0:
            if len(kept) == limit:
                kept, distance = kept[::2], 2 * distance
            kept.append(item)
    return kept, distance
