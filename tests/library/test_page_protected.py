"""The page with protected spans, terms and phrases: it explains no other translation than it shows."""

import pytest

from keras_transformer.page import page
from tests.support.browser import visit
from tests.support.explanations import DATA, OPTIONS, explanation, rows_of

HOST = "http://page.test"  # no such server: every request is answered by a test
TEXTS = [{"name": name, "default": "", "help": "", "group": "Text"} for name in ("protect", "forbidden")]
REQUIRED = {"name": "required", "default": "", "help": "", "group": "Output", "placeholder": "Hund"}
PAGE = page(DATA | {"options": [*OPTIONS, REQUIRED, *TEXTS], "has_paragraphs": True})


@pytest.fixture
def served(browser):
    """A page with a server that answers `explanation()`, whose `row` of `translate` a test may change."""
    row, reasons = rows_of(explanation())
    with visit(browser, "about:blank") as opened:
        opened.row, opened.asked = row, []

        def predict(route):
            opened.asked.append(route.request.post_data_json)
            is_why = opened.asked[-1]["signature_name"] == "explain"
            route.fulfill(json={"predictions": [reasons if is_why else opened.row]})

        opened.route(f"{HOST}/", lambda route: route.fulfill(content_type="text/html", body=PAGE))
        opened.route("**/*:predict", predict)
        opened.goto(HOST)
        opened.locator("summary").click()
        yield opened


@pytest.mark.parametrize("option", ["protect", "forbidden"])
def test_attention_and_beam_of_another_text_are_not_shown_and_the_page_says_why(served, option):
    served.fill("#sentence", "A dog runs")
    served.locator("#beam-tree .node").first.wait_for()
    assert not served.locator("#not-explained").is_visible()
    served.row = served.row | {"pieces": ["▁Ein </s>", "▁Der </s>", ""]}  # of another text than `explain` has read
    served.asked.clear()
    served.fill(f"#option-{option}", "tags")
    served.locator("#not-explained").wait_for()
    assert not any(served.locator(f"#{name}").is_visible() for name in ("attention", "beam", "awaited", "in-part"))
    assert option in served.locator("#not-explained").inner_text()
    served.fill(f"#option-{option}", "")
    served.locator("#beam-tree .node").first.wait_for()
    assert [body["signature_name"] for body in served.asked] == ["translate", "translate", "explain"]
    assert not served.locator("#not-explained").is_visible() and served.locator("#in-part").is_visible()


@pytest.mark.parametrize(
    ("output", "of_best", "words"),
    [
        ("is_cut", True, "cut at its limit: its end may be missing"),
        ("is_forced", True, "the required phrases do not fit: it may make no sense"),
        ("unplaced", "<b>\n{x}", "without <b>, {x}, which has no place"),
        ("remaining", "Hund", "with Hund, though forbidden"),
    ],
)
def test_what_is_wrong_with_the_best_translation_stands_below_it(served, output, of_best, words):
    served.row = served.row | {output: [of_best, type(of_best)(), type(of_best)()]}
    served.fill("#sentence", "A dog runs")
    served.locator("#beam-tree .node").first.wait_for()
    assert f" \u00b7 {words} \u00b7 " in served.locator("#answer-note").inner_text()
    assert served.locator(".marks").count() == 1 + (of_best is True)  # beside that of the second one


def test_required_phrases_of_several_lines_are_refused_in_a_sentence(served):
    served.fill("#option-required", "Hund")
    served.fill("#sentence", "A dog runs.")
    served.locator(".alternative").first.wait_for()
    served.locator("#beam-tree .node").first.wait_for()
    served.asked.clear()
    served.fill("#sentence", "A dog runs.\nA cat.")
    served.locator("#error:not(:empty)").wait_for()
    assert "required is for one sentence" in served.locator("#error").inner_text()
    assert served.asked == [] and served.locator("#translation").inner_text() == ""
    assert not served.locator("#results").is_visible()
    served.fill("#option-required", "")
    served.locator("#error").wait_for(state="hidden")
