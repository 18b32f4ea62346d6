"""HTML, beside the laws of every format (test_formats.py)."""

import contextlib
import html
import io
import re
import time

import pytest

from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.html import _Walk, html_parts, with_raw
from keras_transformer.text.formats.parts import Field, TranslatedError, unescaped
from tests.support.documents import capitals, texts_of, through


@pytest.mark.parametrize(
    "html, texts",
    [
        ("<p>a <!-- c --> b</p>", ["a b"]),
        ("<p>a <![CDATA[c]]> b</p>", ["a b"]),  # HTML reads it as a comment
        ("<p>a <code/>x</code> b</p>", ["a b"]),  # HTML ignores the slash
        ("<p>a <br/>b</p>", ["a", "b"]),
        ("<p>a < b, 1 <2 & c</p>", ["a < b, 1 <2 & c"]),
        ("<pre>a <code>b</code> c</pre>d", ["d"]),
        ("<?php if (1 > 2) ?>a<?= f() > 2 ?>b", ["a", "b"]),
        ("<p translate>a</p><p translate='NO'>b</p><p translate='no'>c</p><p translate='yes'>d</p>", ["a", "d"]),
        ("<p class>a</p><p class='x notranslate y'>b</p><p class='notranslated'>c</p>", ["a", "c"]),
        # what stays ends where HTML ends it, with an end tag or without
        ("<ul><li translate='no'>a<li>b<ul><li class=notranslate>c</ul>d</ul>e", ["b", "d", "e"]),
        ("<p class='notranslate'>a<p>b<p translate=no>c<div>d</div>", ["b", "d"]),
        ("<p class='notranslate'>a <b>b<h1>c</h1>d</b>", ["c", "d"]),
        ("<dl><dt translate=no>a<dd>b<dt>c<dd translate=no><dl><dd>d</dl>e</dl>f", ["b", "c", "f"]),
        ("<select><option translate=no>a<option>b<optgroup translate=no><option>c</select>d", ["b", "d"]),
        ("<table><tr translate=no><td>a<td>b<tr><td translate=no>c<td>d<tbody><td>e</table>", ["d", "e"]),
        ("<table><td translate=no>a<table><td>b</table>c<td>d</table>", ["d"]),
        ("<div translate=no><p>a<p>b</div>c", ["c"]),
        ("<button translate=no><p>a<button><p>b</button></button>c", ["c"]),
        # the inner value counts
        ("<div translate=no>a<p translate=yes>b <i>c</i> d</p>e<p translate>f</p>g</div>h", ["b c d", "f", "h"]),
        ("<p>a <span class=notranslate>b <i translate=yes>c</i> d</span> e</p>", ["a", "c", "e"]),
        ("<textarea>a<p translate=yes>b</p></textarea><noframes>c<p translate=yes>d</noframes>e", ["e"]),
        ("<code translate=yes>a</code><script translate=yes>b</script><p translate=maybe>c</p>", ["a", "c"]),
        # inline is what HTML shows in a line
        ("<p>a <svg><path d=''/><text>t</text></svg> b</p>", ["a b"]),
        ("<p>a <svg/> b <math><mi>x</mi><mspace/></math> c</p>", ["a b c"]),
        ("<p>a <x-icon></x-icon> b <custom>c</custom> <i class=icon></i></p>", ["a b c"]),
        ("<p>a <script>t</script> b<link rel=x> c</p>", ["a b c"]),
        ("<p>a <ruby>b<rp>(</rp><rt>t</rt><rp>)</rp></ruby> c <ruby>d<rt>u<rt>v</ruby> e</p>", ["a b c d e"]),
        ("<?xml version='1.0'?><p>a <a id='x'/> b <div/><p translate='no'/>c", ["a b", "c"]),  # XHTML
        ("<button>a</button><button>b</button><select><option>c</select>", ["a", "b", "c"]),
        ("<video>a</video> b <noscript>c</noscript>", ["a", "b", "c"]),
    ],
)
def test_what_a_model_reads(html, texts):
    assert texts_of("html", html) == texts and through("html", html, str) == html


@pytest.mark.parametrize("pair", ["()", '""', "„“", "«»", "「」", "[]"])
@pytest.mark.parametrize(
    "text",
    [
        "see <b>(w)</b>. So",
        "see (<b>w</b>).",
        "see <b>(w</b>).",
        "see (<b>w)</b>.",
        "see <b>(<i>w</i>)</b>. So",
        "<i>(w)</i>, (<b>v</b>)!",
        "see (w)<br>.",
    ],
)
def test_tags_that_keep_their_place_in_proportion_stand_between_the_same_punctuation(text, pair):
    text = f"<p>{text.translate({ord('('): pair[0], ord(')'): pair[1]})}</p>"
    assert through("html", text, lambda line: line.replace("w", "WWWWW")) == text.replace("w", "WWWWW")
    assert through("html", text, lambda line: line.replace("w", "W W")) == text.replace("w", "W W")


