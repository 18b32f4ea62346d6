"""What an operator watches is what happened: as Prometheus's own parser reads it, under TensorFlow Serving's names."""

import asyncio
import json
import re
import time
import types

import numpy as np
import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from export.server.dispatcher import Dispatcher, Question
from export.server.errors import Code, RequestError
from export.server.metrics import Metrics, code_of
from export.server.models import Models
from export.server.options import ServerOptions
from tests.support.echo import write_echo
from tests.support.places import ROOT
from tests.support.servers import serving

ANY = Models([types.SimpleNamespace(name="any", status={})])
PATH = "/monitoring/prometheus/metrics"


@pytest.fixture
def server(tmp_path):
    write_echo(tmp_path / "echo" / "7")
    with serving(tmp_path / "echo", batch_rows=2) as address:
        yield address


def measured(server):
    """The value of each sample, by its name and its labels in order."""
    answer = requests.get(f"http://{server.host}:{server.port}{PATH}", timeout=30)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_every_value_has_the_name_of_a_metric_that_a_sentence_explains(server):
    answer = requests.get(f"http://{server.host}:{server.port}{PATH}", timeout=30)
    for family in text_string_to_metric_families(answer.text):
        assert family.documentation.endswith(".") and " " in family.documentation
        assert family.name.startswith((":tensorflow:", "keras_transformer_"))
        assert all(sample.name.startswith(family.name) for sample in family.samples)


def test_requests_rows_and_batches_are_counted(server):
    before = measured(server)
    assert before[":tensorflow:serving:request_count", "echo", "OK"] == 0
    for body, status in ((b'{"inputs": ["a", "b", "c"]}', 200), (b'{"inputs": ["a"]}', 200), (b"{", 400)):
        assert requests.post(f"{server.url}:predict", data=body, timeout=30).status_code == status
    found = measured(server)
    assert found[":tensorflow:serving:request_count", "echo", "OK"] == 2
    assert found[":tensorflow:serving:request_count", "echo", "INVALID_ARGUMENT"] == 1
    assert found[":tensorflow:serving:request_latency_count", "Predict", "REST", "echo"] == 3
    assert found["keras_transformer_rows_total", "echo", "7"] == 4
    assert (
        found["keras_transformer_batch_rows_count", "echo", "7"] == 3
    )  # two of the first request, and one of the second
    assert found["keras_transformer_batch_rows_bucket", "2.0", "echo", "7"] == 3
    assert found["keras_transformer_waiting_rows",] == found["keras_transformer_requests_in_flight",] == 0
    assert found["keras_transformer_bytes_in_flight",] == 0
    assert 0 < found["keras_transformer_batch_seconds_sum", "echo", "7"] < 10
    assert 3 < found[":tensorflow:serving:request_latency_sum", "Predict", "REST", "echo"] < 10e6


def test_latencies_are_microseconds():
    metrics = Metrics(ANY)
    metrics.answered("any", "Predict", "GRPC", None, 0.25)
    labels = {"model_name": "any", "API": "Predict", "entrypoint": "GRPC"}
    assert metrics.registry.get_sample_value(":tensorflow:serving:request_latency_sum", labels) == 250_000


def test_translations_that_are_cut_are_counted_where_they_are_asked_for():
    version, labels = types.SimpleNamespace(model="any", number=7), {"model_name": "any", "version": "7"}
    dispatcher = Dispatcher(ANY, ServerOptions())

    async def answered(outputs):
        async def compute(*arguments):
            return outputs

        dispatcher.batcher = types.SimpleNamespace(compute=compute)
        codec = types.SimpleNamespace(write=lambda outputs, most: b"")
        with dispatcher.bytes_in_flight.share() as share:
            await dispatcher.predict(version, Question(codec, None, (), {}, 0), share, time.monotonic() + 9)
        return dispatcher.metrics.registry.get_sample_value("keras_transformer_cut_total", labels)

    assert asyncio.run(answered({"is_cut": np.array([[True, False], [True, True]])})) == 3
    assert asyncio.run(answered({"scores": np.ones((2, 2))})) == 3


def test_a_request_for_another_model_adds_no_name(server):
    for name in ("other", "a" * 100):
        url = f"http://{server.host}:{server.port}/v1/models/{name}:predict"
        assert requests.post(url, data=b"{}", timeout=30).status_code == 404
    found = {key: value for key, value in measured(server).items() if key[0] == ":tensorflow:serving:request_count"}
    assert found == {
        (":tensorflow:serving:request_count", "echo", "NOT_FOUND"): 2,
        (":tensorflow:serving:request_count", "echo", "OK"): 0,
    }


def test_the_state_of_a_version_is_one_of_its_states(server):
    states = {key[2]: value for key, value in measured(server).items() if key[0] == "keras_transformer_version_state"}
    assert states == {"LOADING": 0, "AVAILABLE": 1, "UNLOADING": 0, "END": 0}


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RequestError(Code.NOT_FOUND, "none"), Code.NOT_FOUND),
        (TimeoutError(), Code.DEADLINE_EXCEEDED),
        (asyncio.CancelledError(), Code.CANCELLED),
        (ConnectionResetError(), Code.CANCELLED),
        (GeneratorExit(), Code.CANCELLED),
        (ValueError(), Code.INTERNAL),
    ],
)
def test_a_request_that_fails_has_the_code_of_its_reason(error, code):
    assert code_of(error) is code


PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((ROOT / "serving" / "grafana.json").read_text(encoding="utf-8"))
PARTS = re.compile(r"_(?:bucket|sum|count)$")
NAME = re.compile(r":tensorflow:\w+:\w+|keras_transformer_\w+")


@pytest.fixture(scope="module")
def families(echo_folder):
    """The names of samples, and the labels that they have beside `le`."""
    with serving(echo_folder) as address:
        requests.post(f"{address.url}:predict", data=b'{"inputs": ["a"]}', timeout=30)
        text = requests.get(f"{address.page_url}monitoring/prometheus/metrics", timeout=30).text
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    return {sample.name: {*sample.labels} - {"le"} for sample in samples}


def test_the_page_has_every_metric_with_its_labels(families):
    rows = re.findall(r"^\| `([\w:]+)` \|([^|]*)\|", PAGE, re.MULTILINE)
    named = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in rows}
    measured = {name if name.endswith("_total") else PARTS.sub("", name): labels for name, labels in families.items()}
    measured[":tensorflow:serving:request_count"] = measured.pop(":tensorflow:serving:request")
    assert named == measured


def test_each_expression_of_the_dashboard_asks_for_samples_and_labels_that_there_are(families):
    expressions = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    assert len(expressions) >= len(DASHBOARD["panels"]) > 5
    for expression in expressions:
        asked = NAME.findall(expression)
        assert asked and set(asked) <= set(families), expression
        for name in asked:
            for labels in re.findall(rf"{name}\{{(.*?)\}}", expression):
                assert set(re.findall(r"(\w+)=", labels)) <= families[name] | {"job"}, expression
    variables = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DASHBOARD["panels"]))) - {"__rate_interval"}
    assert used == variables
