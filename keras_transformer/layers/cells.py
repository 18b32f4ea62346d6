"""The recurrent cells: a state and an input at one position, to the state after it."""

import operator

import keras
from keras import ops


def orthogonal(shape: tuple, dtype: str | None = None):
    """Draw a matrix with orthonormal rows, or columns if it has fewer of them: (rows, columns) -> (rows, columns).

    It is drawn in float32 at least and then cast: TensorFlow has no QR decomposition in bfloat16.
    """
    dtype = dtype or keras.config.floatx()
    drawn = keras.initializers.Orthogonal()(shape, keras.backend.result_type(dtype, "float32"))
    return ops.cast(drawn, dtype)


class Cell(keras.layers.Layer):
    """What both cells have: weights, and a product with the input that does not wait for the state.

    The columns of every weight stand gate by gate, in the order of the cell's equations, which is that of
    torch.nn.GRU and torch.nn.LSTM: `kernel` is weight_ih transposed, `recurrent_kernel` is weight_hh transposed,
    `bias` is bias_ih and `recurrent_bias` is bias_hh.

    Args:
        units: width of the state.

    Shapes: inputs (N, any width) and state, a list of `parts` tensors (N, units) -> a list of (N, units), of which the
    first is the output of the cell. Raises ValueError for a width below 1.
    """

    gates = 0  # blocks of columns in each weight
    parts = 0  # tensors in the state

    def __init__(self, units: int, **kwargs):
        super().__init__(**kwargs)
        if units < 1:
            raise ValueError(f"units must be at least 1. Received: units={units}")
        self.units = operator.index(units)

    def build(self, input_shape: tuple):
        columns = self.gates * self.units
        self.kernel = self.add_weight(name="kernel", shape=(input_shape[-1], columns), initializer="glorot_uniform")
        self.recurrent_kernel = self.add_weight(
            name="recurrent_kernel", shape=(self.units, columns), initializer=orthogonal
        )
        self.bias = self.add_weight(name="bias", shape=(columns,), initializer=self.first_bias)
        self.recurrent_bias = self.add_weight(name="recurrent_bias", shape=(columns,), initializer="zeros")

    def first_bias(self, shape: tuple, dtype: str | None = None):
        return ops.zeros(shape, dtype)

    def call(self, inputs, *state):
        return self.step(list(state), self.project(inputs))

    def project(self, inputs):
        """x W + b, of all positions at once: (..., width) -> (..., gates * units)"""
        return ops.matmul(self.in_compute_dtype(inputs), self.in_compute_dtype(self.kernel)) + self.in_compute_dtype(
            self.bias
        )

    def recur(self, hidden):
        """h U + c: (N, units) -> (N, gates * units)"""
        product = ops.matmul(hidden, self.in_compute_dtype(self.recurrent_kernel))
        return product + self.in_compute_dtype(self.recurrent_bias)

    def in_compute_dtype(self, values):
        return ops.cast(ops.convert_to_tensor(values), self.compute_dtype)

    def compute_output_shape(self, inputs_shape: tuple) -> list[tuple]:
        return [(*inputs_shape[:-1], self.units)] * self.parts

    def get_config(self) -> dict:
        return {**super().get_config(), "units": self.units}


@keras.saving.register_keras_serializable("keras_transformer")
class GRUCell(Cell):
    """Gated recurrent unit (Cho et al. 2014), in the form whose reset gate follows the product with the state.

    r = sigmoid(x W_r + b_r + h U_r + c_r)            what to forget
    z = sigmoid(x W_z + b_z + h U_z + c_z)            what to keep
    n = tanh(x W_n + b_n + r * (h U_n + c_n))         what is new
    h' = (1 - z) * n + z * h
    """

    gates, parts = 3, 1

    def step(self, state: list, projected) -> list:
        """state [h]; projected (N, 3 * units) of `project` -> [h']"""
        [hidden] = state
        x_r, x_z, x_n = ops.split(projected, 3, axis=-1)
        h_r, h_z, h_n = ops.split(self.recur(hidden), 3, axis=-1)
        reset = ops.sigmoid(x_r + h_r)
        update = ops.sigmoid(x_z + h_z)
        new = ops.tanh(x_n + reset * h_n)
        return [(1 - update) * new + update * hidden]


@keras.saving.register_keras_serializable("keras_transformer")
class LSTMCell(Cell):
    """Long short-term memory (Hochreiter & Schmidhuber 1997, with the forget gate of Gers et al. 2000).

    i = sigmoid(x W_i + b_i + h U_i + c_i)            input gate
    f = sigmoid(x W_f + b_f + h U_f + c_f)            forget gate; b_f begins as 1 (Jozefowicz et al. 2015)
    g = tanh(x W_g + b_g + h U_g + c_g)               what is new
    o = sigmoid(x W_o + b_o + h U_o + c_o)            output gate
    m' = f * m + i * g                                the memory of the cell
    h' = o * tanh(m')
    """

    gates, parts = 4, 2

    def first_bias(self, shape: tuple, dtype: str | None = None):
        begins = [(self.units, 0.0), (self.units, 1.0), (2 * self.units, 0.0)]
        return ops.concatenate([ops.full((columns,), value, dtype) for columns, value in begins])

    def step(self, state: list, projected) -> list:
        """state [h, m]; projected (N, 4 * units) of `project` -> [h', m']"""
        hidden, memory = state
        i, f, g, o = ops.split(projected + self.recur(hidden), 4, axis=-1)
        memory = ops.sigmoid(f) * memory + ops.sigmoid(i) * ops.tanh(g)
        return [ops.sigmoid(o) * ops.tanh(memory), memory]


CELLS = {"gru": GRUCell, "lstm": LSTMCell}
