"""What layers without arguments of their own have in common."""

import keras


class PlainLayer(keras.layers.Layer):
    """A layer whose constructor has the arguments of every Keras layer alone."""

    def get_config(self) -> dict:
        return super().get_config()  # overridden, since what Keras itself makes of a constructor has no dtype policy
