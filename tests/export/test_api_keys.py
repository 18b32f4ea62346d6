"""API keys: without one of the file there is no answer, over both protocols; and no key is ever shown."""

import time

import grpc
import pytest
import requests
from grpc_health.v1 import health_pb2, health_pb2_grpc

from export.client.access import Access
from export.client.client import ServingClient
from export.client.transports import ClientError
from export.serve import app
from export.server.api_keys import ApiKeys, keys_in
from export.server.options import ServerOptions
from export.server.process import local_server
from export.versions import ExportError
from keras_transformer.ground.errors import UserError
from tests.support.commands import assert_one_sentence, invoke
from tests.support.servers import serving

KEYS = ["first-0123456789abcdef", "second-fedcba9876543210"]
METRICS = "monitoring/prometheus/metrics"
BODY = {"inputs": ["a"]}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    file = tmp_path_factory.mktemp("keys") / "keys"
    file.write_text(f"# two clients\n{KEYS[0]}\n\n  {KEYS[1]}  \n")
    return file


@pytest.fixture(scope="module")
def server(echo_folder, file):
    with serving(echo_folder, api_key_file=file, poll_seconds=0.05) as address:
        yield address


def bearer(key):
    return {"Authorization": f"Bearer {key}"}


def asked(server, **headers):
    return requests.post(f"{server.url}:predict", json=BODY, headers=headers, timeout=60)


@pytest.mark.parametrize("key", KEYS)
def test_each_key_is_enough_in_either_header(server, key):
    assert asked(server, **bearer(key)).json() == asked(server, **{"X-API-Key": key}).json() != {}
    assert asked(server, authorization=f"bearer   {key}").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer(KEYS[0][:-1]),
        bearer(KEYS[0] + "x"),
        bearer(KEYS[0].upper()),
        {"x-api-key": ""},
        {"Authorization": KEYS[0]},
        {"Authorization": f"Basic {KEYS[0]}"},
        {"x-api-key": f"Bearer {KEYS[0]}"},
        {"Cookie": f"x-api-key={KEYS[0]}"},
        {"x-api-key": "# two clients"},
        {"x-api-key": ",".join(KEYS)},
        bearer("\xfc"),
    ],
)
def test_anything_else_is_refused_with_one_sentence(server, headers):
    answer = asked(server, **headers)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert answer.headers["cache-control"] == "no-store"
    assert "API key" in answer.json()["error"] and "\n" not in answer.json()["error"]


def test_a_key_in_the_url_is_none(server):
    assert requests.post(f"{server.url}:predict?x-api-key={KEYS[0]}", json=BODY, timeout=60).status_code == 401


def test_probes_and_the_page_need_no_key_and_all_else_does(server):
    url = server.page_url
    for path in ("", "v1/models/echo", "v1/models/echo/versions/1", "V1/Models/echo"):
        assert requests.get(url + path, timeout=60).status_code == 200, path
        assert requests.head(url + path, timeout=60).status_code == 200, path
    for path in (METRICS, "v1/models/echo/metadata", "v1/models/echo/versions/1/metadata", "v1/models", "else"):
        assert requests.get(url + path, timeout=60).status_code == 401, path
        assert requests.get(url + path, headers=bearer(KEYS[0]), timeout=60).status_code in (200, 400, 404), path
    assert requests.post(url, timeout=60).status_code == requests.post(server.url, timeout=60).status_code == 401


def test_metrics_are_without_key_by_choice(echo_folder, file):
    with serving(echo_folder, api_key_file=file, metrics_without_key=True) as server:
        assert requests.get(f"{server.page_url}{METRICS}", timeout=60).status_code == 200
        assert requests.get(f"{server.page_url}else", timeout=60).status_code == asked(server).status_code == 401


