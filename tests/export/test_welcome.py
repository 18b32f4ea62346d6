"""The page that a local server shows at `/`, in a browser: what it shows and sends is what the REST API answers."""

import contextlib
import io
import json
import shlex
import shutil
import subprocess
import urllib.parse

import numpy as np
import pytest
import requests

from export.graph.request import inputs_of
from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.signature import Signature
from export.server.welcome import page_data, welcome
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.runs.versions import CERTIFICATE
from keras_transformer.search.options import OPTIONS as TABLE
from keras_transformer.search.options import SearchOptions
from tests.support.browser import DESK, PHONE, SCHEMES, data_in, violations, visit
from tests.support.exports import OPTIONS
from tests.support.runs import SENTENCES
from tests.support.searches import OTHER_VALUES

CHANGES = {name: OTHER_VALUES[name] for name in OTHER_VALUES if not TABLE[name].not_served}
CHANGES |= {
    "target_prefix": "der Küche",
    "required": "zwei\nHunde",
    "forbidden": "drei",
    "protect": "numbers,urls",
    "keep": "two",
    "glossary": "two\tzwo",
}
NEEDED = {name: {"temperature": 0.5} for name in ("top_k", "top_p")}  # without which the graph refuses it
QUOTED = """It's "forty\\-one" $HOME `dogs` & Männer; \u2028 {{ data }} </script>"""
SERVER = ServerOptions(port=0, grpc_port=0, workers=1)


def signature_of(options):
    defaults = {one.name: np.array([one.default], one.dtype.as_numpy_dtype) for one in options}
    return Signature("translate", {}, {}, defaults)


def test_bounds_and_defaults_are_those_of_the_export():
    options = inputs_of(SearchOptions(beam_size=6, length_penalty=0.7), 99)
    data = page_data("mine", {"translate": signature_of(options)})
    found = {one["name"]: (one["default"], one["lowest"], one["highest"], one["is_whole"]) for one in data["options"]}
    assert found == {one.name: (one.default, one.lowest, one.highest, one.dtype.is_integer) for one in options}
    assert {one["name"]: one["help"] for one in data["options"]} == {one.name: one.help for one in options}
    assert json.loads(json.dumps(data)) == data and data["has_explain"] is False


def test_options_that_an_export_has_not_are_not_offered():
    options = [one for one in inputs_of(SearchOptions(), 99) if one.name not in ("seed", "top_k")]
    found = page_data("mine", {"translate": signature_of(options), "explain": signature_of([])})
    assert {one["name"] for one in found["options"]} == {one.name for one in options} and found["has_explain"]
    assert page_data("mine", {"serving_default": signature_of(options)}) is None


def test_the_page_needs_the_options_from_which_all_bounds_follow_and_no_other():
    options = {one.name: one for one in inputs_of(SearchOptions(), 99)}
    beam_size, longest = options["beam_size"], options["max_length"]
    assert page_data("mine", {"translate": signature_of([beam_size, longest])})["options"]
    for too_few in ([], [beam_size], [longest], [options["seed"], longest]):
        assert page_data("mine", {"translate": signature_of(too_few)}) is None


def test_the_page_lets_choose_among_languages_if_a_request_may_name_them():
    text = np.array([b""], object)
    inputs = signature_of(inputs_of(SearchOptions(), 99))
    named = inputs._replace(defaults=inputs.defaults | {"source_language": text, "target_language": text})
    languages = Languages({"en": "", "fr": ""}, {"de": "<2de>", "fr": "<2fr>"}, "target", default_target="fr")
    found = page_data("mine", {"translate": named}, languages=languages)["options"]
    menus = {one["name"]: (one["choices"], one["default"], one["initial"]) for one in found if "choices" in one}
    assert menus == {"source_language": (["", "en", "fr"], "", ""), "target_language": (["de", "fr"], "fr", "fr")}
    for signature, of in ((named, Languages({"en": ""}, {"de": ""})), (inputs, languages)):
        assert not any("choices" in one for one in page_data("mine", {"translate": signature}, languages=of)["options"])


TAGS = {"de": "<2de>", "fr": "<2fr>", "de-AT": "<2de>A"}  # of which one begins as another does
TOLD = Languages({"en": "", "fr": ""}, TAGS, "target")


