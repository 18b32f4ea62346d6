"""Run a SavedModel as TensorFlow Serving does: through TensorFlow's C API, without TensorFlow's Python layer.

    python export/certificate/c_runtime.py < question.json > answer.json

The question has the keys
    library      the path of libtensorflow_cc
    operations   the paths of libraries with custom operations
    folder       a version
    outputs      names of tensors, from its signature
    requests     for each request a tensor per name, as {"type": "string", "shape": [2], "values": [...]}; lone
                 surrogates in a string stand for bytes that are not UTF-8
and the answer
    responses    for each request {"outputs": a list of values per output} or {"error": TensorFlow's message}
    modules      the names of all imported modules

It runs as a process of its own and imports the standard library alone; `CRuntime` in runtimes.py starts it.
"""

import ctypes
import json
import sys
from typing import Any

STRING = 7  # TF_DataType
NUMBERS: dict[str, tuple[int, Any]] = {  # by name: the TF_DataType, and the type in memory
    "float32": (1, ctypes.c_float),
    "float64": (2, ctypes.c_double),
    "int32": (3, ctypes.c_int32),
    "int64": (9, ctypes.c_int64),
    "bool": (10, ctypes.c_bool),
}
SIZE_OF_STRING = 24  # of a TF_TString


class Output(ctypes.Structure):
    """TF_Output: an operation of a graph, and which of its outputs."""

    _fields_ = [("operation", ctypes.c_void_p), ("index", ctypes.c_int)]


class Runtime:
    """A session over a SavedModel, opened by TF_LoadSessionFromSavedModel with the tag `serve`."""

    def __init__(self, library: str, operations: list[str], folder: str):
        self.c = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        for name in (
            "TF_NewStatus",
            "TF_NewSessionOptions",
            "TF_NewGraph",
            "TF_LoadSessionFromSavedModel",
            "TF_LoadLibrary",
            "TF_GraphOperationByName",
            "TF_AllocateTensor",
            "TF_TensorData",
            "TF_StringGetDataPointer",
        ):
            getattr(self.c, name).restype = ctypes.c_void_p
        self.c.TF_StringGetSize.restype = ctypes.c_size_t
        self.c.TF_TensorElementCount.restype = ctypes.c_int64
        self.c.TF_Message.restype = ctypes.c_char_p
        self.status = ctypes.c_void_p(self.c.TF_NewStatus())
        for operation in operations:
            self.c.TF_LoadLibrary(operation.encode(), self.status)
            self.raise_if_failed()
        self.graph = ctypes.c_void_p(self.c.TF_NewGraph())
        tags = (ctypes.c_char_p * 1)(b"serve")
        options = ctypes.c_void_p(self.c.TF_NewSessionOptions())
        session = self.c.TF_LoadSessionFromSavedModel(
            options, None, folder.encode(), tags, 1, self.graph, None, self.status
        )
        self.raise_if_failed()
        self.session = ctypes.c_void_p(session)

    def raise_if_failed(self):
        """Raise RuntimeError if the last call failed."""
        if self.c.TF_GetCode(self.status) != 0:
            raise RuntimeError(self.c.TF_Message(self.status).decode())

    def output(self, tensor_name: str) -> Output:
        """Return the Output of a name such as `input:0`. Raises KeyError if the graph has no such operation."""
        name, _, index = tensor_name.partition(":")
        operation = self.c.TF_GraphOperationByName(self.graph, name.encode())
        if not operation:
            raise KeyError(tensor_name)
        return Output(operation, int(index))

    def run(self, tensors: dict[str, dict], output_names: list[str]) -> list[list]:
        """Feed tensors by name. Returns one list of values per output, of bytes or of numbers, in row-major order."""
        feeds, fetches = [self.output(name) for name in tensors], [self.output(name) for name in output_names]
        values = [self.tensor(**tensor) for tensor in tensors.values()]
        results = (ctypes.c_void_p * len(fetches))()
        self.c.TF_SessionRun(
            self.session,
            None,
            (Output * len(feeds))(*feeds),
            (ctypes.c_void_p * len(feeds))(*values),
            len(feeds),
            (Output * len(fetches))(*fetches),
            results,
            len(fetches),
            None,
            0,
            None,
            self.status,
        )
        for value in values:
            self.c.TF_DeleteTensor(ctypes.c_void_p(value))
        self.raise_if_failed()
        arrays = [self.values(ctypes.c_void_p(tensor)) for tensor in results]
        for tensor in results:
            self.c.TF_DeleteTensor(ctypes.c_void_p(tensor))
        return arrays

    def tensor(self, type: str, shape: list[int], values: list) -> int:
        """Return the address of a new TF_Tensor."""
        kind, number = {**NUMBERS, "string": (STRING, ctypes.c_char)}[type]
        size = SIZE_OF_STRING if type == "string" else ctypes.sizeof(number)
        dimensions = (ctypes.c_int64 * len(shape))(*shape)
        tensor = self.c.TF_AllocateTensor(kind, dimensions, len(shape), ctypes.c_size_t(size * len(values)))
        first = self.c.TF_TensorData(ctypes.c_void_p(tensor))
        for place, value in enumerate(values):
            if type == "string":
                text, string = value.encode("utf-8", "surrogateescape"), ctypes.c_void_p(first + SIZE_OF_STRING * place)
                self.c.TF_StringInit(string)
                self.c.TF_StringCopy(string, text, ctypes.c_size_t(len(text)))
            else:
                number.from_address(first + size * place).value = value
        return tensor

    def values(self, tensor: ctypes.c_void_p) -> list:
        """Return the values of a TF_Tensor of strings or of one of NUMBERS."""
        count, first = self.c.TF_TensorElementCount(tensor), self.c.TF_TensorData(tensor)
        kind = self.c.TF_TensorType(tensor)
        for number_kind, number in NUMBERS.values():
            if kind == number_kind:
                return list((number * count).from_address(first)) if count else []
        if kind != STRING:
            raise TypeError(f"expected strings or numbers, found TF_DataType {kind}")
        strings = [ctypes.c_void_p(first + SIZE_OF_STRING * place) for place in range(count)]
        return [
            ctypes.string_at(self.c.TF_StringGetDataPointer(string), self.c.TF_StringGetSize(string))
            for string in strings
        ]


def answer(question: dict) -> dict:
    """Return the answer to a question: see the head of this file."""
    runtime = Runtime(question["library"], question["operations"], question["folder"])
    responses: list[dict] = []
    for request in question["requests"]:
        try:
            outputs = runtime.run(request, question["outputs"])
        except RuntimeError as error:
            responses.append({"error": str(error)})
        else:
            responses.append({"outputs": [[decoded(value) for value in values] for values in outputs]})
    return {"responses": responses, "modules": sorted({name.split(".")[0] for name in sys.modules})}


def decoded(value: object) -> object:
    """Return bytes as a string, and any other value as it is."""
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
