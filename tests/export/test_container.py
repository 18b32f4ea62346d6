"""serving/Dockerfile and serving/local_server.yaml agree with the server, and give it only the rights that it needs."""

import json
import re
import shlex

import pytest
import typer.main
import yaml

from export.serve import app
from export.server.options import ServerOptions
from tests.support.places import ROOT

SERVING = ROOT / "serving"
DOCKERFILE = (SERVING / "Dockerfile").read_text(encoding="utf-8")
STEPS = [line for line in DOCKERFILE.replace("\\\n", " ").splitlines() if re.match("[A-Z]+ ", line)]
OPTIONS = {option: parameter for parameter in typer.main.get_command(app).params for option in parameter.opts}


def steps(name):
    return [line.split(None, 1)[1] for line in STEPS if line.startswith(name + " ")]


@pytest.fixture
def pod():
    deployment, service = yaml.safe_load_all((SERVING / "local_server.yaml").read_text(encoding="utf-8"))
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert deployment["spec"]["selector"]["matchLabels"] == service["spec"]["selector"] == labels
    return deployment["spec"]["template"]


@pytest.fixture
def container(pod):
    [container] = pod["spec"]["containers"]
    return container


def test_what_is_copied_exists_and_is_all_that_the_package_needs():
    copied = {name for step in steps("COPY") if "--from" not in step for name in shlex.split(step)[:-1]}
    assert all((ROOT / name).exists() for name in copied)
    assert {
        "keras_transformer",
        "train",
        "export",
        "cluster",
        "pyproject.toml",
        "setup.py",
        "README.md",
        "LICENSE",
    } <= copied


def test_every_option_is_one_of_the_command(container):
    assert json.loads(steps("ENTRYPOINT")[0]) == ["keras-transformer", "serve"]
    for arguments in (json.loads(steps("CMD")[0]), container["args"]):
        assert arguments[0] == "/models/mine" and "--host=0.0.0.0" in arguments
        assert {option.split("=")[0] for option in arguments[1:]} <= set(OPTIONS)


def test_the_container_has_no_rights_that_it_does_not_need(pod, container):
    """As the level "restricted" of Kubernetes' Pod Security Standards asks."""
    rights = pod["spec"]["securityContext"]
    assert rights["runAsNonRoot"] is True and f"{rights['runAsUser']}:{rights['runAsGroup']}" == steps("USER")[0]
    assert rights["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    writable = {mount["mountPath"] for mount in container["volumeMounts"] if not mount.get("readOnly")}
    assert writable == {"/tmp"}
    [temporary] = [volume for volume in pod["spec"]["volumes"] if volume["name"] == "temporary"]
    assert temporary["emptyDir"] == {}


def test_probes_ask_what_needs_no_key_at_the_ports_of_the_server(container):
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert (ports["rest"], ports["grpc"]) == (ServerOptions().port, ServerOptions().grpc_port)
    assert {f"--port={ports['rest']}", f"--grpc-port={ports['grpc']}"} <= set(container["args"])
    assert {str(port) for port in ports.values()} == set(steps("EXPOSE")[0].split())
    assert container["startupProbe"]["httpGet"] == {"path": "/v1/models/mine", "port": "rest"}
    for probe in ("readinessProbe", "livenessProbe"):  # a port that is open says nothing of who stands still behind it
        assert container[probe]["grpc"] == {"port": ports["grpc"]}
    [health] = steps("HEALTHCHECK")
    module, url = json.loads(health.partition("CMD ")[2])[2:]
    assert module == "keras_transformer.export.probe" and (ROOT / "export" / "probe.py").exists()
    assert url == f"http://127.0.0.1:{ports['rest']}/v1/models/mine"


def test_what_is_in_flight_is_answered_before_the_server_is_killed(pod, container):
    seconds = {
        name: float(value)
        for name, _, value in (one[2:].partition("=") for one in container["args"])
        if value.isdigit()
    }
    asleep = int(container["lifecycle"]["preStop"]["exec"]["command"][1])
    assert seconds["deadline"] <= seconds["drain-seconds"] <= pod["spec"]["terminationGracePeriodSeconds"] - asleep


def test_the_keys_are_in_a_folder_that_is_mounted(pod, container):
    [keys] = [one.partition("=")[2] for one in container["args"] if one.startswith("--api-key-file")]
    assert keys.rpartition("/")[0] in {
        mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")
    }
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in pod["spec"]["volumes"]
    }
