"""Accuracy and perplexity over real tokens: sums and counts until the very end."""

from typing import Any

import keras
from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.losses import by_token, token_losses


class TokenMean(keras.metrics.Metric):
    """The mean of a value over all real tokens since the last reset; a label 0 (PAD) is padding and does not count.

    Shapes: y_true int (B, T), y_pred logits (B, T, V), sample_weight (), (B,), (B, 1) or (B, T), which weights tokens.
    The state is two sums over tokens, so it does not matter how tokens are spread over batches and replicas. They are
    float32 under every dtype policy: in bfloat16 a count ends at 256. Counts are exact up to 2^24 tokens; beyond, each
    batch is rounded to 7 digits of the sum.
    """

    def __init__(self, name: str | None = None):
        super().__init__(name=name, dtype="float32")
        self.total = self.add_variable(shape=(), initializer="zeros", dtype="float32", name="total")
        self.tokens = self.add_variable(shape=(), initializer="zeros", dtype="float32", name="tokens")

    def values(self, logits, labels):
        """The value of each token. (B, T, V), (B, T) -> float32 (B, T)"""
        raise NotImplementedError  # each subclass is one such value

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        weights = ops.cast(ops.not_equal(labels, PAD), self.dtype)  # (B, T)
        if sample_weight is not None:
            weights = weights * ops.cast(by_token(sample_weight), self.dtype)
        values = ops.cast(self.values(ops.convert_to_tensor(y_pred), labels), self.dtype)
        self.total.assign_add(ops.sum(values * weights))
        self.tokens.assign_add(ops.sum(weights))

    def result(self):
        return ops.divide_no_nan(self.total, self.tokens)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name}


@keras.saving.register_keras_serializable("keras_transformer")
class TokenAccuracy(TokenMean):
    """The share of real tokens whose label has the highest logit. Shapes: labels int (B, T), logits (B, T, V)."""

    def __init__(self, name: str = "accuracy"):
        super().__init__(name=name)

    def values(self, logits, labels):
        _, _, hits = token_losses(logits, labels, smoothing=0.0)
        return hits


@keras.saving.register_keras_serializable("keras_transformer")
class Perplexity(TokenMean):
    """exp(-sum log p(label) / tokens), without label smoothing. Shapes: labels int (B, T), logits (B, T, V)."""

    def __init__(self, name: str = "perplexity"):
        super().__init__(name=name)

    def values(self, logits, labels):
        _, nll, _ = token_losses(logits, labels, smoothing=0.0)
        return nll

    def result(self):
        return ops.exp(super().result())
