"""TensorFlow Serving's file of models: `ModelServerConfig`, as text of protocol buffers."""

import os
import pathlib
from typing import NamedTuple

from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import TENSORFLOW, ModelConfig, ModelServerConfig

from keras_transformer.runs.versions import HIGHEST, is_version

from ..versions import ExportError

PLATFORM = "tensorflow"
MOST_BYTES = 1 << 20  # of a file of models, which has some hundred


class Policy(NamedTuple):
    """Which versions of a folder are served: the `most` highest ones, of `numbers` alone if there are any."""

    most: int = 1
    numbers: frozenset[int] = frozenset()


LATEST, ALL = Policy(), Policy(HIGHEST)


class Model(NamedTuple):
    """What a server is told of a model. path: the folder of its versions. labels: names for versions."""

    name: str
    path: pathlib.Path
    policy: Policy = LATEST
    labels: dict[str, int] = {}


def read_models(path: str | os.PathLike) -> list[Model]:
    """Return the models in a file. Raises ExportError if it cannot be read, or if a server cannot serve them."""
    try:
        with open(path, "rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ExportError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        if len(content) > MOST_BYTES:
            raise ExportError(f"it has more than {MOST_BYTES} bytes.")
        return models_of(text_format.Parse(content.decode(), ModelServerConfig()))
    except UnicodeDecodeError:
        raise ExportError(f"{path} is no file of models: it is not UTF-8.") from None
    except (text_format.ParseError, ExportError) as error:
        raise ExportError(f"{path} is no file of models: {error}") from None


def models_of(config: ModelServerConfig) -> list[Model]:
    """Return the models of a configuration. Raises ExportError if a server cannot serve them."""
    if config.WhichOneof("config") != "model_config_list":
        raise ExportError("it has no model_config_list, the only kind of configuration that is served.")
    models = [model_of(each) for each in config.model_config_list.config]
    names = [model.name for model in models]
    for name in names:
        if names.count(name) > 1:
            raise ExportError(f"Illegal to list model {name} multiple times in config list.")
    if not models:
        raise ExportError("its model_config_list has no model; it must have at least one.")
    return models


def model_of(config: ModelConfig) -> Model:
    """Return a model as its configuration describes it. Raises ExportError if it cannot be served."""
    name, path = config.name, pathlib.Path(config.base_path)
    if not name or {"/", ":"} & set(name):
        raise ExportError(
            f"a model has the name {name!a}; it must have one that is part of a URL, without '/' and ':'."
        )
    if config.model_platform != PLATFORM and (config.model_platform or config.model_type != TENSORFLOW):
        raise ExportError(
            f"the model {name} has the model_platform {config.model_platform!a}; it must be {PLATFORM!r}."
        )
    if not path.is_absolute():
        raise ExportError(f"the model {name} has the base_path {config.base_path!a}; it must begin with '/'.")
    if is_version(path):
        raise ExportError(f"the base_path of {name}, {path}, is a version; it must be the folder above, of versions.")
    if config.HasField("logging_config"):
        raise ExportError(f"the model {name} has a logging_config, which this server cannot do; see --log-requests.")
    return Model(name, path, policy_of(config), dict(config.version_labels))


def policy_of(config: ModelConfig) -> Policy:
    """Return which versions of a model are served. Raises ExportError if that is none."""
    policy = config.model_version_policy
    match policy.WhichOneof("policy_choice"):
        case "all":
            return ALL
        case "specific":
            numbers = frozenset(policy.specific.versions)
            if not numbers or not all(0 <= number <= HIGHEST for number in numbers):
                raise ExportError(f"the model {config.name} has a policy `specific` without versions, or below 0.")
            return Policy(HIGHEST, numbers)
        case _:
            return Policy(max(policy.latest.num_versions, 1))
