"""Run a SavedModel as TensorFlow Serving does: through TensorFlow's C API, with no Python layer of TensorFlow at all.

    python export/c_runtime.py < question.json > answer.json

question: library (libtensorflow_cc), operations (libraries of custom operations), folder (a version), input and
outputs (tensor names from its signature), requests (lists of str; lone surrogates stand for bytes that are no UTF-8).
answer: responses, for each request a list of one list for each output; modules, which were imported to get there.

It runs as a process of its own and imports nothing but the standard library; `CRuntimeTranslator` in
export/certificate.py asks it.
"""

import ctypes
import json
import sys

STRING, FLOAT = 7, 1  # TF_DataType
SIZE_OF_STRING = 24  # of a TF_TString


class Output(ctypes.Structure):
    """TF_Output: an operation of a graph, and which of its outputs."""

    _fields_ = [("operation", ctypes.c_void_p), ("index", ctypes.c_int)]


class Runtime:
    """A session over a SavedModel, opened by TF_LoadSessionFromSavedModel with the tag `serve`."""

    def __init__(self, library, operations, folder):
        self.c = ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
        for name in (
            "TF_NewStatus", "TF_NewSessionOptions", "TF_NewGraph", "TF_LoadSessionFromSavedModel", "TF_LoadLibrary",
            "TF_GraphOperationByName", "TF_AllocateTensor", "TF_TensorData", "TF_StringGetDataPointer",
        ):  # fmt: skip
            getattr(self.c, name).restype = ctypes.c_void_p
        for name in ("TF_Dim", "TF_StringGetSize"):
            getattr(self.c, name).restype = ctypes.c_size_t
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
        )  # fmt: skip
        self.raise_if_failed()
        self.session = ctypes.c_void_p(session)

    def raise_if_failed(self):
        if self.c.TF_GetCode(self.status) != 0:
            raise RuntimeError(self.c.TF_Message(self.status).decode())

    def output(self, tensor_name):
        operation, _, index = tensor_name.partition(":")
        found = self.c.TF_GraphOperationByName(self.graph, operation.encode())
        if not found:
            raise KeyError(tensor_name)
        return Output(found, int(index))

    def run(self, input_name, texts, output_names):
        """Feed strings of shape (len(texts),). Returns one list for each output, of bytes or of float."""
        feeds, fetches = [self.output(input_name)], [self.output(name) for name in output_names]
        found = (ctypes.c_void_p * len(fetches))()
        self.c.TF_SessionRun(
            self.session, None,
            (Output * 1)(*feeds), (ctypes.c_void_p * 1)(self.string_tensor(texts)), 1,
            (Output * len(fetches))(*fetches), found, len(fetches),
            None, 0, None, self.status,
        )  # fmt: skip
        self.raise_if_failed()
        return [self.values(ctypes.c_void_p(tensor)) for tensor in found]

    def string_tensor(self, texts):
        tensor = self.c.TF_AllocateTensor(
            STRING, (ctypes.c_int64 * 1)(len(texts)), 1, ctypes.c_size_t(SIZE_OF_STRING * len(texts))
        )
        first = self.c.TF_TensorData(ctypes.c_void_p(tensor))
        for place, text in enumerate(texts):
            string = ctypes.c_void_p(first + SIZE_OF_STRING * place)
            self.c.TF_StringInit(string)
            self.c.TF_StringCopy(string, text, ctypes.c_size_t(len(text)))
        return tensor

    def values(self, tensor):
        """A tensor of rank 1, TF_STRING or TF_FLOAT, as a list."""
        count, first = self.c.TF_Dim(tensor, 0), self.c.TF_TensorData(tensor)
        kind = self.c.TF_TensorType(tensor)
        if kind == FLOAT:
            return list((ctypes.c_float * count).from_address(first)) if count else []
        if kind != STRING:
            raise TypeError(f"expected strings or float32, found TF_DataType {kind}")
        strings = [ctypes.c_void_p(first + SIZE_OF_STRING * place) for place in range(count)]
        return [
            ctypes.string_at(self.c.TF_StringGetDataPointer(string), self.c.TF_StringGetSize(string))
            for string in strings
        ]


def answer(question):
    runtime = Runtime(question["library"], question["operations"], question["folder"])
    responses = []
    for request in question["requests"]:
        texts = [text.encode("utf-8", "surrogateescape") for text in request]
        outputs = runtime.run(question["input"], texts, question["outputs"])
        responses.append([[v.decode() if isinstance(v, bytes) else v for v in values] for values in outputs])
    return {"responses": responses, "modules": sorted({name.split(".")[0] for name in sys.modules})}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
