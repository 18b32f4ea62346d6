"""The training step: forward and backward pass under XLA inside each replica, all-reduce and optimizer outside.

docs/keras_hooks.md lists what this file needs from Keras beyond its documented interface.
"""

import dataclasses
from collections.abc import Callable

import keras
import tensorflow as tf

from keras_transformer.layers.embedding import logits_bias
from keras_transformer.losses import AlignmentSums, TokenSums, alignment_sums, shares, token_sums
from keras_transformer.runs.aligned_by import LAST_BUT_ONE
from keras_transformer.runs.kinds import with_attention
from keras_transformer.translation_model import INPUTS

from ..config.training import TrainingConfig
from ..workers.hardware import xla_multiplies
from .compilation import graph_of
from .freezing import freeze
from .lora import adapt
from .optimizer import training_optimizer

DRAWS_PER_RUN = 1_000_003  # a prime that keeps the dropout seeds of different run seeds apart


@dataclasses.dataclass(frozen=True)
class Inspected:
    """What an inspected step saw: two lists of tensors, each in the order of `trainable_variables`."""

    gradients: list  # of the mean loss over the whole batch: of all micro-batches and replicas, without a loss scale
    before: list  # the weights before the update


class TrainingModel(keras.Model):
    """The graph of a Transformer with a training step of its own, for `model.fit`.

    Built with the functional API: `TrainingModel(transformer.input, transformer.output)` shares all weights. Stock
    Keras cannot compile a step with XLA under a strategy, because its optimizer merges the replicas inside the compiled
    function; here only forward and backward pass are compiled. Losses and gradients are sums over tokens, summed over
    micro-batches and replicas, then divided by the global token count: one replica or eight, the update is the same
    but for its dropout masks.

    A batch is a dict of int32 tensors of shape (rows, length): source_ids, source_segments, target_ids,
    target_segments and labels; see train/data/batches.py.
    """

    train_function: Callable | None  # of keras.Model, which `fit` calls

    def compile(
        self,
        optimizer: keras.optimizers.Optimizer,
        *,
        seed: int,
        label_smoothing: float,
        xla: bool,
        micro_batches: int,
        guided_alignment: float = 0.0,
        xla_multiplies: bool = True,
    ) -> None:
        """Configure training; call it inside the scope of the strategy, before `fit`.

        seed: of the dropout masks, a function of (seed, step, micro-batch, layer, replica). In mixed_float16 a step
            whose gradients overflow updates nothing, and the next step has the same masks.
        xla: compile forward and backward pass, on a single replica the update too.
        micro_batches: each replica computes its rows in this many equal parts, one after the other, and updates once:
            the same update in less memory. The rows of a replica must be a multiple of it.
        guided_alignment: the weight of `alignment_sums` beside the loss. The second output of the model is then the
            attention that it teaches, and a batch has `links`.
        xla_multiplies: see `graph_of`.
        """
        super().compile(optimizer=optimizer, jit_compile=False, auto_scale_loss=False)
        optimizer.build(self.trainable_variables)
        self.dropout_seed, self.label_smoothing = seed, label_smoothing
        self.xla, self.xla_multiplies = xla, xla_multiplies
        self.micro_batches, self.guided_alignment = micro_batches, guided_alignment
        self.wants_to_stop = False  # True adds 1 to "stop_requests" in the logs of every later step, on all workers
        self.inspects = False  # True makes later steps keep their Inspected
        self.inspected: Inspected | None = None  # of the last step
        self.seconds_waiting = 0.0  # for the batch of the last step
        self.last_batch = None  # what the last step trained on

    def make_train_function(self, force: bool = False) -> Callable:
        """Return the function that `fit` calls with its iterator for every step; it returns the logs of the step."""
        if self.train_function is None or force:
            self.compiled_sums_and_gradients = graph_of(self.sums_and_gradients, self.xla, self.xla_multiplies)
            # on several replicas the optimizer merges them, which XLA cannot compile
            self.compiled_update = self.update if self.replicas > 1 else tf.function(self.update, jit_compile=self.xla)
            self.step_of_all_replicas = tf.function(self.step_of_replicas)
            self.loss_of_all_replicas = tf.function(self.loss_of_replicas)
            self.train_function = self.train_on_next_batch
        return self.train_function

    def train_on_next_batch(self, iterator) -> dict:
        """Do one step; afterwards `seconds_waiting` and `inspected` are those of this step. Returns its logs."""
        scale, before = self.before_update() if self.inspects else (None, None)
        self.inspected = None  # its memory can be taken now
        stop_requests = tf.constant(float(self.wants_to_stop))
        logs, gradients, self.seconds_waiting, self.last_batch = self.step_of_all_replicas(iterator, stop_requests)
        if self.inspects:
            self.inspected = Inspected([gradient / (logs["tokens"] * scale) for gradient in gradients], before)
        return logs

    def before_update(self) -> tuple:
        """Return the loss scale, 1 but in float16, and the weights as they are. No later update changes these."""
        return self.optimizer.scale_loss(tf.constant(1.0)), list(map(tf.convert_to_tensor, self.trainable_variables))

    def step_of_replicas(self, iterator, stop_requests) -> tuple:
        """Run one step on every replica, each on its own rows of the next batch.

        Returns the logs (a dict of scalars), the gradients of the summed loss, the seconds spent waiting for the
        batch, and the batch. Every step returns gradients, since a second graph for inspected steps would take seconds
        to prepare.
        """
        strategy = self.distribute_strategy
        batch, seconds_waiting = timed_next(iterator)
        per_replica = strategy.run(self.step_of_replica, args=(batch, stop_requests))
        first = tf.nest.map_structure(lambda value: strategy.experimental_local_results(value)[0], per_replica)
        return *first, seconds_waiting, batch

    def loss_after_update(self) -> float:
        """Return the loss per token that the weights have now, on the first micro-batch of the last step's rows.

        It costs one micro-batch, and compiles nothing: what trains is what computes it, with dropout.
        """
        return float(self.loss_of_all_replicas(self.last_batch))

    def loss_of_replicas(self, batch):
        """Return the loss per token, a scalar, that all replicas together have on their first micro-batches."""
        per_replica = self.distribute_strategy.run(self.sums_of_first_micro_batch, args=(batch,))
        loss, tokens = (self.distribute_strategy.reduce(tf.distribute.ReduceOp.SUM, sums, None) for sums in per_replica)
        return loss / tokens

    def sums_of_first_micro_batch(self, batch: dict) -> tuple:
        step = tf.convert_to_tensor(self.optimizer.iterations)
        sums, _, _ = self.compiled_sums_and_gradients(self.split(batch)[0], step, tf.constant(0))
        return sums.loss, sums.tokens

    def step_of_replica(self, batch: dict, stop_requests) -> tuple[dict, list]:
        """Sum loss and gradients over the micro-batches of this replica, then over all replicas, and update."""
        step = tf.convert_to_tensor(self.optimizer.iterations)
        first, *others = self.split(batch)
        total = self.compiled_sums_and_gradients(first, step, tf.constant(0))
        for number, micro_batch in enumerate(others, 1):
            sums = self.compiled_sums_and_gradients(micro_batch, step, tf.constant(number))
            total = tf.nest.map_structure(tf.add, total, sums)
        if self.replicas > 1:
            # all_reduce places its result by the device of its input; an argument has one only through `identity`
            stop_requests = tf.identity(stop_requests)
            context = tf.distribute.get_replica_context()
            total, stop_requests = context.all_reduce(tf.distribute.ReduceOp.SUM, (total, stop_requests))
        _, gradients, _ = total
        return {**self.compiled_update(*total), "stop_requests": stop_requests}, gradients

    def split(self, batch: dict) -> list[dict]:
        """Split the batch of a replica into its micro-batches, all of one shape."""
        if self.micro_batches == 1:
            return [batch]
        columns = [tf.split(ids, self.micro_batches) for ids in batch.values()]
        return [dict(zip(batch, parts, strict=True)) for parts in zip(*columns, strict=True)]

    def sums_and_gradients(self, batch: dict, step, micro_batch) -> tuple[TokenSums, list, list[AlignmentSums]]:
        """Return the sums of one micro-batch, and the gradients of its summed (and, in float16, scaled) loss.

        step, micro_batch: int scalars. Each micro-batch of a replica draws dropout masks of its own. The last list has
        the sums of guided alignment, which count in the gradients; it is empty without it.
        """
        with keras.StatelessScope(state_mapping=self.dropout_states(step, micro_batch)):
            with tf.GradientTape() as tape:
                logits, *attention = keras.tree.flatten(self({name: batch[name] for name in INPUTS}, training=True))
                smoothing = shares(self.label_smoothing, logits_bias(self))
                sums = token_sums(logits, batch["labels"], batch["target_segments"], smoothing)
                guided = [alignment_sums(weights, batch["links"]) for weights in attention]
                loss = sum((self.guided_alignment * of_links.loss for of_links in guided), start=sums.loss)
                scaled = self.optimizer.scale_loss(loss)
            gradients = tape.gradient(scaled, self.trainable_variables)
        gradients = [tf.convert_to_tensor(gradient) for gradient in gradients]  # embeddings' IndexedSlices too
        return sums, gradients, guided

    def dropout_states(self, step, micro_batch) -> list[tuple]:
        """Return (variable, value) for the random state of every dropout layer: nothing has to be saved.

        A value is (stream, step), of which each (seed, layer, micro-batch) has its own stream. The layer itself adds
        the replica's number to it.
        """
        states = []
        for number, variable in enumerate(self.random_states()):
            first_stream = (self.dropout_seed * DRAWS_PER_RUN + number) * self.micro_batches
            stream = tf.constant(first_stream, "int64") + tf.cast(micro_batch, "int64")
            states.append((variable, tf.stack([stream, tf.cast(step, "int64")])))
        return states

    def random_states(self) -> list[keras.Variable]:
        """Return the states of all seed generators: what a layer has in `variables` beyond `weights`.

        Their order numbers the dropout layers: block by block, in a block from the last dropout to the first.
        """
        states = []
        for layer in self.layers:
            weights = {id(weight) for weight in layer.weights}
            states += [variable for variable in reversed(layer.variables) if id(variable) not in weights]
        return states

    def update(self, sums: TokenSums, gradients: list, guided: list[AlignmentSums]) -> dict:
        """Apply the gradients of all replicas, divided by their token count. Returns the logs of the step."""
        scale = self.optimizer.scale_loss(tf.constant(1.0))
        learning_rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        gradients = [gradient / tf.cast(sums.tokens, gradient.dtype) for gradient in gradients]
        self.optimizer.apply(gradients, self.trainable_variables)
        logs = {
            "loss": sums.loss / sums.tokens,
            "nll": sums.nll / sums.tokens,
            "accuracy": sums.correct / sums.tokens,
            "tokens": sums.tokens,
            "gradient_norm": tf.linalg.global_norm(gradients) / scale,
            "learning_rate": learning_rate,
        }
        for of_links in guided:
            logs["alignment_loss"] = of_links.loss / tf.maximum(of_links.links, 1.0)
        return logs

    @property
    def replicas(self) -> int:
        return self.distribute_strategy.num_replicas_in_sync

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Do nothing: `compile` has built everything. Keras would average a batch over all workers, and fail."""


def timed_next(iterator) -> tuple:
    """Return the next element of the iterator of a dataset, in a graph too, and the seconds that it took."""
    began = tf.timestamp()
    with tf.control_dependencies([began]):
        element = next(iterator)
    with tf.control_dependencies(tf.nest.flatten(element, expand_composites=True)):
        return element, tf.timestamp() - began


def compiled(transformer: keras.Model, training: TrainingConfig, strategy: tf.distribute.Strategy) -> TrainingModel:
    """A TrainingModel that shares the transformer's weights, ready for `fit`."""
    config = transformer.model_config
    freeze(transformer, training.frozen or ())
    with strategy.scope():
        adapt(transformer, training)
        model = TrainingModel(transformer.input, outputs_of(transformer, training))
        model.compile(
            training_optimizer(config.d_model, training),
            seed=training.seed,
            label_smoothing=config.label_smoothing,
            xla=training.xla,
            micro_batches=training.micro_batches,
            guided_alignment=training.guided_alignment,
            xla_multiplies=xla_multiplies(training),
        )
    return model


def outputs_of(transformer: keras.Model, training: TrainingConfig):
    """Return the logits, and for guided alignment the attention to the source of the block that it teaches."""
    if not training.guided_alignment:
        return transformer.output
    block = LAST_BUT_ONE.in_model(transformer.model_config.memory_attentions).block
    return [transformer.output, with_attention(transformer).output[f"decoder_block_{block}/memory"]]
