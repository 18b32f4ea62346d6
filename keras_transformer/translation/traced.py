"""A function of models that TensorFlow has traced: traced again when the layers have other weights or precisions."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

import keras

from keras_transformer.runs.kinds import config_of


class TracedAgain:
    """Calls the function that `trace` returns, as long as the models have the weights that it was traced with.

    A traced function holds the variables of its model. `enable_lora` adds others, which it would never read. New values
    of the same variables need no new trace. Calls from several threads are safe.
    """

    def __init__(self, models: Sequence[keras.Model], trace: Callable[[], Callable]):
        self._models, self._trace, self._lock = models, trace, threading.Lock()
        self._traced: tuple[list[Any], Callable] | None = None

    def __call__(self, *args: Any) -> Any:
        """Raises ConfigError if `model.quantize` has replaced weights meanwhile."""
        with self._lock:
            parts = parts_of(self._models)
            if self._traced is None or not is_same(parts, self._traced[0]):
                for model in self._models:
                    config_of(model)
                self._traced = parts, self._trace()
            function = self._traced[1]
        return function(*args)


def parts_of(models: Sequence[keras.Model]) -> list[Any]:
    """Return what a trace depends on: the weights of the models, and how each layer computes."""
    policies = [layer.dtype_policy for model in models for layer in model._flatten_layers()]
    return [*policies, *(weight for model in models for weight in model.weights)]


def is_same(parts: list[Any], others: list[Any]) -> bool:
    """Return whether two lists hold the same objects: weights that are equal only now are not the same."""
    return len(parts) == len(others) and all(part is other for part, other in zip(parts, others, strict=True))
