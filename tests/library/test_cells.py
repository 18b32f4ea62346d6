"""The recurrent cells and layers: one step by hand, parity with PyTorch, and states that begin anew at each segment."""

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.layers.cells import CELLS, GRUCell, LSTMCell
from keras_transformer.layers.loop import keras_loop, tensorflow_loop
from keras_transformer.layers.recurrent import FinalStates, Recurrent
from keras_transformer.masks import first_in_segment, last_in_segment
from keras_transformer.recurrent import config
from keras_transformer.recurrent.decoder import RecurrentDecoder
from tests.support.models import as_numpy, assert_close, normal, randomise

SEGMENTS = np.array([[1, 1, 1, 2, 2, 0, 0], [1, 2, 2, 2, 2, 3, 0]])
LOG_3 = np.log(3.0)  # sigmoid(log 3) = 3/4, sigmoid(-log 3) = 1/4


def set_weights(cell, width, **weights):
    """Build a cell of two units whose weights are 0 but for these."""
    cell.build((None, width))
    for weight in cell.weights:
        weight.assign(weights.get(weight.name, np.zeros(weight.shape)))
    return cell


def test_a_gru_step_by_hand():
    """Reset gates are 1/4 and 3/4, update gates 3/4 and 1/4; what is new is tanh(x + r * h)."""
    kernel = np.array([[0, 0, 0, 0, 1, 1]])
    recurrent_kernel = np.hstack([np.zeros((2, 4)), np.eye(2)])
    bias = [-LOG_3, LOG_3, LOG_3, -LOG_3, 0, 0]
    cell = set_weights(GRUCell(2), 1, kernel=kernel, recurrent_kernel=recurrent_kernel, bias=bias)
    [after] = cell(np.array([[0.5]], "float32"), np.array([[2.0, 4.0]], "float32"))
    new = [np.tanh(0.5 + 2 / 4), np.tanh(0.5 + 4 * 3 / 4)]
    assert_close(after, [[new[0] / 4 + 2.0 * 3 / 4, new[1] * 3 / 4 + 4.0 / 4]])


def test_an_lstm_step_by_hand():
    """Input gates 3/4, forget gates 1/4, output gates 3/4 and 1/4; what is new is tanh(1 + h)."""
    bias = [LOG_3, LOG_3, -LOG_3, -LOG_3, 1, 1, LOG_3, -LOG_3]
    recurrent_kernel = np.hstack([np.zeros((2, 4)), np.eye(2), np.zeros((2, 2))])
    cell = set_weights(LSTMCell(2), 3, recurrent_kernel=recurrent_kernel, bias=bias)
    state = np.array([[0.0, 1.0]], "float32"), np.array([[8.0, 0.0]], "float32")
    hidden, memory = cell(np.ones((1, 3), "float32"), *state)
    expected = [8 / 4 + np.tanh(1) * 3 / 4, np.tanh(2) * 3 / 4]
    assert_close(memory, [expected])
    assert_close(hidden, [[np.tanh(expected[0]) * 3 / 4, np.tanh(expected[1]) / 4]])


def test_the_recurrent_bias_of_what_is_new_stands_inside_the_reset():
    cell = set_weights(GRUCell(1), 1, recurrent_bias=[-LOG_3, -100.0, 1.0])
    [after] = cell(np.zeros((1, 1), "float32"), np.zeros((1, 1), "float32"))
    assert_close(after, [[np.tanh(1 / 4)]])


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("name", CELLS)
def test_the_matrix_of_the_state_begins_as_an_orthogonal_one_in_any_precision(name, dtype):
    cell = CELLS[name](3, dtype=dtype)
    cell.build((None, 2))
    assert {weight.dtype for weight in cell.weights} == {dtype}
    kernel = as_numpy(ops.cast(cell.recurrent_kernel, "float32"))
    assert_close(kernel @ kernel.T, np.eye(3), atol=1e-5 if dtype == "float32" else 0.02)


