"""Files of every format: what is not text stays byte for byte, and what is wrong is one sentence with its line."""

import io
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.ground.errors import InputError, UserError
from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.parts import TranslatedError
from keras_transformer.text.formats.subtitles import balanced, laid_out
from tests.support.documents import capitals, texts_of, through

FILES = {
    "text": [
        "\ufeffHello there. How are\r\nyou?\r\n\r\n - a b\n\n\nEnd",
        "",
        "\n\n",
        "no end",
        "a\rb\x0bc\x85d\u2029e\r",
        "# Title\n\n1. One.\n2. Two. It is\n> that. x\n",
    ],
    "jsonl": [
        '\ufeff{"id": 1.50, "text": "Hi \\u00e9\\n\\nyou. A \\"b\\" c\\/d.", "x":{"text":"q"}}\r\n\n{ "text" : null}\n',
        '{"text":"\\ud83c\\udf89 party","text":"twice"}',
        '{"a": [1, {"text": "}"}], "text"\t:\t"" , "b": -0.10e5}\n',
        f'{{"n": {"1" * 5000}, "x": NaN, "id": "\\ud800", "tex\\u0074": "A\u2028b"}}\n',
    ],
    "tsv": ["\ufeffid\ttext\r\n1\tHello there. Bye.\tx\r\n\r\n2\tA  b\n", "text\n", "text\tb\n \t\n", 'text\n"a\tb"\n'],
    "srt": [
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,500 X1:2\r\n<i>A dog runs</i> across\r\nthe field.\r\n\r\n2\r\n"
        "00:00:03,000 --> 00:00:04,000\r\n- Hello. {\\an8}\r\n-Hi & bye.\r\n\r\n\r\n",
        "00:00:01,000 --> 00:00:02,500\nno number\n\n\n7\n00:00:03,0 --> 00:00:04,00\n\n8\n"
        "0:00:05,000 --> 0:00:06,000\n<b>x</b>",
        "By me\n\n1\n00:00:01,000 --> 00:00:02,500\nA dog\n \nruns\n2\n00:00:03,0 --> 00:00:04,0\n{b}Hi{/b}\n1984\n",
        "1\n00:00:01,000 --> 00:00:02,500\nA\u2028\n\u2029dog.\n\u2028 \r\n A\u2028<i>\n</i>cat\x85\nthat is so large "
        "that a\u2028\nwrapped line\u2028ends here, and goes on in the next line of it\u2028\nso.",
        "1\n00:00:01,000 --> 00:00:02,500\nThis is a line that has fifty characters, or so\n\u2028characters, and "
        "goes on\nin the next one",
    ],
    "vtt": [
        "WEBVTT - title\nfoo\n\nNOTE hello --> there\nthis\n\nSTYLE\n::cue {}\n\nid1\n"
        "00:01.000 --> 00:02.000 align:left\n"
        "<v Bob>Hello &amp; bye,\nmy <c.x>dear</c> friend.\n\n01:00:01.000 --> 01:00:02.000\nEnd.",
        "\ufeffWEBVTT\r\n\r\nREGION\r\nid:a\r\n\r\n00:01.000 --> 00:01.000\r\n<00:01.000>a&nbsp;b\r\n",
    ],
    "html": [
        "<!doctype html>\r\n<html><head><title>A title</title><script>if (a<b) 'x';</script><style>p{}</style></head>"
        "<body>\r\n<!-- c --><p>A <b>big</b> dog &amp; a cat&nbsp;run\r\n  fast. Then <code>x = 1</code> ends.<br>"
        "New line<img src=a> here\n<pre>keep  me</pre><ul><li>one<li>two <a href='x>y'>link</a></ul>"
        "<p translate=no>Not me</p>"
        "<![CDATA[x]]> <svg><text>t</text></svg>&#8212; a < b &copy 1 & 2</body></html>\n",
        "<p>See<?php echo '>' ?>this<?= 1 ?> <p translate=NO>no</p><xmp><b>no</b></xmp><?php unclosed ><p>End",
        "plain & text",
        "<P CLASS=notranslate>no</P>\n<TextArea>no</TEXTAREA><?php echo 1 ?><p>it is\n\n1 < 2 </p >",
    ],
    "xliff": [
        '<?xml version="1.0" encoding="UTF-8"?>\r\n<xliff version="1.2" xmlns:x="urn:x"><file><body>\r\n  '
        '<trans-unit id="1"><source>Old</source><target>Alt &#38; gut</target><alt-trans><source>s</source>'
        "<target/></alt-trans></trans-unit>"
        "<trans-unit id='2' translate=\"no\"><source>No</source></trans-unit></body></file></xliff>\n",
        '\ufeff<xliff version="2.0"><file><unit id="1"><segment><source>A</source><target><ph id="1"/></target>'
        "</segment>"
        "<ignorable><source> </source></ignorable></unit><!-- c --><?pi x?></file></xliff>",
    ],
}
CASES = [(name, text) for name, texts in FILES.items() for text in texts]
TEXTS_OF = {  # of the first file of each format
    "text": ["Hello there.", "How are", "you?", "a b", "End"],
    "jsonl": ["Hi é", "you.", 'A "b" c/d.'],
    "tsv": ["Hello there.", "Bye.", "A  b"],
    "srt": ["A dog runs across the field.", "Hello.", "Hi & bye."],
    "vtt": ["Hello & bye, my dear friend.", "End."],
    "html": [
        "A title",
        "A big dog & a cat\xa0run fast.",
        "Then ends.",
        "New line here",
        "one",
        "two link",
        "a < b © 1 & 2",
    ],
    "xliff": [],
}


