"""TensorFlow Serving, Docker and Kubernetes can read serving/, and docs/tensorflow_serving.md explains it."""

import pathlib
import re

import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from export.server.options import ServerOptions
from tests.support.places import ROOT

SERVING = ROOT / "serving"
SERVER_PAGE = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
SERVER_PAGES = SERVER_PAGE + (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
INT64, BOOL, STRING, MESSAGE = 3, 8, 9, 11


def read(name):
    return (SERVING / name).read_text(encoding="utf-8")


def test_the_models_are_a_model_server_config():
    config = text_format.Parse(read("models.config"), model_server_config_pb2.ModelServerConfig())
    [model] = config.model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == ("mine", "/models/mine", "tensorflow")
    assert model.model_version_policy.latest.num_versions == 1


def test_the_canary_in_comments_is_valid_too():
    text = re.sub(r"^( *)# (specific|version_labels)", r"\1\2", read("models.config"), flags=re.MULTILINE)
    text = text.replace("latest { num_versions: 1 }", "")
    [model] = text_format.Parse(text, model_server_config_pb2.ModelServerConfig()).model_config_list.config
    assert dict(model.version_labels) == {"stable": 1, "canary": 2}
    assert list(model.model_version_policy.specific.versions) == [1, 2]


@pytest.fixture
def deployment():
    deployment, service = yaml.safe_load_all(read("kubernetes.yaml"))
    assert (deployment["kind"], service["kind"]) == ("Deployment", "Service")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    return deployment["spec"]["template"]


def test_docker_and_kubernetes_start_the_same_server(deployment):
    [service] = yaml.safe_load(read("docker-compose.yml"))["services"].values()
    [container] = deployment["spec"]["containers"]
    assert container["image"] == service["image"]
    assert container["command"] + container["args"] == service["entrypoint"] + service["command"]


def test_files_that_are_read_are_in_a_folder_that_is_mounted(deployment):
    """A single file that is mounted stays the same when an editor replaces it, so that polling finds nothing new."""
    [service] = yaml.safe_load(read("docker-compose.yml"))["services"].values()
    sources = {target: SERVING / source for source, target, _ in (one.split(":") for one in service["volumes"])}
    files = [pathlib.PurePosixPath(option.split("=")[1]) for option in service["command"] if "file=" in option]
    assert len(files) == 3 and all((sources[str(file.parent)] / file.name).is_file() for file in files)
    [container] = deployment["spec"]["containers"]
    assert {str(file.parent) for file in files} <= {mount["mountPath"] for mount in container["volumeMounts"]}


def test_every_option_of_the_local_server_is_explained():
    import typer.main

    from export.serve import app

    options = {option for parameter in typer.main.get_command(app).params for option in parameter.opts}
    assert [option for option in options if option.startswith("--") and f"`{option}`" not in SERVER_PAGES] == []
    assert f"| `--queue-rows` | {ServerOptions().queue_rows} |" in SERVER_PAGE
    assert f"| `--request-rows` | {ServerOptions().request_rows} |" in SERVER_PAGE
