"""The training step: forward and backward under XLA inside the replica, all-reduce and optimizer outside."""

import types

import keras
import tensorflow as tf

from keras_transformer.layers import Dropout
from keras_transformer.losses import token_sums

DRAWS_PER_RUN = 1_000_003  # a prime that keeps the dropout seeds of different run seeds apart


class TrainingModel(keras.Model):
    """A Transformer's graph with a training step of its own, for `model.fit`.

    Built with the functional API: `TrainingModel(transformer.input, transformer.output)` shares all weights. Stock
    Keras cannot compile a step with XLA under a strategy (its optimizer merges replicas inside the compiled
    function); here only forward and backward pass are compiled. Losses and gradients are sums over tokens, reduced
    over replicas, then divided by the global token count: one replica or eight, the update is the same.
    """

    def prepare(self, optimizer, seed, label_smoothing, xla, micro_batches=1):
        """Say how to train; call it inside the strategy's scope, before `fit`.

        `micro_batches`: each replica does its rows in so many parts, one after the other, and updates once: the same
        update in less memory. The rows of a replica must be a multiple of it.
        """
        self.compile(optimizer=optimizer, jit_compile=False, auto_scale_loss=False)
        optimizer.build(self.trainable_variables)
        self.dropout_seed, self.label_smoothing, self.xla = seed, label_smoothing, xla
        self.micro_batches = micro_batches
        self.stop_request = types.SimpleNamespace(is_made=False)
        self.dropouts = [layer for layer in self._flatten_layers() if isinstance(layer, Dropout) and layer.rate > 0]

    def make_train_function(self, force=False):
        if self.train_function is not None and not force:
            return self.train_function
        strategy = self.distribute_strategy
        compute = tf.function(self.sums_and_gradients, jit_compile=self.xla)
        is_alone = strategy.num_replicas_in_sync == 1
        update = tf.function(self.update, jit_compile=self.xla) if is_alone else self.update

        def replica_step(batch, stop_requests):
            context = tf.distribute.get_replica_context()
            step = tf.convert_to_tensor(self.optimizer.iterations)
            total = None
            for number, part in enumerate(self.parts(batch)):
                share = context.replica_id_in_sync_group * self.micro_batches + number
                found = compute(part, step, share)
                total = found if total is None else tf.nest.map_structure(tf.add, total, found)
            if not is_alone:
                # `identity` gives the argument a device, which all_reduce goes by
                total, stop_requests = context.all_reduce(
                    tf.distribute.ReduceOp.SUM, (total, tf.identity(stop_requests))
                )
            return {**update(*total), "stop_requests": stop_requests}

        @tf.function
        def step_of_all(iterator, stop_requests):
            per_replica = strategy.run(replica_step, args=(next(iterator), stop_requests))
            return {name: strategy.experimental_local_results(value)[0] for name, value in per_replica.items()}

        def train_function(iterator):
            return step_of_all(iterator, tf.constant(float(self.stop_request.is_made)))

        self.train_function = train_function
        return train_function

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        """Nothing: `prepare` has built all. Keras would take the mean of a batch over all workers, and fail."""

    def parts(self, batch):
        """A replica's batch as its micro-batches, all of one shape."""
        if self.micro_batches == 1:
            return [batch]
        columns = [tf.split(ids, self.micro_batches) for ids in batch.values()]
        return [dict(zip(batch, part, strict=True)) for part in zip(*columns, strict=True)]

    def sums_and_gradients(self, batch, step, share):
        """The sums of one micro-batch and the gradients of its summed (and, in float16, scaled) loss.

        `share` numbers the micro-batches of a step over all replicas: each draws dropout masks of its own.
        """
        inputs = {name: batch[name] for name in ("source_ids", "source_segments", "target_ids", "target_segments")}
        with keras.StatelessScope(state_mapping=self.dropout_states(step, share)):
            with tf.GradientTape() as tape:
                logits = self(inputs, training=True)
                sums = token_sums(logits, batch["labels"], batch["target_segments"], self.label_smoothing)
                scaled = self.optimizer.scale_loss(sums.loss)
            gradients = tape.gradient(scaled, self.trainable_variables)
        return sums, [tf.convert_to_tensor(gradient) for gradient in gradients]  # embeddings' IndexedSlices too

    def dropout_states(self, step, share):
        """Every dropout layer's random state as a function of (seed, step, share, layer): nothing to save."""
        shares = self.distribute_strategy.num_replicas_in_sync * self.micro_batches
        states = []
        for number, layer in enumerate(self.dropouts):
            stream = (self.dropout_seed * DRAWS_PER_RUN + number) * shares
            stream = tf.constant(stream, "int64") + tf.cast(share, "int64")
            states.append((layer.seed_generator.state, tf.stack([stream, tf.cast(step, "int64")])))
        return states

    def update(self, sums, gradients):
        """Apply global sums of gradients; returns the logs of the step."""
        scale = self.optimizer.scale_loss(tf.constant(1.0))
        learning_rate = tf.convert_to_tensor(self.optimizer.learning_rate)
        gradients = [gradient / tf.cast(sums.tokens, gradient.dtype) for gradient in gradients]
        self.optimizer.apply(gradients, self.trainable_variables)
        return {
            "loss": sums.loss / sums.tokens,
            "nll": sums.nll / sums.tokens,
            "accuracy": sums.correct / sums.tokens,
            "tokens": sums.tokens,
            "gradient_norm": tf.linalg.global_norm(gradients) / scale,
            "learning_rate": learning_rate,
        }
