"""Classify, Regress and MultiInference: TensorFlow Serving's answers for a model without such a signature."""

import asyncio
import json
import types

import pytest
from starlette.requests import Request
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.classification_pb2 import ClassificationRequest
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest
from tensorflow_serving.apis.regression_pb2 import RegressionRequest

from export.server.dispatcher import Dispatcher
from export.server.errors import Code, RequestError
from export.server.grpc_api import GrpcApi
from export.server.inference import refuse, refuse_multi_inference, signature_of_examples
from export.server.models import Models
from export.server.options import ServerOptions
from export.server.rest_api import RestApi

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"


def signature(inputs, outputs):
    """A signature with these names."""
    definition = SignatureDef(method_name="tensorflow/serving/predict")
    for name in inputs.split():
        definition.inputs[name].name = f"{name}:0"
    for name in outputs.split():
        definition.outputs[name].name = f"{name}:0"
    return definition


DEFINITIONS = {
    "serving_default": signature("text", "translation score"),
    "three": signature("text", "a b c"),
    "two": signature("text beam_size", "translation"),
    "one": signature("text", "translation"),
    "named": signature("inputs", "translation"),
    "classes": signature("inputs", "classes scores"),
    "outputs": signature("inputs", "outputs"),
}


@pytest.mark.parametrize(
    ("method", "name", "words"),
    [
        ("Classify", "", "No classification inputs found in SignatureDef: inputs {"),
        ("Regress", "", "Expected one output Tensor."),
        ("Classify", "none", "No signature was found with the name: none"),
        ("Regress", "none", "No signature was found with the name: none"),
        ("Classify", "two", "Expected one input Tensor."),
        ("Regress", "two", "Expected one input Tensor."),
        ("Classify", "three", "Expected one or two output Tensors, found 3"),
        ("Regress", "one", "No regression inputs found in SignatureDef: inputs {"),
        ("Regress", "named", "No regression outputs found in SignatureDef: inputs {"),
        ("Classify", "named", 'outputs to contain at least one of "classes" or "scores". Signature was: inputs {'),
    ],
)
def test_a_signature_that_cannot_do_it_is_named_in_its_words(method, name, words):
    with pytest.raises(RequestError) as error:
        refuse(method, DEFINITIONS, name)
    assert error.value.code is Code.INVALID_ARGUMENT and words in error.value.message


@pytest.mark.parametrize(("method", "name"), [("Classify", "classes"), ("Regress", "outputs")])
def test_a_signature_that_could_do_it_is_not_served(method, name):
    with pytest.raises(RequestError, match=f"not {method}") as error:
        refuse(method, DEFINITIONS, name)
    assert error.value.code is Code.UNIMPLEMENTED


def task(method, signature_name="", model="mine"):
    return {"model_spec": {"name": model, "signature_name": signature_name}, "method_name": method}


@pytest.mark.parametrize(
    ("tasks", "code", "words"),
    [
        ([task(CLASSIFY, model="")], Code.INVALID_ARGUMENT, "Found ModelSpec with an empty model name."),
        ([task(CLASSIFY, "classes"), task(REGRESS, "outputs", "other")], Code.INVALID_ARGUMENT, "the same model name."),
        (
            [task(CLASSIFY, "classes"), task(REGRESS, "classes")],
            Code.INVALID_ARGUMENT,
            "evaluation of signature: classes",
        ),
        ([task(CLASSIFY, "none")], Code.INVALID_ARGUMENT, "Requested signature not found in model graph: none"),
        ([task("other")], Code.UNIMPLEMENTED, "Unsupported signature method_name: other"),
        ([task(CLASSIFY)], Code.INVALID_ARGUMENT, "No classification inputs found"),
        ([task(CLASSIFY, "classes"), task(REGRESS)], Code.INVALID_ARGUMENT, "Expected one output Tensor."),
        ([task(CLASSIFY, "classes"), task(REGRESS, "outputs")], Code.UNIMPLEMENTED, "not MultiInference"),
    ],
)
def test_several_at_once_are_checked_one_by_one(tasks, code, words):
    with pytest.raises(RequestError) as error:
        refuse_multi_inference(DEFINITIONS, MultiInferenceRequest(tasks=tasks))
    assert error.value.code is code and words in error.value.message


def test_json_names_a_signature_or_none():
    assert signature_of_examples(b'{"examples": [{"text": "a"}]}') == ""
    assert signature_of_examples(b'{"signature_name": "one", "examples": [{}]}') == "one"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "JSON object"),
        ({"examples": [{}], "signature_name": 1}, "'signature_name' must be a string"),
        ({"instances": ["a"]}, "key 'examples' is expected and was not found"),
        ({"examples": {}}, "value to be an list/array"),
        ({"examples": []}, "'examples' value is an empty array"),
    ],
)
def test_json_without_examples_is_invalid(content, words):
    with pytest.raises(RequestError, match=words) as error:
        signature_of_examples(json.dumps(content).encode())
    assert error.value.code is Code.INVALID_ARGUMENT


NAMES = {"Classify": "classes", "Regress": "outputs"}  # of the signature that could do it
REQUESTS = {"Classify": ClassificationRequest, "Regress": RegressionRequest}


def by_rest(dispatcher, method, model):
    async def receive():
        content = json.dumps({"signature_name": NAMES[method], "examples": [{}]})
        return {"type": "http.request", "body": content.encode(), "more_body": False}

    path = f"/v1/models/{model}/versions/7:{method.lower()}"
    return RestApi(dispatcher).model(Request({"type": "http", "method": "POST", "path": path, "headers": []}, receive))


def by_grpc(dispatcher, method, model):
    spec = {"name": model, "version": {"value": 7}}
    if method == "MultiInference":
        tasks = [task(CLASSIFY, "classes", model), task(REGRESS, "outputs", model)]
        for each in tasks:
            each["model_spec"]["version"] = {"value": 7}
        return GrpcApi(dispatcher).multi_inference(MultiInferenceRequest(tasks=tasks), None, 0.0)
    answer = {"Classify": GrpcApi.classify, "Regress": GrpcApi.regress}[method]
    request = REQUESTS[method](model_spec=spec | {"signature_name": NAMES[method]})
    return answer(GrpcApi(dispatcher), request, None, 0.0)


@pytest.mark.parametrize(
    ("api", "method"),
    [(by_rest, "Classify"), (by_rest, "Regress"), (by_grpc, "Classify"), (by_grpc, "Regress"),
     (by_grpc, "MultiInference")],
)  # fmt: skip
def test_both_apis_say_of_the_method_that_was_asked_that_it_is_not_answered(api, method):
    version = types.SimpleNamespace(number=7, definitions=DEFINITIONS)
    dispatcher = Dispatcher(Models([types.SimpleNamespace(name="mine", version={7: version}.get)]), ServerOptions())
    with pytest.raises(RequestError, match=rf"answers Predict, and not {method}\.$") as error:
        asyncio.run(api(dispatcher, method, "mine"))
    assert error.value.code is Code.UNIMPLEMENTED
    with pytest.raises(RequestError) as error:
        asyncio.run(api(dispatcher, method, "other"))
    assert error.value.code is Code.NOT_FOUND


def test_several_at_once_of_no_model_are_invalid():
    with pytest.raises(RequestError, match="name of the model"):
        asyncio.run(
            GrpcApi(Dispatcher(Models([]), ServerOptions())).multi_inference(MultiInferenceRequest(), None, 0.0)
        )
