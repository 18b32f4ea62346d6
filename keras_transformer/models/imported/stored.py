"""An imported model as a Transformer whose weights stay in the file that it came from."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
from keras.src.backend.common import global_state

from keras_transformer.model import Transformer
from keras_transformer.models.imported.model import ImportedModel

UNINITIALIZED = "uninitialized_variables"  # those of Keras that the next StatelessScope would give their values


class ReadWhenAsked(keras.StatelessScope):
    """A scope in which variables have no memory, and the value of one is read each time that somebody asks for it."""

    def __init__(self, values: Mapping[str, np.ndarray]):
        super().__init__(initialize_variables=False)
        self.values = values

    def get_current_value(self, variable: Any) -> np.ndarray | None:
        return self.values.get(variable.path)


@contextlib.contextmanager
def stored_transformer(model: ImportedModel) -> Iterator[Transformer]:
    """Within, the Transformer of an imported model can be saved. It takes the memory of one array at a time.

    Its weights would otherwise be in memory twice or three times: drawn at random, read, and saved.
    """
    before = list(global_state.get_global_attribute(UNINITIALIZED, []))
    try:
        with ReadWhenAsked(model.values):
            yield Transformer(model.config, dtype="float32")
    finally:
        global_state.set_global_attribute(UNINITIALIZED, before)
