"""The page of a model of several languages: two menus, and what is chosen in them is asked for."""

import pytest

from keras_transformer.page import page
from tests.support.browser import PHONE, violations, visit
from tests.support.explanations import DATA, OPTIONS, explanation, rows_of

HOST = "http://page.test"  # no such server: every request is answered by a test
GROUP = {"help": "", "group": "Languages"}
MENUS = [
    GROUP | {"name": "source_language", "default": "", "initial": "", "choices": ["", "en", "fra", "ab"]},
    GROUP | {"name": "target_language", "default": "", "initial": "deu_Latn", "choices": ["", "deu_Latn", "x_1"]},
]


@pytest.fixture
def served(browser):
    """The page with a server that answers whatever is asked."""
    row, reasons = rows_of(explanation())
    with visit(browser, "about:blank", viewport=PHONE) as opened:
        opened.asked = []

        def predict(route):
            opened.asked.append(route.request.post_data_json)
            is_why = opened.asked[-1]["signature_name"] == "explain"
            route.fulfill(json={"predictions": [reasons if is_why else row]})

        body = page(DATA | {"options": [*OPTIONS, *MENUS]})
        opened.route(f"{HOST}/", lambda route: route.fulfill(content_type="text/html", body=body))
        opened.route("**/*:predict", predict)
        opened.goto(HOST)
        yield opened


def test_menus_have_the_names_of_languages_and_what_is_chosen_is_asked_for(served):
    source, target = (served.locator(f"#option-{side}_language") for side in ("source", "target"))
    assert source.locator("option").all_inner_texts() == ["any", "Abkhazian", "English", "French"]
    assert target.locator("option").all_inner_texts() == ["as the text says", "German (Latin)", "x_1"]
    assert target.input_value() == "deu_Latn" and not violations(served)
    served.fill("#sentence", "A dog runs")
    served.locator("#beam-tree .node").first.wait_for()
    for [instance] in (body["instances"] for body in served.asked):
        assert instance["target_language"] == "deu_Latn" and "source_language" not in instance
    served.asked.clear()
    source.select_option("fra")
    target.select_option("x_1")
    served.wait_for_function("document.querySelector('#curl').textContent.includes('x_1')")
    served.locator("#beam-tree .node").first.wait_for()
    served.wait_for_timeout(600)
    assert served.asked and all(
        body["instances"][0]["source_language"] == "fra" and body["instances"][0]["target_language"] == "x_1"
        for body in served.asked[-2:]
    )


def test_a_request_shows_the_languages_and_reset_leaves_them(served):
    for place, written in (("#curl", '"target_language":"deu_Latn"'), ("#python", '"target_language": "deu_Latn"')):
        assert written in served.locator(place).inner_text()
    served.locator("#option-source_language").select_option("fra")
    assert served.locator("#changed").inner_text() == "" and served.locator("#reset").is_disabled()
    served.locator("summary").click()
    served.fill("#option-beam_size", "2")
    served.locator("#reset").click()
    assert served.locator("#option-source_language").input_value() == "fra"
    assert '"source_language":"fra"' in served.locator("#curl").inner_text()
    served.locator("#option-target_language").select_option("")
    served.wait_for_function("!document.querySelector('#curl').textContent.includes('target_language')")


def test_a_model_of_one_pair_has_no_menus(browser):
    with visit(browser, "about:blank") as opened:
        body = page(DATA | {"options": OPTIONS})
        opened.route(f"{HOST}/", lambda route: route.fulfill(content_type="text/html", body=body))
        opened.goto(HOST)
        assert not opened.locator("#languages").is_visible()
