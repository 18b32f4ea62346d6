"""Tags inside the sentences of a file, put around the words of the translation by a word alignment."""

import functools
import io
import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.formats.html import html_parts
from keras_transformer.text.formats.parts import Field
from keras_transformer.text.formats.subtitles import srt_parts, vtt_parts
from keras_transformer.text.formats.xliff import xliff_parts
from keras_transformer.text.marks import paired, taken_apart, with_signs
from keras_transformer.text.road import warn_of_proportion
from keras_transformer.text.spans import LEFT, RIGHT, Protection
from tests.library.test_protected import ALIGNMENTS, ELEMENTS, parents_in, written
from tests.support.engines import Writer

XLIFF = '<xliff version="1.2"><file><body><trans-unit id="1"><source>{}</source></trans-unit></body></file></xliff>'


def backwards(line):
    return " ".join(word.upper() for word in reversed(line.rstrip(".").split())) + "." * line.endswith(".")


def opposite(line):
    last = len(line.split()) - 1
    return [(last - number, number) for number in range(last + 1)]


def translated(text, parts=html_parts, translate=backwards, alignment=opposite, kinds=()):
    """A file through a model that writes the words of a sentence in capitals and backwards."""

    through = functools.partial(Writer(translate, alignment).translate, protect=Protection(kinds, has_marks=True))
    documents = DocumentTranslator(through, reads_marks=True)
    return "".join(
        part.laid_out(documents.documents([part.passage])[0].text) if isinstance(part, Field) else part
        for part in parts(io.BytesIO(text.encode()), "file", ())
    )


@pytest.mark.parametrize(
    "text, expected",
    [
        ("A <b>big dog</b> runs.", "RUNS <b>DOG BIG</b> A."),
        ("I saw <b>the dog</b>", "<b>DOG THE</b> SAW I"),
        ("<i>Note</i> the dog", "DOG THE <i>NOTE</i>"),
        ("<b>All of it.</b>", "<b>IT OF ALL.</b>"),
        ("<b><i>Note</i> the dog.</b>", "<b>DOG THE <i>NOTE</i>.</b>"),
        ("use <code>x y</code> now.", "<code>x y</code> NOW USE."),
        ("A <b>dog runs. The</b> cat sleeps.", "RUNS <b>DOG A. SLEEPS CAT THE.</b>"),
        (
            "a <i>very <b>big</b> dog</i> &amp; a <a href='x'>cat</a>!",
            "<a href='x'>CAT</a>! A &amp; <i>DOG <b>BIG</b> VERY</i> A",
        ),
        ("one <img src=x> two three\n  four.", "FOUR THREE <img src=x> TWO\n  ONE."),
        ("no &lt;b&gt; tag <b>is</b> text", "TEXT <b>IS</b> TAG &lt;B&gt; NO"),
    ],
)
def test_tags_of_html_are_around_the_words_to_which_those_inside_are_aligned(text, expected):
    assert translated(f"<p>{text}</p>") == f"<p>{expected}</p>"


def test_a_region_that_is_not_to_translate_is_one_mark():
    file = '<xliff version="2.0" trgLang="de"><file><unit><segment><source>{}</source></segment></unit></file></xliff>'
    for region in ('<sm id="1" translate="no"/>b c<em startRef="1"/>', '<mrk id="1" translate="no">b <x/> c</mrk>'):
        output = translated(file.format(f"a {region} d e"), xliff_parts)
        assert f"<target>E {region} D A</target>" in output


@pytest.mark.parametrize(
    "source, expected",
    [
        ('The <g id="1">red</g> car.', 'CAR <g id="1">RED</g> THE.'),
        ('a <x id="9"/> b c', 'C <x id="9"/> B A'),
        ('a <bpt id="1">{{</bpt>b<ept id="1">}}</ept> c', 'C <bpt id="1">{{</bpt>B<ept id="1">}}</ept> A'),
        ('a <bx id="1" rid="7"/>b<ex id="2" rid="7"/> c', 'C <bx id="1" rid="7"/>B<ex id="2" rid="7"/> A'),
    ],
)
def test_elements_of_xliff_are_too_and_halves_that_belong_together(source, expected):
    assert f">{expected}</target>" in translated(XLIFF.format(source), xliff_parts)


