"""A server of several models and versions, as clients ask it over REST and through TensorFlow Serving's own stubs."""

import json
import shutil
import types

import grpc
import pytest
import requests
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.apis import model_service_pb2_grpc, prediction_service_pb2_grpc
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.get_model_metadata_pb2 import GetModelMetadataRequest
from tensorflow_serving.apis.get_model_status_pb2 import GetModelStatusRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.model_management_pb2 import ReloadConfigRequest
from tensorflow_serving.apis.predict_pb2 import PredictRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from tests.support.echo import write_echo
from tests.support.servers import serving

CONFIG = """model_config_list {{
  config {{
    name: "one" base_path: "{0}/one" model_platform: "tensorflow"
    model_version_policy {{ specific {{ versions: 6 versions: 7 }} }}
    version_labels {{ key: "stable" value: 6 }} version_labels {{ key: "canary" value: 7 }}
  }}
  config {{ name: "two" base_path: "{0}/two" model_platform: "tensorflow" }}
}}"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Two models: of "one" the versions 6 and 7, which mark their answers with "a" and "b"; of "two" the version 1."""
    folder = tmp_path_factory.mktemp("models")
    written = {mark: write_echo(folder / mark, mark) for mark in ("a", "b")}
    for name, mark in (
        ("one/5", "a"),
        ("one/6", "a"),
        ("one/7", "b"),
        ("one/8", "a"),
        ("two/1", "b"),
        ("three/1", "a"),
    ):
        shutil.copytree(written[mark], folder / name)
    (folder / "models.config").write_text(CONFIG.format(folder))
    with serving(folder / "models.config", log_requests=folder / "log", log_text=True) as address:
        with grpc.insecure_channel(f"{address.host}:{address.grpc_port}") as channel:
            prediction = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            models = model_service_pb2_grpc.ModelServiceStub(channel)
            yield types.SimpleNamespace(address=address, folder=folder, prediction=prediction, models=models)


def over_rest(server, path, **body):
    address = server.address
    return requests.post(f"http://{address.host}:{address.port}/v1/models/{path}", json=body, timeout=30)


def over_grpc(server, **spec):
    request = PredictRequest(model_spec=spec)
    request.inputs["text"].CopyFrom(tf.make_tensor_proto(["x"]))
    answer = server.prediction.Predict(request, 30)
    return answer.outputs["translation"].string_val[0].decode(), answer.model_spec.version.value


@pytest.mark.parametrize(
    ("path", "spec", "answer"),
    [
        ("one", {"name": "one"}, ("bx", 7)),
        ("one/versions/6", {"name": "one", "version": {"value": 6}}, ("ax", 6)),
        ("one/labels/stable", {"name": "one", "version_label": "stable"}, ("ax", 6)),
        ("one/LABELS/canary", {"name": "one", "version_label": "canary"}, ("bx", 7)),
        ("two", {"name": "two"}, ("bx", 1)),
    ],
)
def test_a_client_gets_the_version_that_it_names(server, path, spec, answer):
    assert over_grpc(server, **spec) == answer
    assert over_rest(server, f"{path}:predict", inputs=["x"]).json()["outputs"]["translation"] == [answer[0]]


@pytest.mark.parametrize(
    ("path", "spec", "status", "code", "words"),
    [
        ("three", {"name": "three"}, 404, "NOT_FOUND", "Servable not found for request: Latest(three)"),
        ("one/versions/8", {"name": "one", "version": {"value": 8}}, 404, "NOT_FOUND", "Specific(one, 8)"),
        ("one/labels/x", {"name": "one", "version_label": "x"}, 400, "INVALID_ARGUMENT", "version label: x"),
        ("two/labels/stable", {"name": "two", "version_label": "stable"}, 400, "INVALID_ARGUMENT", "label: stable"),
    ],
)
def test_both_apis_refuse_what_is_not_served(server, path, spec, status, code, words):
    answer = over_rest(server, f"{path}:predict", inputs=["x"])
    assert answer.status_code == status and words in answer.json()["error"]
    with pytest.raises(grpc.RpcError) as error:
        over_grpc(server, **spec)
    assert error.value.code().name == code and words in error.value.details()


def test_each_version_has_a_state_and_metadata(server):
    states = server.models.GetModelStatus(GetModelStatusRequest(model_spec={"name": "one"}), 30).model_version_status
    assert [(state.version, state.State.Name(state.state)) for state in states] == [(7, "AVAILABLE"), (6, "AVAILABLE")]
    found = requests.get(f"{server.address.url}/labels/stable/metadata", timeout=30).json()
    assert found["model_spec"] == {"name": "one", "signature_name": "", "version": "6"}
    spec = {"name": "one", "version_label": "canary"}
    request = GetModelMetadataRequest(model_spec=spec, metadata_field=["signature_def"])
    assert server.prediction.GetModelMetadata(request, 30).model_spec.version.value == 7
    assert len(requests.get(f"{server.address.url}/labels/none", timeout=30).json()["model_version_status"]) == 2