@pytest.mark.parametrize(
    ("example", "languages", "shown", "initial"),
    [
        ("<2de>zero", TOLD, "zero", "de"),
        ("<2fr> zero", TOLD, "zero", "fr"),
        ("<2de>Azero", TOLD, "zero", "de-AT"),
        ("zero <2de>", TOLD, "zero <2de>", ""),
        ("<2it>zero", TOLD, "<2it>zero", ""),
        ("<2de>zero", TOLD._replace(default_target="fr"), "zero", "fr"),
        ("<2de>zero", Languages({"en": ""}, {"de": "", "fr": ""}), "<2de>zero", ""),
        ("", TOLD, "", ""),
    ],
)
def test_the_example_has_no_tag_beside_a_menu_which_begins_with_its_language(example, languages, shown, initial):
    text = np.array([b""], object)
    inputs = signature_of(inputs_of(SearchOptions(), 99))
    named = inputs._replace(defaults=inputs.defaults | {"source_language": text, "target_language": text})
    data = page_data("mine", {"translate": named}, example, languages=languages)
    [found] = (one["initial"] for one in data["options"] if one["name"] == "target_language")
    assert (data["example"], found) == (shown, initial)
    assert page_data("mine", {"translate": inputs}, example, languages=languages)["example"] == example


def test_it_is_not_kept_and_may_do_nothing_but_ask_its_server():
    signatures = {"translate": signature_of(inputs_of(SearchOptions(), 99))}
    answer = welcome("a model", "http://localhost:1", signatures, QUOTED, ["a model", "other"])
    assert answer.status_code == 200 and answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ") and policy.endswith("; frame-ancestors 'none'")
    assert "connect-src 'self'" in policy and "unsafe" not in policy
    named = {name: answer.headers[name] for name in ("cache-control", "referrer-policy", "x-content-type-options")}
    assert [*named.values(), answer.headers["x-frame-options"]] == ["no-store", "no-referrer", "nosniff", "DENY"]
    assert data_in(answer.body.decode()) == page_data("a model", signatures, QUOTED, ["a model", "other"])


@pytest.mark.parametrize(("example", "text"), [("", "Hello!"), ("It's two dogs.", "It's two dogs.")])
def test_the_line_for_a_shell_asks_with_the_example_of_the_version(example, text):
    line = welcome("a model", "http://localhost:1", {}, example).body.decode()
    command, option, body, url = shlex.split(line)
    assert (command, option, url) == ("curl", "-d", "http://localhost:1/v1/models/a%20model:predict")
    assert json.loads(body) == {"instances": [{"text": text}]} and line.endswith("\n")


@pytest.fixture(scope="module")
def served(whole_version, tmp_path_factory):
    """A served model with random weights."""
    folder = tmp_path_factory.mktemp("served")
    shutil.copytree(whole_version, folder / "a model" / "1")
    certificate = json.dumps({"example": SENTENCES[0]})
    (folder / "a model" / "1" / CERTIFICATE).write_text(certificate, encoding="utf-8")
    with local_server(folder / "a model", SERVER) as server:
        yield server


def home(served):
    return f"http://{served.host}:{served.port}/"


@pytest.mark.nightly
def test_the_example_is_the_sentence_of_the_certificate(served):
    assert data_in(requests.get(home(served)).text)["example"] == SENTENCES[0]


def predict(served, text, signature="translate", **options):
    body = {"signature_name": signature, "instances": [{"text": text, **options}]}
    url = f"http://{served.host}:{served.port}/v1/models/{urllib.parse.quote(served.name)}:predict"
    return requests.post(url, json=body).json()


@pytest.fixture
def opened(browser, served):
    with visit(browser, home(served)) as opened:
        yield opened


def type_in(opened, text):
    """Type a text, and wait until everything that follows from it is drawn."""
    opened.fill("#sentence", text)
    opened.locator("#beam-tree .node").first.wait_for()


def test_typing_shows_the_translations_of_the_api_best_first(opened, served):
    assert opened.evaluate("document.activeElement.id") == "sentence"
    type_in(opened, SENTENCES[0])
    [row] = predict(served, SENTENCES[0], n_best=OPTIONS.beam_size)["predictions"]
    count = sum(score > -1e8 for score in row["scores"])
    assert opened.locator("#translation").inner_text() == row["translations"][0].strip()
    texts = [
        text.strip() + (" cut at its limit" if is_cut else "")
        for text, is_cut in zip(row["translations"][:count], row["is_cut"], strict=False)
    ]
    assert opened.locator(".alternative .text").all_inner_texts() == texts and count > 1
    scores = [text.split()[-1] for text in opened.locator(".alternative .text + .number").all_inner_texts()]
    assert scores == [f"{score:.2f}".replace("-", "\u2212") for score in row["scores"][:count]]
    assert row["scores"][:count] == sorted(row["scores"][:count], reverse=True)
    opened.locator(".alternative").nth(1).click()
    percents = opened.locator(".token small").all_inner_texts()
    assert len(percents) == len(row["pieces"][1].split(" "))