@pytest.mark.parametrize(
    "halves, pairs",
    [
        (['<bx id="1" rid="7"/>', '<ex id="2" rid="7"/>'], {0: 1}),
        (['<bpt id="1">', '<ept id="1">'], {0: 1}),
        (['<sc id="1"/>', '<ec id="2" startRef="1"/>'], {0: 1}),
        (['<bx id="1" rid="7"/>', '<ex id="1" rid="8"/>'], {}),
        (['<bpt id="a b">', '<ept id="a c">'], {}),
        (['<sm id="1"/>', '<em startRef="1"/>'], {0: 1}),
        (["<em>", "</em>", "<small>", "</small>"], {0: 1, 2: 3}),  # of HTML
        (['<it id="1" pos="open">', '<it id="1" pos="close">', '<it id="1">'], {0: 1}),
        (['<x id="START_BOLD_TEXT" ctype="x-b"/>', '<x id="CLOSE_BOLD_TEXT" ctype="x-b"/>'], {0: 1}),
        (
            ['<x id="START_LINK"/>', '<x id="START_TAG_B_1"/>', '<x id="CLOSE_TAG_B"/>', '<x id="CLOSE_LINK"/>'],
            {0: 3, 1: 2},
        ),
        (
            ['<x id="START_LINK"></x>', '<x id="INTERPOLATION"/>', '<x id="CLOSE_LINK"></x>', '<x id="LINE_BREAK"/>'],
            {0: 2},
        ),
        (['<x id="1" equiv-text="&lt;a href=&quot;x&quot;&gt;"/>', '<x id="2" equiv-text="&lt;/a&gt;"/>'], {0: 1}),
        (
            ['<ph id="1">&lt;b></ph>', '<ph id="2">%s</ph>', '<ph id="3">&lt;br/></ph>', '<ph id="4">&lt;/b></ph>'],
            {0: 3},
        ),
        (['<ph id="1" disp="&lt;i&gt;"/>', '<ph id="2" disp="&lt;/i&gt;"/>', '<ph id="3" disp="{{x}}"/>'], {0: 1}),
        (["<c.yellow.big>", "<i.x>", "</i>", "</c>", "<v Bob>", "<00:01.000>"], {0: 3, 1: 2}),
        (["{b}", "{/b}", r"{\i1}", r"{\i0}", r"{\an8}"], {0: 1, 2: 3}),
        (["<b> ", "<br>", "<b/>", "<ph id='1'>{0}</ph>", "<!-- </b> -->", "\n</b>"], {0: 5}),
    ],
)
def test_halves_of_a_pair_are_known_by_their_common_attribute(halves, pairs):
    assert paired(halves) == pairs


def test_without_an_alignment_tags_stand_in_proportion_which_is_logged_once(caplog):
    warn_of_proportion.cache_clear()
    translated("<p>A <b>big</b> dog runs.</p>")
    translated("<p>A {x} runs.</p>", alignment=lambda line: [], kinds=("placeholders",))
    assert "proportion" not in caplog.text
    for _ in range(2):
        result = translated("<p>A <b>big</b> dog runs.</p>", alignment=lambda line: [])
        assert result == "<p><b>RUNS</b> DOG BIG A.</p>"
    assert [
        message for message in caplog.messages if "in proportion, since the model does not align words" in message
    ] == ["tags inside of sentences keep their place in proportion, since the model does not align words"]


def test_tags_in_the_text_stay_text_and_spans_of_other_kinds_come_through():
    text = "<p>see &lt;b&gt; <i>https://x.org</i> and {x}</p>"
    assert translated(text, kinds=("urls", "placeholders")) == ("<p>{x} AND <i>https://x.org</i> &lt;B&gt; SEE</p>")


def test_a_text_with_our_signs_keeps_them_and_its_tags_stand_in_proportion():
    text = f"<p>a {LEFT}x 0/{RIGHT} <b>b</b> c</p>"
    result = translated(text)
    assert re.findall("<.*?>", result) == ["<p>", "<b>", "</b>", "</p>"]
    assert with_signs(f"a{LEFT}x 0{RIGHT}", [(0, "<b>")]) == f"a{LEFT}x 0{RIGHT}"


def test_what_is_taken_apart_has_its_signs_in_order_and_no_space_at_its_ends():
    signed = with_signs("ab c", [(0, "<b>"), (1, "\n"), (2, "</b>"), (4, "<br>")])
    assert taken_apart(f" {signed} ") == ("ab c", {0: 0, 2: 2, 3: 4})


@settings(max_examples=100, deadline=None)
@given(st.lists(ELEMENTS, min_size=1, max_size=4), ALIGNMENTS)
def test_elements_keep_what_they_are_in_whatever_the_alignment(elements, alignment):
    numbers = itertools.count()
    line = " ".join(written(element, numbers) for element in elements)
    text = re.sub("<(/?)([bipx])", r"<\1g-\2", line)
    result = translated(XLIFF.format(text), xliff_parts, alignment=lambda line: alignment)
    target = re.search("<target.*?>(.*)</target>", result, re.DOTALL)
    assert target is None or parents_in(target[1]) == parents_in(text)
    ElementTree.fromstring(result)


