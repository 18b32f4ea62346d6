"""The workflows of .github/ call the Makefile, pin what they run, and may do no more than they need.

GitHub runs them, not a test: here is what their text shows. `make lint` adds zizmor, `make actionlint` actionlint.
"""

import re
import subprocess
import tomllib

import pytest
import yaml

from tests.support.places import ROOT
from tests.support.processes import python

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PATHS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in PATHS}
WORKFLOWS = {name: yaml.safe_load(text) for name, text in TEXTS.items()}
JOBS = [(name, job) for name, workflow in WORKFLOWS.items() for job in workflow["jobs"].values()]
STEPS = [step for _, job in JOBS for step in job["steps"]]
SCHEMAS = {
    "github-workflows": [f".github/workflows/{name}" for name in TEXTS],
    "github-issue-forms": [f".github/ISSUE_TEMPLATE/{name}.yml" for name in ("bug", "feature", "question")],
    "github-issue-config": [".github/ISSUE_TEMPLATE/config.yml"],
    "dependabot": [".github/dependabot.yml"],
}


@pytest.mark.slow
@pytest.mark.parametrize("schema", SCHEMAS)
def test_each_file_is_as_its_reader_wants_it(schema):
    pytest.importorskip("check_jsonschema", reason="pip install -r requirements-lint.txt")
    check = python("-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", *SCHEMAS[schema])
    assert check.returncode == 0, check.stdout + check.stderr


def test_an_action_is_named_by_the_hash_of_one_version():
    lines = [line for text in TEXTS.values() for line in text.splitlines() if "uses:" in line]
    pins = [re.fullmatch(r" *-? *uses: ([\w/-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)", line) for line in lines]
    assert [line for line, pin in zip(lines, pins, strict=True) if pin is None] == []
    versions = {pin.groups() for pin in pins}
    assert len(versions) == len({action for action, _, _ in versions}) > 5


def test_every_make_that_they_call_is_in_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    called = {step["run"].split()[1] for step in STEPS if step.get("run", "").startswith("make ")}
    assert {"check", "test-all", "lint", "docs", "dist", "image"} <= called
    assert [target for target in called if not re.search(rf"^{target}:", makefile, re.MULTILINE)] == []


def test_what_make_does_is_not_repeated():
    commands = "\n".join(step["run"] for step in STEPS if not step.get("run", "make ").startswith("make "))
    assert not re.search(r"\b(pip|python|pytest|ruff|mypy|mkdocs|twine)\b|docker build", commands)


def test_a_job_may_write_only_what_a_release_or_the_site_needs():
    assert all(workflow["permissions"] == {} for workflow in WORKFLOWS.values())
    assert all("timeout-minutes" in job for _, job in JOBS)
    writes = {(name, key) for name, job in JOBS for key, may in job["permissions"].items() if may != "read"}
    of_release = {("release.yml", key) for key in ("id-token", "attestations", "packages")}
    assert writes == of_release | {("docs.yml", "pages"), ("docs.yml", "id-token")}
    checkouts = [step for step in STEPS if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts and all(step["with"]["persist-credentials"] is False for step in checkouts)
    assert "secrets." not in "".join(TEXTS.values()) and "pull_request_target" not in "".join(TEXTS.values())


def test_each_python_of_the_classifiers_is_checked():
    named = [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if ":: Python :: 3." in text]
    assert WORKFLOWS["check.yml"]["jobs"]["tests"]["strategy"]["matrix"]["python"] == named
    for _, job in JOBS:
        others = {step["with"]["python-version"] for step in job["steps"] if "python-version" in step.get("with", {})}
        without_tensorflow = [step["run"] for step in job["steps"] if "run" in step] == ["make check-try"]
        assert without_tensorflow or others <= {*named, "${{ matrix.python }}"}


@pytest.mark.parametrize("target", ["install", ".try/installed"])
def test_make_takes_the_pythons_that_are_checked_and_no_later_one(target, tmp_path):
    makes = {"install": "make check", ".try/installed": "make check-try"}
    jobs = [job for _, job in JOBS if {"run": makes[target]} in job["steps"] and "windows" not in job["runs-on"]]
    checked = {step["with"].get("python-version") for job in jobs for step in job["steps"] if "with" in step}
    checked |= {python for job in jobs for python in job.get("strategy", {}).get("matrix", {}).get("python", [])}
    newest = max(int(python.partition(".")[2]) for python in checked - {None, "${{ matrix.python }}"})
    command = ["make", "-nB", target, f"VENV={tmp_path}"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert f"(3, 11) <= v <= (3, {newest}) else" in printed


def test_the_names_in_them_are_those_of_the_project():
    assert WORKFLOWS["release.yml"]["jobs"]["publish"]["environment"]["url"].rstrip("/").endswith(f"/{PROJECT['name']}")
    (link,) = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/config.yml").read_text("utf-8"))["contact_links"]
    assert link["url"] == f"{PROJECT['urls']['Source']}/security/policy"