def test_an_lstm_begins_by_remembering():
    cell = LSTMCell(2)
    cell.build((None, 3))
    assert_close(cell.bias, [0, 0, 1, 1, 0, 0, 0, 0])


def test_the_configuration_knows_the_cells():
    assert tuple(CELLS) == config.CELLS


@pytest.mark.parametrize("cell_class", [GRUCell, LSTMCell])
def test_a_cell_needs_a_unit(cell_class):
    with pytest.raises(ValueError, match="units=0"):
        cell_class(0)


def copied_to_torch(layers, module):
    """Copy the weights of Recurrent layers to a torch.nn.GRU or LSTM: transposed, and nothing else."""
    names = {"kernel": "weight_ih", "recurrent_kernel": "weight_hh", "bias": "bias_ih", "recurrent_bias": "bias_hh"}
    for number, layer in enumerate(layers):
        for cell in layer.cells:
            suffix = f"_l{number}" + ("_reverse" if cell.name == "backward" else "")
            for weight in cell.weights:
                value = module.weight_ih_l0.new_tensor(np.asarray(weight.value).T)
                getattr(module, names[weight.name] + suffix).data.copy_(value)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("direction", ["forward", "both"])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_two_layers_equal_those_of_torch(cell, direction):
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install -r requirements-peers.txt")
    torch_class = {"gru": torch.nn.GRU, "lstm": torch.nn.LSTM}[cell]
    inputs, segments = normal(3, 6, 4), np.ones((3, 6), "int32")
    layers = [Recurrent(5, cell, direction) for _ in range(2)]
    states = inputs
    for layer in layers:
        layer.build(states.shape)
        randomise(layer, seed=len(states), scale=0.5)
        states, *_ = layer(states, segments)
    module = torch_class(4, 5, num_layers=2, batch_first=True, bidirectional=direction == "both")
    expected, _ = copied_to_torch(layers, module)(torch.tensor(inputs))
    assert_close(states, expected.detach().numpy(), atol=1e-5)


def alone(layer, inputs, segments):
    """Run every segment in a row of its own. Returns the states of all tokens, row by row."""
    found = []
    for row, of_row in zip(inputs, segments, strict=True):
        for segment in range(1, of_row.max() + 1):
            chosen = row[of_row == segment][None]
            found.append(as_numpy(layer(chosen, np.ones(chosen.shape[:2], "int32"))[-1])[0])
    return np.concatenate(found)


@pytest.mark.parametrize(("cell", "direction"), [("gru", "forward"), ("lstm", "backward"), ("gru", "both")])
def test_packed_segments_have_the_states_that_they_have_alone(cell, direction):
    layer, inputs = Recurrent(3, cell, direction), normal(*SEGMENTS.shape, 4)
    layer.build(inputs.shape)
    randomise(layer)
    packed = as_numpy(layer(inputs, SEGMENTS)[-1])
    assert_close(packed[SEGMENTS > 0], alone(layer, inputs, SEGMENTS))


def test_padding_leaves_the_state_as_it_is():
    layer, inputs = Recurrent(3), normal(*SEGMENTS.shape, 4)
    states = as_numpy(layer(inputs, SEGMENTS)[0])
    assert_close(states[0, 5:], states[0, [4, 4]])
    other = inputs.copy()
    other[SEGMENTS == 0] += 1
    assert_close(as_numpy(layer(other, SEGMENTS)[0]), states)


@pytest.mark.slow
@pytest.mark.parametrize("xla", [False, True])
def test_packed_segments_have_the_gradients_that_they_have_alone(xla):
    """The loop has a gradient, under XLA too, and the gradient of a weight is the sum over the segments."""
    layer, inputs = Recurrent(3, direction="both"), normal(*SEGMENTS.shape, 4)
    layer.build(inputs.shape)
    variables = [weight.value for weight in randomise(layer).trainable_weights]

    @tf.function(jit_compile=xla, autograph=False)
    def gradients(inputs, segments):
        with tf.GradientTape() as tape:
            [states] = layer(inputs, segments)
            loss = tf.reduce_sum(tf.where(segments[..., None] > 0, states**2, 0))
        return tape.gradient(loss, variables)

    packed = gradients(tf.constant(inputs), tf.constant(SEGMENTS))
    one_per_row = [SEGMENTS * (SEGMENTS == segment) for segment in (1, 2, 3)]
    parts = [gradients(tf.constant(inputs), tf.constant(segments)) for segments in one_per_row]
    for found, *expected in zip(packed, *parts, strict=True):
        assert_close(found, sum(map(as_numpy, expected)), atol=1e-4)