def test_classification_and_regression_are_not_implemented_in_both_apis(server):
    sentence = "This server answers Predict, and neither Classify nor Regress."
    for method in ("classify", "regress"):
        answer = over_rest(server, f"one/labels/stable:{method}", examples=[{"text": "a"}])
        assert (answer.status_code, answer.json()) == (501, {"error": sentence})
    spec = {"name": "one"}
    for request, call in (
        (ClassificationRequest(model_spec=spec), server.prediction.Classify),
        (RegressionRequest(model_spec=spec), server.prediction.Regress),
        (MultiInferenceRequest(tasks=[{"model_spec": spec}]), server.prediction.MultiInference),
    ):
        with pytest.raises(grpc.RpcError) as error:
            call(request, 30)
        assert (error.value.code(), error.value.details()) == (grpc.StatusCode.UNIMPLEMENTED, sentence)
    assert over_rest(server, "none:classify", examples=[{}]).status_code == 404


def test_the_page_is_that_of_the_model_that_is_named(server):
    home = server.address.page_url
    assert requests.get(home, timeout=30).text.endswith("/v1/models/one:predict\n")
    assert requests.get(f"{home}?model=two", timeout=30).text.endswith("/v1/models/two:predict\n")
    assert requests.get(f"{home}?model=none", timeout=30).status_code == 404


def test_requests_are_logged_and_counted_by_model_and_version(server):
    for path in ("one/labels/stable", "two", "none"):
        over_rest(server, f"{path}:predict", inputs=["to be", "logged"])
    over_rest(server, "two:classify", examples=[{}])
    url = f"{server.address.page_url}monitoring/prometheus/metrics"
    samples = requests.get(url, timeout=30).text.splitlines()
    for start in (
        'keras_transformer_rows_total{model_name="one",version="6"} ',
        'keras_transformer_batch_rows_count{model_name="two",version="1"} ',
        ':tensorflow:serving:request_count{model_name="two",status="OK"} ',
        ':tensorflow:serving:request_count{model_name="",status="NOT_FOUND"} ',
        'keras_transformer_version_state{model_name="one",state="AVAILABLE",version="6"} 1.0',
    ):
        assert any(sample.startswith(start) for sample in samples), start
    lines = [json.loads(line) for line in (server.folder / "log").read_text().splitlines()]
    found = [tuple(line[key] for key in ("model", "version", "rows", "status")) for line in lines if "text" in line]
    assert ("one", 6, 2, "OK") in found and ("two", 1, 2, "OK") in found
    assert [line["text"] for line in lines if "text" in line][-1] == ["to be", "logged"]
    assert {line["method"] for line in lines} >= {"Predict", "Classify"}
    assert any(line["model"] == "none" and line["status"] == "NOT_FOUND" for line in lines)


def reload(server, config):
    request = ReloadConfigRequest(config=text_format.Parse(config, ReloadConfigRequest().config))
    return server.models.HandleReloadConfigRequest(request, 60)


def test_another_machine_may_ask_but_not_reload(server, monkeypatch):
    monkeypatch.setattr("export.server.grpc_api.is_peer_here", lambda peer: False)
    with pytest.raises(grpc.RpcError) as error:
        reload(server, "")
    assert error.value.code() is grpc.StatusCode.PERMISSION_DENIED and "127.0.0.1" in error.value.details()
    assert over_grpc(server, name="one") == ("bx", 7)


def test_a_reload_by_rpc_changes_models_versions_and_labels(server):
    """Last, since it changes what is served, and back."""
    before = CONFIG.format(server.folder)
    after = (
        before.replace('"two"', '"three"').replace("/two", "/three").replace('"canary" value: 7', '"canary" value: 8')
    )
    assert reload(server, after.replace("versions: 7", "versions: 8")).status.error_code == 0
    assert (
        over_grpc(server, name="three") == ("ax", 1) and over_grpc(server, name="one", version_label="canary")[1] == 8
    )
    assert over_rest(server, "two:predict", inputs=["x"]).status_code == 404
    for config, code, words in (
        (before.replace('"two"', '"one"'), "INVALID_ARGUMENT", "multiple times"),
        (after.replace("versions: 7", "versions: 9"), "FAILED_PRECONDITION", "label to version 8 of model one"),
        (
            after.replace("/three", "/none").replace('"three"', '"none"'),
            "UNKNOWN",
            "1 model(s) did not become available",
        ),
        ("", "INVALID_ARGUMENT", "Only ModelConfigList"),
    ):
        with pytest.raises(grpc.RpcError) as error:
            reload(server, config)
        assert error.value.code().name == code and words in error.value.details(), error.value.details()
    assert reload(server, before).status.error_code == 0
    assert over_grpc(server, name="two") == ("bx", 1)


def test_a_server_of_one_folder_takes_no_other_models(server):
    with serving(server.folder / "two") as address:
        with grpc.insecure_channel(f"{address.host}:{address.grpc_port}") as channel:
            alone = types.SimpleNamespace(models=model_service_pb2_grpc.ModelServiceStub(channel))
            with pytest.raises(grpc.RpcError) as error:
                reload(alone, CONFIG.format(server.folder))
    assert error.value.code() is grpc.StatusCode.FAILED_PRECONDITION and "--models" in error.value.details()
