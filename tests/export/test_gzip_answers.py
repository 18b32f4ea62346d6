"""Answers are packed for those who ask, and mean the same; bodies may be packed, but not endlessly."""

import gzip
import http.client
import json
import time
import zlib

import pytest
import requests
from starlette.datastructures import Headers

from export.server.options import ServerOptions
from export.server.rest_api import SHORTEST, takes_gzip
from tests.support.servers import serving


@pytest.fixture(scope="module")
def server(echo_folder):
    with serving(echo_folder) as address:
        yield address


def asked(server, lines, version=11, **headers):
    """The answer to a request, whose body is as the server sent it."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=60)
    connection._http_vsn, connection._http_vsn_str = version, f"HTTP/1.{version % 10}"
    connection.request("POST", "/v1/models/echo:predict", json.dumps({"inputs": lines}), headers)
    response = connection.getresponse()
    return response, response.read()


@pytest.mark.parametrize("lines", [["x" * SHORTEST], ["a", "b" * 3_000_000], ["ü"] * 1000])
def test_a_long_answer_is_packed_for_those_who_ask(server, lines):
    plain, expected = asked(server, lines)
    assert "content-encoding" not in plain.headers and json.loads(expected)["outputs"]["translation"] == lines
    packed, body = asked(server, lines, **{"Accept-Encoding": "br, gzip;q=0.5"})
    assert packed.headers["content-encoding"] == "gzip" and "Accept-Encoding" in packed.headers["vary"]
    assert gzip.decompress(body) == expected and len(body) < len(expected) / 2


def test_a_short_answer_is_not_packed(server):
    assert "content-encoding" not in asked(server, ["a"], **{"Accept-Encoding": "gzip"})[0].headers


def test_a_client_of_http_1_0_gets_no_chunks(server):
    response, body = asked(server, ["a" * 200_000], 10, **{"Accept-Encoding": "gzip"})
    assert "transfer-encoding" not in response.headers and "content-encoding" not in response.headers
    assert json.loads(body)["outputs"]["translation"] == ["a" * 200_000]


def test_the_page_metadata_and_metrics_are_packed_too(server):
    for path in ("v1/models/echo/metadata", "monitoring/prometheus/metrics"):
        answer = requests.get(server.page_url + path, timeout=60)
        assert answer.headers["content-encoding"] == "gzip" and len(answer.text) > SHORTEST


@pytest.mark.parametrize(
    ("value", "is_taken"),
    [
        ("gzip", True),
        ("GZIP", True),
        ("br,gzip", True),
        ("gzip;q=1.0", True),
        ("gzip; q=0.001", True),
        ("", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("br", False),
        ("xgzip", False),
        ("identity", False),
    ],
)
def test_who_takes_gzip(value, is_taken):
    assert takes_gzip(Headers({"accept-encoding": value})) is is_taken


@pytest.mark.slow
def test_a_small_body_that_grows_without_end_gets_413(server):
    """40 MB of zeros in 40 KB, ten times the bound, at which unpacking ends."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    zeros = bytes(1 << 20)
    body = b"".join([packer.compress(zeros) for _ in range(40)] + [packer.flush()])
    start = time.process_time()
    answer = requests.post(f"{server.url}:predict", data=body, headers={"Content-Encoding": "gzip"}, timeout=60)
    assert answer.status_code == 413 and str(ServerOptions().body_bytes) in answer.json()["error"], start