def test_segments_begin_and_end():
    assert_close(first_in_segment(SEGMENTS), [[1, 0, 0, 1, 0, 0, 0], [1, 1, 0, 0, 0, 1, 0]])
    assert_close(last_in_segment(SEGMENTS), [[0, 0, 1, 0, 1, 0, 0], [1, 0, 0, 0, 1, 1, 0]])


def test_final_states_are_those_of_the_last_token_and_backwards_of_the_first():
    part = np.arange(14.0).reshape(1, 7, 2)
    target_segments = np.array([[1, 2, 2, 0]])
    found = FinalStates("both")(part, target_segments, SEGMENTS[:1])
    assert_close(found, [[[4, 1], [8, 7], [8, 7], [0, 0]]])
    assert_close(FinalStates("forward")(part, target_segments, SEGMENTS[:1])[0, 1], [8, 9])
    assert_close(FinalStates("backward")(part, target_segments, SEGMENTS[:1])[0, 0], [0, 1])


def test_a_row_of_unknown_length_is_read_too():
    layer, inputs = Recurrent(3), normal(*SEGMENTS.shape, 4)
    expected = layer(inputs, SEGMENTS)[0]
    shapes = [tf.TensorSpec((None, None, 4)), tf.TensorSpec((None, None), tf.int32)]
    found = tf.function(layer, input_signature=shapes, autograph=False)(inputs, SEGMENTS.astype("int32"))
    assert_close(found[0], expected)
    assert ops.shape(found[0]) == (2, 7, 3)


@pytest.mark.parametrize("arguments", [{"cell": "rnn"}, {"direction": "up"}])
def test_an_unknown_cell_or_direction_is_refused(arguments):
    [value] = arguments.values()
    with pytest.raises(ValueError, match=value):
        Recurrent(2, **arguments)


@pytest.mark.parametrize("loop", [keras_loop, tensorflow_loop])
@pytest.mark.parametrize("reverse", [False, True])
def test_a_loop_hands_its_state_from_position_to_position_and_collects_parts_of_it(loop, reverse):
    """The state is the sum of what came and how many came; (L, B): three positions of two rows."""
    inputs = np.array([[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]], "float32")

    def step(state, values):
        return [state[0] + values[0], state[1] + 1.0, state[0]]

    start = [ops.convert_to_tensor(np.array(part, "float32")) for part in ([100, 0], [0, 0], [0, 0])]
    counts, before, sums = loop(step, start, [ops.convert_to_tensor(inputs)], (1, 2, 0), reverse)
    order = slice(None, None, -1) if reverse else slice(None)
    expected = np.cumsum(inputs[order], axis=0) + [100, 0]
    assert_close(as_numpy(sums)[order], expected)
    assert_close(as_numpy(before)[order], expected - inputs[order])
    assert_close(as_numpy(counts)[order], [[1, 1], [2, 2], [3, 3]])


def test_each_layer_but_the_first_has_a_mask_of_dropout_in_training_alone():
    decoder = RecurrentDecoder(6, layers=3, dropout=0.25)
    embedded = normal(2, 40, 6)
    assert decoder.dropout_scales(embedded, training=False) == []
    scales = [as_numpy(scale) for scale in decoder.dropout_scales(embedded, training=True)]
    assert [scale.shape for scale in scales] == [embedded.shape] * 2 and (scales[0] != scales[1]).any()
    assert_close(np.unique(np.stack(scales)), [0, 4 / 3])
    assert RecurrentDecoder(6, layers=3).dropout_scales(embedded, training=True) == []
