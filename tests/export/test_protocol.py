"""Messages of `tensorflow-serving-api` about a model: what they say of its versions."""

import types

from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap

from export.server.model_folder import State, Status
from export.server.protocol import UNKNOWN, metadata_of, status_of


def test_metadata_name_the_model_the_version_and_every_signature():
    definitions = {name: SignatureDef(method_name=name) for name in ("one", "two")}
    response = metadata_of("mine", types.SimpleNamespace(number=7, definitions=definitions))
    assert (response.model_spec.name, response.model_spec.version.value) == ("mine", 7)
    signatures = SignatureDefMap()
    assert response.metadata["signature_def"].Unpack(signatures)
    assert dict(signatures.signature_def) == definitions


def test_a_status_has_the_versions_in_their_order_and_the_reason_of_a_failure():
    response = status_of({9: Status(State.AVAILABLE), 4: Status(State.END, "no graph")})
    found = [
        (each.version, each.state, each.status.error_code, each.status.error_message)
        for each in response.model_version_status
    ]
    assert found == [(9, State.AVAILABLE.value, 0, ""), (4, State.END.value, UNKNOWN, "no graph")]
