"""The recording of `make try`: the picture has every line at its time, and loads nothing from elsewhere."""

import html
import re
import xml.etree.ElementTree

import pytest

from tests.record_try import COMMAND, KEY, LONGEST_PAUSE, PICTURE, REST, SENTENCES, Line, picture, played
from tests.support.places import ROOT

LINES = [
    Line(0.0, "$ make try", True),
    Line(9.0, "Type & press Enter.", False),
    Line(9.0, "A dog <runs>.", True),
    Line(9.3, "Ein Hund läuft.", False),
]
LARGEST = 100_000  # bytes


def texts_in(drawn):
    return [html.unescape(text).replace("\N{NO-BREAK SPACE}", " ") for text in re.findall(r">([^<>]+)</text>", drawn)]


def changes_in(drawn):
    """(times, widths) of each line that appears."""
    pairs = re.findall(r'keyTimes="([^"]*)" values="([^"]*)"', drawn)
    return [tuple([float(number) for number in numbers.split(";")] for numbers in pair) for pair in pairs]


def test_pauses_are_cut_and_typing_takes_its_time():
    times = [line.at for line in played(LINES)]
    assert times[0] == 0.0 and times == sorted(times)
    assert times[1] == pytest.approx(KEY * len(LINES[0].text) + 0.4 + LONGEST_PAUSE)
    assert times[3] - times[2] == pytest.approx(KEY * len(LINES[2].text) + 0.4 + 0.3)


def test_every_line_is_in_the_picture_and_appears_at_its_time():
    drawn = picture(LINES)
    xml.etree.ElementTree.fromstring(drawn)  # raises if it is no XML
    assert [line for line in texts_in(drawn) if line.strip()] == [COMMAND, *(line.text for line in LINES)]
    changes, whole = changes_in(drawn), played(LINES)[-1].at + REST
    assert len(changes) == len(LINES)
    for line, (times, widths) in zip(played(LINES), changes, strict=True):
        assert times[0] == widths[0] == 0 and times == sorted(times) and times[-1] < 1 and widths == sorted(widths)
        assert len(times) == (len(line.text) + 1 if line.is_typed else 2)
        assert times[1] * whole == pytest.approx(line.at + KEY * line.is_typed, abs=0.01)


def test_the_picture_of_the_readme_is_such_a_recording():
    drawn = PICTURE.read_text(encoding="utf-8")
    assert len(drawn.encode()) < LARGEST
    assert not re.search(r"url\(.?https?:|href=|<script", drawn)
    command, title, *rest = [line for line in texts_in(drawn) if line.strip()]
    assert (command, title) == (COMMAND, f"$ {COMMAND}")
    assert rest[0].startswith("Type an English sentence about") and rest[1::2] == list(SENTENCES)
    assert all(translation.endswith(".") for translation in rest[2::2]) and len(rest) == 1 + 2 * len(SENTENCES)
    assert str(PICTURE.relative_to(ROOT)) in (ROOT / "README.md").read_text(encoding="utf-8")
