"""A file whose weights stood aside while it was converted computes, bit for bit, what one converted with them does."""

import functools

import numpy as np
import pytest
from tensorflow.lite.python import schema_py_generated as schema

from export.litert.convert import (
    LiteHow,
    attention_function,
    converted,
    lite_model,
    read_as_integers,
    search_function,
    search_outputs,
    takes_any_length,
)
from export.litert.merge import NOTHING, AlignedBuffer, merged
from export.litert.stand_ins import FIRST, LARGEST, LEAST, StandIns, rounded_matrix, scale_of
from export.versions import ExportError
from keras_transformer.config import TransformerConfig
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.kinds import build_model, joint_decoder
from keras_transformer.runs.lite_folder import ALIGN, Room
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.aligner import attention_by
from tests.support.models import randomise
from tests.support.variants import VARIANTS

PLAIN = TransformerConfig(vocab_size=130, encoder_layers=1, decoder_layers=2, d_model=64, d_ff=96, num_heads=2)
SQUARE = PLAIN.replace(num_heads=4)  # 1 / sqrt(d_k) is 1/4: times the scale of an RMSNorm it is exact in any order
CONFIGS = {
    "heads whose square root is no power of 2": PLAIN,
    "biases, and matrices that nothing shares": PLAIN.replace(
        attention_bias=True, shared_embeddings=False, norm="pre", num_heads=4
    ),
    "learned positions": PLAIN.replace(positions="learned", max_positions=80),
    "averages": PLAIN.replace(decoder_layer="ssru"),
    "RMSNorm after each sublayer and the embedding": SQUARE.replace(norm_kind="rms", embedding_norm=True),
    **{variant: SQUARE.replace(**VARIANTS[variant]) for variant in ("modern", "t5", "alibi")},
    "convolutions": PLAIN.replace(encoder_layer="convolutional", kernel_size=3),
    "recurrent": RecurrentConfig(vocab_size=130, d_model=64),
}
ROOM, HOW = Room(1, 6, 10), LiteHow(SearchOptions(2, 0.6, 4))


def constants(file):
    """What each constant of a file is, in any order."""
    model = schema.ModelT.InitFromPackedBuf(file, 0)
    held = set()
    for tensor in (tensor for subgraph in model.subgraphs for tensor in subgraph.tensors):
        data = model.buffers[tensor.buffer].data
        if data is not None and len(data) >= LEAST:
            scale = None if tensor.quantization is None else tensor.quantization.scale
            held.add((*tensor.shape, tensor.type, data.tobytes(), None if scale is None else scale.tobytes()))
    return held


@pytest.mark.nightly
@pytest.mark.parametrize("name", CONFIGS)
def test_the_constants_and_every_output_are_those_of_a_conversion_with_the_weights(name):
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    model = randomise(build_model(CONFIGS[name]), seed=3, scale=0.2)
    with read_as_integers(model, lambda integers: lambda: integers):
        outputs = functools.partial(search_outputs, joint_decoder([model]), HOW, None)
        files = [converted(ROOM.signature, search_function(outputs, ROOM), "int8")]
        alignment = AlignedBy(1) if takes_any_length(CONFIGS[name]) else None
        if alignment:
            files.append(converted(ALIGN, attention_function(attention_by([alignment], model)), "int8"))
        with_weights = merged(files)
    without = lite_model(model, HOW, [ROOM], "int8", alignment=alignment)
    assert constants(without) == constants(with_weights)
    opened = [interpreter.Interpreter(model_content=file, num_threads=1) for file in (with_weights, without)]
    for seed in range(5):
        ids = np.random.default_rng(seed).integers(4, 130, (1, 6), np.int32)
        ids[0, -1] = 3
        asked = {ROOM.signature: {"n_best": np.ones(1, np.int32)}}
        if alignment:
            asked[ALIGN] = {"target_ids": ids[:, seed:]}
        for signature, inputs in asked.items():
            runners = [each.get_signature_runner(signature) for each in opened]
            expected, found = (runner(source_ids=ids, **inputs) for runner in runners)
            for output in expected:
                np.testing.assert_array_equal(found[output], expected[output])


def test_a_graph_has_a_number_in_place_of_each_matrix_and_is_small():
    model = build_model(PLAIN.replace(d_model=128, d_ff=1024, vocab_size=2000))
    stand_ins = StandIns(model, decoder := joint_decoder([model]))
    with read_as_integers(model, stand_ins.table):
        outputs = stand_ins.in_graph(functools.partial(search_outputs, decoder, HOW, None))
        graph = search_function(outputs, ROOM).graph.as_graph_def()
    assert graph.ByteSize() < model.count_params() / 4  # a sixteenth of the weights
    assert stand_ins.variables and all(np.prod(variable.shape) >= LEAST for variable in stand_ins.variables)


def part_of(data, kind, scale=None):
    """A model of one tensor."""
    quantization = None if scale is None else schema.QuantizationParametersT(scale=np.asarray(scale, np.float32))
    tensor = schema.TensorT(buffer=1, type=kind, shape=np.array(data.shape, np.int32), quantization=quantization)
    buffers = [schema.BufferT(), schema.BufferT(data=data.view(np.uint8).reshape(-1))]
    return schema.ModelT(subgraphs=[schema.SubGraphT(tensors=[tensor])], buffers=buffers)