@pytest.mark.parametrize("name, text", CASES)
def test_an_identity_gives_every_file_back(name, text):
    assert through(name, text, str) == text


@pytest.mark.parametrize("name", TEXTS_OF)
def test_a_model_reads_sentences_without_markup(name):
    assert texts_of(name, FILES[name][0]) == TEXTS_OF[name]


@pytest.mark.parametrize("name, text", [case for case in CASES if case[0] not in ("html", "jsonl")])
def test_sentences_that_keep_their_lengths_change_nothing_else(name, text):
    assert through(name, text, capitals).lower() == text.lower()


@pytest.mark.parametrize(
    "name, number, seen",
    [
        ("text", 5, ["Title", "One.", "Two.", "It is", "that.", "x"]),
        ("srt", 2, ["A dog", "runs", "Hi 1984"]),
        ("html", 1, ["See", "this", "End"]),
    ],
)
def test_numbers_of_items_code_and_times_are_no_text_and_what_follows_an_empty_line_is(name, number, seen):
    assert texts_of(name, FILES[name][number]) == seen


def test_a_tag_between_two_line_breaks_stands_before_the_next_word():
    line = "This is a line that has fifty characters, or so{}characters and</i> goes on"
    cue = f"1\n00:00:01,000 --> 00:00:02,500\n{line}"
    assert through("srt", cue.format("\u2028<i>\n"), capitals) == capitals(cue).format("\u2028\n<i>").replace(
        "</I>", "</i>"
    )


def test_all_columns_of_a_name_are_translated():
    assert through("tsv", "a\tid\ta\nx\ty\tz\n", capitals, ["a"]) == "a\tid\ta\nX\ty\tZ\n"


def test_what_stands_between_sentences_keeps_its_notation():
    line = '{"text": "A\\u00e9.\\u000aB.\\n", "z": 1}\n'
    assert (
        through("jsonl", line, lambda text: 'say "x"\\')
        == '{"text": "say \\"x\\"\\\\\\u000asay \\"x\\"\\\\\\n", "z": 1}\n'
    )
    assert through("html", "<p>One.&#32;Two &amp;c.", lambda text: "1 < 2") == "<p>1 &lt; 2&#32;1 &lt; 2"
    assert through("html", "<p>One.", lambda text: 'say "x"') == '<p>say "x"'
    assert through("tsv", "a\tb\n", lambda text: "x\ty", ["2"]) == "a\tx y\n"


def test_a_sentence_that_is_wrapped_stays_wrapped():
    assert through("html", "<p>A dog\n  runs.</p>", lambda text: "Ein Hund rennt.") == "<p>Ein Hund\n  rennt.</p>"
    unit = "<trans-unit id='1'><source>A dog\nruns.</source><target></target></trans-unit>"
    text = f"<xliff version='1.2'><file target-language='de'><body>{unit}</body></file></xliff>"
    assert "<target>Ein Hund\nrennt.</target>" in through("xliff", text, lambda text: "Ein Hund rennt.")


def test_a_target_has_the_indentation_of_its_source():
    source = "\n      A dog that is big\n      runs over the grass.\n    "
    unit = f"<trans-unit id='1'><source>{source}</source><target></target></trans-unit>"
    text = f"<xliff version='1.2'><file target-language='de'><body>{unit}</body></file></xliff>"
    asked = []

    def capitals(text):
        asked.append(text)
        return text.upper()

    assert f"<target>{source.upper()}</target>" in through("xliff", text, capitals)
    assert asked == ["A dog that is big runs over the grass."]


