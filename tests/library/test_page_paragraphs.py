"""The page with whole texts: each part is shown when it is ready, and sentences know their partners."""

import pytest

from keras_transformer.page import page
from tests.support.browser import visit
from tests.support.documents import capitals, translator
from tests.support.explanations import DATA

HOST = "http://page.test"  # no such server: every request is answered by a test

TEXT = """Two dogs

A dog runs. Dr. Smith \U0001f389 throws a ball, and a cat sleeps! It is
old.

  - A woman reads."""
SENTENCES = [
    "Two dogs",
    "A dog runs.",
    "Dr. Smith \U0001f389 throws a ball, and a cat sleeps!",
    "It is",
    "old.",
    "A woman reads.",
]


@pytest.fixture
def writing(browser):
    """The page of a server that answers whole texts in capitals; `held` are requests that it does not answer yet."""
    with visit(browser, "about:blank") as opened:
        opened.asked, opened.held, opened.is_holding = [], [], False

        def answer(route):
            [instance] = route.request.post_data_json["instances"]
            opened.asked.append(instance)
            document = translator(capitals).document(instance["text"])
            spans = " ".join(str(place) for sentence in document.sentences for place in sentence[:4])
            route.fulfill(json={"predictions": [{"translations": [document.text], "scores": [-1.0], "spans": spans}]})

        opened.answer, body = answer, page(DATA | {"has_paragraphs": True})
        opened.route("**/*:predict", lambda route: opened.held.append(route) if opened.is_holding else answer(route))
        opened.route(f"{HOST}/", lambda route: route.fulfill(body=body, content_type="text/html"))
        opened.goto(HOST)
        yield opened


def marked(opened):
    return [opened.locator(f"{pane} .marked").all_inner_texts() for pane in ("#mirror", "#translation")]


def test_a_text_is_translated_part_by_part_between_its_spaces_and_line_breaks(writing):
    writing.fill("#sentence", TEXT)
    writing.get_by_text("6 sentences").wait_for()
    assert writing.locator("#translation").text_content() == capitals(TEXT)
    assert writing.locator("#mirror").text_content() == TEXT
    assert writing.locator("#mirror .sentence").all_text_contents() == SENTENCES
    assert len(writing.asked) > 3 and all(asked["paragraphs"] and asked["n_best"] == 1 for asked in writing.asked)
    assert "paragraphs" in writing.locator("#curl").inner_text() and writing.locator("#results").is_hidden()
    asked = len(writing.asked)
    writing.fill("#sentence", f"{TEXT} The end.")
    writing.get_by_text("7 sentences").wait_for()
    assert len(writing.asked) == asked + 1  # only what is new


def test_pointing_at_a_sentence_marks_it_and_its_partner(writing):
    writing.fill("#sentence", TEXT)
    writing.get_by_text("6 sentences").wait_for()
    writing.hover("#translation .sentence >> nth=1")
    assert marked(writing) == [["A dog runs."], ["A DOG RUNS."]]
    box = writing.locator("#mirror .sentence >> nth=5").bounding_box()
    writing.mouse.move(box["x"] + 5, box["y"] + box["height"] / 2)
    assert marked(writing) == [["A woman reads."], ["A WOMAN READS."]]
    writing.mouse.move(1, 1)
    assert marked(writing) == [[], []]
    writing.focus("#sentence")
    writing.evaluate("document.getElementById('sentence').setSelectionRange(3, 3)")
    writing.locator("#mirror .marked").wait_for()
    assert marked(writing) == [["Two dogs"], ["TWO DOGS"]]


def test_a_prefix_is_asked_of_the_first_part_and_what_is_missing_in_any_part_is_named(writing):
    writing.unroute("**/*:predict")
    asked = []

    def answer(route):
        [instance] = route.request.post_data_json["instances"]
        asked.append(instance)
        text, has_cat = instance["text"], "cat" in instance["text"]
        row = {"translations": [text], "scores": [-1.0], "spans": f"0 {len(text)} 0 {len(text)}"}
        row |= {"unplaced": ["{x}\n<b>" if has_cat else "<b>"], "is_cut": [has_cat]}
        route.fulfill(json={"predictions": [row]})

    writing.route("**/*:predict", answer)
    writing.evaluate("document.getElementById('options').open = true")
    writing.fill("#option-target_prefix", "Ein")
    writing.fill("#sentence", "Some dogs run across.\nAll cats sleep.")
    writing.get_by_text("2 sentences").wait_for()
    assert [each.get("target_prefix") for each in asked] == ["Ein", None]
    note = writing.locator("#answer-note").inner_text()
    assert "its end may be missing" in note and "without <b>, {x}, which has no place" in note
