"""Optimizers to which a matrix is more than its numbers: Muon and Adafactor."""

from collections.abc import Sequence

import keras
from keras import ops

KERNELS = ("kernel", "lora_kernel_a", "lora_kernel_b")  # how their paths end


@keras.saving.register_keras_serializable("keras_transformer")
class Muon(keras.optimizers.Muon):
    """Muon (Jordan et al. 2024; scaled as by Liu et al. 2025) for kernels, AdamW for all other weights.

    A kernel is a matrix from inputs to outputs, and all kernels of this library are (inputs, outputs): the heads of an
    attention stand side by side. Both matrices of LoRA are kernels too. Embeddings, logits, tables of positions, norms
    and biases are no kernels.

    Weight decay is that of every other optimizer. Keras' Muon decays outside of the update, which fails on several
    replicas, and by two arguments.
    """

    def _should_use_adamw(self, variable) -> bool:
        return not variable.path.endswith(KERNELS) or super()._should_use_adamw(variable)

    _apply_weight_decay = keras.optimizers.Optimizer._apply_weight_decay


@keras.saving.register_keras_serializable("keras_transformer")
class Adafactor(keras.optimizers.Adafactor):
    """Adafactor (Shazeer and Stern 2018) in the memory that it is made for.

    Of a matrix it keeps the means of squared gradients per row and per column. Keras' class, whose updates are the
    same, also keeps the product of the two, which is as large as the matrix, and gives its variables names that
    several weights share. The rate is relative: times the root mean square of a weight, and at most 1 / sqrt(update).
    """

    def build(self, variables: Sequence[keras.Variable]):
        if self.built:
            return
        keras.optimizers.Optimizer.build(self, variables)  # not that of Keras' Adafactor
        self.moments = [self.moments_of(variable) for variable in variables]

    def moments_of(self, variable: keras.Variable) -> list[keras.Variable]:
        """Means of squared gradients: of every number of a vector, and of a matrix those per row and per column."""
        shape, name = tuple(variable.shape), variable.path.replace("/", "_")
        if len(shape) < 2:
            return [self.add_variable_from_reference(variable, "velocity")]
        parts = {"rows": shape[:-1], "columns": (*shape[:-2], shape[-1])}
        return [self.add_variable(part, dtype=variable.dtype, name=f"{name}_{key}") for key, part in parts.items()]

    def update_step(self, gradient, variable, learning_rate):
        update = ops.cast(self.iterations + 1, gradient.dtype)
        kept = 1 - ops.power(update, self.beta_2_decay)
        squares, moments = ops.square(gradient) + self.epsilon_1, self.moments[self._get_variable_index(variable)]
        means = [squares] if len(moments) == 1 else [ops.mean(squares, axis=axis) for axis in (-1, -2)]
        for moment, mean in zip(moments, means, strict=True):
            self.assign(moment, kept * moment + (1 - kept) * mean)
        if len(moments) == 1:
            velocity = ops.convert_to_tensor(moments[0])
        else:
            rows, columns = map(ops.convert_to_tensor, moments)
            rows = rows / ops.mean(rows, axis=-1, keepdims=True)
            velocity = ops.expand_dims(rows, -1) * ops.expand_dims(columns, -2)
        step = gradient / ops.sqrt(velocity)
        step = step / ops.maximum(1.0, self._rms(step) / self.clip_threshold)
        rate = ops.minimum(ops.cast(learning_rate, gradient.dtype), 1 / ops.sqrt(update))
        self.assign_sub(variable, ops.maximum(self.epsilon_2, self._rms(variable)) * rate * step)
