"""Answers that are messages of `tensorflow-serving-api`: the status and the metadata of a model."""

from google.protobuf import any_pb2
from tensorflow_serving.apis import get_model_metadata_pb2, get_model_status_pb2

from export.server.model_folder import Status
from export.server.version import Version

UNKNOWN = 2  # the status code of a version that could not be loaded


def metadata_of(name: str, version: Version) -> get_model_metadata_pb2.GetModelMetadataResponse:
    """Return every signature of a version."""
    definitions = get_model_metadata_pb2.SignatureDefMap()
    for signature_name, definition in version.definitions.items():
        definitions.signature_def[signature_name].CopyFrom(definition)
    response = get_model_metadata_pb2.GetModelMetadataResponse()
    response.model_spec.name = name
    response.model_spec.version.value = version.number
    packed = any_pb2.Any()
    packed.Pack(definitions)
    response.metadata["signature_def"].CopyFrom(packed)
    return response


def status_of(statuses: dict[int, Status], number: int | None) -> get_model_status_pb2.GetModelStatusResponse:
    """Return the state of every version that was seen, highest first, or of one."""
    response = get_model_status_pb2.GetModelStatusResponse()
    for version in sorted(statuses, reverse=True):
        if number in (None, version):
            entry = response.model_version_status.add()
            entry.version, entry.state = version, statuses[version].state.value
            entry.status.error_code = UNKNOWN if statuses[version].error else 0
            entry.status.error_message = statuses[version].error
    return response
