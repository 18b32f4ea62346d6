"""The simpler simple recurrent unit (Kim et al. 2019): what a decoder may have in place of self-attention."""

import keras
from keras import ops

from keras_transformer.layers.attention import at_least_float32
from keras_transformer.layers.blocks import MemoryBlock
from keras_transformer.layers.composite import CompositeLayer
from keras_transformer.layers.loop import scan
from keras_transformer.masks import first_in_segment, hide_padding


def running_average(values, forget, segments, training: bool = False):
    """Average the values of a segment up to each position, the earlier ones the less the more is forgotten since.

        c_t = f_t * c_{t-1} + (1 - f_t) * v_t        c before the first position of a segment is 0

    Padding leaves c as it is. Shapes: values and forget, in [0, 1], (B, L, d); segments int (B, L) -> (B, L, d), in the
    precision of float32 at least. With `training` the gradient is that of `linear_recurrence`. Without, it is that of a
    loop: TensorFlow warns of every saved graph that has a gradient of its own.
    """
    values, forget, segments = map(ops.convert_to_tensor, (values, forget, segments))
    values, forget = at_least_float32(values), at_least_float32(forget)
    begins, is_token = (ops.expand_dims(flags, 2) for flags in (first_in_segment(segments), segments != 0))
    kept = ops.where(is_token, ops.where(begins, 0.0, forget), 1.0)
    added = ops.where(is_token, (1 - forget) * values, 0.0)
    return linear_recurrence(kept, added) if training else recur(kept, added)


@ops.custom_gradient
def linear_recurrence(kept, added):
    """c_t = kept_t * c_{t-1} + added_t, with c = 0 before the first position.

    The gradient of a loss J is the same recurrence from the last position to the first, written out: the backward pass
    then keeps `kept` and c alone, and takes a third of the time that the gradient of a loop does.

        dJ/dadded_t = dJ/dc_t + kept_{t+1} * dJ/dadded_{t+1}        dJ/dkept_t = c_{t-1} * dJ/dadded_t

    Shapes: both (B, L, d), L at least 1 -> (B, L, d).
    """
    averages = recur(kept, added)

    def gradient(*args, upstream=None):
        if upstream is None:  # TensorFlow and JAX pass it by place, PyTorch by name
            (upstream,) = args
        nothing = ops.zeros_like(kept[:, :1])
        kept_later = ops.concatenate([kept[:, 1:], nothing], axis=1)
        for_added = recur(kept_later, upstream, reverse=True)
        earlier = ops.concatenate([nothing, averages[:, :-1]], axis=1)
        return for_added * earlier, for_added

    return averages, gradient


def recur(kept, added, reverse: bool = False):
    """`linear_recurrence` without its gradient; from the last position to the first if `reverse`."""

    def one_position(state, values):
        [average], [kept, added] = state, values
        return [kept * average + added]

    [averages] = scan(one_position, [ops.zeros_like(added[:, 0])], [kept, added], reverse=reverse)
    return averages


@keras.saving.register_keras_serializable("keras_transformer")
class SSRU(CompositeLayer):
    """Simpler simple recurrent unit (Kim et al. 2019, section 3.1), in place of self-attention in a decoder.

        f_t = sigmoid(W_f x_t + b_f)        c_t = f_t * c_{t-1} + (1 - f_t) * W x_t        output_t = relu(c_t)

    Both products are of x alone, so that all positions are multiplied at once. The average c is what is left to do one
    position after the other. No position reads a later one.

    Shapes: states (B, L, d_model), segments int (B, L), 0 is padding; without segments, a row is one. Returns
    (B, L, d_model). Where `states_mask`, bool (B, L), or a mask that Keras carries with `states` is False, there is
    padding.
    """

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, states_shape: tuple, segments_shape: tuple | None = None):
        d_model = states_shape[-1]
        self.forget = keras.layers.Dense(d_model, name="forget", **self.for_parts())
        self.value = keras.layers.Dense(d_model, use_bias=False, name="value", **self.for_parts())
        self.forget.build(states_shape)
        self.value.build(states_shape)

    def call(self, states, segments=None, states_mask=None, training: bool = False):
        if segments is None:
            segments = ops.ones(ops.shape(states)[:2], "int32")
        forget = ops.sigmoid(at_least_float32(self.forget(states)))
        averages = running_average(self.value(states), forget, hide_padding(segments, states_mask), training)
        return ops.cast(ops.relu(averages), self.compute_dtype)

    def compute_output_shape(self, states_shape: tuple, segments_shape: tuple | None = None) -> tuple:
        return states_shape


@keras.saving.register_keras_serializable("keras_transformer")
class SSRUDecoderBlock(MemoryBlock):
    """An SSRU, attention to the encoder's output, feed-forward network: a decoder block without self-attention.

    Args and errors: those of EncoderBlock.

    Shapes: states (B, T, d_model), memory (B, S, d_model), segments int (B, T), as of SSRU, memory_mask bool (B, T, S)
    or (B, S). Masks that Keras carries with `states` and `memory` hide padding as well; that of `states` stays with the
    states. Returns states (B, T, d_model) and encoder-decoder weights (B, h, T, S).
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.ssru = SSRU(name="ssru", **self.for_parts())
        self.ssru_residual = self._residual("ssru_residual")

    def build(
        self,
        states_shape: tuple,
        memory_shape: tuple | None = None,
        segments_shape: tuple | None = None,
        memory_mask_shape: tuple | None = None,
    ):
        self.ssru.build(states_shape, segments_shape)
        self.ssru_residual.build(states_shape)
        self.build_rest(states_shape, memory_shape or states_shape)

    def call(self, states, memory, segments=None, memory_mask=None):
        output = self.ssru(self.ssru_residual.sublayer_input(states), segments)
        states = self.ssru_residual.add_and_norm(states, output)
        states, memory_weights = self.read_memory(states, memory, memory_mask)
        return self.feed(states), memory_weights

    def compute_output_shape(
        self,
        states_shape: tuple,
        memory_shape: tuple,
        segments_shape: tuple | None = None,
        memory_mask_shape: tuple | None = None,
    ) -> tuple:
        return self.memory_attention.compute_output_shape(states_shape, memory_shape)
