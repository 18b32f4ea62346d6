"""Unix sockets: both APIs answer at them; what an earlier server left is removed, and nothing else."""

import contextlib
import http.client
import json
import os
import socket
import stat

import grpc
import pytest
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from export.serve import app
from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.sockets import check_paths, only_for_the_group, open_path, open_port, remove_stale
from export.versions import ExportError
from tests.support.commands import assert_one_sentence, invoke
from tests.support.light_versions import write_light
from tests.support.servers import serving

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="this system has no Unix sockets")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(os.fspath(self.path))


def test_both_apis_answer_at_their_socket_and_at_the_ports(echo_folder, tmp_path):
    rest, rpc = tmp_path / "rest", tmp_path / "rpc"
    with serving(echo_folder, unix_socket=rest, grpc_unix_socket=rpc) as server:
        for path in (rest, rpc):
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
        for connection in (UnixConnection(rest), http.client.HTTPConnection(server.host, server.port, timeout=60)):
            with contextlib.closing(connection):
                for _ in range(2):
                    connection.request("POST", "/v1/models/echo:predict", json.dumps({"inputs": ["a"]}))
                    assert json.load(connection.getresponse())["outputs"]["translation"] == ["a"]
        for place in (f"unix:{rpc}", f"{server.host}:{server.grpc_port}"):
            with grpc.insecure_channel(place) as channel:
                request = predict_pb2.PredictRequest()
                request.model_spec.name = "echo"
                request.inputs["text"].dtype = 7
                request.inputs["text"].tensor_shape.dim.add(size=1)
                request.inputs["text"].string_val.append(b"a")
                answer = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, timeout=60)
                assert list(answer.outputs["translation"].string_val) == [b"a"]
    assert not rest.exists() and not rpc.exists()


def test_only_the_mode_of_the_socket_differs_from_that_of_other_files(tmp_path):
    before = os.umask(0o027)
    try:
        with only_for_the_group(), socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.fspath(tmp_path / "socket"))
        (tmp_path / "later").touch()
    finally:
        assert os.umask(before) == 0o027
    assert stat.S_IMODE((tmp_path / "socket").stat().st_mode) == 0o660
    assert stat.S_IMODE((tmp_path / "later").stat().st_mode) == 0o640


def test_a_socket_where_nobody_listens_is_replaced(tmp_path):
    path = tmp_path / "socket"
    open_path(path).close()
    assert path.exists()
    with open_path(path):
        with pytest.raises(ExportError, match="Another server listens"):
            open_path(path)
        assert path.exists()


@pytest.mark.parametrize("make", [lambda path: path.write_text("kept"), lambda path: path.mkdir()])
def test_what_is_no_socket_is_kept(make, tmp_path):
    path = tmp_path / "socket"
    make(path)
    with pytest.raises(ExportError, match="no socket"):
        remove_stale(path)
    assert path.exists()


def test_a_link_to_a_socket_is_kept(tmp_path):
    open_path(tmp_path / "socket").close()
    (tmp_path / "link").symlink_to(tmp_path / "socket")
    with pytest.raises(ExportError, match="no socket"):
        open_path(tmp_path / "link")


@pytest.mark.parametrize("name", ["none/socket", "file/socket", "x" * 200, "x" * 300])
@pytest.mark.parametrize("option", ["unix_socket", "grpc_unix_socket"])
def test_a_path_that_cannot_be_one_is_one_sentence_and_closes_the_ports(name, option, echo_folder, tmp_path):
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ServerOptions(port=port, grpc_port=0, **{option: tmp_path / name})
    with pytest.raises(ExportError, match="Unix socket") as error, local_server(echo_folder, options):
        pass
    assert "\n" not in str(error.value)
    socket.create_server(("127.0.0.1", port)).close()


def test_a_path_is_checked_before_the_model_is_loaded_and_nothing_stays_there(tmp_path):
    check_paths(None, tmp_path / "a", tmp_path / "b")
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with open_path(tmp_path / "taken"):
        for name in ("file/socket", "x" * 200, "file", "taken"):
            with pytest.raises(ExportError, match="Unix socket"):
                check_paths(None, tmp_path / name)
        printed = invoke(app, write_light(tmp_path / "exports", 1), "--unix-socket", tmp_path / "none" / "socket")
        assert_one_sentence(printed, "Unix socket")  # a version that holds no model is not reached
    assert (tmp_path / "file").exists() and (tmp_path / "taken").exists()


def test_the_socket_of_another_server_outlives_this_one(echo_folder, tmp_path):
    """Somebody replaced it while this one was served."""
    path = tmp_path / "socket"
    with serving(echo_folder, unix_socket=path):
        path.unlink()
        other = open_path(path)
    assert path.exists()
    other.close()


@pytest.mark.parametrize("error", [PermissionError(13, "Permission denied"), OSError("no reason")])
def test_a_socket_that_cannot_be_asked_is_kept_and_the_reason_told(error, tmp_path, monkeypatch):
    path = tmp_path / "socket"
    open_path(path).close()

    class Refused(socket.socket):
        def connect(self, place):
            raise error

    monkeypatch.setattr(socket, "socket", Refused)
    with pytest.raises(ExportError, match=f"Unix socket {path} cannot be opened: {error.strerror or error}\\.$"):
        remove_stale(path)
    assert path.exists()


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 1 << 16), ("127.0.0.1", -1), ("no.invalid", 0)])
def test_a_place_that_is_none_is_one_sentence(host, port):
    with pytest.raises(ExportError, match=rf"^The port {port} of {host} cannot be opened: [^\n]+\.$"):
        open_port(host, port)
