"""Layers that are made of layers: frozen as a whole, and not saved after `quantize`."""

import keras


class CompositeLayer(keras.layers.Layer):
    """A layer whose parts take their dtype policy and their flag `trainable` from it.

    Keras saves both of the whole alone. Parts that were made without them would train in a loaded model although
    the layer is frozen, as those of `keras.layers.MultiHeadAttention` do (Keras 3.15).
    """

    def for_parts(self) -> dict:
        """Return the arguments that every part is made with."""
        return {"dtype": self.dtype_policy, "trainable": self.trainable}

    def get_config(self) -> dict:
        """Raises ValueError if `quantize` has changed a part: the file would not open."""
        refuse_quantized(self)
        return super().get_config()


def quantized_part(layer: keras.layers.Layer) -> keras.layers.Layer | None:
    """Return the first part of a layer or model whose weights `quantize` has replaced; None if there is none."""
    return next((part for part in layer._flatten_layers() if part.quantization_mode is not None), None)


def refuse_quantized(layer: keras.layers.Layer) -> None:
    """Raises ValueError if `quantize` has changed a part of a layer or model, whose configuration would not say so."""
    if part := quantized_part(layer):
        raise ValueError(
            f"{layer.name!r} cannot be saved or cloned after `quantize`: its part {part.path!r} is "
            f"{part.quantization_mode}. Save it before, and call `quantize` again after `load_model`."
        )
