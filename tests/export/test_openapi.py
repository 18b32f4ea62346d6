"""The description of the API: it is OpenAPI, it has every path, and the server answers as it says."""

import json
import re

import numpy as np
import pytest
import requests

from export.server.openapi import inputs_schema
from export.server.options import ServerOptions
from export.server.rest_api import rest_application
from export.server.signature import Signature
from keras_transformer.page.reference import policy, reference
from tests.support.languages import many, pair, write_models
from tests.support.peers import needs
from tests.support.servers import serving

KEY = "key-0123456789abcdef"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    written = {"en-de": pair("en", "de"), "de-fr": pair("de", "fr"), "nllb": many(["fin_Latn", "eng"], ["fin_Latn"])}
    return write_models(tmp_path_factory.mktemp("models"), **written)


@pytest.fixture(scope="module")
def server(models):
    with serving(models) as address:
        yield f"http://{address.host}:{address.port}"


@pytest.fixture(scope="module")
def described(server):
    return requests.get(f"{server}/openapi.json", timeout=60).json()


def with_key(models):
    file = models.parent / "keys"
    file.write_text(KEY)
    return serving(models, api_key_file=file)


@needs("openapi_spec_validator")
def test_it_is_openapi_with_keys_and_without(described, models):
    from openapi_spec_validator import OpenAPIV31SpecValidator, validate

    validate(described, cls=OpenAPIV31SpecValidator)
    assert "security" not in described
    with with_key(models) as address:
        keyed = requests.get(f"http://{address.host}:{address.port}/openapi.json", timeout=60).json()
    validate(keyed, cls=OpenAPIV31SpecValidator)
    assert keyed["security"] == [{"bearer": []}, {"header": []}]


def test_every_path_of_the_server_is_described(described):
    class Nothing:
        models, options = (), ServerOptions()

    application = rest_application(Nothing(), None)
    while not hasattr(application, "routes"):
        application = application.application
    routes = {route.path for route in application.routes} - {"/{path:path}", "/v1/models/{path:path}"}
    of_tensorflow = {path for path in described["paths"] if path.startswith("/v1/models/")}
    assert set(described["paths"]) - of_tensorflow == routes
    assert len(of_tensorflow) == 9


def test_what_needs_no_key_says_so_and_the_rest_is_refused_without_one(models):
    with with_key(models) as address:
        origin = f"http://{address.host}:{address.port}"
        described = requests.get(f"{origin}/openapi.json", timeout=60).json()
        for path, methods in described["paths"].items():
            for method, operation in methods.items():
                url = path.replace("{model}", "nllb").replace("{version}", "1").replace("{label}", "x")
                body = {"json": {}} if method == "post" else {}
                found = requests.request(method, origin + url.replace("{name}", "x"), **body, timeout=60)
                needs_key = operation.get("security", described["security"])
                is_free = path in ("/", "/docs", "/openapi.json") or needs_key != described["security"]
                assert (found.status_code == 401) != is_free, path


def test_each_example_is_answered(server, described):
    for path, methods in described["paths"].items():
        content = methods.get("post", {}).get("requestBody", {}).get("content", {})
        if "application/json" not in content or "{" in path:
            continue
        found = requests.post(f"{server}{path}", json=content["application/json"]["example"], timeout=60)
        assert found.status_code == 200, (path, found.text)


def test_languages_and_models_are_those_that_are_served(described):
    fields = described["paths"]["/translate"]["post"]["requestBody"]["content"]["application/json"]["schema"][
        "properties"
    ]
    assert fields["source"]["enum"] == ["auto", "en", "de", "fi", "fr"] and fields["target"]["enum"][0] == "en"
    [model, *_] = described["paths"]["/v1/models/{model}:predict"]["post"]["parameters"]
    assert model["schema"]["enum"] == ["en-de", "de-fr", "nllb"]


@pytest.mark.nightly
def test_the_options_of_a_model_are_described_with_their_bounds(whole_version):
    with serving(whole_version) as address:
        described = requests.get(f"http://{address.host}:{address.port}/openapi.json", timeout=60).json()
    fields = described["components"]["schemas"]["Inputs"]["properties"]
    assert fields["beam_size"] | {"description": ""} == {
        "type": "integer",
        "description": "",
        "default": 4,
        "minimum": 1,
        "maximum": 4,
    }
    assert {"text", "n_best", "target_prefix", "glossary", "paragraphs", "format"} <= set(fields)


def test_the_languages_of_a_request_are_described_if_a_model_has_these_inputs():
    class OfOneVersion:
        def __init__(self, defaults):
            self.versions = [self]
            self.signatures = {"translate": Signature("translate", {}, {}, defaults)}

    names = {"source_language": np.array([b""], object), "target_language": np.array([b""], object)}
    for there in ({}, names):
        defaults = there | {"beam_size": np.array([4], np.int32), "max_length": np.array([99], np.int32)}
        fields = inputs_schema([OfOneVersion(defaults)])["properties"]
        assert fields.keys() & names.keys() == there.keys()
        assert all(fields[name]["type"] == "string" and len(fields[name]["description"]) > 9 for name in there)


CHECKS = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.mark.nightly
@needs("schemathesis")
def test_what_the_description_allows_is_answered_as_it_says(server):
    """Requests that schemathesis draws from it, right and wrong ones."""
    import hypothesis
    import schemathesis

    schema = schemathesis.openapi.from_url(f"{server}/openapi.json")
    settings = hypothesis.settings(max_examples=20, deadline=None, derandomize=True, database=None)
    quiet = hypothesis.settings(settings, suppress_health_check=list(hypothesis.HealthCheck))
    count = 0
    for result in schema.get_all_operations():
        operation = result.ok()

        @quiet
        @hypothesis.given(operation.as_strategy())
        def ask(case):
            response = case.call(timeout=60)
            case.validate_response(response, checks=checks_of_schemathesis())

        ask()
        count += 1
    assert count >= 18


def checks_of_schemathesis():
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi import checks

    others = [getattr(checks, name) for name in CHECKS[1:]]
    return [not_a_server_error, *others]


# the page


def test_the_page_has_every_operation_and_loads_nothing(server, described):
    found = requests.get(f"{server}/docs", timeout=60)
    assert (
        found.headers["content-type"].startswith("text/html") and policy() in found.headers["content-security-policy"]
    )
    assert "script" not in policy() and "<script" not in found.text
    links = re.findall(r'(?:href|src)="([^"]*)"', found.text)
    assert links and all(not re.match(r"https?:|//", link) for link in links)
    for methods in described["paths"].values():
        for operation in methods.values():
            assert f'id="{operation["operationId"]}"' in found.text
    assert len(re.findall('id="', found.text)) == len(set(re.findall('id="([^"]*)"', found.text)))


def test_what_a_model_is_called_is_no_markup(described):
    text = json.dumps(described).replace("en-de", "<img src=x onerror=run()>")
    assert "<img" not in reference(json.loads(text), "http://localhost")
