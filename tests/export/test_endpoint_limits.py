"""Every path that translates has the limits of the server: bytes, rows that wait, time, its end, and who has left."""

import concurrent.futures
import contextlib
import gzip
import json
import re
import socket
import threading
import time
from typing import NamedTuple

import pytest
import requests

from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.version import Version
from tests.support.languages import pair, write_models

PAIR = {"source_language": "en", "target_language": "de"}
LIMITS = {"port": 0, "grpc_port": 0, "workers": 1, "queue_rows": 4, "body_bytes": 1 << 16}


class Endpoint(NamedTuple):
    """A path, what it is asked for a text, and the status of a server that is busy."""

    path: str
    asked: dict
    text: str
    busy: int = 503

    def body(self, text="A dog."):
        value = [{"text": text, "n_best": 1}] if self.text == "instances" else text
        return json.dumps(self.asked | {self.text: value}).encode()


ENDPOINTS = {
    "predict": Endpoint("/v1/models/en-de:predict", {"signature_name": "translate"}, "instances"),
    "translate": Endpoint("/translate", {"source": "en", "target": "de"}, "q", 429),
    "translations": Endpoint("/v1/translations", PAIR, "input"),
    "stream": Endpoint("/v1/translations", PAIR | {"stream": True}, "input"),
}
every = pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=ENDPOINTS)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return write_models(tmp_path_factory.mktemp("models"), **{"en-de": pair("en", "de")})


@contextlib.contextmanager
def serving(models, **options):
    with local_server(models, ServerOptions(**LIMITS | options)) as address:
        yield f"http://{address.host}:{address.port}"


@pytest.fixture(scope="module")
def server(models):
    with serving(models) as url:
        yield url


def ask(server, endpoint, body=None, **headers):
    return requests.post(f"{server}{endpoint.path}", body or endpoint.body(), headers=headers, timeout=60)


@pytest.fixture
def held(monkeypatch):
    """What computes waits until `release` is set; `begun` has what has begun."""

    class Held:
        release, begun = threading.Event(), []

    run = Version.run

    def wait(*arguments):
        Held.begun.append(arguments)
        Held.release.wait(60)
        return run(*arguments)

    Held.begun.clear()
    monkeypatch.setattr(Version, "run", wait)
    with concurrent.futures.ThreadPoolExecutor(16) as Held.threads:
        yield Held
        Held.release.set()


def until(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("it did not come")


def metric(server, name):
    text = requests.get(f"{server}/monitoring/prometheus/metrics", timeout=60).text
    return sum(float(value) for value in re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


def sentence(answer):
    """The one sentence of an error."""
    error = answer.json()["error"]
    text = error["message"] if isinstance(error, dict) else error
    assert "\n" not in text and "Traceback" not in text
    return text


@every
def test_a_body_may_be_packed_and_a_long_one_is_refused_however_it_is_sent(server, endpoint):
    plain, packed = ask(server, endpoint), ask(server, endpoint, gzip.compress(endpoint.body()))
    assert plain.status_code == 200 and "To de: A dog." in plain.text
    assert packed.status_code == 400  # nothing tells that it is packed
    packed = ask(server, endpoint, gzip.compress(endpoint.body()), **{"Content-Encoding": "gzip"})
    assert packed.status_code == 200 and "To de: A dog." in packed.text
    bomb = gzip.compress(b" " * (40 << 20))
    for body, headers in ((endpoint.body("a" * (1 << 16)), {}), (bomb, {"Content-Encoding": "gzip"})):
        long = ask(server, endpoint, body, **headers)
        assert long.status_code == 413 and "65536" in sentence(long)
    unread = ask(server, endpoint, b"x", **{"Content-Encoding": "br"})
    assert unread.status_code == 415 and "gzip" in sentence(unread)
    damaged = ask(server, endpoint, gzip.compress(endpoint.body())[:-9], **{"Content-Encoding": "gzip"})
    assert damaged.status_code == 400 and sentence(damaged)


@every
def test_beyond_the_queue_a_request_is_refused_at_once_and_the_others_are_answered(server, endpoint, held):
    first = held.threads.submit(ask, server, endpoint)
    until(lambda: held.begun)
    waiting = [held.threads.submit(ask, server, endpoint) for _ in range(LIMITS["queue_rows"])]
    until(lambda: metric(server, "keras_transformer_waiting_rows") == LIMITS["queue_rows"])
    refused = ask(server, endpoint)
    assert refused.status_code == endpoint.busy and sentence(refused)
    held.release.set()
    assert [each.result().status_code for each in (first, *waiting)] == [200] * 5


@every
def test_an_answer_that_comes_too_late_is_504(models, endpoint, held):
    with serving(models, deadline=2.0) as url:  # within which a machine that does other things answers, too
        late = ask(url, endpoint)
        assert late.status_code == 504 and sentence(late)
        held.release.set()
        until(lambda: metric(url, "keras_transformer_requests_in_flight") == 0)
        assert ask(url, endpoint).status_code == 200


@every
def test_at_the_end_of_a_server_a_request_is_answered_and_a_new_one_is_refused(models, endpoint, held):
    with contextlib.ExitStack() as stack:
        url = stack.enter_context(serving(models, drain_seconds=60))
        first = held.threads.submit(ask, url, endpoint)
        until(lambda: held.begun)
        with requests.Session() as kept:
            assert kept.get(f"{url}/health", timeout=60).status_code == 200
            ending = held.threads.submit(stack.close)
            until(lambda: kept.get(f"{url}/health", timeout=60).status_code == 503)
            refused = kept.post(f"{url}{endpoint.path}", endpoint.body(), timeout=60)
            assert refused.status_code == 503 and "shutting down" in sentence(refused)
        held.release.set()
        assert first.result().status_code == 200 and "To de: A dog." in first.result().text
        ending.result(60)


@every
def test_what_waits_for_a_client_that_has_left_is_never_computed(server, endpoint, held):
    first = held.threads.submit(ask, server, endpoint)
    until(lambda: held.begun)
    host, port = server.removeprefix("http://").split(":")
    body = endpoint.body("Two cats.")
    with socket.create_connection((host, int(port))) as left:
        head = f"POST {endpoint.path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
        left.sendall(head.encode() + body)
        until(lambda: metric(server, "keras_transformer_waiting_rows") == 1)
    until(lambda: metric(server, "keras_transformer_requests_in_flight") == 1)
    held.release.set()
    assert first.result().status_code == 200 and ask(server, endpoint).status_code == 200
    assert not any(b"Two" in text for *_, inputs in held.begun for text in inputs["text"])
    assert metric(server, "keras_transformer_bytes_in_flight") == 0


@every
def test_a_request_is_counted_once_with_its_model_and_outcome(server, endpoint):
    name = ":tensorflow:serving:request_count"
    before = metric(server, name)
    assert ask(server, endpoint).status_code == 200
    assert metric(server, name) - before == 1
    assert ask(server, endpoint, b"{").status_code == 400
    assert metric(server, name) - before == 2


@every
def test_a_key_is_asked_for_before_anything_is_computed(models, endpoint, tmp_path, held):
    (tmp_path / "keys").write_text("secret\n", encoding="utf-8")
    with serving(models, api_key_file=tmp_path / "keys") as url:
        for headers in ({}, {"Authorization": "Bearer wrong"}):
            refused = ask(url, endpoint, **headers)
            assert refused.status_code in (400, 401, 403) and "key" in sentence(refused) and not held.begun
        held.release.set()
        assert ask(url, endpoint, **{"Authorization": "Bearer secret"}).status_code == 200