def test_grpc(server, file, tmp_path):
    assert ServingClient(server.grpc_url, access=Access(api_key_file=file)).translate(["a"])[0].text == "a"
    other = tmp_path / "other"
    other.write_text("no-key-of-this-server")
    for access in (Access(), Access(api_key_file=other)):
        with pytest.raises(ClientError, match="API key") as error:
            ServingClient(server.grpc_url, access=access).translate(["a"])
        assert error.value.code == "UNAUTHENTICATED"
    with grpc.insecure_channel(f"{server.host}:{server.grpc_port}") as channel:
        health = health_pb2_grpc.HealthStub(channel)
        assert health.Check(health_pb2.HealthCheckRequest(), timeout=60).status == 1
        for name, metadata, code in [
            ("tensorflow.serving.PredictionService/Predict", (), "UNAUTHENTICATED"),
            ("tensorflow.serving.ModelService/GetModelStatus", (), "UNAUTHENTICATED"),
            ("no.Service/Method", (), "UNAUTHENTICATED"),
            ("no/grpc.health.v1.Health/Check", (), "UNAUTHENTICATED"),
            ("no.Service/Method", (("x-api-key", KEYS[1]),), "UNIMPLEMENTED"),
            ("tensorflow.serving.PredictionService/Predict", (("x-api-key", KEYS[1]),), "INVALID_ARGUMENT"),
        ]:
            with pytest.raises(grpc.RpcError) as error:
                channel.unary_unary(f"/{name}")(b"", timeout=60, metadata=metadata)
            assert error.value.code().name == code, (name, metadata)


