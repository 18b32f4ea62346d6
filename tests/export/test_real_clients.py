"""Clients as people have them, in other languages and from other projects, against one local server."""

import json
import shutil
import subprocess
import zipfile

import grpc
import pytest
import requests
from tensorflow.core.framework.tensor_pb2 import TensorProto
from tensorflow.core.framework.types_pb2 import DT_STRING
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

from tests.support.processes import python
from tests.support.servers import serving

pytestmark = pytest.mark.release
LINES = ["a", "ü", "three words here"]
BODY, EXPECTED = json.dumps({"inputs": LINES}), {"outputs": {"translation": LINES, "score": [-1.0, -2.0, -16.0]}}


@pytest.fixture(scope="module")
def server(echo_folder):
    with serving(echo_folder) as address:
        yield address


def run(program, *arguments):
    """What a program prints. Skips the test if this machine does not have it."""
    if shutil.which(program) is None:
        pytest.skip(f"there is no {program} here")
    process = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_requests(server):
    with requests.Session() as session:
        assert [session.post(f"{server.url}:predict", data=BODY).json() for _ in range(3)] == [EXPECTED] * 3


@pytest.mark.parametrize("version", ["--http1.0", "--http1.1", "--http2"])
def test_curl(server, version):
    assert json.loads(run("curl", "-s", version, "-d", BODY, f"{server.url}:predict")) == EXPECTED


def test_curl_with_a_long_body_over_http2(server, tmp_path):
    """It is sent after `Expect: 100-continue`, in many segments."""
    (tmp_path / "body").write_text(json.dumps({"inputs": ["x" * 1000] * 1000}))
    answer = run("curl", "-s", "--http2", "--data-binary", f"@{tmp_path / 'body'}", f"{server.url}:predict")
    assert json.loads(answer)["outputs"]["score"] == [-1000.0] * 1000


JAVA = """
import java.net.URI;
import java.net.http.*;

public class Ask {
    public static void main(String[] arguments) throws Exception {
        HttpClient client = HttpClient.newHttpClient();
        HttpRequest request = HttpRequest.newBuilder(URI.create(arguments[0]))
            .POST(HttpRequest.BodyPublishers.ofString(arguments[1])).build();
        for (int i = 0; i < 3; i++) {
            HttpResponse<String> response = client.send(request, HttpResponse.BodyHandlers.ofString());
            System.out.println(response.statusCode() + " " + response.body());
        }
    }
}
"""


def test_the_client_of_java_which_offers_h2c(server, tmp_path):
    (tmp_path / "Ask.java").write_text(JAVA)
    body = json.dumps({"inputs": LINES})  # only ASCII
    answers = run("java", "-Dfile.encoding=UTF-8", tmp_path / "Ask.java", f"{server.url}:predict", body).splitlines()
    assert [json.loads(answer.removeprefix("200 "))["outputs"]["score"] for answer in answers] == [[-1, -2, -16]] * 3


def test_fetch_of_node(server):
    script = "const [url, body] = process.argv.slice(1); (async () => { for (let i = 0; i < 3; i++) console.log(JSON."
    script += "stringify(await (await fetch(url, {method: 'POST', body})).json())) })()"
    answers = run("node", "-e", script, f"{server.url}:predict", BODY).splitlines()
    assert [json.loads(answer) for answer in answers] == [EXPECTED] * 3


def test_published_stubs_whose_answer_is_read_field_by_field(server):
    """As the example clients of TensorFlow Serving read it."""
    with grpc.insecure_channel(f"{server.host}:{server.grpc_port}") as channel:
        request = predict_pb2.PredictRequest(model_spec={"name": "echo"})
        tensor = TensorProto(dtype=DT_STRING, string_val=[line.encode() for line in LINES])
        tensor.tensor_shape.dim.add(size=len(LINES))
        request.inputs["text"].CopyFrom(tensor)
        outputs = prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, 30).outputs
    assert list(outputs["score"].float_val) == [-1.0, -2.0, -16.0]
    assert [value.decode() for value in outputs["translation"].string_val] == LINES
    assert [dimension.size for dimension in outputs["score"].tensor_shape.dim] == [3]


def test_min_tfs_client(server, tmp_path, monkeypatch):
    """Its wheel overwrites files of TensorFlow when it is installed, so only its own package is unpacked."""
    if python("-m", "pip", "download", "-q", "--no-deps", "-d", tmp_path, "min-tfs-client==1.0.2").returncode:
        pytest.skip("min-tfs-client cannot be downloaded here")
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path, [name for name in wheel.namelist() if name.startswith("min_tfs_client/")])
    monkeypatch.syspath_prepend(tmp_path)
    import numpy as np
    from min_tfs_client.requests import TensorServingClient
    from min_tfs_client.tensors import tensor_proto_to_ndarray

    client = TensorServingClient(host=server.host, port=server.grpc_port)
    outputs = client.predict_request("echo", {"text": np.array(LINES)}).outputs
    assert tensor_proto_to_ndarray(outputs["score"]).tolist() == [-1.0, -2.0, -16.0]
    assert client.predict_request("echo", {"text": np.array(LINES)}, model_version=1).model_spec.version.value == 1
    with pytest.raises(grpc.RpcError, match=r"Specific\(echo, 2\)"):
        client.predict_request("echo", {"text": np.array(LINES)}, model_version=2)
