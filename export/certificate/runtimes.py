"""The other runtimes of an exported version, as translators: TensorFlow's C API and the local server."""

import contextlib
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator

from keras_transformer.ground.imports import quiet_imports
from keras_transformer.ground.notations import json_of
from keras_transformer.pieces.translation import OUTPUTS, Translation, translations_of

from ..client.client import ServingClient
from ..graph.operations import meta_graph
from ..server.options import ServerOptions
from ..server.process import local_server
from ..versions import ExportError
from . import c_runtime

PATIENCE = 3_600  # seconds for an answer of the local server, so that a slow machine does not fail the comparison


class CRuntime:
    """Translates in a process without TensorFlow's Python layer, as the C++ server does.

    Args:
        version: a version folder.
        rows: lines per request, at most.
        tensorflow, tensorflow_text: the folders of these packages, of any version; by default the installed ones.

    Raises ExportError if the TensorFlow package has no C API, as on some platforms, or if the process fails.
    """

    def __init__(
        self,
        version: pathlib.Path,
        rows: int = 32,
        tensorflow: pathlib.Path | None = None,
        tensorflow_text: pathlib.Path | None = None,
    ):
        self.version, self.rows = version, rows
        self._library = c_library(tensorflow or package("tensorflow"))
        if self._library is None:
            raise ExportError(
                f"The C API of TensorFlow, libtensorflow_cc, is not in {tensorflow or package('tensorflow')}."
            )
        operations = (tensorflow_text or package("tensorflow_text")) / "python" / "ops"
        self._operations = sorted(map(str, operations.glob("*.so")))

    def translate(self, lines: list[str]) -> list[Translation]:
        """Return the translation of each line. Raises ExportError if a request fails."""
        requests = [lines[start : start + self.rows] for start in range(0, len(lines), self.rows)]
        signature = meta_graph(self.version).signature_def["serving_default"]
        names = tuple(name for name in OUTPUTS if name in signature.outputs)
        answer = self.ask([{"text": strings(request)} for request in requests], outputs=names)
        translations = []
        for response in answer["responses"]:
            if "error" in response:
                raise ExportError(f"{self.version} does not translate in TensorFlow's C API: {response['error']}")
            translations += translations_of(dict(zip(names, response["outputs"], strict=True)))
        return translations

    def ask(
        self,
        requests: list[dict[str, dict]],
        signature_name: str = "serving_default",
        outputs: tuple[str, ...] = ("translation", "score"),
    ) -> dict:
        """Return the answers of c_runtime.py to requests, which have a tensor per input of the signature, by name.

        A missing input has its default, which is fed as TensorFlow Serving feeds it: a session keeps a graph of its own
        for each set of inputs.
        """
        signature = meta_graph(self.version).signature_def[signature_name]
        defaults = {name: tensor_of(value) for name, value in signature.defaults.items()}
        question = {
            "library": str(self._library),
            "operations": self._operations,
            "folder": str(self.version),
            "outputs": [signature.outputs[name].name for name in outputs],
            "requests": [
                {signature.inputs[name].name: tensor for name, tensor in {**defaults, **request}.items()}
                for request in requests
            ],
        }
        command = [sys.executable, c_runtime.__file__]
        environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1"}  # this process may have taken the GPU's memory
        process = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True, env=environment)
        if process.returncode != 0:
            reason = (process.stderr.strip().splitlines() or [f"exit code {process.returncode}"])[-1]
            raise ExportError(f"{self.version} does not run in TensorFlow's C API: {reason}")
        return json_of(process.stdout)


def strings(values: list[str]) -> dict:
    """Return a tensor of rank 1 as export/certificate/c_runtime.py reads it."""
    return {"type": "string", "shape": [len(values)], "values": values}


def tensor_of(value) -> dict:
    """Return a TensorProto as export/certificate/c_runtime.py reads it."""
    from tensorflow import make_ndarray

    array = make_ndarray(value)
    values = [decoded(each) for each in array.ravel().tolist()]
    return {"type": "string" if array.dtype == object else array.dtype.name, "shape": [*array.shape], "values": values}


def decoded(value: object) -> object:
    """Return bytes as a string, in which lone surrogates stand for what is not UTF-8; and any other value as it is."""
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def package(name: str) -> pathlib.Path:
    """Return the folder of an installed package, without importing it. Raises ModuleNotFoundError if it is not one."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"There is no package {name}.", name=name)
    return pathlib.Path(spec.submodule_search_locations[0])


def c_library(tensorflow: pathlib.Path) -> pathlib.Path | None:
    """Return the library of the C API in a TensorFlow package; None if there is none."""
    return next(iter(sorted(tensorflow.glob("libtensorflow_cc.*"))), None)


@contextlib.contextmanager
def local_clients(version: pathlib.Path) -> Iterator[dict[str, ServingClient]]:
    """Within, a local server serves a version. Yields a client of its REST and one of its gRPC API.

    Several requests are in flight, so that the server joins them.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        (pathlib.Path(folder) / "1").symlink_to(version.absolute(), target_is_directory=True)
        with quiet_imports():  # the tokenizer prints a notice at its first use
            address = stack.enter_context(local_server(folder, ServerOptions(port=0, grpc_port=0, deadline=PATIENCE)))
            clients = {
                name: ServingClient(url, deadline=PATIENCE, rows_per_request=16, requests_at_once=8)
                for name, url in (("REST", address.url), ("gRPC", address.grpc_url))
            }
            clients["REST"].translate([""])
        yield clients