def test_a_translation_is_written_as_html():
    assert through("html", "<p>a</p>", lambda text: '1\xa0< "2" &') == '<p>1&nbsp;&lt; "2" &amp;</p>'
    xhtml = "<?xml version='1.0'?><p>{}</p>"  # which has no name for the space without a DTD
    assert through("html", xhtml.format("a"), lambda text: "1\xa0<") == xhtml.format("1&#160;&lt;")


@pytest.mark.parametrize(
    "html, where",
    [
        ("<p>x</p>" + "\n" * 999 + "<b>a", "line 1,000: <b> is not closed. The"),
        ("<div>\n<p><b>a</p>\n", "line 1: <div> is not closed, and 1 more are not. The"),
        ("<p>a <code>b\n", "line 1: <code> is not closed. The"),
        ("<script>if (a <b", "line 1: <script> is not closed. The"),
        ("a\n<p>b <i\n", "line 2: a tag or comment is not closed. The"),
        ("<i>a</b></i><u>b</i>", "line 1: <u> is not closed. The"),
        ("<svg><g><path/></svg>", "line 1: <g> is not closed. The"),
        ("<svg><desc><p/></desc></svg><b/>", "line 1: <b> is not closed. The"),  # HTML ignores the slash
    ],
)
def test_what_is_not_closed_is_named_by_its_first_line_when_all_is_written(html, where):
    written = []
    with pytest.raises(TranslatedError, match="^file, " + re.escape(where)):
        for part in FORMATS["html"](io.BytesIO(html.encode()), "file", ()):
            written.append(part.passage.raw if isinstance(part, Field) else part)
    assert "".join(written) == html


@pytest.mark.parametrize(
    "html",
    [
        "<svg><path/><g><circle /></g></svg>",
        "<frameset><frame src=x><frame></frameset>",
        "<p><b>a</p></b>",
        "<p><b>a<div>b</b></div>",
        "<table><tr><td>a<tr><td>b</table>",
    ],
)
def test_what_html_closes_on_its_own_or_later_is_no_mistake(html):
    assert through("html", html, str) == html


@pytest.mark.parametrize("beginning", ["<p>", "<p translate=no>", ""])
def test_the_work_grows_with_the_text_and_not_with_its_square(beginning):
    """In events, which the machine does not slow down: a tag looks at what it closes, and not at all that is open."""

    class Watched(list):
        looks = 0

        def __reversed__(self):
            for each in super().__reversed__():
                Watched.looks += 1
                yield each

    looks = []
    for count in (200, 800):
        walk, Watched.looks = _Walk(), 0
        walk.open = Watched()
        for event, raw in with_raw(beginning + "<div><span>" * count + "<li>x" * count):
            list(walk.parts(event, raw))
        looks.append(Watched.looks)
    assert looks[1] <= 8 * looks[0] + 8


def test_tags_in_capitals_are_those_tags():
    assert through("html", "<P>a<BR>b <CODE>c</CODE></P>", capitals) == "<P>A<BR>B <CODE>c</CODE></P>"


@pytest.mark.parametrize("zeros", [0, 2, 5000])
def test_a_reference_is_the_character_of_its_number_however_many_digits_it_has(zeros):
    for reference in (f"&#{zeros * '0'}65;", f"&#x{zeros * '0'}41;"):
        assert unescaped(reference) == "A"
    for reference in ("&amp;", "&CounterClockwiseContourIntegral;", "&#0;", "&#x110000;", "&nothing;"):
        assert unescaped(reference) == html.unescape(reference)
    assert unescaped(f"&#{5000 * '9'};") == "\ufffd"
    file = f"<p>one &#{5000 * '9'}; two"
    assert through("html", file, str) == file


@pytest.mark.parametrize("unit", ["<a b='", "<!--", "<b x=", "</", "<", "<![", "<?", "<p title=x ", "<script></", "&#"])
def test_what_does_not_end_costs_what_its_length_does(unit):
    def seconds(size):
        text = (unit * (size // len(unit))).encode()
        begun = time.process_time()
        with contextlib.suppress(TranslatedError):
            list(html_parts(io.BytesIO(text), "page.html", ()))
        return time.process_time() - begun

    assert any(seconds(1 << 16) < 10 * seconds(1 << 14) + 0.05 for _ in range(4))


@pytest.mark.parametrize(
    "text", ["<![", "<![x", "<![x]>", "<![<!", "<![x]]>", "<![if x]>", "<![cdata[", "<![CDATA[x]]>", "<![ >"]
)
def test_a_marked_section_is_no_text_whatever_its_name(text):
    parts = []
    with contextlib.suppress(TranslatedError):
        parts.extend(html_parts(io.BytesIO(f"<p>a</p>{text}b".encode()), "page.html", ()))
    written = "".join(part.passage.raw if isinstance(part, Field) else part for part in parts)
    assert written == f"<p>a</p>{text}b" and parts[1].passage.text == "a"
