"""The size of the residual stream: what each block of a Transformer hands to the next one."""

import os
from collections.abc import Mapping

import keras
from keras import ops

from keras_transformer.ground.errors import ConfigError
from keras_transformer.inspection.callbacks import Inspection, Writer
from keras_transformer.layers.blocks import Block, MemoryBlock
from keras_transformer.model import states_of


class ResidualStream(Inspection):
    """Draws a curve per block: the root mean square of the states after it, without dropout.

        stream = ResidualStream(transformer, batch, "logs")
        transformer.fit(dataset, epochs=50, callbacks=[stream])

    LayerNorm after each sum (post-norm) keeps it near 1. Before each sublayer (pre-norm), it grows from block to block.

    Args:
        model: a functional model with blocks and the inputs of a Transformer, or one that shares its weights.
        batch: a few sentence pairs, as inputs of the model: int32 (B, S) and (B, T).
        log: see Inspection.
    """

    name = "residual_stream"

    def __init__(self, model: keras.Model, batch: Mapping, log: str | os.PathLike | Writer):
        super().__init__(log)
        blocks = [layer for layer in model.layers if isinstance(layer, Block)]
        if not blocks:
            raise ConfigError(f"{model.name} has no blocks of a Transformer, so it has no residual stream to measure.")
        self.sides = {block.name: "target" if isinstance(block, MemoryBlock) else "source" for block in blocks}
        self.states_model = keras.Model(model.input, {block.name: states_of(block.output) for block in blocks})
        self.batch = {name: batch[name] for name in model.input}

    def inspect(self, step: int) -> None:
        self.log.write(step, {f"validation/residual_rms/{name}": size for name, size in self.sizes().items()})

    def sizes(self) -> dict[str, float]:
        """Return the size after each block, with the weights as they are, by the name of the block."""
        states = self.states_model(self.batch, training=False)
        return {
            name: root_mean_square(states[name], self.batch[f"{side}_segments"] > 0)
            for name, side in self.sides.items()
        }


def root_mean_square(states, is_real) -> float:
    """sqrt(mean of states^2), of states (B, L, d_model) where is_real (B, L) is True: padding does not count."""
    weights = ops.expand_dims(ops.cast(is_real, "float32"), -1)
    squares = ops.square(ops.cast(states, "float32")) * weights
    return float(ops.sqrt(ops.sum(squares) / (ops.sum(weights) * states.shape[-1])))