ORDERS = {  # marks that hold from their place on, or that say so
    "xliff": (
        ['<ph id="0" canReorder="firstNo"/>', *(f'<ph id="{n}" canReorder="no"/>' for n in range(1, 4))],
        xliff_parts,
    ),
    "vtt": ([f"<00:0{n}.000>" for n in range(4)], vtt_parts),
    "srt": ([r"{\k20}", r"{\k40}", r"{\fs10}", r"{\fs}"], srt_parts),
    "html": (["<!-- a -->", "<!-- b -->", "<!-- c -->", "<!-- d -->"], html_parts),
}
FILES = {
    "xliff": XLIFF,
    "vtt": "WEBVTT\n\n00:00.000 --> 00:05.000\n{}\n",
    "srt": "1\n00:00:00,000 --> 00:00:05,000\n{}\n",
    "html": "<p>{}</p>",
}


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(sorted(ORDERS)), st.lists(st.sampled_from(["a", "dog", "runs"]), min_size=5, max_size=5), ALIGNMENTS
)
def test_marks_that_hold_from_their_place_on_keep_their_order_whatever_the_alignment(name, words, alignment):
    marks, parts = ORDERS[name]
    text = words[0] + "".join(f" {mark}{word}" for mark, word in zip(marks, words[1:], strict=True))
    result = translated(FILES[name].format(text), parts, alignment=lambda line: alignment)
    places = [result.rindex(mark) for mark in marks]
    assert places == sorted(places) and all(result.count(mark) == result.count(marks[0]) for mark in marks)


PAIRS = {
    "xliff": [
        ('<x id="START_BOLD_TEXT"/>', '<x id="CLOSE_BOLD_TEXT"/>'),
        ('<x id="START_TAG_B_1"/>', '<x id="CLOSE_TAG_B"/>'),
        ('<sm id="m2"/>', '<em startRef="m2"/>'),
        ('<ph id="7">&lt;b></ph>', '<ph id="8">&lt;/b></ph>'),
    ],
    "vtt": [("<c.yellow>", "</c>"), ("<i>", "</i>"), ("<lang en>", "</lang>")],
    "srt": [(r"{\i1}", r"{\i0}"), ("{b}", "{/b}")],
}


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(sorted(PAIRS)), st.data(), ALIGNMENTS)
def test_pairs_of_two_marks_open_before_they_close_whatever_the_alignment(name, data, alignment):
    pairs = data.draw(st.lists(st.sampled_from(PAIRS[name]), min_size=1, max_size=2, unique=True))
    text = "one " + " ".join(f"{opening}two three{closing} four" for opening, closing in pairs) + " five"
    result = translated(FILES[name].format(text), ORDERS[name][1], alignment=lambda line: alignment)
    for opening, closing in pairs:
        assert result.rindex(opening) < result.rindex(closing)


@settings(max_examples=25, deadline=None)
@given(ALIGNMENTS)
def test_pairs_that_must_not_change_their_order_nest_as_before(alignment):
    pairs = [f'<pc id="{n}" canReorder="{order}">w{n}</pc>' for n, order in enumerate(["firstNo", "no", "no"])]
    source = f'one <g id="8">two {pairs[0]} three {pairs[1]}</g> four {pairs[2]} five'
    result = translated(XLIFF.format(source), xliff_parts, alignment=lambda line: alignment)
    assert re.findall('pc id="(.)"', result.partition("<target")[2]) == ["0", "1", "2"]
    ElementTree.fromstring(result)


MESSAGE = (
    'A {VAR, plural, =0 {no <g id="1">dogs</g> here} one {one dog} '
    'other {<x id="INTERPOLATION"/> dogs<x id="LINE_BREAK"/> {SEX, select, male {his} other {<x id="B"/>}}}} ball'
)


@settings(max_examples=25, deadline=None)
@given(ALIGNMENTS | st.none())
def test_marks_in_an_icu_message_stay_in_their_branch_whatever_the_alignment(alignment):
    result = translated(XLIFF.format(MESSAGE), xliff_parts, alignment=lambda line: alignment or [])
    target = re.search("<target.*?>(.*)</target>", result, re.DOTALL)[1]
    branches = re.split(r"\{VAR, plural, =0 \{|\} one \{|\} other \{|\{SEX, select, male \{|\}+", target)
    assert [re.findall("<.*?>", branch) for branch in branches] == [
        [],
        ['<g id="1">', "</g>"],
        [],
        ['<x id="INTERPOLATION"/>', '<x id="LINE_BREAK"/>'],
        [],
        ['<x id="B"/>'],
        [],
    ]
    assert (
        re.sub("<.*?>", "", target).split()
        == re.sub(
            "<.*?>",
            "",
            "A {VAR, plural, =0 {HERE DOGS NO} one {DOG ONE} other { DOGS {SEX, select, male {HIS} other {}}}} BALL",
        ).split()
    )