def test_attention_and_beam_are_those_of_the_api(opened, served):
    type_in(opened, SENTENCES[1])
    [row] = predict(served, SENTENCES[1], "explain", n_best=OPTIONS.beam_size)["predictions"]
    rows, columns = (len(row[name].split(" ")) for name in ("pieces", "source_pieces"))
    weights = np.array(row["memory_attention"].split(" "), float).reshape(3, row["heads"], rows, columns)
    for layer, head in ((0, 0), (2, 3)):
        opened.select_option("#attention-layer", str(layer))
        opened.select_option("#attention-head", str(head))
        cells = opened.locator(".heat td[aria-label]").evaluate_all("all => all.map(one => one.ariaLabel)")
        assert [cell.split(": ")[1] for cell in cells] == [f"{weight:.3f}" for weight in weights[layer, head].flat]
    opened.select_option("#attention-kind", "encoder")
    assert opened.locator("#attention-layer option").count() == 2
    opened.select_option("#beam-dropped", "Infinity")
    slots = [int(slot) for slot in row["beam_slots"].split(" ")]
    assert opened.locator("#beam-tree .node.dropped").count() == slots.count(-1)
    assert opened.locator("#beam-tree .node").count() == len(slots)
    assert opened.locator("#beam-tree .node.best").count() == rows


def test_every_option_arrives(opened, served):
    type_in(opened, SENTENCES[2])
    opened.locator("summary").click()
    names = opened.locator("#controls [name]").evaluate_all("all => all.map(one => one.name)")
    assert sorted(names) == sorted(CHANGES)
    for name, value in CHANGES.items():
        changes = NEEDED.get(name, {}) | {name: value}
        for changed, to in changes.items():
            with opened.expect_response(lambda response: is_translation(response)) as answered:
                opened.fill(f"#option-{changed}", str(to))
        [instance] = answered.value.request.post_data_json["instances"]
        assert instance == {"text": SENTENCES[2], "n_best": min(4, changes.get("beam_size", 4)), **changes}
        assert answered.value.ok
        with opened.expect_response(lambda response: is_translation(response)):
            opened.click("#reset")


def is_translation(response):
    return response.request.method == "POST" and response.request.post_data_json["signature_name"] == "translate"


def test_what_the_graph_refuses_is_shown_as_its_sentence(opened, served):
    type_in(opened, SENTENCES[0])
    opened.locator("summary").click()
    opened.fill("#option-beam_size", "9")
    opened.locator("#error:not(:empty)").wait_for()
    error = predict(served, SENTENCES[0], beam_size=9, n_best=4)["error"]
    assert opened.locator("#error").inner_text() == error and "beam_size must be from 1 to 4." in error
    opened.click("#reset")
    opened.locator("#error").wait_for(state="hidden")


def test_the_lines_for_curl_and_python_ask_the_same(opened, served):
    opened.fill("#sentence", QUOTED)
    opened.locator("summary").click()
    opened.fill("#option-target_prefix", 'd\'er "Küche"')
    asked = {"n_best": 4, "target_prefix": 'd\'er "Küche"', "paragraphs": True}  # U+2028 parts sentences
    [row] = predict(served, QUOTED, **asked)["predictions"]
    curl = subprocess.run(["sh", "-c", opened.locator("#curl").inner_text()], capture_output=True, check=True)
    [found] = json.loads(curl.stdout)["predictions"]
    assert found["translations"] == row["translations"]
    assert found["scores"] == pytest.approx(row["scores"], rel=1e-4)  # other requests in its batch change the rounding
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(opened.locator("#python").inner_text(), {})
    assert printed.getvalue() == row["translations"][0] + "\n"


def test_it_asks_no_other_host_and_could_not(opened, served):
    type_in(opened, SENTENCES[0])
    assert {address for address in opened.requested if not address.startswith((home(served), "data:"))} == set()
    blocked = """url => new Promise(resolve => {
        document.addEventListener("securitypolicyviolation", event => resolve(event.effectiveDirective));
        fetch(url).catch(() => {});
    })"""
    assert opened.evaluate(blocked, "http://127.0.0.1:9/") == "connect-src"
    opened.wait_for_timeout(100)
    opened.errors.clear()


def test_html_and_blank_lines_are_text(opened):
    type_in(opened, "<img src=x onerror=document.title='broken'>")
    assert opened.locator("img").count() == 0 and "broken" not in opened.title()
    opened.fill("#sentence", "  ")
    opened.locator("#results").wait_for(state="hidden")
    assert opened.locator("#translation").inner_text() == ""


@pytest.mark.parametrize(("scheme", "size"), [*zip(SCHEMES, [DESK, PHONE], strict=True)], ids=SCHEMES)
def test_axe_finds_nothing_and_only_boxes_scroll_sideways(browser, served, scheme, size):
    with visit(browser, home(served), viewport=size, color_scheme=scheme) as opened:
        assert violations(opened) == []
        type_in(opened, SENTENCES[0])
        opened.locator("summary").click()
        opened.wait_for_timeout(500)  # what is new has faded in
        assert violations(opened) == []
        assert opened.evaluate("document.documentElement.scrollWidth") <= size["width"]
