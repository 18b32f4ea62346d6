"""Bad options of the signature translate: over REST, and straight into the graph through TensorFlow's C API.

`make attack` sends thousands of them; without ATTACK_REQUESTS it is a few dozen.
"""

import json

import pytest
import requests
from hypothesis import HealthCheck, given, settings

from export.certificate.runtimes import CRuntime, c_library, package, strings
from export.client.client import ServingClient
from keras_transformer.search.options import SearchOptions
from tests.support.bad_requests import JSON_OPTIONS, REQUESTS, option_tensors
from tests.support.exports import write_version
from tests.support.runs import SENTENCES
from tests.support.servers import serving

pytestmark = pytest.mark.release

SETTINGS = settings(
    max_examples=max(20, REQUESTS // 10),
    deadline=None,
    derandomize=REQUESTS <= 1000,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="module")
def folder(random_folder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked") / "model"
    names = ("serving_default", "translate")
    write_version(random_folder, folder / "1", SearchOptions(beam_size=3, extra_length=6), 12, names)
    return folder


@pytest.fixture(scope="module")
def url(folder):
    with serving(folder, request_rows=8) as address:
        yield address.url


@pytest.fixture(scope="module", autouse=True)
def before(url):
    """The answers of the server before a bad request is sent."""
    return ServingClient(url).translate(SENTENCES[:3])


@given(JSON_OPTIONS)
@SETTINGS
def test_any_options_of_a_request_are_answered(url, options):
    body = {"signature_name": "translate", "inputs": {"text": [SENTENCES[0], "", SENTENCES[1]], **options}}
    response = requests.post(f"{url}:predict", data=json.dumps(body))  # with NaN and Infinity as Python writes them
    content = response.json()
    if response.status_code == 200:
        outputs = content["outputs"]
        assert all(len(values) == 3 for values in outputs.values())
        assert outputs["translations"][1] == [""] * len(outputs["translations"][1])
    else:
        assert response.status_code == 400 and set(content) == {"error"}
        assert content["error"] and "\n" not in content["error"]


def test_after_all_that_the_server_translates_as_before(url, before):
    assert ServingClient(url).translate(SENTENCES[:3]) == before and all(one.score < 0 for one in before)


@pytest.mark.skipif(c_library(package("tensorflow")) is None, reason="this TensorFlow has no libtensorflow_cc")
def test_the_graph_itself_answers_or_refuses_any_tensors(folder):
    """One process answers all requests, so a request that ends it fails the test. Good requests must be unharmed."""
    drawn = []

    @given(option_tensors())
    @SETTINGS
    def collect(request):
        drawn.append(request)

    collect()
    good = {"text": strings(SENTENCES[:2]), "beam_size": {"type": "int32", "shape": [1], "values": [2]}}
    asked = [request for bad in drawn for request in (bad, good)]
    answer = CRuntime(folder / "1").ask(asked, "translate", ("translations", "scores", "truncated"))
    bad, right = answer["responses"][::2], answer["responses"][1::2]
    assert len(right) == len(drawn) >= 20
    assert all(response == right[0] for response in right) and right[0]["outputs"][1][0] < 0
    refused = [response["error"] for response in bad if "error" in response]
    assert refused and all(refused) and len(refused) < len(bad)
    for request, response in zip(drawn, bad, strict=True):
        if "outputs" in response:
            lines = len(request["text"]["values"])
            translations, scores, truncated = response["outputs"]
            assert len(translations) == len(scores) == 3 * lines and len(truncated) == lines
