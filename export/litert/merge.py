"""LiteRT files of one signature each, put together as one file that has what is equal once, and no zeros.

The converter takes all signatures at once too, but then from a SavedModel that has the weights once per signature, and
TensorFlow writes no graph of more than 2 GiB.
"""

import copy
import functools
import hashlib
from collections.abc import Callable, Iterable
from typing import Any

import flatbuffers
import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

from keras_transformer.runs.lite_folder import IDENTIFIER

LEAST = 1024  # bytes; smaller constants take less than the operation
TYPES = {schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT32: np.int32}

ALIGNMENT = 16  # of the data of a buffer, in bytes: that of the schema
NOTHING = b""
SUBGRAPHS = ("condSubgraphIndex", "bodySubgraphIndex", "thenSubgraphIndex", "elseSubgraphIndex")  # that operators call


class SharingBuilder(flatbuffers.Builder):
    """A builder that writes equal strings and arrays once: names, shapes and scales of weights in every signature."""

    def __init__(self, size: int) -> None:
        super().__init__(size)
        self._places: dict[Any, int] = {}

    def CreateString(self, *arguments: Any) -> int:  # noqa: N802  (names of flatbuffers)
        return self._shared(arguments, super().CreateString, *arguments)

    def CreateNumpyVector(self, array: np.ndarray) -> int:  # noqa: N802
        return self._shared((array.dtype.str, array.tobytes()), super().CreateNumpyVector, array)

    def _shared(self, key: Any, create: Callable[..., int], *arguments: Any) -> int:
        if key not in self._places:
            self._places[key] = create(*arguments)
        return self._places[key]


class Shared:
    """A table of a file, which may stand in several lists and is written once."""

    def __init__(self, item: Any) -> None:
        self.item = item
        self._place: int | None = None

    def Pack(self, builder: flatbuffers.Builder) -> int:  # noqa: N802
        if self._place is None:
            self._place = self.item.Pack(builder)
        return self._place


class AlignedBuffer(schema.BufferT):
    """A buffer whose data begins at a multiple of ALIGNMENT, which flatbuffers' Python does not see to."""

    @functools.cached_property
    def digest(self) -> bytes:
        """What equal buffers have in common, NOTHING if there is no data."""
        if self.data is None or not len(self.data):
            return NOTHING
        return hashlib.sha256(np.ascontiguousarray(self.data).data).digest()

    def apart(self) -> "AlignedBuffer":
        """Return the buffer with data that does not keep the file alive that it was read from."""
        return self if self.data is None or self.data.base is None else AlignedBuffer(np.array(self.data))

    def Pack(self, builder: flatbuffers.Builder) -> int:  # noqa: N802  (the name in the schema)
        content = self.data if self.data is not None and len(self.data) else None
        if content is not None:
            builder.StartVector(1, len(content), ALIGNMENT)
            start = builder.Head() - len(content)
            builder.Bytes[start : builder.Head()] = np.ascontiguousarray(content).data
            builder.head = start
            vector = builder.EndVector()
        schema.BufferStart(builder)
        if content is not None:
            schema.BufferAddData(builder, vector)
        return schema.BufferEnd(builder)


def merged(files: Iterable[bytes], change: Callable[[Any], None] | None = None) -> bytes:
    """Return one file with the signatures of all `files`, in their order; what else they say is that of the first.

    change: called with each file, as a ModelT, before anything else.
    """
    buffers, operators = Numbers(), Numbers()
    buffers.number(NOTHING, AlignedBuffer)  # the first one has no data
    model: Any = None
    subgraphs, signatures = [], []
    for file in files:
        part = schema.ModelT.InitFromPackedBuf(file, 0)
        if change is not None:
            change(part)
        make_zeros(part)
        in_use = {number: aligned(part.buffers[number]) for number in buffers_in_use(part)}
        places = {number: buffers.number(buffer.digest, buffer.apart) for number, buffer in in_use.items()}
        codes = [operators.number(astuple(code), functools.partial(copy.copy, code)) for code in part.operatorCodes]
        renumber(part, places, codes, len(subgraphs))
        subgraphs += part.subgraphs
        signatures += part.signatureDefs
        model = model or part
    share(subgraphs)
    model.subgraphs, model.signatureDefs, model.operatorCodes = subgraphs, signatures, operators.items
    model.buffers = buffers.items
    weights = sum(len(buffer.data) for buffer in buffers.items if buffer.data is not None)
    builder = SharingBuilder(weights + 2**20)  # which doubles, and copies, what is too small
    builder.Finish(model.Pack(builder), file_identifier=IDENTIFIER)
    return bytes(memoryview(builder.Bytes)[builder.Head() :])