def test_the_client_sends_the_first_key_of_a_file_over_rest(server, file, monkeypatch, tmp_path):
    """Whatever ~/.netrc has for the host."""
    (tmp_path / "netrc").write_text(f"machine {server.host}\nlogin somebody\npassword else\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr("export.client.transports.is_loopback", lambda host: False)  # it then reads the environment
    monkeypatch.setenv("no_proxy", "*")
    assert ServingClient(server.url, access=Access(api_key_file=file)).translate(["a"])[0].text == "a"


def test_a_file_that_changes_is_read_again(echo_folder, tmp_path, caplog):
    keys = tmp_path / "keys"
    keys.write_text(KEYS[0])
    with serving(echo_folder, api_key_file=keys, poll_seconds=0.05) as server:
        keys.write_text("")
        until = time.monotonic() + 60
        while "has no API key" not in caplog.text and time.monotonic() < until:
            time.sleep(0.05)
        assert asked(server, **bearer(KEYS[0])).status_code == 200  # those read before stay
        keys.write_text(KEYS[1])
        while asked(server, **bearer(KEYS[1])).status_code == 401 and time.monotonic() < until:
            time.sleep(0.05)
        assert asked(server, **bearer(KEYS[1])).status_code == 200
        assert asked(server, **bearer(KEYS[0])).status_code == 401
    assert not any(key in caplog.text for key in KEYS)


def test_no_key_is_logged_or_answered(server, caplog, capfd):
    caplog.set_level(0)
    for headers in (bearer(KEYS[0]), bearer("wrong-" + KEYS[0]), {"x-api-key": KEYS[1]}):
        answer = asked(server, **headers)
        assert not any(key in answer.text + str(answer.headers) for key in KEYS)
    written = capfd.readouterr()
    of_the_server = [each.getMessage() for each in caplog.records if not each.name.startswith(("urllib3", "requests"))]
    assert not any(key in written.out + written.err + " ".join(of_the_server) for key in KEYS)


def test_every_key_of_the_file_is_compared(file, monkeypatch):
    """However early one agrees: the time tells nothing."""
    keys, compared = ApiKeys(file), []
    monkeypatch.setattr("hmac.compare_digest", lambda *pair: compared.append(pair) or pair[0] == pair[1])
    assert keys.permits([("x-api-key", KEYS[0])]) and len(compared) == 2
    assert not keys.permits([("x-api-key", "wrong")]) and len(compared) == 4
    assert {len(digest) for pair in compared for digest in pair} == {32}


@pytest.mark.parametrize(
    ("name", "value", "keys"),
    [
        ("x-api-key", "k", [b"k"]),
        ("authorization", "Bearer k", [b"k"]),
        ("authorization", "BEARER k", [b"k"]),
        ("authorization", "Bearerk", []),
        ("authorization", "k", []),
        ("x-api-keys", "k", []),
        ("x-api-key", b"k", [b"k"]),
        ("x-api-key", " k ", [b"k"]),
        ("authorization", "Bearer  k ", [b"k"]),
    ],
)
def test_where_a_key_stands(name, value, keys):
    assert keys_in(name, value) == keys


@pytest.mark.parametrize(
    ("content", "reason"), [("", "no API key"), ("# only\n\n", "no API key"), ("a b", "Line 1"), ("k\nü", "Line 2")]
)
def test_a_file_without_keys_is_one_sentence_that_shows_no_line(content, reason, echo_folder, tmp_path):
    file = tmp_path / "keys"
    file.write_text(content)
    with pytest.raises(ExportError, match=reason):
        ApiKeys(file)
    printed = invoke(app, echo_folder, "--api-key-file", file)
    assert_one_sentence(printed, reason)
    assert "ü" not in printed.output and "a b" not in printed.output
    if reason == "no API key":
        with pytest.raises(UserError, match="no API key"):
            Access(api_key_file=file)


def test_a_key_that_replaces_another_is_a_change(tmp_path):
    file = tmp_path / "keys"
    file.write_text(KEYS[0])
    keys = ApiKeys(file)
    file.write_text(KEYS[1])
    assert [keys.refresh() for _ in range(4)] == [False, True, False, False]


def test_a_file_that_is_being_written_makes_no_key_of_half_of_one(tmp_path):
    """What it has counts at the second look, and when it is emptied the keys stay and that is an error."""
    file = tmp_path / "keys"
    file.write_text(KEYS[0])
    keys = ApiKeys(file)
    for written in (KEYS[1][:4], KEYS[1][:8], KEYS[1]):
        file.write_text(written)
        assert not keys.refresh() and keys.permits([("x-api-key", KEYS[0])])
        assert not keys.permits([("x-api-key", written)])
    assert keys.refresh() and keys.permits([("x-api-key", KEYS[1])])
    file.write_text("")
    assert not keys.refresh()
    with pytest.raises(ExportError, match="has no API key"):
        keys.refresh()
    assert keys.permits([("x-api-key", KEYS[1])])


def test_a_key_file_that_is_emptied_revokes_nothing_and_is_logged_and_counted(echo_folder, tmp_path, caplog):
    file = tmp_path / "keys"
    file.write_text(KEYS[0])
    options = ServerOptions(port=0, grpc_port=0, api_key_file=file, metrics_without_key=True, poll_seconds=0.05)

    def failing(address, expected):
        """Whether the metric has this value within 20 seconds."""
        end = time.monotonic() + 20
        while f"keras_transformer_failing_secrets {expected}.0" not in requests.get(address.page_url + METRICS).text:
            assert time.monotonic() < end
            time.sleep(0.05)
        return True

    with local_server(echo_folder, options) as address:
        assert failing(address, 0)
        file.write_text("")
        assert failing(address, 1) and asked(address, **bearer(KEYS[0])).status_code == 200
        assert [message for message in caplog.messages if message.endswith("The API keys read before stay in use.")]
        file.write_text(KEYS[1])
        assert failing(address, 0)
        end = time.monotonic() + 20  # of two looks, the second one counts
        while asked(address, **bearer(KEYS[0])).status_code != 401:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_predictions_without_a_key_are_counted(keyed):
    """And nothing else that is refused."""
    address, _ = keyed
    for _ in range(2):
        assert requests.post(f"{address.url}:predict", json={"inputs": ["a"]}, timeout=20).status_code == 401
    assert requests.get(f"{address.url}/metadata", timeout=20).status_code == 401
    with grpc.insecure_channel(f"{address.host}:{address.grpc_port}") as channel:
        with pytest.raises(grpc.RpcError):
            channel.unary_unary("/tensorflow.serving.PredictionService/Predict")(b"", timeout=20)
    text = requests.get(f"{address.page_url}monitoring/prometheus/metrics", timeout=20).text
    assert ':request_count{model_name="echo",status="UNAUTHENTICATED"} 3.0' in text


@pytest.fixture
def keyed(echo_folder, tmp_path):
    file = tmp_path / "keys"
    file.write_text(KEYS[0])
    with serving(echo_folder, api_key_file=file, metrics_without_key=True) as address:
        yield address, file
