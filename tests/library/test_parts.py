"""What a reference to a character means, in HTML, XML and subtitles."""

import html

import pytest

from keras_transformer.text.formats.parts import unescaped
from tests.support.documents import through


@pytest.mark.parametrize("zeros", [0, 2, 5000])
def test_a_reference_is_the_character_of_its_number_however_many_digits_it_has(zeros):
    for reference in (f"&#{zeros * '0'}65;", f"&#x{zeros * '0'}41;"):
        assert unescaped(reference) == "A"
    for reference in ("&amp;", "&CounterClockwiseContourIntegral;", "&#0;", "&#x110000;", "&nothing;"):
        assert unescaped(reference) == html.unescape(reference)
    assert unescaped(f"&#{5000 * '9'};") == "\ufffd"
    file = f"<p>one &#{5000 * '9'}; two"
    assert through("html", file, str) == file
