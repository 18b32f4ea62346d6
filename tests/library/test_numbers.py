"""The numbers of a source, which its translation must have if it is asked for them."""

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.search.options import SearchOptions, check_reads_no_text
from keras_transformer.text.asks import NOTHING
from keras_transformer.text.numbers import numbers_in
from keras_transformer.text.road import translate
from keras_transformer.text.spans import Protection
from keras_transformer.translation.translator import Translator
from tests.support.engines import Writer
from tests.support.places import ROOT
from tests.support.text_rules import NUMBERS

ASKED = SearchOptions(require_numbers=1)


@pytest.mark.parametrize(("text", "numbers"), NUMBERS)
def test_the_numbers_of_a_text_are_those_that_it_has_in_digits_and_no_parts_of_words(text, numbers):
    assert numbers_in(text) == numbers


@pytest.mark.parametrize(
    ("engine", "ask", "missing"),
    [
        ({}, NOTHING, ()),
        ({}, NOTHING._replace(from_source=frozenset({"require_numbers"})), ("3", "x", "12")),
        ({"options": ASKED}, NOTHING, ("12",)),
        ({"options": {"require_numbers": 1}}, NOTHING, ("12",)),
        ({"options": ASKED, "placeholders": 9}, NOTHING._replace(protection=Protection("numbers")), ()),
    ],
)
def test_the_numbers_of_a_line_must_come_if_it_or_the_search_asks_for_them(engine, ask, missing):
    ask = ask._replace(required=("3", "x")) if ask.from_source else ask
    writer = Writer(
        lambda line: line.replace("12", "twelve").replace("3", "drei" if ask.from_source else "3"), **engine
    )
    [[[best], *_]] = translate(writer, ["3 and 12 hens"], [ask])
    assert best.unplaced == missing


def test_a_search_without_text_refuses_them():
    check_reads_no_text(SearchOptions(), "a search of ids")
    with pytest.raises(ConfigError, match="require_numbers is 1, which a search of ids does not know: leave it out"):
        check_reads_no_text(ASKED, "a search of ids")


@pytest.mark.nightly
def test_a_translation_has_every_number_of_its_source(eager):
    lines = ["A group of 12 people sit at 37 tables.", "Player 10 kicks the ball to player 7.", "Two dogs run."]
    translator = Translator.load(ROOT / "presets/multi30k_en_de", ASKED)
    for line, best in zip(lines, translator.translate(lines), strict=True):
        assert set(numbers_in(line)) <= set(numbers_in(best.text)) and best.unplaced == ()
