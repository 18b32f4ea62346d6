"""The site of the documentation: it holds every page, builds without a warning, and loads nothing from elsewhere."""

import inspect
import json
import re

import keras
import pytest
import yaml

import keras_transformer as kt
from keras_transformer import inspection
from tests.support.places import ROOT
from tests.support.processes import python

DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NAVIGATION = CONFIG.partition("\nnav:\n")[2]
API = "".join(path.read_text(encoding="utf-8") for path in (DOCS / "api").glob("*.md"))


def test_every_page_of_the_manual_is_in_the_navigation():
    named = set(re.findall(r"[\w/.]+\.md", NAVIGATION))
    pages = {str(path.relative_to(DOCS)) for place in (".", "api", "ko") for path in (DOCS / place).glob("*.md")}
    assert pages <= named


def test_every_name_of_the_library_is_on_a_page_of_the_api():
    named = re.findall(r"^::: keras_transformer\.([\w.]+)$", API, re.MULTILINE)
    callbacks = {f"inspection.callbacks.{name}" for name in inspection.__all__}
    assert sorted(named) == sorted({f"{module}.{name}" for name, module in kt.MODULE_OF.items()} | callbacks)


OF_TENSORS = (keras.layers.Layer, keras.losses.Loss, keras.metrics.Metric)
MATHEMATICS = ("layers.", "masks", "losses", "model")  # modules whose functions take and return tensors


def takes_tensors(name):
    value = getattr(kt, name)
    if inspect.isclass(value):
        return issubclass(value, OF_TENSORS)
    return inspect.isfunction(value) and kt.MODULE_OF[name].startswith(MATHEMATICS)


@pytest.mark.parametrize("name", sorted(filter(takes_tensors, kt.MODULE_OF)))
def test_a_name_that_takes_tensors_has_their_shapes_on_its_page(name):
    assert re.search(r"\((B|1|\.\.\.), ?[\w ,]*\)", inspect.getdoc(getattr(kt, name))), name


def test_its_configuration_is_yaml_and_loads_no_font():
    config = yaml.safe_load(re.sub(r"!!python\S+", "", CONFIG))
    assert config["theme"]["font"] is False and config["use_directory_urls"] is False


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("material", reason="pip install -r requirements-docs.txt")
    folder = tmp_path_factory.mktemp("site")
    build = python("-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", folder, NO_MKDOCS_2_WARNING="1")
    assert (build.returncode, build.stdout, build.stderr) == (0, "", "")
    return folder


PAGES = ["index", "equations", "api/model", "ko/index", "repository/examples/paper.ipynb"]


@pytest.mark.release
def test_no_page_loads_anything_from_elsewhere(site):
    pages = list(site.rglob("*.html"))
    assert {f"{page}.html" for page in PAGES} <= {str(page.relative_to(site)) for page in pages}
    loaded = re.compile(r'<(?:script|img|iframe|source)[^>]*\bsrc="(https?:[^"]*)|<link[^>]*\bhref="(https?:[^"]*)')
    assert {page.name: found for page in pages if (found := loaded.findall(page.read_text(encoding="utf-8")))} == {}
    styles = [style.read_text(encoding="utf-8") for style in site.rglob("*.css")]
    assert not any(re.search(r"url\(.?https?:|@import", style) for style in styles)


@pytest.mark.release
def test_every_link_of_the_site_leads_to_a_file_and_a_heading(site):
    broken = []
    names = {}
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        names[page.resolve()] = set(re.findall(r'\bid="([^"]*)"', text))
    for page in names:
        if page.name == "404.html":
            continue
        for link in re.findall(r'<a[^>]*\bhref="(?!\w+:)([^"]*)"', page.read_text(encoding="utf-8")):
            file, _, anchor = link.partition("#")
            target = (page.parent / file.partition("?")[0]).resolve() if file else page
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (anchor and target in names and anchor not in names[target]):
                broken.append(f"{page.relative_to(site.resolve())}: {link}")
    assert broken == []


@pytest.mark.release
def test_a_search_finds_pages_of_the_manual_before_files_of_code(site):
    """In English and Korean; `boost` is a factor of a page's rank, 1 if it is left out."""
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    assert index["config"]["lang"] == ["en", "ko"]
    boosts = {entry["location"].partition("#")[0]: entry.get("boost", 1) for entry in index["docs"]}
    code = [boost for page, boost in boosts.items() if re.search(r"\.(py|toml|sh|ya?ml)\.html$", page)]
    assert len(code) > 20 and max(code) < 0.5
    manual = {f"{path.stem}.html" for path in DOCS.glob("*.md")}
    assert {page: boosts.get(page) for page in manual if boosts.get(page) != 1} == {}