def test_tags_go_with_their_words_in_proportion():
    html = "<p>A <b>dog</b> runs.</p>"
    assert through("html", html, lambda text: "Ein Hund rennt.") == "<p>Ein <b>Hund</b> rennt.</p>"
    assert through("html", html, lambda text: "Wau") == "<p><b>Wau</b></p>"
    code = "<p>Call <code>f(x)</code> now.</p>"
    assert through("html", code, lambda text: "Rufe jetzt auf.") == "<p>Rufe jetzt <code>f(x)</code> auf.</p>"


TAG = st.sampled_from(
    ["<b>", "</b>", "<i>", "</i>", "<br>", "<p>", "</p>", "<!-- c -->", "&amp;", "&lt;", "<img>", "\n"]
)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(TAG | st.sampled_from(["dog", " ", "runs. ", "A", "é"]), max_size=25),
    st.sampled_from(["", "x", "one two"]),
)
def test_no_tag_is_lost_whatever_comes_out_of_a_model(pieces, word):
    text = "".join(pieces)
    parts, written = FORMATS["html"](io.BytesIO(text.encode()), "file", ()), []
    with_errors(parts, written)
    output = through_tolerant(text, word)
    assert re.findall(r"<[^>]*>", output) == re.findall(r"<[^>]*>", text)
    assert through_tolerant(text, None) == text


def with_errors(parts, written):
    try:
        written.extend(parts)
    except TranslatedError:
        pass
    return written


def through_tolerant(text, word):
    from tests.support.documents import translated

    parts = with_errors(FORMATS["html"](io.BytesIO(text.encode()), "file", ()), [])
    return translated(parts, str if word is None else lambda line: word)


# Subtitles


def test_a_line_that_is_too_long_for_the_screen_becomes_lines_of_equal_length():
    cue = "1\n00:00:01,000 --> 00:00:02,500\n<i>Short one.</i>\n\n"
    long = "This translation is so long that a screen has no room for all of it in one line"
    lines = through("srt", cue, lambda text: long).split("\n")[2:-2]
    shown = [re.sub("<[^>]*>", "", line) for line in lines]
    assert " ".join(shown) == long and len(lines) == 2 and max(map(len, shown)) <= 42
    assert max(map(len, shown)) - min(map(len, shown)) <= 10


def test_lines_may_be_as_long_as_those_of_the_cue():
    cue = f"00:00:01,000 --> 00:00:02,500\n{'word ' * 12}end\n"
    assert through("srt", cue, capitals).count("\n") == cue.count("\n")


@pytest.mark.release
@pytest.mark.parametrize("name, text", [case for case in CASES if case[0] in ("srt", "vtt")])
def test_pysubs2_reads_the_same_times_and_the_translations(name, text):
    pysubs2 = pytest.importorskip("pysubs2")
    before, after = (
        pysubs2.SSAFile.from_string(each.removeprefix("\ufeff"), name) for each in (text, through(name, text, capitals))
    )
    assert [(event.start, event.end) for event in after] == [(event.start, event.end) for event in before]
    assert [event.plaintext.lower() for event in after] == [event.plaintext.lower() for event in before]
    assert after.events


@pytest.mark.parametrize(
    "words, lines", [("a bb c", ["a bb", "c"]), ("a bbb c", ["a bbb", "c"]), ("aa b", ["aa", "b"])]
)
def test_a_word_is_in_the_line_that_has_room_for_half_of_it(words, lines):
    assert balanced(words.split(), 2) == lines
    assert laid_out(f"{words}\n{words}cc", len(words), "\n").count("\n") > 1  # one line that is too long is enough


# Bad input

