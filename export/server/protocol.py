"""The status and the metadata of a model, as messages of `tensorflow-serving-api`."""

from google.protobuf import any_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from .model_folder import Status
from .version import Version

UNKNOWN = 2  # the status code of a version that could not be loaded


def metadata_of(name: str, version: Version) -> get_model_metadata_pb2.GetModelMetadataResponse:
    """Return the metadata of a version of the model `name`: its signatures."""
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = name
    response.model_spec.version.value = version.number
    packed = any_pb2.Any()
    packed.Pack(definitions_of(version))
    response.metadata["signature_def"].CopyFrom(packed)
    return response


def definitions_of(version: Version) -> get_model_metadata_pb2.SignatureDefMap:
    """Return every signature of a version."""
    definitions = get_model_metadata_pb2.SignatureDefMap()
    for name, definition in version.definitions.items():
        definitions.signature_def[name].CopyFrom(definition)
    return definitions


def status_of(statuses: dict[int, Status]) -> get_model_status_pb2.GetModelStatusResponse:
    """Return the state of each version, in their order."""
    response = get_model_status_pb2.GetModelStatusResponse()
    for version, status in statuses.items():
        entry = response.model_version_status.add()
        entry.version, entry.state = version, status.state.value
        entry.status.error_code = UNKNOWN if status.error else 0
        entry.status.error_message = status.error
    return response
