"""The page asks for an API key if the server wants one, and keeps it in its own memory alone."""

from keras_transformer.page import page
from tests.support.browser import visit
from tests.support.explanations import DATA, explanation, rows_of

HOST, KEY = "http://page.test", "the-key-of-the-server"  # no such server: every request is answered by the test
ANSWERS = dict(zip(("translate", "explain"), rows_of(explanation()), strict=True))


def test_a_key_that_the_server_wants_is_asked_for_sent_and_shown_nowhere(browser):
    """Neither in the field, nor in the lines for programs, nor where the browser keeps something."""
    sent = []

    def predict(route):
        sent.append(route.request.headers.get("authorization"))
        if sent[-1] == f"Bearer {KEY}":
            route.fulfill(json={"predictions": [ANSWERS[route.request.post_data_json["signature_name"]]]})
        else:
            route.fulfill(status=401, json={"error": "This server wants an API key."})

    with visit(browser, "about:blank") as served:
        served.route(f"{HOST}/", lambda route: route.fulfill(content_type="text/html", body=page(DATA)))
        served.route("**/*:predict", predict)
        served.goto(HOST)
        assert not served.locator("#key").is_visible()
        served.fill("#sentence", "A dog runs")
        for typed in ("the wrong key", "another-key", KEY):
            served.locator("#key").wait_for()
            assert "API key" in served.locator("#error").inner_text()
            served.fill("#key", typed)
            served.press("#key", "Enter")
            served.wait_for_timeout(300)
        served.locator("#beam-tree .node").first.wait_for()
        assert sent == [None, "Bearer another-key", f"Bearer {KEY}", f"Bearer {KEY}"]
        assert not served.locator("#key").is_visible() and not served.locator("#error").is_visible()
        kept = served.evaluate("[document.cookie, { ...localStorage }, { ...sessionStorage }, location.href]")
        assert KEY not in served.content() + served.input_value("#key") + str(kept)
        assert "$API_KEY" in served.locator("#curl").inner_text()
        assert 'os.environ["API_KEY"]' in served.locator("#python").inner_text()
