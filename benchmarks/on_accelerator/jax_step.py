"""The training step of a keras_transformer model as one XLA program, on Keras' JAX backend."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import keras

from benchmarks.on_accelerator.training import Task
from keras_transformer.config import TransformerConfig
from keras_transformer.layers import Dropout
from keras_transformer.losses import TokenSums, token_sums
from keras_transformer.model import Transformer
from train.step.optimizer import training_optimizer


class State(NamedTuple):
    """What a step updates: lists of arrays, in the order of the model's and of the optimizer's variables."""

    weights: Any
    optimizer: Any


class JaxTraining:
    """A Transformer with shared embeddings and post-norm (as in all presets), the paper's Adam, and `step`.

    Dropout masks equal those of train/step/training_model.py with seed 0: the same function of (step, layer).
    """

    def __init__(self, config: TransformerConfig, task: Task):
        self.config = config
        transformer = Transformer(config, dtype=task.precision)
        self.embedding = transformer.get_layer("embedding")
        last_states, *_ = transformer.get_layer(f"decoder_block_{config.decoder_layers}").output
        self.decoder = keras.Model(transformer.input, last_states)  # everything before the logits
        self.weights = self.decoder.trainable_variables
        self.optimizer = training_optimizer(config.d_model, task.training)
        self.optimizer.build(self.weights)
        layers = [layer for layer in self.decoder._flatten_layers() if isinstance(layer, Dropout) and layer.rate > 0]
        self.streams = {id(layer.seed_generator.state): number for number, layer in enumerate(layers)}

    def first_state(self) -> State:
        """A copy of the variables' values, so that a step may reuse its memory."""
        weights, optimizer = ([jnp.array(v.value) for v in held] for held in (self.weights, self.optimizer.variables))
        return State(weights, optimizer)

    def step(self, state: State, batch: dict[str, jax.Array]) -> tuple[State, TokenSums]:
        """One update. Returns the new State and the TokenSums of the batch before the update."""
        states, pull_back = jax.vjp(functools.partial(self.last_states, batch, self.updates_done(state)), state.weights)
        where = _index(self.weights, self.embedding.matrix)
        sums, states_gradient, matrix_gradient = self.sums_and_gradients(states, state.weights[where], batch)
        (gradients,) = pull_back(states_gradient)
        gradients[where] = gradients[where] + matrix_gradient
        gradients = [gradient / sums.tokens for gradient in gradients]
        weights, optimizer = self.optimizer.stateless_apply(state.optimizer, gradients, state.weights)
        return State(weights, optimizer), sums

    def last_states(self, batch: dict[str, jax.Array], step: jax.Array, weights: list[jax.Array]) -> jax.Array:
        """The decoder's output (B, T, d_model), with dropout."""
        inputs = {name: batch[name] for name in self.decoder.input}
        states, _ = self.decoder.stateless_call(weights, self.other_states(step), inputs, training=True)
        return states

    def other_states(self, step: jax.Array) -> list[jax.Array]:
        """Values of the variables that are not trained: the random states of the dropout layers."""
        return [
            jnp.stack([jnp.uint32(self.streams[id(state)]), step.astype("uint32")])
            for state in self.decoder.non_trainable_variables
        ]

    def sums_and_gradients(self, states, matrix, batch):
        """The loss and its gradients by the decoder's output and by the embedding matrix, one group of rows at a time.

        The logits of a group are dropped as soon as its gradients are known. For a whole batch at once, XLA kept the
        logits, their exponentials and a selection of them in memory: 3.2 times the size of the logits on a CPU, and
        0.5 times in groups. Groups need no additional matrix product, since the gradient of a sum is the sum of the
        gradients.

        Shapes: states (B, T, d_model), matrix (vocab_size, d_model); each gradient has the shape of its argument.
        """

        def of_group(matrix_gradient, group):
            states, labels, segments = group

            def summed_loss(states, matrix):
                sums = token_sums(self.logits(states, matrix), labels, segments, self.config.label_smoothing)
                return sums.loss, sums

            gradients, sums = jax.grad(summed_loss, argnums=(0, 1), has_aux=True)(states, matrix)
            return matrix_gradient + gradients[1], (sums, gradients[0])

        groups = groups_of_rows(states.shape[0])
        grouped = [x.reshape(groups, -1, *x.shape[1:]) for x in (states, batch["labels"], batch["target_segments"])]
        matrix_gradient, (sums, states_gradient) = jax.lax.scan(of_group, jnp.zeros_like(matrix), grouped)
        return TokenSums(*(s.sum() for s in sums)), states_gradient.reshape(states.shape), matrix_gradient

    def logits(self, states, matrix):
        with keras.StatelessScope(state_mapping=[(self.embedding.matrix, matrix)]):
            return self.embedding.logits(states)

    def updates_done(self, state: State) -> jax.Array:
        return state.optimizer[_index(self.optimizer.variables, self.optimizer.iterations)]


def groups_of_rows(rows: int) -> int:
    """The number of equal groups: the smallest from 5 on that divides `rows`; 98 rows make 7 groups of 14.

    With 5 groups or more, even several copies of one group's logits are smaller than the logits of the batch.
    """
    return next(groups for groups in range(min(5, rows), rows + 1) if rows % groups == 0)


def _index(variables: list, wanted) -> int:
    return next(number for number, variable in enumerate(variables) if variable is wanted)