@pytest.mark.parametrize(
    "branch, translate, named",
    [
        ('# <g id="1">dog</g> runs', lambda line: line.upper().replace("# ", ""), "#"),
        ('# <g id="1">dog</g> runs', lambda line: line.upper().replace("#", "##"), "#"),
        ('<g id="1">dog</g> of {name}', lambda line: line.upper().replace("{NAME}", ""), "{name}"),
        ('<g id="1">dog</g> runs', lambda line: line.upper() + " #" * ("run" in line), "#"),
        ('<g id="1">dog</g> of {a} and {b}', lambda line: line.upper().replace("{", "("), "{a}, {b}"),
    ],
)
def test_a_branch_that_would_lose_its_number_or_an_argument_stays_and_is_named(branch, translate, named, caplog):
    message = f"{{N, plural, one {{{branch}}} other {{dogs}}}}"
    unit = f'<trans-unit id="7"><source>{message}</source></trans-unit>'
    result = translated(f'<xliff version="1.2"><file><body>{unit}</body></file></xliff>', xliff_parts, translate)
    assert f"one {{{branch}}}" in result.partition("<target")[2] and "other {DOGS" in result.partition("<target")[2]
    [message] = [message for message in caplog.messages if "stays untranslated" in message]
    assert message.startswith("file, unit 7: the branch ") and message.endswith(f"has not as many of {named}")


@pytest.mark.parametrize(
    "text, parts, where",
    [
        ("<p>a</p>\n<p>{N, plural, one {<b>#</b> dog} other {x}}</p>", html_parts, "file, line 2: "),
        ("1\n00:00:01,000 --> 00:00:02,000\n{N, plural, one {<b>#</b> dog} other {x}}\n", srt_parts, "file, line 3: "),
    ],
)
def test_so_does_one_of_other_files_with_its_line(text, parts, where, caplog):
    assert "{<b>#</b> dog}" in translated(text, parts, lambda line: line.upper().replace("#", "NO"))
    assert [message for message in caplog.messages if message.startswith(where)]


def test_the_words_of_a_karaoke_stay_between_its_times_and_speakers_apart():
    cue = "<00:00:00.500>The <00:00:01.000>man <00:00:01.500>ran"
    assert translated(FILES["vtt"].format(cue), vtt_parts) == FILES["vtt"].format(
        "<00:00:00.500>RAN <00:00:01.000>MAN <00:00:01.500>THE"
    )
    cue = "<v Bob>Two dogs <c.yellow>are running</c>\n<v Mary>A cat sleeps."
    assert translated(FILES["vtt"].format(cue), vtt_parts) == FILES["vtt"].format(
        "<v Bob><c.yellow>RUNNING ARE</c> DOGS TWO\n<v Mary>SLEEPS CAT A."
    )


SENTENCES = st.lists(st.sampled_from(["<b>", "</b>", "<i>", "</i>", "a", "dog", "runs.", "The", "cat"]), max_size=12)


@settings(max_examples=100, deadline=None)
@given(SENTENCES, ALIGNMENTS)
def test_pairs_that_reach_over_sentences_nest_as_well_as_before(pieces, alignment):
    """Those of a well-formed text are well-formed again; each tag is there once."""
    text, unclosed = "", []
    for piece in pieces:
        if piece.startswith("</"):
            piece = f"</{unclosed.pop()}>" if unclosed else "x"
        elif piece.startswith("<"):
            unclosed.append(piece[1])
        text += f" {piece}"
    text = f"<p>{text}{''.join(f'</{name}>' for name in reversed(unclosed))}</p>"
    result = translated(text, alignment=lambda line: alignment)
    assert sorted(re.findall("<.*?>", result)) == sorted(re.findall("<.*?>", text))
    ElementTree.fromstring(result)


def test_a_sign_beside_white_space_at_an_end_stands_at_that_end():
    signs = {name: with_signs("", [(0, name)]) for name in ("<b>",)}
    for text, place in (("{} a", 0), (" {}a", 0), ("a {}", 1), ("a{} ", 1), ("a {}b", 2)):
        assert taken_apart(text.format(signs["<b>"]))[1] == {0: place}
