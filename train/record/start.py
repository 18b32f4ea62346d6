"""The start of a run from the weights of another one: fine-tuning."""

import logging
import os
import re
from collections.abc import Mapping

import keras
import numpy as np

from keras_transformer.ground.errors import ConfigError
from keras_transformer.layers import TokenEmbedding
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run

from ..config.lora import lora_names
from ..config.training import TrainingConfig
from ..step.freezing import is_named

log = logging.getLogger("train")

BLOCK = re.compile(r"(decoder_block_)(\d+)")  # in the paths of weights


def load_start_weights(
    training: TrainingConfig, folder: RunFolder, transformer: keras.Model, tokenizer: Tokenizer
) -> None:
    """Give the transformer the weights of the run `training.start_from`, if a run begins with them and has not begun.

    The chief alone calls this: `fit` then writes the weights as the checkpoint of step 0 and sends it to all workers. A
    run that is killed continues from its checkpoint.
    """
    if training.start_from and not folder.has_begun():
        still = {f"training.frozen names {name!r}": name for name in training.frozen or ()}
        if training.lora_rank and "embeddings" not in lora_names(training):
            still[f'training.lora_rank is {training.lora_rank}, without "embeddings" in training.lora_matrices'] = "*"
        assign_start(training.start_from, transformer, tokenizer, still)


def assign_start(
    start_from: str | os.PathLike, transformer: keras.Model, tokenizer: Tokenizer, frozen: Mapping[str, str]
) -> None:
    """Give the transformer the weights of the run folder `start_from`, whose model has the same shape.

    Only its decoder may have more blocks: the last of them are taken, whose output the logits are made for.

    Rows of embeddings, and biases of logits, are assigned by piece, since the tokenizers may differ: a piece that both
    have keeps its row, and a new one has the row that it was initialised with.

    frozen: patterns of the weights that training leaves as they are, by the setting that says so.

    Raises ConfigError or TokenizerError for a damaged run folder, and ConfigError if there are new pieces and a pattern
    of `frozen` names the embedding: they would stay random.
    """
    other, other_tokenizer = load_run(start_from)
    weights = {weight.path: np.asarray(weight.value) for weight in other.weights}
    left_out = other.model_config.decoder_layers - transformer.model_config.decoder_layers
    ids, other_ids = shared_pieces(tokenizer.pieces(), other_tokenizer.pieces())
    tables = {
        weight.path for layer in transformer.layers if isinstance(layer, TokenEmbedding) for weight in layer.weights
    }
    new = tokenizer.vocab_size - len(ids)
    settings = [setting for setting, pattern in frozen.items() if any(is_named(path, pattern) for path in tables)]
    if new and settings:
        raise ConfigError(
            f"{settings[0]}, but {new:,} of the {tokenizer.vocab_size:,} pieces are not known to "
            f"{start_from}, and their rows of the embedding would stay random: leave it out, or take the tokenizer of "
            "that run."
        )
    for weight in transformer.weights:
        if weight.path in tables:
            rows = np.array(weight.value)
            rows[ids] = weights[weight.path][other_ids]
            weight.assign(rows)
        else:
            weight.assign(weights[deeper(weight.path, left_out)])
    log.info(
        "starting from the weights of %s, which knows %s of %s pieces",
        start_from,
        f"{len(ids):,}",
        f"{tokenizer.vocab_size:,}",
    )
    if left_out:
        depth = other.model_config.decoder_layers
        log.info("of its %d decoder blocks, training begins with the last %d", depth, depth - left_out)


def deeper(path: str, blocks: int) -> str:
    """Return the path of the same weight in a decoder that has so many more blocks before its own."""
    return BLOCK.sub(lambda match: f"{match[1]}{int(match[2]) + blocks}", path)


def shared_pieces(pieces: list[str], others: list[str]) -> tuple[list[int], list[int]]:
    """Return the ids of the pieces that both lists have: in the first list, and in the second."""
    other_ids = {piece: number for number, piece in enumerate(others)}
    shared = [(number, other_ids[piece]) for number, piece in enumerate(pieces) if piece in other_ids]
    return [number for number, _ in shared], [number for _, number in shared]
