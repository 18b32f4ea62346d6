"""serving/spark.yaml is what Kubernetes, Spark and this program take, and its parts agree. No cluster is needed."""

import json
import re
import shlex

import pytest
import yaml

from tests.support.commands import parse
from tests.support.places import ROOT

FILE = ROOT / "serving" / "spark.yaml"
OBJECTS = {each["kind"]: each for each in yaml.safe_load_all(FILE.read_text(encoding="utf-8"))}
DATA = OBJECTS["ConfigMap"]["data"]
SETTINGS = dict(line.split() for line in DATA["spark.properties"].splitlines())
EXECUTOR = yaml.safe_load(DATA["executor.yaml"])
JOB = OBJECTS["Job"]["spec"]
(DRIVER,) = JOB["template"]["spec"]["containers"]


def pods():
    return JOB["template"]["spec"], EXECUTOR["spec"]


@pytest.mark.release
@pytest.mark.parametrize("version", ["1.31", "1.37"])
def test_the_published_schemas_of_kubernetes_accept_every_object_and_no_misspelt_one(version):
    jsonschema = pytest.importorskip("jsonschema", reason="make peers")
    schemas = json.loads((ROOT / f"tests/data/kubernetes/v{version}.json").read_text(encoding="utf-8"))

    def is_valid(each):
        schema = schemas | {"$ref": f"#/$defs/{each['kind']}"}
        return jsonschema.Draft202012Validator(schema).is_valid(each)

    server = yaml.safe_load_all((ROOT / "serving" / "kubernetes.yaml").read_text(encoding="utf-8"))
    for each in (*OBJECTS.values(), EXECUTOR, *server):
        assert is_valid(each) and not is_valid(each | {"metadatas": {}}), each["kind"]
        assert not is_valid(each | {"apiVersion": "v0"})
    template = JOB["template"]
    misspelt = OBJECTS["Job"] | {"spec": JOB | {"template": {"spec": template["spec"] | {"restartPolicies": "Never"}}}}
    assert not is_valid(misspelt)


def test_the_driver_is_a_command_of_this_program_whose_settings_spark_knows():
    program = DRIVER["args"].index("/config/program.py")
    compile(DATA["program.py"], "program.py", "exec")
    parsed = parse(shlex.join(["keras-transformer", *DRIVER["args"][program + 1 :]])).params
    assert str(parsed["export"]).startswith("/corpus/") and parsed["master"] is None  # spark-submit names it
    settings = [*SETTINGS, *re.findall(r"--conf=([\w.]+)=", " ".join(DRIVER["args"]))]
    assert len(settings) == len(set(settings)) and all(name.startswith("spark.") for name in settings)
    known = {option.partition("=")[0] for option in DRIVER["args"][:program]}
    assert known == {"--master", "--deploy-mode", "--properties-file", "--conf"}


def test_whatever_is_named_is_there():
    name = OBJECTS["ServiceAccount"]["metadata"]["name"]
    binding = OBJECTS["RoleBinding"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": name}]
    assert binding["roleRef"]["name"] == OBJECTS["Role"]["metadata"]["name"]
    assert JOB["template"]["spec"]["serviceAccountName"] == name
    files = [SETTINGS["spark.kubernetes.executor.podTemplateFile"], "/config/spark.properties", "/config/program.py"]
    assert {f"/config/{file}" for file in DATA} == set(files) and set(files[1:]) <= set(
        " ".join(DRIVER["args"]).replace("=", " ").split()
    )
    (executor,) = EXECUTOR["spec"]["containers"]
    assert executor["name"] == SETTINGS["spark.kubernetes.executor.podTemplateContainerName"]
    variables = {each["name"] for each in DRIVER["env"]}
    assert set(re.findall(r"\$\((\w+)\)", " ".join(DRIVER["args"]))) == variables
    for pod in pods():
        (container,) = pod["containers"]
        assert {mount["name"] for mount in container["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        claims = [each["persistentVolumeClaim"]["claimName"] for each in pod["volumes"] if "configMap" not in each]
        assert claims == [OBJECTS["PersistentVolumeClaim"]["metadata"]["name"]]
        assert {"name": "corpus", "mountPath": "/corpus"} in container["volumeMounts"]


def test_a_task_has_the_cores_and_the_memory_of_its_executor():
    assert SETTINGS["spark.task.cpus"] == SETTINGS["spark.executor.cores"]  # one copy of the model for each executor
    assert DRIVER["image"] == SETTINGS["spark.kubernetes.container.image"]
    limit = int(DRIVER["resources"]["limits"]["memory"].removesuffix("Gi"))
    assert limit >= 2 * int(SETTINGS["spark.driver.memory"].removesuffix("g"))  # Python is beside Java


def test_the_pods_have_no_rights_that_they_do_not_need():
    for pod in pods():
        assert pod["securityContext"]["runAsNonRoot"] is True and pod["securityContext"]["runAsUser"] > 0
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        (container,) = pod["containers"]
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    assert EXECUTOR["spec"]["automountServiceAccountToken"] is False  # only the driver asks for pods
    for rule in OBJECTS["Role"]["rules"]:
        assert "*" not in rule["resources"] + rule["verbs"] + rule["apiGroups"]


def test_a_pod_that_was_stopped_is_replaced_and_a_mistake_ends_the_job():
    rules = {rule["action"]: rule["onExitCodes"]["values"] for rule in JOB["podFailurePolicy"]["rules"][:2]}
    assert rules == {"FailJob": [1, 2], "Ignore": [75]} and JOB["template"]["spec"]["restartPolicy"] == "Never"
