"""Files of one signature each become one file, with equal weights once, which begin where LiteRT may read them."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from export.litert.convert import converted
from export.litert.merge import (
    ALIGNMENT,
    LEAST,
    SharingBuilder,
    as_key,
    is_zeros,
    make_zeros,
    merged,
    read_by_loops_alone,
    share,
)
from keras_transformer.runs.lite_folder import Room

WEIGHTS = np.random.default_rng(1).normal(size=(64, 64)).astype(np.float32)
COUNTS = (2, 160)
STATE = np.random.default_rng(2).normal(size=(1, 64)).astype(np.float32)


def powers(count):
    """A function that multiplies a state `count` times with the weights, in a loop, and counts from zeros on."""

    def multiplied(state):
        is_left = lambda step, *_: step < count  # noqa: E731
        step = lambda step, x, counts: (step + 1, tf.matmul(x, WEIGHTS), counts + 1.0)  # noqa: E731
        _, state, counts = tf.while_loop(is_left, step, (0, state, tf.zeros(COUNTS)))
        return {"state": state, "counts": counts}

    return tf.function(multiplied, [tf.TensorSpec([1, 64], tf.float32, "state")], autograph=False)


@pytest.mark.slow
def test_each_signature_computes_what_it_did_and_equal_weights_stand_once():
    interpreter = pytest.importorskip("ai_edge_litert.interpreter")
    rooms = {Room(1, count): count for count in (1, 2, 3)}
    files = [converted(room.signature, powers(count), None) for room, count in rooms.items()]
    file = merged(files)
    assert len(file) < sum(map(len, files)) - 2 * WEIGHTS.nbytes
    opened = interpreter.Interpreter(model_content=file)
    for room, count in rooms.items():
        translate = opened.get_signature_runner(room.signature)
        for _ in range(2):  # the zeros are there again in the second call
            found = translate(state=STATE)
            np.testing.assert_array_equal(found["counts"], np.full(COUNTS, count, np.float32))
        np.testing.assert_allclose(found["state"], STATE @ np.linalg.matrix_power(WEIGHTS, count), rtol=1e-3, atol=1e-3)
    model, start = schema.Model.GetRootAs(file), np.frombuffer(file, np.uint8).ctypes.data
    data = [model.Buffers(number).DataAsNumpy() for number in range(model.BuffersLength())]
    places = [each.ctypes.data - start for each in data if isinstance(each, np.ndarray)]
    assert len(places) > 2 and not any(place % ALIGNMENT for place in places)
    assert not any(isinstance(each, np.ndarray) and len(each) >= LEAST and not each.any() for each in data)


def test_zeros_are_a_kilobyte_at_least_and_nothing_else():
    for data, expected in (
        (np.zeros(LEAST, np.uint8), True),
        (np.zeros(LEAST - 1, np.uint8), False),
        (np.eye(1, LEAST, LEAST - 1, dtype=np.uint8)[0], False),
        (None, False),
    ):
        assert is_zeros(schema.BufferT(data=data)) is expected


def test_equal_names_and_arrays_are_written_once():
    builder = SharingBuilder(16)
    assert builder.CreateString(b"weights") == builder.CreateString(b"weights") != builder.CreateString(b"biases")
    arrays = [np.array(values, kind) for values, kind in (([1, 0], "int32"), ([1], "int64"), ([1, 1], "int32"))]
    places = [builder.CreateNumpyVector(array) for array in arrays]
    assert places == [builder.CreateNumpyVector(array.copy()) for array in arrays] and len(set(places)) == len(places)


# models by hand


def ints(*numbers):
    return np.array(numbers, np.int32)


def tensor(buffer, name=b"x", kind=schema.TensorType.FLOAT32, shape=(16, 16)):
    return schema.TensorT(name=name, buffer=buffer, type=kind, shape=ints(*shape), hasRank=True)


def operator(code, inputs, outputs, kind=0, options=None):
    return schema.OperatorT(
        opcodeIndex=code, inputs=ints(*inputs), outputs=ints(*outputs), builtinOptionsType=kind, builtinOptions=options
    )


CODES = {name: getattr(schema.BuiltinOperator, name) for name in ("WHILE", "IF", "ADD", "FILL")}
WHILE, IF, ADD = range(3)  # their numbers in a model by hand


def model_with_a_loop(name, weights, metadata=b"about"):
    """Subgraph 0 calls 1 and 2 in a loop, and 1 or 2 by a condition. Tensors of it: weights, zeros, and an output."""
    options = schema.BuiltinOptions
    loop = schema.WhileOptionsT(condSubgraphIndex=1, bodySubgraphIndex=2)
    condition = schema.IfOptionsT(thenSubgraphIndex=1, elseSubgraphIndex=2)
    operators = [
        operator(WHILE, [0, 1], [2], options.WhileOptions, loop),
        operator(IF, [2], [2], options.IfOptions, condition),
    ]
    main = schema.SubGraphT(tensors=[tensor(1), tensor(2), tensor(0)], operators=operators, outputs=ints(2))
    main.inputs = ints()
    others = [schema.SubGraphT(tensors=[], operators=[], inputs=ints(), outputs=ints()) for _ in range(2)]
    codes = [schema.OperatorCodeT(builtinCode=CODES[each], version=1) for each in ("WHILE", "IF", "ADD")]
    data = [None, weights, np.zeros(16 * 16 * 4, np.uint8), np.frombuffer(metadata, np.uint8)]
    output = schema.TensorMapT(name=b"found", tensorIndex=2)
    return schema.ModelT(
        version=3,
        operatorCodes=codes,
        subgraphs=[main, *others],
        buffers=[schema.BufferT(data=each) for each in data],
        metadata=[schema.MetadataT(name=b"note", buffer=3)],
        signatureDefs=[schema.SignatureDefT(inputs=[], outputs=[output], signatureKey=name, subgraphIndex=0)],
    )


def packed(model):
    builder = schema.flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def test_what_models_call_by_numbers_is_called_by_those_that_it_has_in_the_merged_one():
    weights = [np.frombuffer(np.full(256, number, np.float32).tobytes(), np.uint8) for number in (1, 1, 2)]
    parts = [model_with_a_loop(b"%d" % number, each) for number, each in enumerate(weights)]
    parts[2].operatorCodes[IF].version = 2
    odd = np.arange(1, 8, dtype=np.uint8)  # after which the next buffer would begin anywhere
    for part in parts:
        part.buffers[3].data = odd
    parts[1].metadata = None  # as a file may be
    file = merged(map(packed, parts))
    found = schema.ModelT.InitFromPackedBuf(file, 0)
    opened, start = schema.Model.GetRootAs(file), np.frombuffer(file, np.uint8).ctypes.data
    data = [opened.Buffers(number).DataAsNumpy() for number in range(opened.BuffersLength())]
    places = [each.ctypes.data - start for each in data if isinstance(each, np.ndarray)]
    assert len(places) == 5 and not any(place % ALIGNMENT for place in places)
    assert [each.signatureKey for each in found.signatureDefs] == [b"0", b"1", b"2"]
    assert [each.subgraphIndex for each in found.signatureDefs] == [0, 3, 6] and len(found.subgraphs) == 9
    versions = []
    for number, first in enumerate((0, 3, 6)):
        main = found.subgraphs[first]
        made, loop, condition = main.operators
        codes = [found.operatorCodes[each.opcodeIndex] for each in main.operators]
        assert [code.builtinCode for code in codes] == [CODES[name] for name in ("FILL", "WHILE", "IF")]
        versions.append(codes[2].version)
        assert (loop.builtinOptions.condSubgraphIndex, loop.builtinOptions.bodySubgraphIndex) == (first + 1, first + 2)
        both = condition.builtinOptions.thenSubgraphIndex, condition.builtinOptions.elseSubgraphIndex
        assert both == (first + 1, first + 2)
        assert (found.buffers[main.tensors[0].buffer].data == weights[number]).all()
        assert list(made.outputs) == [1] and main.tensors[1].buffer == 0
    assert versions == [1, 1, 2] and len(found.operatorCodes) == 5  # of two versions IF is two operators
    assert bytes(found.buffers[found.metadata[0].buffer].data) == bytes(odd)
    assert sum(each.data is not None and len(each.data) == 1024 for each in found.buffers) == 2  # equal weights once


def test_only_zeros_that_loops_alone_read_are_made_in_each_call():
    model = model_with_a_loop(b"a", np.ones(1024, np.uint8))
    main = model.subgraphs[0]
    main.tensors += [tensor(2), tensor(2), tensor(2, kind=schema.TensorType.INT64), tensor(2, shape=(256,))]
    main.operators[0].inputs = ints(0, 1, 3, 4, 5, 6)
    main.operators.append(operator(ADD, [3], [2]))  # 3 is read by another operation,
    main.outputs = ints(2, 4)  # 4 is an output of the graph, 5 has a type that is not filled
    assert read_by_loops_alone(model, main) == {0, 1, 5, 6}
    make_zeros(model)
    fills = [each for each in main.operators if model.operatorCodes[each.opcodeIndex].builtinCode == CODES["FILL"]]
    assert sorted(int(each.outputs[0]) for each in fills) == [1, 6] and main.operators[:2] == fills
    for each in fills:
        shape, value = (main.tensors[number] for number in each.inputs)
        filled = main.tensors[each.outputs[0]]
        assert model.buffers[shape.buffer].data.view(np.int32).tolist() == list(filled.shape)
        assert (shape.type, value.type) == (schema.TensorType.INT32, filled.type) and filled.buffer == 0
        assert model.buffers[value.buffer].data.tobytes() == bytes(4) and list(value.shape) == []
    assert [code.builtinCode for code in model.operatorCodes].count(CODES["FILL"]) == 1
    assert [code.deprecatedBuiltinCode for code in model.operatorCodes].count(CODES["FILL"]) == 1  # for older readers
    assert [main.tensors[number].buffer for number in (3, 4, 5)] == [2, 2, 2]


def test_equal_tensors_and_operators_are_written_once_but_those_that_call_are_not():
    shared, other = model_with_a_loop(b"a", np.ones(1024, np.uint8)), model_with_a_loop(b"b", np.ones(1024, np.uint8))
    for number, model in enumerate((shared, other)):
        main = model.subgraphs[0]
        main.tensors += [tensor(0, b"name %d" % number), tensor(0, shape=(4, 4)), tensor(0, kind=CODES["ADD"])]
        main.tensors[-1].quantization = schema.QuantizationParametersT(scale=np.array([0.5], np.float32))
        main.tensors[-2].quantization = schema.QuantizationParametersT()
        main.operators += [operator(ADD, [3, 4], [5]), operator(ADD, [4, 3], [5])]
    subgraphs = [shared.subgraphs[0], other.subgraphs[0]]
    calling = [each for subgraph in subgraphs for each in subgraph.operators[:2]]
    share(subgraphs)
    first, second = subgraphs
    assert all(a is b for a, b in zip(first.tensors, second.tensors, strict=True))
    assert len({id(each) for each in first.tensors}) == 5  # the output and the next are equal
    assert [each.item.name for each in first.tensors] == [None] * 6
    assert [each.item.quantization is None for each in first.tensors] == [True] * 5 + [False]
    assert first.operators[2] is second.operators[2] is not first.operators[3] is second.operators[3]
    assert [
        each for subgraph in subgraphs for each in subgraph.operators[:2]
    ] == calling  # which `one_signature` changes
    builder = SharingBuilder(16)
    assert first.tensors[0].Pack(builder) == second.tensors[0].Pack(builder) != first.tensors[1].Pack(builder)


@pytest.mark.parametrize(
    ("one", "other", "are_equal"),
    [
        (tensor(1), tensor(1), True),
        (tensor(1), tensor(2), False),
        (tensor(1), tensor(1, shape=(16,)), False),
        (tensor(1), tensor(1, kind=schema.TensorType.INT32), False),
        (operator(0, [1], [2]), operator(0, [1], [2]), True),
        (operator(0, [1], [2]), operator(0, [2], [1]), False),
        (operator(0, [1], [2]), operator(1, [1], [2]), False),
        (schema.AddOptionsT(), schema.SubOptionsT(), False),
        (schema.AddOptionsT(), schema.AddOptionsT(fusedActivationFunction=1), False),
        ([np.zeros(1, np.int32)], [np.zeros(1, np.float32)], False),
        (schema.ReshapeOptionsT(newShape=[1, 2]), schema.ReshapeOptionsT(newShape=[2, 1]), False),
    ],
)
def test_tables_are_equal_if_all_their_fields_are(one, other, are_equal):
    assert (as_key(one) == as_key(other)) is are_equal
