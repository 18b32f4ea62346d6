"""Subtitles, beside the laws of every format (test_formats.py)."""

import re

import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats.subtitles import balanced, laid_out, shown_length
from tests.support.documents import capitals, texts_of, through


def test_cues_that_no_empty_line_parts_are_two_in_the_files_of_windows_too():
    assert texts_of("srt", "1\r\n0:0:1,0 --> 0:0:2,0\r\na\r\n2\r\n0:0:3,0 --> 0:0:4,0\r\nb\r\n") == ["a", "b"]


TIMES = "00:00:01,000 --> 00:00:02,000\n"


@pytest.mark.parametrize(
    "name, text, texts",
    [
        ("srt", f"1\n{TIMES}a\n{TIMES}b\n", ["a", "b"]),  # no number between two cues
        ("srt", f"1\n{TIMES}a\n\nb\n3\n{TIMES}c\n", ["a", "b", "c"]),
        ("srt", f"\ufeff{TIMES}a\n", ["a"]),  # a byte order mark before times
        ("srt", f"\ufeff1\n{TIMES}a\n\n2\n{TIMES}b\n", ["a", "b"]),
        ("srt", f"1\n{TIMES}a\n\n1984\n\n2\n{TIMES}b\n", ["a", "b"]),  # a cue of which a line is a number
        ("srt", f"1\n{TIMES}a\n\n1984\nc\n2\n{TIMES}b\n", ["a", "c", "b"]),
        ("srt", f"1\n{TIMES}three\n\n2\n\n2\n{TIMES}b\n\n3\n", ["three", "b"]),
        ("srt", "1\n00:00:01 --> 00:00:02\na\n\n2\n00:00:03,1 --> 00:00:04\nb\n", ["a", "b"]),
        ("srt", "1\n00:01 --> 00:02 X1:40\na\n", ["a"]),
        ("srt", "1\r00:00:01,000 --> 00:00:02,000\ra\rb\r\r2\r00:00:03,000 --> 00:00:04,000\rc", ["a b", "c"]),
        ("vtt", "WEBVTT\r\r00:01.000 --> 00:02.000\ra\r\r\n00:01.000 --> 00:02.000\nb\r\n\rNOTE c\r", ["a", "b"]),
        ("vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\na &amp b &lt;&gt c\n", ["a & b <> c"]),  # as in HTML
        ("vtt", "WEBVTT\nX: a --> b\nNOTE x\ny --> z\n\nNOTE x\ny --> z\n\n01:00.000 --> 02:00.000\na\n", ["a"]),
        ("vtt", "WEBVTT\n\n59:59.000 --> 1:00:00.000\na\n", ["a"]),
        ("vtt", "\ufeffWEBVTT\n\n00:01.000 --> 00:01.000\na\n", ["a"]),
    ],
)
def test_only_what_stands_in_cues_is_text_and_cues_may_be_of_no_time(name, text, texts):
    assert texts_of(name, text) == texts and through(name, text, str) == text


@pytest.mark.parametrize(
    "text, sentence",
    [
        ("\ufeffa\nb\n", "file has no cue: after its first line, 'a', none is such as"),
        (
            "1\n00:00:01,5 --> 00:00:01,30\na\n",
            "line 2 has a cue that ends before it begins: '00:00:01,5 --> 00:00:01,30'",
        ),
        ("1\na\n", "line 2 is 'a', not the times of cue 1, such as 00:00:01,000 --> 00:00:02,500"),
        (f"1\n{5000 * '9'}:00:01,5 --> 9:00:01,5\n", "line 2 has broken times: '999"),
        (f"1\n{TIMES}a\n\n2\nb\n", "line 6 is 'b', not the times of cue 2, such as 00:00:01,000"),
        ("1\n00:00:01,5,5 --> 00:00:02\n", "line 2 has broken times"),
        ("1\n00:00:61 --> 00:01:02\n", "line 2 has broken times"),
        ("1\n00:00:01,5 -->\n", "line 2 has broken times: '00:00:01,5 -->'; they are such as 00:00:01,000"),
    ],
)
def test_an_error_names_what_was_found(text, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        through("srt", text, str)


def test_a_line_as_long_as_the_longest_is_not_broken_and_a_word_never_is():
    assert laid_out("aa bb cc dd", 5, "\n") == "aa bb\ncc dd"
    assert laid_out("aaaaaaa bbb", 3, "\r\n") == "aaaaaaa\r\nbbb"
    assert laid_out("aa\nbb", 2, "\n") == "aa\nbb"
    assert shown_length(" <i>a</i> {\\an8}b ") == 3
    cue = "WEBVTT\n\n00:01.000 --> 00:02.000\n{} dog & a cat that are as many letters as they were.\n"
    assert through("vtt", cue.format("a"), lambda text: f"A{text[1:]}") == cue.replace("&", "&amp;").format("A")
    assert balanced(["aaa"], 2) == ["aaa"]


@pytest.mark.parametrize("mark", ["<br>", r"\N", "\n", "\r\n"])
def test_lines_that_break_in_any_notation_have_their_own_lengths_and_a_longer_text_breaks_as_they_do(mark):
    start, lines = (
        "1\n00:00:01,000 --> 00:00:02,000\n",
        ["A man in a blue shirt is standing", "on a ladder. He cleans."],
    )
    cue = f"{start}{mark.join(lines)}\n"
    assert through("srt", cue, capitals) == f"{start}{mark.join(map(capitals, lines))}\n"
    long = through("srt", cue, lambda text: "word " * 30).split("02,000\n")[1].rstrip()
    lines = long.split(mark)
    assert len(lines) > 2 and max(map(len, lines)) <= 42 and set(" ".join(lines).split()) == {"word"}


@pytest.mark.parametrize("mark", ["<br>", "<br />", "<BR/>", r"\N", " <br/> ", "\n", "\r\n"])
@pytest.mark.parametrize("name", ["srt", "vtt"])
def test_a_line_break_in_any_notation_parts_two_words_and_stays(name, mark):
    cue = f"{'WEBVTT' * (name == 'vtt')}\n\n00:00:01,000 --> 00:00:02,000\n<i>A man{mark}sleeps.</i>\n"
    assert texts_of(name, cue) == ["A man sleeps."]
    path = cue.replace(f"man{mark}", r"man in C:\New ")
    assert texts_of(name, path) == [r"A man in C:\New sleeps."]
    assert through(name, cue, capitals).endswith(f"\n<i>A MAN{mark}SLEEPS.</i>\n")
