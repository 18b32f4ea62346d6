"""Attributes of HTML that people read are translated; another parser finds nothing else changed."""

import contextlib
import io
import random

import pytest

from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.attributes import OF_ELEMENTS
from keras_transformer.text.formats.parts import TranslatedError
from tests.support.documents import capitals, texts_of, through, translated


@pytest.mark.parametrize(
    "html, texts",
    [
        ('<p>a <img src="x.png" alt="A dog &amp; b"> c</p>', ["a c", "A dog & b"]),
        ("<img alt='it&#39;s' title=Dog><area alt='a map'>", ["it's", "Dog", "a map"]),
        ('<table summary="s"><tr><td title="t" aria-label="l" headers="no">a</table>', ["s", "t", "l", "a"]),
        (
            '<div aria-description="a" aria-valuetext="b" aria-labelledby="no" data-title="no" :title="no"></div>',
            ["a", "b"],
        ),
        ('<input placeholder="p" value="no" name="no"><textarea placeholder="q">no</textarea>', ["p", "q"]),
        ("<input type=Submit value=Send><input type=reset value='Start again'>", ["Send", "Start again"]),
        ("<input type=hidden value=no><input type=image alt=Search>", ["Search"]),
        ("<select><optgroup label=Dogs><option label='A dog' value=no>a</select>", ["Dogs", "A dog", "a"]),
        ("<video><track label=German srclang=de></video>", ["German"]),
        ("<meta name=Description content='A page.'><meta name=viewport content='width=no'>", ["A page."]),
        ("<meta property='og:title' content='t'><meta property='og:type' content=no>", ["t"]),
        ("<meta name=keywords content='no, no'><meta property='og:description' content='d'>", ["d"]),
        ("<link rel=stylesheet title=no><style title=no></style><iframe title='A map'></iframe>", ["A map"]),
        ('<a title="One. Two.">x</a>', ["x", "One.", "Two."]),
        ("<img alt='a\n   b'>", ["a b"]),
        ("<img alt><img alt=''><img alt='12'><img alt='- '>", []),
        ('<img alt="a" alt="no"><img ALT="b">', ["a", "b"]),
        ('<img alt="<?php echo no ?>"><img alt="<%= no %>">', []),
        ("<img alt=a/><img title='b'/><img/title='c'/alt='d'>", ["a/", "b", "c", "d"]),
        ('<img alt="a>b" title=\'c"d\'>', ["a>b", 'c"d']),
        # where references have no stop, or are none
        ('<img alt="&copy=a &notit; &copy b &amp c &#x41; &#66 d">', ["&copy=a &notit; © b & c A B d"]),
        # what stays as it is, has no such texts either, and the inner value counts
        ("<div translate=no title=no><img alt=no><p translate=yes title=a><img alt=b></div>", ["a", "b"]),
        ("<p class='x notranslate' title=no>no</p><img class=notranslate alt=no><img translate=no alt=no>", []),
        ("<ul><li translate=no title=no>no<li title=a>b</ul>", ["a", "b"]),
        ("<code title='read me'><b title=no>no</b></code> a", ["a", "read me"]),
        ("<svg aria-label='A dog'><path title=no /></svg><script>no</script>", ["A dog"]),
        ("<script>'<img alt=no>'</script><!-- <img alt=no> --><template><img alt=no></template>", []),
        ("<p>a <i class=icon title=Close></i> b</p>", ["a b", "Close"]),
    ],
)
def test_what_a_model_reads(html, texts):
    assert sorted(texts_of("html", html)) == sorted(texts)
    assert through("html", html, str) == html


@pytest.mark.parametrize(
    "html, translation, after",
    [
        ('<img alt="a">', """1\xa0< "2" & '3'""", """<img alt="1&nbsp;&lt; &quot;2&quot; &amp; '3'">"""),
        ("<img alt='a'>", """1\xa0< "2" & '3'""", """<img alt='1&nbsp;&lt; "2" &amp; &#39;3&#39;'>"""),
        ("<img alt=a src=x>", "Ein Hund", '<img alt="Ein Hund" src=x>'),
        ("<img alt=a src=x>", "", '<img alt="" src=x>'),
        ("<img alt=a'b/>", "x'y", '<img alt="x\'y">'),
        ('<img alt=a"b>', "x'y", "<img alt='x&#39;y'>"),
        ("<?xml version='1.0'?><img alt='a'/>", "1\xa0'2'", "<?xml version='1.0'?><img alt='1&#160;&#39;2&#39;'/>"),
        ('<p>a <img alt="A dog"> b</p>', "x y", '<p>x <img alt="x y"> y</p>'),
        ('<p title="One. Two &amp;c.">', "1 < 2", '<p title="1 &lt; 2 1 &lt; 2">'),
        ('<img alt="A dog\n  runs.">', "Ein Hund rennt.", '<img alt="Ein Hund\n  rennt.">'),
    ],
)
def test_a_translation_is_written_as_its_value_is(html, translation, after):
    assert through("html", html, lambda text: translation) == after


TEXTS = ["A dog", "it's", 'so "big"', "1 &lt; 2 &amp; 3", "&copy=x", "A dog. A cat.", "12", "", "a\n b", "Köter&nbsp;"]
NAMES = ["alt", "title", "placeholder", "label", "summary", "value", "content", "aria-label", "href", "data-x", "ALT"]
ELEMENTS = "p div b img input option table td meta span code textarea svg ul li button br".split()


def pages(count):
    """Pages with tags, attributes and `translate` at random, of which some end tags are left out."""
    chance = random.Random(7)
    for _ in range(count):
        parts = []
        for _ in range(chance.randrange(1, 30)):
            element, attributes = chance.choice(ELEMENTS), []
            for name in chance.sample(NAMES, chance.randrange(4)):
                quote, text = chance.choice("\"'"), chance.choice(TEXTS)
                attributes.append(f" {name}={quote}{text.replace(quote, '&quot;')}{quote}")
            attributes += [" translate=no"] * (chance.random() < 0.1) + [" translate=yes"] * (chance.random() < 0.1)
            chance.shuffle(attributes)
            parts.append(f"<{element}{''.join(attributes)}>word")
            parts += [f"</{element}>"] * (chance.random() < 0.7 or element in ("svg", "textarea", "code", "table"))
        yield "<div>" + "".join(parts)


def elements_of(page, lxml):
    return [(each.tag, dict(each.attrib)) for each in lxml.fromstring(page).iter()]


def test_another_parser_finds_the_same_elements_and_no_other_attribute_changed():
    """By lxml, for which libxml2 reads HTML: the letters of values that people read are capitals, all else is equal."""
    lxml, changed = pytest.importorskip("lxml.html"), 0
    for page in pages(300):
        parts = []
        with contextlib.suppress(TranslatedError):  # something is not closed
            for part in FORMATS["html"](io.BytesIO(page.encode()), "file", ()):
                parts.append(part)
        output = translated(parts, capitals)
        before, after = elements_of(page, lxml), elements_of(output, lxml)
        assert [element for element, _ in before] == [element for element, _ in after]
        for (element, had), (_, has) in zip(before, after, strict=True):
            assert list(had) == list(has)
            for name in had:
                is_read = name in OF_ELEMENTS[""] | OF_ELEMENTS.get(element, frozenset())
                assert has[name] == had[name] or (is_read and has[name] == capitals(had[name]))
                changed += has[name] != had[name]
    assert changed > 200
