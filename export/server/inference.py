"""Classify, Regress and MultiInference: what TensorFlow Serving answers for a model without such a signature.

The checks are those of its classifier.cc, regressor.cc and multi_inference.cc in their order, without
`--enable_signature_method_name_check`, which is off there by default.
"""

from collections.abc import Callable, Mapping
from typing import NoReturn

from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.inference_pb2 import MultiInferenceRequest

from .errors import Code, RequestError, invalid
from .json_codec import parsed
from .signature import SERVING_DEFAULT

Definitions = Mapping[str, SignatureDef]


def refuse(method: str, definitions: Definitions, signature_name: str) -> NoReturn:
    """Raise the RequestError that answers a method, "Classify" or "Regress", by a signature."""
    definition = named(definitions, signature_name, "No signature was found with the name: ")
    (check_classification if method == "Classify" else check_regression)(definition)
    raise unimplemented(method)


def refuse_multi_inference(definitions: Definitions, request: MultiInferenceRequest) -> NoReturn:
    """Raise the RequestError that answers several of both at once."""
    model, seen = "", set()
    for task in request.tasks:
        if not task.model_spec.name:
            raise invalid("Found ModelSpec with an empty model name.")
        if model and model != task.model_spec.name:
            raise invalid("All ModelSpecs in a MultiInferenceRequest must access the same model name.")
        model, name = task.model_spec.name, task.model_spec.signature_name or SERVING_DEFAULT
        if name in seen:
            raise invalid(f"Duplicate evaluation of signature: {name}")
        seen.add(name)
        definition = named(definitions, name, "Requested signature not found in model graph: ")
        check = CHECKS.get(task.method_name)
        if check is None:
            raise RequestError(Code.UNIMPLEMENTED, f"Unsupported signature method_name: {task.method_name}")
        check(definition)
    raise unimplemented("MultiInference")


def signature_of_examples(body: bytes) -> str:
    """Return the signature that the JSON of a classification or a regression names; "" if it names none.

    Raises RequestError if there is no list of examples.
    """
    content = parsed(body)
    if not isinstance(content, dict):
        raise invalid("The body must be a JSON object with the key 'examples'.")
    signature_name = content.get("signature_name", "")
    if not isinstance(signature_name, str):
        raise invalid("'signature_name' must be a string.")
    if "examples" not in content:
        raise invalid("When method is classify, key 'examples' is expected and was not found")  # of a regression too
    if not isinstance(content["examples"], list):
        raise invalid("Expecting 'examples' value to be an list/array")
    if not content["examples"]:
        raise invalid("'examples' value is an empty array")
    return signature_name


def named(definitions: Definitions, signature_name: str, otherwise: str) -> SignatureDef:
    """Return a signature. Raises RequestError, with the words `otherwise`, if there is none of that name."""
    name = signature_name or SERVING_DEFAULT
    if name not in definitions:
        raise invalid(f"{otherwise}{name}")
    return definitions[name]


def check_classification(definition: SignatureDef) -> None:
    """Raise RequestError unless a signature classifies."""
    if len(definition.inputs) != 1:
        raise invalid("Expected one input Tensor.")
    if len(definition.outputs) not in (1, 2):
        raise invalid(f"Expected one or two output Tensors, found {len(definition.outputs)}")
    if "inputs" not in definition.inputs:
        raise invalid(f"No classification inputs found in SignatureDef: {definition}")
    if not {"classes", "scores"} & set(definition.outputs):
        raise invalid(
            'Expected classification signature outputs to contain at least one of "classes" or "scores". '
            f"Signature was: {definition}"
        )


def check_regression(definition: SignatureDef) -> None:
    """Raise RequestError unless a signature is a regression."""
    if len(definition.inputs) != 1:
        raise invalid("Expected one input Tensor.")
    if len(definition.outputs) != 1:
        raise invalid("Expected one output Tensor.")
    if "inputs" not in definition.inputs:
        raise invalid(f"No regression inputs found in SignatureDef: {definition}")
    if "outputs" not in definition.outputs:
        raise invalid(f"No regression outputs found in SignatureDef: {definition}")


CHECKS: dict[str, Callable[[SignatureDef], None]] = {
    "tensorflow/serving/classify": check_classification,
    "tensorflow/serving/regress": check_regression,
}


def unimplemented(method: str) -> RequestError:
    """Return the error of a method for which a model has a signature: no export of a translator has one."""
    return RequestError(Code.UNIMPLEMENTED, f"This server answers Predict, and not {method}.")
