"""Constants of zeros with which a loop begins, the empty state of a search, as an operation that makes them.

The converter writes them into the file: for the larger rooms they are more than the weights.
"""

from typing import Any

import numpy as np
from tensorflow.lite.python import schema_py_generated as schema

LEAST = 1024  # bytes; smaller constants take less than the operation
TYPES = {schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT32: np.int32}


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