class Numbers:
    """Items in the order in which they came, equal ones once."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[Any, int] = {}

    def number(self, key: Any, make: Callable[[], Any]) -> int:
        """Return the number of the item with this key, which is made if there is none."""
        if key not in self._numbers:
            self._numbers[key] = len(self.items)
            self.items.append(make())
        return self._numbers[key]


def aligned(buffer: Any) -> AlignedBuffer:
    """Return a buffer of a file as one of a merged file."""
    return buffer if isinstance(buffer, AlignedBuffer) else AlignedBuffer(buffer.data)


def buffers_in_use(part: Any) -> list[int]:
    """Return the numbers of the buffers that tensors and metadata have."""
    holders = [*(part.metadata or ()), *(tensor for subgraph in part.subgraphs for tensor in subgraph.tensors)]
    return sorted({holder.buffer for holder in holders})


def renumber(part: Any, places: dict[int, int], codes: list[int], first: int) -> None:
    """Change a model to the numbers that its buffers and operator codes now have, and its subgraphs from `first` on."""
    for metadata in part.metadata or ():
        metadata.buffer = places[metadata.buffer]
    for subgraph in part.subgraphs:
        for tensor in subgraph.tensors:
            tensor.buffer = places[tensor.buffer]
        for operator in subgraph.operators:
            operator.opcodeIndex = codes[operator.opcodeIndex]
            for name in SUBGRAPHS:
                if hasattr(operator.builtinOptions, name):
                    setattr(operator.builtinOptions, name, getattr(operator.builtinOptions, name) + first)
    for signature in part.signatureDefs:
        signature.subgraphIndex += first


def share(subgraphs: list[Any]) -> None:
    """Let equal tensors of all subgraphs be one table, and equal operators. Nobody reads the names of tensors.

    Operators that call subgraphs stay apart: `one_signature` gives these other numbers.
    """
    tables: dict[Any, Shared] = {}
    for subgraph in subgraphs:
        for tensor in subgraph.tensors:
            tensor.name = None
            if tensor.quantization is not None and tensor.quantization.scale is None:
                tensor.quantization = None
        subgraph.tensors = [tables.setdefault(as_key(tensor), Shared(tensor)) for tensor in subgraph.tensors]
        subgraph.operators = [
            operator if is_calling(operator) else tables.setdefault(as_key(operator), Shared(operator))
            for operator in subgraph.operators
        ]


def is_calling(operator: Any) -> bool:
    """Return whether an operator calls subgraphs."""
    return any(hasattr(operator.builtinOptions, name) for name in SUBGRAPHS)


def as_key(item: Any) -> Any:
    """Return what equal tables have in common: the values of all their fields."""
    if isinstance(item, np.ndarray):
        return item.dtype.str, item.tobytes()
    if isinstance(item, list):
        return tuple(map(as_key, item))
    if hasattr(item, "__dict__"):
        return type(item).__name__, *((name, as_key(value)) for name, value in vars(item).items())
    return item


def astuple(code: Any) -> tuple:
    """Return the fields of an operator code."""
    return code.builtinCode, code.deprecatedBuiltinCode, code.customCode, code.version


def make_zeros(model: Any) -> None:
    """Change a model so that FILL makes, in each call, the larger constants of zeros that only loops read."""
    fill: int | None = None
    for subgraph in model.subgraphs:
        for number in sorted(read_by_loops_alone(model, subgraph)):
            tensor = subgraph.tensors[number]
            if tensor.type not in TYPES or not is_zeros(model.buffers[tensor.buffer]):
                continue
            fill = add_fill(model) if fill is None else fill
            shape = np.asarray(tensor.shape, np.int32)
            inputs = [
                add_constant(model, subgraph, shape, schema.TensorType.INT32),
                add_constant(model, subgraph, np.zeros((), TYPES[tensor.type]), tensor.type),
            ]
            tensor.buffer = 0  # none
            subgraph.operators.insert(0, operation(fill, inputs, number))


def read_by_loops_alone(model: Any, subgraph: Any) -> set[int]:
    """Return the numbers of the tensors of a subgraph that are inputs of loops and of nothing else."""
    read: dict[bool, set[int]] = {True: set(), False: set(subgraph.outputs)}
    for operator in subgraph.operators:
        is_loop = model.operatorCodes[operator.opcodeIndex].builtinCode == schema.BuiltinOperator.WHILE
        read[is_loop].update(operator.inputs)
    return read[True] - read[False]


def add_fill(model: Any) -> int:
    """Add the operator FILL to those of a model, and return its number."""
    code = schema.BuiltinOperator.FILL
    model.operatorCodes.append(schema.OperatorCodeT(deprecatedBuiltinCode=code, version=1, builtinCode=code))
    return len(model.operatorCodes) - 1


def is_zeros(buffer: Any) -> bool:
    """Return whether a buffer has at least LEAST bytes, all of them 0."""
    return buffer.data is not None and len(buffer.data) >= LEAST and not np.any(buffer.data)


def add_constant(model: Any, subgraph: Any, values: np.ndarray, kind: int) -> int:
    """Add a constant to a subgraph and return the number of its tensor."""
    model.buffers.append(schema.BufferT(data=np.frombuffer(values.tobytes(), np.uint8)))
    constant = schema.TensorT(name=b"zeros", type=kind, buffer=len(model.buffers) - 1, hasRank=True)
    constant.shape = np.asarray(values.shape, np.int32)
    subgraph.tensors.append(constant)
    return len(subgraph.tensors) - 1


def operation(code: int, inputs: list[int], output: int) -> Any:
    """Return the operator number `code`, which fills a tensor: its shape and the value are `inputs`."""
    return schema.OperatorT(
        opcodeIndex=code,
        inputs=np.asarray(inputs, np.int32),
        outputs=np.asarray([output], np.int32),
        builtinOptionsType=schema.BuiltinOptions.FillOptions,
        builtinOptions=schema.FillOptionsT(),
    )
