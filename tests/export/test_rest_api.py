"""Paths, methods and bodies of REST are taken as TensorFlow Serving takes them."""

import asyncio
import gzip
import json

import pytest
import requests
from starlette.requests import Request

from export.server.errors import Code, RequestError
from export.server.exchange import unless_disconnected
from export.server.model_folder import State, Status
from export.server.options import ServerOptions
from export.server.rest_api import RestApi, answer_error
from tests.support.bad_requests import send
from tests.support.echo import write_echo
from tests.support.servers import serving


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "echo"
    write_echo(folder / "00000123")
    with serving(folder, body_bytes=1 << 20) as address:
        yield address


def ask(server, method, path, body=None, **headers):
    address = f"http://{server.host}:{server.port}{path}"
    return requests.request(method, address, data=body, headers=headers, timeout=30)


BODY, ANSWER = b'{"inputs": ["a"]}', {"outputs": {"translation": ["a"], "score": [-1.0]}}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/echo", 200),
        ("HEAD", "/v1/models/echo", 200),
        ("GET", "/V1/Models/echo", 200),
        ("GET", "/v1/models/echo/VERSIONS/123/Metadata", 200),
        ("GET", "/v1/models/echo/versions/0123", 200),
        ("GET", "/v1/models/Echo", 404),
        ("GET", "/v1/models", 400),
        ("GET", "/v1/models/", 400),
        ("GET", "/v1/models/echo:predict", 400),
        ("PUT", "/v1/models/echo:predict", 400),
        ("POST", "/v1/models/echo", 400),
        ("OPTIONS", "/v1/models/echo:predict", 400),
        ("DELETE", "/v1/models/echo", 400),
        ("POST", "/v1/models/echo:classify", 501),
        ("POST", "/v1/models/echo:PREDICT", 400),
        ("GET", "/v1/models/echo/versions/x", 400),
        ("GET", "/v1/models/echo/versions/" + "9" * 19, 400),
        ("GET", "/v1/models/echo/versions/" + "9" * 5000, 400),
        ("GET", "/v1/models/echo/", 400),
        ("GET", "/v2", 404),
        ("GET", "/none", 404),
    ],
)
def test_a_path_and_a_method_have_the_status_of_tensorflow_serving(server, method, path, status):
    response = ask(server, method, path)
    assert response.status_code == status
    assert method == "HEAD" or status == 200 or set(response.json()) == {"error"}


def test_the_status_of_what_is_not_served_is_503_with_its_states():
    """A probe reads the status, and others read the states."""

    class Statuses:
        def refuse_unless_well(self):
            pass

        def statuses(self, name, number):
            return found

    for states, status in (
        ([State.AVAILABLE, State.END], 200),
        ([State.END], 503),
        ([State.LOADING, State.UNLOADING], 503),
    ):
        found = {number: Status(state) for number, state in enumerate(states)}
        response = RestApi(Statuses()).status("echo", None)
        assert response.status_code == status
        assert [each["state"] for each in json.loads(response.body)["model_version_status"]] == [s.name for s in states]


def test_a_prediction_in_capitals_is_one(server):
    assert ask(server, "POST", "/V1/MODELS/echo/Versions/000123:predict", BODY).json() == ANSWER


def test_a_body_may_be_packed_or_begin_with_a_byte_order_mark(server):
    path, headers = "/v1/models/echo:predict", {"Content-Encoding": "gzip"}
    assert ask(server, "POST", path, gzip.compress(BODY), **headers).json() == ANSWER
    assert ask(server, "POST", path, b"\xef\xbb\xbf" + BODY).json() == ANSWER


@pytest.mark.parametrize(
    ("body", "status", "part"),
    [
        (BODY, 400, "not gzip"),
        (gzip.compress(BODY, mtime=0)[:-9], 400, "no end"),
        (gzip.compress(b" " * (100 << 20), mtime=0), 413, "1048576"),
    ],
)
def test_what_is_not_packed_or_too_much_is_refused(server, body, status, part):
    response = ask(server, "POST", "/v1/models/echo:predict", body, **{"Content-Encoding": "gzip"})
    assert response.status_code == status and part in response.json()["error"]


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("Content-Encoding", "GZIP", 200),
        ("Content-Encoding", "identity, gzip", 200),
        ("Content-Encoding", "deflate", 415),
        ("Content-Encoding", "br", 415),
        ("Content-Encoding", "gzip, gzip", 415),
        ("Content-Encoding", "notgzip", 415),
        ("Transfer-Encoding", "gzip, chunked", 501),
    ],
)
def test_a_coding_that_is_not_read_is_named(server, name, value, status):
    body = gzip.compress(BODY)
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body) if status == 501 else body
    headers = f"Host: localhost\r\nConnection: close\r\n{name}: {value}\r\n"
    headers += "" if status == 501 else f"Content-Length: {len(body)}\r\n"
    answer = send(server, b"POST /v1/models/echo:predict HTTP/1.1\r\n" + headers.encode() + b"\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert status == 200 or (name.lower().encode() in answer and value.split(", ")[0].encode() in answer)


@pytest.mark.parametrize("text", ["YWI=", "YWI"])
def test_base64_needs_no_padding(server, text):
    body = json.dumps({"inputs": [{"b64": text}]})
    assert ask(server, "POST", "/v1/models/echo:predict", body).json()["outputs"]["translation"] == ["ab"]


def test_a_connection_stays_longer_than_proxies_keep_theirs():
    assert ServerOptions().idle_seconds > 60


@pytest.mark.parametrize(("status", "header"), [(408, ("connection", "close")), (503, ("retry-after", "1")), (400, ())])
def test_a_client_is_told_when_to_come_again_and_when_its_connection_ends(status, header):
    error = RequestError(Code.INVALID_ARGUMENT, "why", status)
    response = asyncio.run(answer_error(None, error))
    assert response.status_code == status
    told = {name: value for name, value in response.headers.items() if name in ("connection", "retry-after")}
    assert told == dict([header] if header else [])


@pytest.mark.parametrize("leaves", [True, False])
def test_who_leaves_is_not_answered_and_nothing_is_computed_further(leaves):
    messages, cancelled = [{"type": "http.request"}] * 2 + [{"type": "http.disconnect"}] * leaves, []

    async def receive():
        return messages.pop(0) if messages else await waiting()

    async def waiting():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    async def answer():
        await (waiting() if leaves else asyncio.sleep(0.01))
        return [b"answer"]

    async def main():
        try:
            return await unless_disconnected(Request({"type": "http"}, receive), answer())
        finally:
            await asyncio.sleep(0)
            assert cancelled == [True]  # what was computed, or what waited for the client

    if not leaves:
        assert asyncio.run(main()) == [b"answer"]
        return
    with pytest.raises(RequestError) as error:
        asyncio.run(main())
    assert error.value.code is Code.CANCELLED


def test_a_request_that_the_server_itself_cancels_is_not_said_to_have_lost_its_client():
    async def never():
        await asyncio.Event().wait()

    async def main():
        asking = asyncio.ensure_future(unless_disconnected(Request({"type": "http"}, never), never()))
        await asyncio.sleep(0)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    asyncio.run(main())
