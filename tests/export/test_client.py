"""The client against the local server, and against a real TensorFlow Serving if TF_SERVING_URL is set.

TF_SERVING_URL="http://localhost:8501/v1/models/mine grpc://localhost:8500/mine" names a served export of any run.
"""

import http.server
import json
import math
import os
import threading
import time

import pytest
import tensorflow as tf
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from export.client.client import FIRST_WAIT, LONGEST_WAIT, ServingClient
from export.client.transports import ClientError
from export.query import app
from keras_transformer.ground.errors import InputError
from keras_transformer.pieces.translation import Translation
from tests.support.commands import assert_one_sentence, invoke
from tests.support.exports import write_version
from tests.support.runs import SENTENCES, random_run
from tests.support.servers import serving

REAL = os.environ.get("TF_SERVING_URL", "").split()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A local server of an export, and the Translator of the same run."""
    folder = tmp_path_factory.mktemp("served")
    translator = write_version(random_run(folder / "run"), folder / "model" / "1", max_source_tokens=60)
    with serving(folder / "model") as address:
        yield address, translator


@pytest.fixture(scope="module")
def echo(echo_folder):
    with serving(echo_folder) as address:
        yield address


@pytest.fixture(params=["rest", "grpc", *REAL])
def url(request, served):
    return {"rest": served[0].url, "grpc": served[0].grpc_url}.get(request.param, request.param)


@pytest.mark.nightly
def test_translations_come_back_in_the_order_of_the_lines(url, served):
    lines = [f"{sentence} {number}" for number in range(3) for sentence in ("", *SENTENCES)]
    one_by_one = [ServingClient(url).translate([line])[0] for line in lines]
    together = ServingClient(url, rows_per_request=4, requests_at_once=3).translate(lines)
    assert [found.text for found in together] == [expected.text for expected in one_by_one]
    assert [found.score for found in together] == pytest.approx([t.score for t in one_by_one], abs=1e-4)
    if url not in REAL:
        expected = served[1].translate(lines)
        assert [translation.text for translation in together] == [translation.text for translation in expected]


@pytest.mark.nightly
def test_no_line_and_a_blank_line(url):
    assert ServingClient(url).translate([]) == []
    found = ServingClient(url).translate(["", " \t"])
    assert [(translation.text, translation.score) for translation in found] == [("", 0.0)] * 2


@pytest.mark.nightly
def test_half_of_a_surrogate_pair_is_refused(url):
    with pytest.raises(InputError, match="Line 2 has a lone surrogate"):
        ServingClient(url).translate(["one", "\ud800"])
    with pytest.raises(ClientError) as error:
        ServingClient(url).predict({"text": ["\ud800"]}, "serving_default")
    assert not error.value.is_transient


@pytest.mark.nightly
def test_an_error_of_the_server_is_one_sentence_with_its_code(url):
    with pytest.raises(ClientError) as error:
        ServingClient(url).predict({"text": ["a"]}, "none")
    assert error.value.code in (400, "FAILED_PRECONDITION", 404, "NOT_FOUND") and "none" in str(error.value)


@pytest.mark.nightly
def test_options_hold_for_every_row_and_defaults_are_sent(echo):
    for url in (echo.url, echo.grpc_url):
        client = ServingClient(url, rows_per_request=2)
        texts = ["a", "b", "c"]
        assert client.predict({"text": texts}, "repeat", {})["repeated"] == ["aa", "bb", "cc"]
        assert client.predict({"text": texts}, "repeat", {"times": 3})["repeated"] == ["aaa", "bbb", "ccc"]
        assert client.predict({"text": texts, "times": [1, 2, 3]}, "repeat", {})["repeated"] == ["a", "bb", "ccc"]


class Bounded:
    """A transport to a version whose option `times` is at most `most`, which is also its default."""

    most, requests = 3, 0

    def metadata(self, seconds):
        self.requests += 1
        if self.requests % 2:
            raise ClientError("busy", 503, is_transient=True)
        return {"repeat": SignatureDef(defaults={"times": tf.make_tensor_proto([self.most])})}

    def predict(self, signature_name, inputs, seconds):
        if max(inputs["times"]) > self.most:
            raise ClientError("times is out of bounds", 400)
        return {"times": inputs["times"]}


def test_options_that_are_left_out_are_those_of_the_version_that_is_served_now():
    client = ServingClient("http://localhost:1/v1/models/mine")
    client.transport = transport = Bounded()
    assert client.predict({"text": ["a", "b"]}, "repeat", {})["times"] == [3, 3]
    transport.most = 2  # another version replaces the first
    assert client.predict({"text": ["a", "b"]}, "repeat", {})["times"] == [2, 2]


@pytest.mark.parametrize("deadline", [math.inf, math.nan, 1e10, 0.0])
def test_a_deadline_that_no_socket_has_is_refused(deadline):
    with pytest.raises(ClientError, match="more than 0 seconds"):
        ServingClient("http://localhost:1/v1/models/m", deadline=deadline)


# errors that pass


class Flaky(http.server.BaseHTTPRequestHandler):
    """Answers with the statuses of `plan`, then with a translation."""

    plan: list[int] = []
    paths: list[str] = []

    def do_POST(self):
        self.paths.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        status = self.plan.pop(0) if self.plan else 200
        content = {"outputs": {"translation": ["b"], "score": [-1.0]}} if status == 200 else {"error": "not\nnow"}
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def flaky():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Flaky) as server:
        threading.Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1/models/flaky"
        server.shutdown()


def test_what_passes_is_tried_again(flaky):
    Flaky.plan = [503, 429, 502]
    assert ServingClient(flaky).translate(["a"]) == [
        Translation("b", -1.0, is_cut=None)
    ]  # as older exports, it does not tell
    assert Flaky.plan == []


@pytest.mark.parametrize("end", ["/", ":predict"])
def test_the_address_may_end_as_a_browser_or_a_command_has_it(flaky, end):
    Flaky.plan, Flaky.paths = [200], []
    with pytest.raises(ClientError, match="is not the URL of a model"):
        ServingClient(f"{flaky.removesuffix('flaky')}{end}")
    assert ServingClient(f"{flaky}{end}").translate(["a"]) == [
        Translation("b", -1.0, is_cut=None)
    ]  # as older exports, it does not tell
    assert Flaky.paths == ["/v1/models/flaky:predict"]


@pytest.mark.parametrize("status", [400, 404, 413, 500, 504])
def test_what_would_come_again_is_raised_at_once(flaky, status):
    Flaky.plan = [status, 200]
    with pytest.raises(ClientError, match="not now") as error:
        ServingClient(flaky).translate(["a"])
    assert error.value.code == status and Flaky.plan == [200]


class Busy:
    """A transport that answers the first requests, after a pause, that the server is busy."""

    def __init__(self, requests=10_000, pause=0.0, is_transient=True):
        self.requests, self.pause, self.is_transient = requests, pause, is_transient
        self.seconds = []  # that each request had

    def predict(self, signature_name, inputs, seconds):
        self.seconds.append(seconds)
        if len(self.seconds) <= self.requests:
            if self.pause:
                time.sleep(self.pause)
            raise ClientError("busy", 503, self.is_transient)
        return {"times": [1]}


def test_each_attempt_has_the_time_that_the_attempts_before_it_left():
    client = ServingClient("http://localhost:1/v1/models/mine", deadline=5.0)
    client.transport = Busy(requests=1, pause=0.2)
    client.predict({"text": ["a"]}, "repeat")
    first, second = client.transport.seconds
    assert 4 < first <= 5.0 and second <= first - 0.2


def test_pauses_between_attempts_grow_and_are_bounded_and_random(monkeypatch):
    client, pauses = ServingClient("http://localhost:1/v1/models/mine", attempts=12), []
    client.transport = Busy()
    monkeypatch.setattr("tenacity.nap.time.sleep", pauses.append)
    for _ in range(20):
        with pytest.raises(ClientError, match="busy"):
            client.predict({"text": ["a"]}, "repeat")
    assert len(pauses) == 20 * 11 and len(set(pauses)) > 100
    for number in range(11):
        limit = min(FIRST_WAIT * 2**number, LONGEST_WAIT)
        assert limit / 3 < max(pauses[number::11]) <= limit


def test_after_an_error_the_requests_that_wait_are_not_sent():
    client = ServingClient("http://localhost:1/v1/models/mine", rows_per_request=1, requests_at_once=1)
    client.transport = Busy(pause=0.05, is_transient=False)
    with pytest.raises(ClientError, match="busy"):
        client.predict({"text": list("abcdefgh")}, "repeat")
    time.sleep(0.15)  # what is being sent meanwhile ends
    assert len(client.transport.seconds) < 4


@pytest.mark.parametrize("scheme", ["http", "grpc"])
def test_a_server_that_is_not_there_is_named_after_some_attempts(scheme, flaky):
    url = {"http": "http://127.0.0.1:9/v1/models/none", "grpc": "grpc://127.0.0.1:9/none"}[scheme]
    with pytest.raises(ClientError, match="127.0.0.1:9") as error:
        ServingClient(url, attempts=2).translate(["a"])
    assert error.value.is_transient


# the command


@pytest.mark.nightly
def test_query_writes_a_line_per_line(served):
    address, translator = served
    lines = [SENTENCES[0], "", *SENTENCES[1:4]]
    expected = translator.translate(lines)
    stdin = "".join(f"{line}\n" for line in lines).encode()
    for url in (address.url, address.grpc_url):
        result = invoke(app, "--url", url, "--rows-per-request", 2, stdin=stdin)
        assert result.stdout == "".join(f"{translation.text}\n" for translation in expected), result.stderr
    with_scores = invoke(app, "--url", address.url, "--scores", stdin=stdin).stdout.splitlines()
    assert [line.split("\t")[1] for line in with_scores] == [translation.text for translation in expected]


@pytest.mark.nightly
def test_mistakes_are_one_sentence(served):
    assert_one_sentence(invoke(app, "--url", "localhost", stdin="a\n"), "v1/models")
    assert_one_sentence(invoke(app, "--url", served[0].url + "x", stdin="a\n"), "404", "modelx")
    assert_one_sentence(invoke(app, "--url", served[0].url, "--deadline", "0", stdin="a\n"), "deadline")


@pytest.mark.parametrize("api", ["url", "grpc_url"])
def test_a_proxy_is_not_asked_for_this_machine(echo, api, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert ServingClient(getattr(echo, api), attempts=1).translate(["a"])[0].text == "a"


@pytest.mark.parametrize("api", ["url", "grpc_url"])
def test_a_whole_number_will_do_for_a_float(echo, api):
    client = ServingClient(getattr(echo, api))
    assert client.predict({"text": ["a"]}, "repeat", {"spin": 0})["repeated"] == ["aa"]


@pytest.mark.parametrize("api", ["url", "grpc_url"])
def test_one_text_may_stand_for_several_rows_whoever_shares_the_batch(echo, api):
    found = ServingClient(getattr(echo, api)).predict({"text": ["a"], "times": [1, 2, 3]}, "repeat")
    assert found["repeated"] == ["a", "aa", "aaa"]


@pytest.mark.parametrize("api", ["url", "grpc_url"])
def test_no_rows_have_no_outputs(echo, api):
    client = ServingClient(getattr(echo, api))
    assert client.predict({"text": []}, "serving_default") == {"translation": [], "score": []}
