"""The page as a file, and with a server that is made up: what is drawn is what the data say."""

import math

import pytest

from keras_transformer.page import content_security_policy, page
from tests.support.browser import DESK, PHONE, SCHEMES, data_in, violations, visit
from tests.support.explanations import DATA, TARGET, explanation, rows_of, written

HOST = "http://page.test"  # no such server: every request is answered by a test


def test_data_arrive_as_they_were_and_cannot_end_their_script():
    wild = "</script><script>alert(1)</script><!--\u2028\u2029{{ script }} \ud800 ü \\ \" '"
    html = page(DATA | {"explanation": explanation(source=wild)})
    assert data_in(html) == DATA | {"explanation": explanation(source=wild)}
    assert html.count("<script") == html.count("</script>") == 2
    assert not {"\u2028", "\u2029"} & set(html.split('id="page-data">')[1].split("</script>")[0])


def test_no_number_that_json_has_not():
    with pytest.raises(ValueError, match="JSON"):
        page(DATA | {"model": math.nan})


def test_only_its_own_script_runs_and_a_file_asks_nobody():
    assert "connect-src 'self'" in content_security_policy(DATA)
    policy = content_security_policy(DATA | {"explanation": explanation()})
    assert "connect-src 'none'" in policy and policy.startswith("default-src 'none'") and "unsafe" not in policy


@pytest.fixture
def file(browser, tmp_path):
    """A page of `explanation()`, opened as a file."""
    with visit(browser, written(tmp_path, explanation())) as opened:
        yield opened


def spoken(pieces):
    """Return pieces as they are written on the page."""
    return [piece.replace("</s>", "end").removeprefix("▁") for piece in pieces]


def drawn(opened):
    """All text that is drawn, and every name that a screen reader reads."""
    names = opened.locator("#results [aria-label]").evaluate_all("all => all.map(one => one.ariaLabel)")
    return opened.locator("#translation").inner_text(), opened.locator("#results").inner_text(), names


def test_a_file_shows_everything_and_asks_for_nothing(file):
    assert file.locator("#asked").inner_text() == "A dog runs"
    assert file.locator("#translation").inner_text() == "Ein Hund läuft"
    assert not file.locator("#sentence").is_visible() and not file.locator("#programs").is_visible()
    assert file.locator("#attention").is_visible() and file.locator("#beam").is_visible()
    file.locator("summary").click()
    assert file.locator("dl dt").all_inner_texts() == ["beam size", "length penalty", "target prefix"]
    assert file.locator("dl dd").all_inner_texts() == ["2", "0.6", "none"]
    assert [address for address in file.requested if not address.startswith(("file:", "data:"))] == []
    assert len([address for address in file.requested if address.startswith("file:")]) == 1


def test_tokens_show_their_probabilities_at_once_and_exactly_on_demand(file):
    tokens = file.locator(".token")
    found = zip(TARGET, [-0.1, -0.2, -0.296, -0.004], ["90%", "82%", "74%", ">99%"], strict=True)
    for number, (piece, log, shown) in enumerate(found):
        assert tokens.nth(number).inner_text().split() == [*spoken([piece]), shown]
        tokens.nth(number).hover()
        by_pointer = file.locator("#tokens-readout").inner_text()
        file.locator("h1").hover()
        tokens.nth(number).focus()
        assert file.locator("#tokens-readout").inner_text() == by_pointer
        assert f"{math.exp(log):.4f}" in by_pointer and f"{log:.3f}".replace("-", "\u2212") in by_pointer
    file.keyboard.press("Home")
    file.keyboard.press("ArrowRight")
    assert "Hund" in file.locator("#tokens-readout").inner_text()


def test_html_is_shown_as_text(browser, tmp_path):
    html = "<img src=x onerror=document.title='broken'><b>bold</b>"
    with visit(browser, written(tmp_path, explanation(html, html))) as opened:
        assert opened.locator("#asked").inner_text() == html == opened.locator("#translation").inner_text()
        assert opened.locator("img, #results .text b").count() == 0 and "broken" not in opened.title()


@pytest.fixture
def served(browser):
    """A page with a server that answers `explanation()`; `asked` are the bodies that it got."""
    answers = dict(zip(("translate", "explain"), rows_of(explanation()), strict=True))
    with visit(browser, "about:blank") as opened:
        opened.asked = []

        def predict(route):
            opened.asked.append(route.request.post_data_json)
            route.fulfill(json={"predictions": [answers[opened.asked[-1]["signature_name"]]]})

        opened.route(f"{HOST}/", lambda route: route.fulfill(content_type="text/html", body=page(DATA)))
        opened.route("**/*:predict", predict)
        opened.goto(HOST)
        yield opened


def test_what_the_server_answers_is_drawn_as_the_same_in_a_file(served, file):
    served.fill("#sentence", "A dog runs")
    served.locator("#beam-tree .node").first.wait_for()
    assert drawn(served) == drawn(file)
    assert [body["signature_name"] for body in served.asked] == ["translate", "explain"]
    assert [body["instances"] for body in served.asked] == [[{"text": "A dog runs", "n_best": 3}]] * 2


def test_only_what_was_typed_last_is_shown(served):
    late = []

    def first_answer_waits(route):
        is_first = route.request.post_data_json["instances"][0]["text"] == "first"
        late.append(route) if is_first else route.fallback()

    served.route("**/*:predict", first_answer_waits)
    with served.expect_event("requestfailed"):  # it is given up
        served.fill("#sentence", "first")
        served.wait_for_timeout(600)
        served.fill("#sentence", "second")
        served.locator("#beam-tree .node").first.wait_for()
    assert len(late) == 1
    assert served.locator("#translation").inner_text() == "Ein Hund läuft"


def test_reasons_that_the_server_refuses_leave_the_translation(served):
    served.fill("#sentence", "A dog runs")
    served.locator("#beam-tree .node").first.wait_for()

    def refuse(route):
        is_why = route.request.post_data_json["signature_name"] == "explain"
        route.fulfill(status=503, json={"error": "Too many ask."}) if is_why else route.fallback()

    served.route("**/*:predict", refuse)
    served.fill("#sentence", "A dog")
    served.locator("#error:not(:empty)").wait_for()
    assert served.locator("#error").inner_text() == "Too many ask."
    assert served.locator("#translation").inner_text() == "Ein Hund läuft"
    assert not served.locator("#attention").is_visible() and not served.locator("#beam").is_visible()


def test_a_server_that_is_gone_is_named(served):
    served.route("**/*:predict", lambda route: route.abort("connectionrefused"))
    served.fill("#sentence", "A dog runs")
    served.locator("#error:not(:empty)").wait_for()
    assert served.locator("#error").inner_text() == "The server does not answer. Is it still running?"


@pytest.mark.parametrize("size", [DESK, PHONE], ids=["desk", "phone"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_axe_finds_nothing_and_only_boxes_scroll_sideways(browser, tmp_path, scheme, size):
    with visit(browser, written(tmp_path, explanation()), viewport=size, color_scheme=scheme) as opened:
        opened.locator("summary").click()
        assert violations(opened) == []
        assert opened.evaluate("document.documentElement.scrollWidth") <= size["width"]
