"""serving/training.yaml makes the cluster that docs/scaling.md says."""

import os
import re
import subprocess

import pytest
import yaml

from tests.support.places import ROOT
from train.config.run import load_config
from train.data.prepare import check_division
from train.workers.tf_config import ONLY_WORKER, Worker, read_cluster

MANIFEST = (ROOT / "serving" / "training.yaml").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def manifest():
    service, job = yaml.safe_load_all(MANIFEST)
    return service, job


def test_the_pods_of_the_job_have_names_in_the_service(manifest):
    service, job = manifest
    assert (service["kind"], job["kind"], job["spec"]["completionMode"]) == ("Service", "Job", "Indexed")
    assert service["spec"]["clusterIP"] == "None" and service["spec"]["selector"] == {
        "job-name": job["metadata"]["name"]
    }
    assert job["spec"]["template"]["spec"]["subdomain"] == service["metadata"]["name"]


def test_the_shell_of_a_pod_makes_its_tf_config(manifest):
    service, job = manifest
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (workers,) = [int(variable["value"]) for variable in container["env"] if variable["name"] == "WORKERS"]
    assert workers == job["spec"]["completions"] == job["spec"]["parallelism"]
    script = re.sub(r"exec python -m train .*", 'printf %s "$TF_CONFIG"', container["args"][0])
    for index in (0, workers - 1):
        environment = {"WORKERS": str(workers), "JOB_COMPLETION_INDEX": str(index), "PATH": os.environ["PATH"]}
        shell = subprocess.run(
            [*container["command"], script], env=environment, capture_output=True, text=True, check=True
        )
        cluster = read_cluster(shell.stdout)
        assert cluster.worker == Worker(index, workers)
        assert cluster.addresses[index] == f"transformer-{index}.{service['metadata']['name']}:2222"


def test_the_rows_of_its_configuration_can_be_divided_among_the_gpus_of_the_job(manifest):
    _, job = manifest
    (container,) = job["spec"]["template"]["spec"]["containers"]
    (name,) = re.findall(r"python -m train (configs/\S+)", container["args"][0])
    workers, gpus = job["spec"]["completions"], container["resources"]["limits"]["nvidia.com/gpu"]
    training = load_config(ROOT / name).training
    check_division(training, 1, workers * gpus, Worker(0, workers))  # raises ConfigError if they cannot
    for name in ("wmt14_base", "wmt14_big", "parsing_wsj"):
        for devices in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48):
            check_division(load_config(ROOT / f"configs/{name}.toml").training, 1, devices, ONLY_WORKER)
