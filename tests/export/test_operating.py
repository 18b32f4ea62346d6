"""docs/operating.md and serving/grafana.json speak of metrics that the server has."""

import json
import re

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from export.server.options import ServerOptions
from export.server.process import local_server
from tests.support.places import ROOT

PAGE = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
DASHBOARD = json.loads((ROOT / "serving" / "grafana.json").read_text(encoding="utf-8"))
PARTS = re.compile(r"_(?:bucket|sum|count)$")
NAME = re.compile(r":tensorflow:\w+:\w+|keras_transformer_\w+")


@pytest.fixture(scope="module")
def families(echo_folder):
    """The names of samples, and the labels that they have beside `le`."""
    with local_server(echo_folder, ServerOptions(port=0, grpc_port=0)) as address:
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
