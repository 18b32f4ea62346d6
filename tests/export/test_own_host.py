"""A server on this machine's own address answers nobody who came by the name of another site."""

import pytest
import requests
from starlette.datastructures import Headers

from export.server.options import ServerOptions
from export.server.own_host import OwnHost, is_peer_here, refusal
from export.versions import ExportError
from tests.support.bad_requests import send
from tests.support.servers import serving


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


@pytest.mark.parametrize(
    ("peer", "is_here"),
    [
        ("ipv4:127.0.0.1:5000", True),
        ("ipv6:%5B::1%5D:5000", True),
        ("ipv6:[::1]:5000", True),
        ("unix:", True),
        ("unix:/run/server", True),
        ("ipv4:10.0.0.1:5000", False),
        ("ipv4:128.127.0.1:5000", False),
        ("ipv6:%5B2001:db8::1%5D:5000", False),
        ("ipv6:[", False),
        ("vsock:127.0.0.1:1", False),
        ("", False),
    ],
)
def test_a_caller_of_grpc_is_on_this_machine_or_not(peer, is_here):
    assert is_peer_here(peer) is is_here


def test_two_hosts_are_refused_and_none_is_not():
    assert refusal(headers(("host", "localhost"), ("host", "evil.example"))) is not None
    assert refusal(headers()) is None


@pytest.mark.parametrize(
    ("host", "is_local"), [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False)]
)
def test_only_on_this_machine_alone_names_are_checked(host, is_local):
    assert OwnHost(None, host).is_local is is_local


def test_a_served_model_is_out_of_reach_for_a_page_of_another_site(echo_folder):
    with serving(echo_folder) as server:
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


# pages of other sites that may ask

FRIEND, PREFLIGHT = "https://friend.example", {"Access-Control-Request-Method": "POST"}


@pytest.fixture(scope="module")
def open_to_friends(echo_folder, tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "keys"
    keys.write_text("a-key-of-the-server")
    with serving(echo_folder, allow_origins=(FRIEND,), api_key_file=keys) as server:
        yield server


def test_a_page_that_may_ask_can_read_answers_and_errors(open_to_friends):
    url, body = f"{open_to_friends.url}:predict", {"inputs": ["a"]}
    for key, status in (("a-key-of-the-server", 200), ("another", 401)):
        answer = requests.post(url, json=body, headers={"Origin": FRIEND, "x-api-key": key})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (status, FRIEND)
        assert "Origin" in answer.headers["vary"] and "access-control-allow-credentials" not in answer.headers


def test_a_browser_learns_before_what_a_page_may_send(open_to_friends):
    wanted = {"Access-Control-Request-Headers": "authorization, content-type, x-api-key, content-encoding"}
    url = f"{open_to_friends.url}:predict"
    answer = requests.options(url, headers={"Origin": FRIEND} | PREFLIGHT | wanted)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (200, FRIEND)
    assert "POST" in answer.headers["access-control-allow-methods"]
    allowed = {name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")}
    assert {name.strip() for name in wanted["Access-Control-Request-Headers"].split(",")} <= allowed
    for other in ({"Access-Control-Request-Method": "DELETE"}, {"Access-Control-Request-Headers": "x-other"}):
        assert requests.options(url, headers={"Origin": FRIEND} | PREFLIGHT | other).status_code == 400


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "http://friend.example", "https://friend.example:1", "null"]
)
def test_other_pages_still_may_not(open_to_friends, origin):
    url = f"{open_to_friends.url}:predict"
    headers = {"Origin": origin, "x-api-key": "a-key-of-the-server"}
    for answer in (
        requests.post(url, json={"inputs": ["a"]}, headers=headers),
        requests.options(url, headers=headers | PREFLIGHT),
    ):
        assert answer.status_code == 403 and "access-control-allow-origin" not in answer.headers


def test_without_the_option_no_page_may(echo_folder):
    with serving(echo_folder) as server:
        own = f"http://{server.host}:{server.port}"
        answer = requests.post(f"{server.url}:predict", json={"inputs": ["a"]}, headers={"Origin": own})
        assert answer.status_code == 200 and not [name for name in answer.headers if "access-control" in name.lower()]


@pytest.mark.parametrize(
    "origin",
    [
        "*",
        "null",
        "",
        "friend.example",
        "https://friend.example/",
        "https://a b/c",
        "https://x?y",
        "ftp://x",
        "https://",
        "http://[",
        "https://friend.example/page",
        "https://Friend.example",  # what follows, no browser sends
        "HTTPS://friend.example",
        "https://friend.example:443",
        "http://friend.example:80",
        "https://friend.example ",
        "https://friend .example",
        "https://fr\u00e9nd.example",
        "https://user@friend.example",
        "https://friend.example:0443",
    ],
)
def test_an_origin_is_a_scheme_and_a_host(origin):
    with pytest.raises(ExportError, match="https://example.org"):
        ServerOptions(allow_origins=(origin,))
    ServerOptions(allow_origins=(FRIEND, "http://localhost:3000", "https://[::1]:8443", "http://friend.example:443"))


def test_the_host_of_an_absolute_target_counts_and_not_that_of_the_header(echo_folder):
    """As RFC 9112 says in 3.2.2: a request to another host is one, whatever else it says."""
    with serving(echo_folder) as server:
        for host, header, status in [
            (b"localhost", b"evil.example", b"200"),
            (b"evil.example", b"localhost", b"403"),
            (b"127.0.0.1:80", b"localhost", b"200"),
        ]:
            request = b"GET http://%s/v1/models/echo HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
            assert send(server, request % (host, header)).startswith(b"HTTP/1.1 " + status)
