"""Protected spans stand in a translation as spans of their own, whatever stands beside them."""

import itertools

import pytest

from keras_transformer.pieces.translation import Translation
from keras_transformer.text.apart import set_apart
from keras_transformer.text.asks import NOTHING
from keras_transformer.text.occurrences import occurrences
from keras_transformer.text.protected import ProtectedLine
from keras_transformer.text.readings import Readings
from keras_transformer.text.road import translate
from keras_transformer.text.spans import KINDS, NUMBERS, PLACEHOLDERS, Protection, Span
from keras_transformer.text.survival import survival
from tests.support.engines import Writer

EVERY_KIND = Protection(KINDS)
SPANS = ["5", "600", "3.0", "-7", "5%", "$50", "(7)", "1 000", "30/360", "0x", "2026-11-28", "1.5GB", "\u096a\u0968"]
SPANS += ["%d", "%1$s", "{0}", "%%", "https://x.org/a", "jo@x.org"]
PAIRS = list(itertools.permutations(["5", "600", "5%", "$50", "(7)", "1 000", "0x", "%d", "{0}", "https://x.org/a"], 2))
SIGNS = [
    "",
    " ",
    "-",
    "\u2013",
    "+",
    ".",
    ",",
    ":",
    "/",
    "x",
    "'",
    "%",
    " %",
    "\u00b0",
    " \u20ac",
    "$",
    "$ ",
    "a",
    "e5",
]
SIGNS += ["(", ")", "[", "]", "{", "}", "\u72ac", "=", "..", "<b>", "</b>", "\u27e6", "&", "_"]


def numbers(*targets):
    return [Span(0, 1, NUMBERS, target) for target in targets]


@pytest.mark.parametrize(
    ("targets", "translation", "text"),
    [
        (["5", "600"], "5 600 Hunde", "5, 600 Hunde"),
        (["5", "600"], "5\u00a0600", "5,\u00a0600"),
        (["5", "600", "700"], "5 600 700", "5, 600, 700"),
        (["5", "600"], "5,600", "5, 600"),
        (["5", "600"], "5/600", "5 / 600"),
        (["5", "6"], "5 und 6", "5 und 6"),
        (["7"], "-7", "- 7"),
        (["7"], "um 7% mehr", "um 7 % mehr"),
        (["7%"], "um 7% mehr", "um 7% mehr"),
        (["7"], "$7.", "$ 7."),
        (["7"], "(7)", "(7)"),
        (["7"], "7 %", "7 %"),
        (["7"], "7:30", "7: 30"),
        (["0x"], "0x/%08X", "0x /%08X"),
        (["5"], "5 %s", "5, %s"),
        (["5"], "5.5 von 5", "5.5 von 5"),
        (["5"], "5.5", "5. 5"),
        (["-5", "5"], "-5.5", "-5. 5"),
        (["$5", "5"], "$5.5 und", "$5. 5 und"),
        (["-5", "5", "5"], "-5/5.5", "-5 / 5. 5"),
        (["1 000"], "2 1 000", "2 1 000"),
        (["5", "5%"], "5%5%", "5% 5 %"),
        (["5"], "5 $(7)", "5, $(7)"),
        (["5"], "fünf", "fünf"),
        (["5"], "A5", "A5"),
        (["5"], '<a href="5-6">', '<a href="5-6">'),
        (["5"], "\ue000b 5\ue001-5", "\ue000b 5\ue001- 5"),
    ],
)
def test_a_space_parts_a_number_from_its_neighbour_and_a_comma_where_there_is_one(targets, translation, text):
    assert set_apart(translation, numbers(*targets)) == text
    assert set_apart(text, numbers(*targets)) == text


@pytest.mark.parametrize(
    ("kind", "target", "translation", "text"),
    [
        ("urls", "https://x.org", "https://x.org-Seite", "https://x.org -Seite"),
        ("urls", "https://x.org", "https://x.org/,a", "https://x.org /,a"),
        ("urls", "https://x.org", "(https://x.org)", "(https://x.org)"),
        ("emails", "jo@x.org", "a-jo@x.org", "a- jo@x.org"),
        (PLACEHOLDERS, "{x}", "{{x}}", "{ {x} }"),
        (PLACEHOLDERS, "%s", "%%s", "% %s"),
        ("term", "Hund", "Hund-{x}", "Hund-{x}"),
    ],
)
def test_other_kinds_are_parted_in_the_same_way_and_terms_not(kind, target, translation, text):
    assert set_apart(translation, [Span(0, 1, kind, target)]) == text


@pytest.mark.parametrize("value", SPANS)
def test_what_is_read_alone_is_read_in_every_place_that_it_has(value):
    [span] = EVERY_KIND.spans(value)
    for before, behind in itertools.product(SIGNS, SIGNS):
        text = f"w{before}{value}{behind}w"
        if not list(occurrences([span._replace(kind="term")], text)[value]):
            continue  # a part of a word: `joint` sees to those
        parted = set_apart(text, [span])
        assert survival([(value, parted)])[span.kind].in_translations == 1, (text, parted)
        assert parted.replace(" ", "").replace(",", "") == text.replace(" ", "").replace(",", "")


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("placeholders", [0, 9])
def test_a_line_has_all_its_spans_whatever_a_model_writes_between_them(sign, placeholders):
    for pair in PAIRS:
        line = "a {} or {} b".format(*pair)
        protected = ProtectedLine.of(line, EVERY_KIND, placeholders)
        assert [span.target for span in protected.spans] == list(pair)
        written = protected.searched.replace(" or ", sign)
        text, unplaced = protected.through(written, [(number, number) for number in range(9)])
        lost = {kind: found for kind, found in survival([(line, text)]).items() if found.per_cent < 100}
        assert not lost and not unplaced, (line, written, text)


def test_a_number_that_is_read_as_a_part_of_another_was_not_copied():
    [[[best], *_]] = translate(
        Writer(lambda line: "b 3.0 c"), ["b 0 c"], [NOTHING._replace(protection=Protection("numbers"))]
    )
    assert isinstance(best, Translation) and survival([("b 0 c", best.text)])["numbers"].per_cent == 100


def test_readings_are_of_the_whole_text():
    readings = Readings("(5) and $ 7 or 5%s, https://x.org/a")
    assert readings.has(NUMBERS, (0, 3)) and readings.has(NUMBERS, (1, 2)) and readings.has(NUMBERS, (10, 11))
    assert not readings.has(NUMBERS, (15, 16)) and readings.around(NUMBERS, (15, 16)) == ("", "%s")
    assert not readings.has("urls", (20, 33)) and readings.around("urls", (20, 33)) == ("", "/a")
    assert list(readings.touching((20, 21), NUMBERS)) == [("urls", (20, 35))] and readings.has("tags", (0, 1))
