"""The task of every contestant: train a model of one size from the same weights on the same batch."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from keras_transformer.config import TransformerConfig, base, tiny
from keras_transformer.ground.tokens import BOS, EOS

FIRST_PIECE = 4  # the ids below are PAD, UNK, BOS and EOS
BETA_1, BETA_2, EPSILON = 0.9, 0.98, 1e-9  # Adam's, section 5.3


@dataclasses.dataclass(frozen=True)
class Workload:
    """`rows` sentence pairs of exactly `length` tokens per side, end of sentence included: no position is padding.

    The lanes with packed text use rows of `packed_length`, and as many rows as make about the same number of positions.
    """

    config: TransformerConfig
    rows: int
    length: int
    packed_length: int = 64
    warmup_steps: int = 4000

    @property
    def tokens(self) -> int:
        """Target tokens per batch, and as many source tokens."""
        return self.rows * self.length

    def batch(self, seed: int = 1) -> dict[str, np.ndarray]:
        """The batch, as train/data/batches.py describes it: int32 arrays (rows, length) by name."""
        rng = np.random.default_rng(seed)
        source, labels = rng.integers(FIRST_PIECE, self.config.vocab_size, (2, self.rows, self.length), np.int32)
        source[:, -1] = labels[:, -1] = EOS
        target = np.roll(labels, 1, axis=1)
        target[:, 0] = BOS
        segments = np.ones_like(labels)
        return {
            "source_ids": source,
            "source_segments": segments,
            "target_ids": target,
            "target_segments": segments,
            "labels": labels,
        }

    def weights(self, seed: int = 1) -> dict[str, np.ndarray]:
        """The starting weights of every contestant: float32 matrices (inputs, outputs) by name.

        The biases of a contestant start at 0, the scales of its LayerNorms at 1.
        """
        config, rng = self.config, np.random.default_rng(seed)
        weights = {"embedding": rng.normal(0, config.d_model**-0.5, (config.vocab_size, config.d_model))}
        for block, attentions in blocks(config):
            for attention in attentions:
                for projection in ("query", "key", "value", "output"):
                    weights[f"{block}.{attention}.{projection}"] = glorot(rng, config.d_model, config.d_model)
            weights[f"{block}.inner"] = glorot(rng, config.d_model, config.d_ff)
            weights[f"{block}.outer"] = glorot(rng, config.d_ff, config.d_model)
        return {name: matrix.astype("float32") for name, matrix in weights.items()}


def blocks(config: TransformerConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The names of all blocks in order, each with the names of its attentions."""
    for number in range(1, config.encoder_layers + 1):
        yield f"encoder_block_{number}", ("self_attention",)
    for number in range(1, config.decoder_layers + 1):
        yield f"decoder_block_{number}", ("self_attention", "memory_attention")


def glorot(rng: np.random.Generator, inputs: int, outputs: int) -> np.ndarray:
    """A uniform (inputs, outputs) matrix of variance 2 / (inputs + outputs) (Glorot and Bengio 2010)."""
    limit = (6 / (inputs + outputs)) ** 0.5
    return rng.uniform(-limit, limit, (inputs, outputs))


SIZES = {
    "tiny": Workload(tiny, rows=128, length=32),
    "small": Workload(
        tiny.replace(encoder_layers=3, decoder_layers=3, d_model=256, d_ff=1024, dropout=0.25), rows=128, length=32
    ),
    "base": Workload(base.replace(vocab_size=32_000), rows=32, length=32),
}