BAD = [
    ("jsonl", '{"text": "a"}\n{"text": \n', 2, "line 2 is not JSON"),
    ("jsonl", "[1]\n", 0, r"line 1 is not a JSON object with fields, but \[1\]"),
    ("jsonl", '{"text": "a"}\n\n{"b": 1}\n', 3, "line 3 has no field 'text'; it has b"),
    ("jsonl", '{"text": 1.5}', 0, "line 1: the field 'text' is 1.5, not a text"),
    ("tsv", "id\ttext\n1\ta\n2\n", 4, "line 3 has 1 field, and field 2 is to be translated"),
    ("jsonl", '{"text": "a"}\n{"text": "\\ud83d"}', 3, r"line 2: the field 'text' has \\ud83d, half of a character"),
    ("tsv", "\n", 0, "line 1 has no field 'text'; it has none"),
    ("tsv", "text\ra\rb", 0, "has 3 lines that end in CR alone"),
    ("tsv", "id\tbody\n", 0, "line 1 has no field 'text'; it has id, body"),
    ("srt", "1\n00:00:01,000 --> 00:00:02,000\na\n\n2\n00:00:xx --> 00\n", 2, "line 6 has broken times: '00:00:xx"),
    ("srt", "1\n00:00:01,000 --> 00:00:02,000\na\n\n2\ntext\n", 2, "line 6 is 'text', not the times of cue 2"),
    ("srt", "1\n00:00:03,000 --> 00:00:02,000\na\n", 1, "line 2 has a cue that ends before it begins"),
    ("srt", "1\n\n2\n", 1, "line 2 is '', not the times of cue 1"),
    ("srt", "\ufeff\nA dog.\n\nA cat.\n", 4, "has no cue: after its first line, 'A dog.', none is such as"),
    ("vtt", "1\n00:00:03,000 --> 00:00:02,000\n", 0, "line 1 is '1'; a WebVTT file begins with WEBVTT"),
    ("vtt", "WEBVTT\n\n00:61.000 --> 01:00.000\na\n", 2, "line 3 has broken times"),
    ("html", "<p>a\n<div>b <i>c", 3, "line 2: <div> is not closed, and 1 more are not"),
    ("html", "<p>a</p>\n<!-- b", 1, "line 2: a tag or comment is not closed"),
    ("html", "<p>a</p>\n\n<a href='b", 1, "line 3: a tag or comment is not closed"),
    ("xliff", "<xliff>\n<file>", 0, "line 2 is not XML: no element found"),
    ("xliff", "", 0, "line 1 is not XML: no element found"),
    ("xliff", "<html/>", 0, "is XML, but no XLIFF: its first element is <html>"),
]


@pytest.mark.parametrize("name, text, least, sentence", BAD)
def test_what_is_wrong_is_one_sentence_after_all_that_is_right(name, text, least, sentence):
    seen, parts = [], FORMATS[name](io.BytesIO(text.encode()), "file", ["text"])
    with pytest.raises(InputError, match=f"^file,? ?{sentence}") as caught:
        for part in parts:
            seen.append(part if isinstance(part, str) else part.passage.raw)
    assert len(seen) >= least and text.startswith("".join(seen)) and "\n" not in str(caught.value)
    assert not isinstance(caught.value, TranslatedError) or "".join(seen) == text


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("properties", "docx")])
def test_bytes_that_are_not_utf_8_are_named(name):
    beginning = {"vtt": b"WEBVTT\n", "jsonl": b'{"text": ""}\n', "tsv": b"text\n"}.get(name, b"\n")
    with pytest.raises(InputError, match="file, line 2 is not UTF-8: its byte 2 is 0xe9"):
        list(FORMATS[name](io.BytesIO(beginning + b"a\xe9\n"), "file", ["text"]))


@pytest.mark.parametrize("name", ["jsonl", "tsv"])
def test_records_need_fields(name):
    with pytest.raises(UserError, match="needs the fields that are translated, such as --field"):
        list(FORMATS[name](io.BytesIO(b""), "file", []))
    if name == "tsv":
        with pytest.raises(UserError, match="there is no field 0"):
            list(FORMATS[name](io.BytesIO(b"a"), "file", ["0"]))
        with pytest.raises(InputError, match="line 1 has no field '1'; it has text"):  # with a name, all are names
            list(FORMATS[name](io.BytesIO(b"text\na\n"), "file", ["text", "1"]))


def test_a_file_of_one_paragraph_is_read_in_parts():
    lines = itertools.repeat(b"a line\n")
    parts = FORMATS["text"](lines, "file", [])
    assert len(next(parts).passage.text) < 10_000


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("android", '<resources><string name="a">{}</string></resources>'),
        ("strings", '"a" = "{}";'),
        ("properties", "a={}\n"),
        ("ts", "<TS><context><message><source>{}</source><translation/></message></context></TS>"),
    ],
)
@pytest.mark.parametrize(
    ("message", "has_words"),
    [
        ("{n, plural, =1 {# dog} other {# dogs}}", True),
        ("{a, select, x {{n, plural, one {a dog} other {#}}} other {}}", True),
        ("{a, select, one {1} other {2}}", False),
        ("{n, plural, one {{name}} other {#}}", False),
        ("{name}", False),
    ],
)
def test_a_text_that_is_an_icu_message_is_translated_if_a_branch_has_words(name, file, message, has_words):
    """Its selectors are no words, and its branches are no placeholders."""
    assert texts_of(name, file.replace("{}", message)) == ([message] if has_words else [])
