"""A local server starts only with a version to serve and on free ports."""

import asyncio
import gc
import os
import signal
import socket
import threading
import time

import pytest

from export.server import process
from export.server.models import Models
from export.server.options import ServerOptions
from export.server.process import Address, local_server, run_until_signal
from export.server.welcome import welcome
from export.versions import ExportError
from tests.support.light_versions import use_light_versions, write_light
from tests.support.servers import serving

LOADING = 60  # seconds: what does not wait ends long before


def test_a_folder_without_a_version_is_refused(tmp_path):
    with pytest.raises(ExportError, match="no exported version"), local_server(tmp_path, ServerOptions()):
        pass


def test_a_server_of_one_folder_looks_for_no_file_of_models(tmp_path, monkeypatch, caplog):
    use_light_versions(monkeypatch)
    models = Models.in_folder(write_light(tmp_path / "mine", 1))
    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(models.watch(0.01, 0.01), 0.05))
    assert not caplog.records


@pytest.fixture
def signals():
    """Restore the handlers of signals."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.getsignal(number) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)
    signal.set_wakeup_fd(-1)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signals")
def test_a_server_ends_although_a_version_is_loading(echo_folder, monkeypatch, signals):
    models = Models.in_folder(echo_folder)

    def load(current):
        os.kill(os.getpid(), signal.SIGTERM)
        is_over.wait(LOADING)
        return current

    is_over, begun = threading.Event(), time.monotonic()
    monkeypatch.setattr(next(iter(models)), "_load_best", load)
    gc.unfreeze()
    assert run_until_signal(models, ServerOptions(port=0, grpc_port=0, poll_seconds=0.01), lambda address: None)
    assert gc.get_freeze_count() > 0  # no collection of garbage looks at what was loaded
    assert time.monotonic() - begun < LOADING / 2
    is_over.set()


@pytest.mark.parametrize("name", ["port", "grpc_port"])
def test_a_port_that_is_taken_is_named_and_nothing_stays_open(name, echo_folder, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        options = ServerOptions(**{"port": 0, "grpc_port": 0, "log_requests": tmp_path / "log"} | {name: port})
        with pytest.raises(ExportError, match=str(port)), local_server(echo_folder, options):
            pass
    assert "request log" not in [thread.name for thread in threading.enumerate()]


def test_a_second_server_on_the_ports_of_a_first_is_refused(echo_folder):
    """Two processes would otherwise share the gRPC port, and a client would get the answers of either."""
    with serving(echo_folder) as address:
        options = ServerOptions(port=0, grpc_port=address.grpc_port)
        with pytest.raises(ExportError, match=str(address.grpc_port)), local_server(echo_folder, options):
            pass


@pytest.mark.parametrize(
    ("host", "is_tls", "page", "rpc"),
    [
        ("127.0.0.1", False, "http://127.0.0.1:1/", "grpc://127.0.0.1:2/"),
        ("::1", True, "https://[::1]:1/", "grpcs://[::1]:2/"),
    ],
)
def test_an_address_is_written_as_clients_read_it(host, is_tls, page, rpc):
    address = process.Address("a model", host, 1, 2, is_tls)
    assert (address.page_url, address.url) == (page, f"{page}v1/models/a%20model")
    assert address.grpc_url == f"{rpc}a%20model"


def test_a_name_with_signs_of_the_shell_is_written_as_an_address_has_it():
    address = Address("my $model", "127.0.0.1", 8501, 8500)
    assert address.url == "http://127.0.0.1:8501/v1/models/my%20%24model"
    assert address.grpc_url == "grpc://127.0.0.1:8500/my%20%24model"
    assert (
        b" http://localhost:8501/v1/models/my%20%24model:predict"
        in welcome("my $model", "http://localhost:8501", {}, "").body
    )
