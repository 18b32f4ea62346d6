"""A server on this machine's own address answers nobody who came by the name of another site."""

import pytest
import requests
from starlette.datastructures import Headers

from export.server.options import ServerOptions
from export.server.own_host import OwnHost, refusal
from export.server.process import local_server
from tests.support.bad_requests import send
from tests.support.echo import write_echo


def headers(*pairs):
    return Headers(raw=[(name.encode(), value.encode("latin-1")) for name, value in pairs])


@pytest.mark.parametrize(
    "host", "localhost localhost:8501 LOCALHOST localhost. app.localhost 127.0.0.1:1 [::1]:8501 10.0.0.1".split()
)
def test_addresses_and_local_names_are_own(host):
    assert refusal(headers(("host", host))) is None
    assert refusal(headers(("host", host), ("origin", f"http://{host}"))) is None


@pytest.mark.parametrize(
    "host",
    "evil.example evil.example:8501 localhost.evil.example 127.0.0.1.evil.example [::1 [evil] "
    "x@localhost.evil.example 127.0.0.1@evil.example evil.example#localhost \xff /localhost 0x7f.1".split(),
)
def test_other_names_are_refused(host):
    assert refusal(headers(("host", host))) is not None


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "", "http://localhost:3000", "http://[", "evil"])
def test_pages_of_other_sites_are_refused(origin):
    assert refusal(headers(("host", "localhost:8501"), ("origin", origin))) is not None


def test_two_hosts_are_refused_and_none_is_not():
    assert refusal(headers(("host", "localhost"), ("host", "evil.example"))) is not None
    assert refusal(headers()) is None


@pytest.mark.parametrize(
    ("host", "is_local"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)]
)
def test_only_on_this_machine_alone_names_are_checked(host, is_local):
    assert OwnHost(None, host).is_local is is_local


def test_a_served_model_is_out_of_reach_for_a_page_of_another_site(tmp_path):
    write_echo(tmp_path / "echo" / "1")
    with local_server(tmp_path / "echo", ServerOptions(port=0, grpc_port=0)) as server:
        body = {"inputs": ["a"]}
        assert requests.post(f"{server.url}:predict", json=body).status_code == 200
        rebound = requests.post(f"{server.url}:predict", json=body, headers={"Host": "evil.example"})
        assert rebound.status_code == 403 and "evil.example" in rebound.json()["error"]
        crossed = requests.post(f"{server.url}:predict", json=body, headers={"Origin": "http://evil.example"})
        assert crossed.status_code == 403
        own = {"Origin": server.page_url.rstrip("/")}
        assert requests.post(f"{server.url}:predict", json=body, headers=own).status_code == 200
        twice = b"GET /v1/models/echo HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n"
        assert send(server, twice).startswith(b"HTTP/1.1 403")
