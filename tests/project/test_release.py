"""What the index shows of a release: metadata, and README.md with links that lead from there to the repository."""

import email
import re
import shutil
import subprocess
import sys
import tomllib

import pytest
import yaml
from packaging.specifiers import SpecifierSet

import keras_transformer as kt
from tests.support.places import ROOT
from tests.support.processes import python

pytestmark = pytest.mark.slow
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SOURCE = PROJECT["urls"]["Source"]
METADATA = "from setuptools.build_meta import prepare_metadata_for_build_wheel as write; print(write('.'))"


@pytest.fixture(scope="module")
def metadata(tmp_path_factory):
    """The file METADATA of a wheel, which holds the page of the index."""
    folder = tmp_path_factory.mktemp("metadata")
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    run = subprocess.run([sys.executable, "-c", METADATA], cwd=folder, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    return email.message_from_bytes((folder / run.stdout.split()[-1] / "METADATA").read_bytes())


def page_of(metadata):
    return metadata.get_payload(decode=True).decode("utf-8")


def test_the_version_is_that_of_the_newest_section_of_the_changelog(metadata):
    sections = re.findall(r"^## (\d.*)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert metadata["Version"] == kt.__version__ == PROJECT["version"] == sections[0]


def test_the_classifiers_name_each_python_that_is_allowed(metadata):
    named = {text.rpartition(" ")[2] for text in metadata.get_all("Classifier") if ":: Python :: 3." in text}
    allowed = SpecifierSet(metadata["Requires-Python"])
    assert named == {f"3.{minor}" for minor in range(30) if f"3.{minor}.0" in allowed}


def test_it_says_who_where_and_under_which_licence(metadata):
    assert metadata["License-Expression"] == "Apache-2.0" and metadata["License-File"] == "LICENSE"
    assert metadata["Author"] in (ROOT / "LICENSE").read_text(encoding="utf-8")
    assert {line.partition(",")[0] for line in metadata.get_all("Project-URL")} == set(PROJECT["urls"])
    assert not any(text.startswith("License ::") for text in metadata.get_all("Classifier"))  # the index refuses both


def test_every_link_of_the_page_leads_out_of_the_index_and_to_a_file(metadata):
    links = re.findall(r"""(?:\]\(|(?:href|src)=")([^)"\s]+)""", page_of(metadata))
    ours = [link for link in links if link.startswith(f"{SOURCE}/")]
    assert len(ours) > 50 and [link for link in links if not link.startswith(("https://", "#"))] == []
    kinds = {}
    for link in ours:
        kind, tag, path = link.removeprefix(f"{SOURCE}/").partition("#")[0].split("/", 2)
        assert tag == f"v{PROJECT['version']}" and (ROOT / path).exists(), link
        kinds.setdefault(kind, set()).add(path.rpartition(".")[2])
    assert kinds["raw"] <= {"png", "svg"} and not kinds["blob"] & {"png", "svg"}


def test_the_index_shows_the_picture_the_tables_and_every_link(metadata):
    """By its own renderer, which takes out what it does not allow."""
    pytest.importorskip("comrak", reason="pip install -r requirements-lint.txt")
    from readme_renderer import markdown

    shown, readme = markdown.render(page_of(metadata)), (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r'<img src="https://\S+\.png" width="\d+" alt="\w', shown)
    assert shown.count("<table") == len(re.findall(r"^\|[-|:]+\|$", readme, re.MULTILINE)) >= 2
    assert shown.count("<pre") == readme.count("```") // 2
    links = re.findall(r"""(?:\]\(|href=")([^)"\s]+)""", page_of(metadata))
    assert sorted(re.findall(r'<a href="(https:[^"]*)"', shown)) == sorted(links)


def test_nothing_else_of_the_page_differs_from_the_readme(metadata):
    relative = page_of(metadata)
    for kind in ("blob", "raw"):
        relative = relative.replace(f"{SOURCE}/{kind}/v{PROJECT['version']}/", "")
    assert relative.strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()


def test_every_address_is_derived_from_that_of_the_source():
    owner, name = SOURCE.removeprefix("https://github.com/").split("/")
    addresses = {f"{SOURCE}/blob/main/CHANGELOG.md", f"{SOURCE}/issues", f"https://{owner}.github.io/{name}/"}
    assert set(PROJECT["urls"].values()) == {SOURCE, *addresses}


def test_the_citation_is_valid_and_says_the_same():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert [citation[key] for key in ("version", "license", "repository-code")] == [
        *(PROJECT[key] for key in ("version", "license")),
        SOURCE,
    ]
    assert [author["name"] for author in citation["authors"]] == [author["name"] for author in PROJECT["authors"]]
    pytest.importorskip("check_jsonschema", reason="pip install -r requirements-lint.txt")
    check = python("-m", "check_jsonschema", "--builtin-schema", "vendor.citation-file-format", "CITATION.cff")
    assert check.returncode == 0, check.stdout + check.stderr


def test_what_security_says_of_tests_is_there():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert f"]({SOURCE}/security/advisories/new)" in page
    named = re.findall(r"`((?:tests|docs)/[\w/]+\.\w+)`", page)
    assert len(named) > 5 and [name for name in named if not (ROOT / name).exists()] == []