def stand_ins_of_plain():
    model = randomise(build_model(PLAIN), scale=0.2)
    stand_ins = StandIns(model, joint_decoder([model]))
    stand_ins.table(np.arange(-100, 100, dtype=np.int8).reshape(20, 10))
    return stand_ins


@pytest.mark.parametrize("factor", [1.0, 32**-0.5])
def test_the_scales_tell_the_matrix_and_the_factor_that_the_converter_multiplied_in(factor):
    stand_ins = stand_ins_of_plain()
    number = next(n for n, variable in enumerate(stand_ins.variables) if variable.name == "kernel")
    inputs, outputs = stand_ins.variables[number].shape
    part = part_of(np.full((outputs, inputs), LARGEST, np.int8), 9, [factor * scale_of(number)] * outputs)
    stand_ins.replace(part)
    tensor = part.subgraphs[0].tensors[0]
    integers = part.buffers[tensor.buffer].data.view(np.int8).reshape(outputs, inputs)
    kernel = np.asarray(stand_ins.variables[number].value)
    assert np.allclose(integers * tensor.quantization.scale[:, None], factor * kernel.T, atol=0.01)


def test_norms_that_hardly_scale_confuse_no_two_matrices():
    model = randomise(build_model(PLAIN.replace(norm="pre", norm_kind="rms")), scale=0.2)
    scales = [weight for weight in model.weights if weight.name == "scale"]
    for place, weight in enumerate(scales):
        weight.assign(np.full(weight.shape, 1 + place / 2**16))
    stand_ins = StandIns(model, joint_decoder([model]))
    for number, kernel in enumerate(stand_ins.variables):
        inputs, outputs = kernel.shape
        if kernel.name != "kernel" or inputs != PLAIN.d_model:  # no norm comes right before it
            continue
        scale = scale_of(number) * (1 + 1 / 2**16)
        part = part_of(np.full((outputs, inputs), LARGEST, np.int8), 9, [scale] * outputs)
        stand_ins.replace(part)
        tensor = part.subgraphs[0].tensors[0]
        integers = part.buffers[tensor.buffer].data.view(np.int8).reshape(outputs, inputs)
        assert np.allclose(integers * tensor.quantization.scale[:, None], np.asarray(kernel.value).T, atol=0.01)


def test_a_table_is_told_by_its_number():
    part = part_of(np.ones((20, 10), np.int8), 9)
    stand_ins_of_plain().replace(part)
    found = part.buffers[part.subgraphs[0].tensors[0].buffer].data.view(np.int8)
    assert found.tolist() == list(range(-100, 100))


@pytest.mark.parametrize(
    ("data", "kind", "scale"),
    [
        (np.full((64, 64), LARGEST * scale_of(1), np.float32), 0, None),  # not rounded
        (np.full((64, 64), LARGEST, np.int8), 9, [scale_of(1)] * 63 + [scale_of(2)]),  # of two matrices
        (np.full((64, 64), LARGEST, np.int8), 9, [scale_of(500)] * 64),  # of none
        (np.full((64, 64), LARGEST, np.int8), 9, [0.5 * FIRST] * 64),  # by a factor that nobody knows
        (np.full((20, 10), 2, np.int8), 9, None),  # a table of none
        (np.arange(1, 201, dtype=np.uint8).view(np.int8), 9, None),  # changed
        (np.ones((20, 9), np.int8), 9, None),  # a part of it
    ],
)
def test_a_number_that_is_left_is_refused(data, kind, scale):
    with pytest.raises(ExportError, match=r"^This model uses a weight in a way .* without --quantization\.$"):
        stand_ins_of_plain().replace(part_of(data, kind, scale))


def test_constants_that_stand_for_nothing_stay_as_they_are():
    for data, kind, scale in (
        (np.full((64, 64), LARGEST, np.int8), 9, [0.01] * 64),
        (np.zeros((64, 64), np.float32), 0, None),
        (np.ones(LEAST, np.int32), 2, None),
    ):
        part = part_of(data, kind, scale)
        stand_ins_of_plain().replace(part)
        assert part.subgraphs[0].tensors[0].buffer == 1 and len(part.buffers) == 2


def test_the_largest_number_of_a_row_is_127_and_a_row_of_zeros_stays_zeros():
    with np.errstate(all="raise"):
        integers, scales = rounded_matrix(np.array([[0.5, -2.0, 1.0], [0.0, 0.0, 0.0]], np.float32))
    assert integers.tolist() == [[32, -127, 64], [0, 0, 0]] and integers.dtype == np.int8
    assert np.isfinite(scales).all() and scales[0, 0] == np.float32(2) / np.float32(127)


def test_buffers_are_equal_if_their_bytes_are():
    one, other = (AlignedBuffer(np.full(4, number, np.uint8)) for number in (1, 2))
    assert one.digest == AlignedBuffer(np.ones(4, np.uint8)).digest != other.digest
    assert AlignedBuffer().digest == AlignedBuffer(np.zeros(0, np.uint8)).digest == NOTHING
