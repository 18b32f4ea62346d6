"""Subtitles, beside the laws of every format (test_formats.py)."""

from tests.support.documents import texts_of


def test_cues_that_no_empty_line_parts_are_two_in_the_files_of_windows_too():
    assert texts_of("srt", "1\r\n0:0:1,0 --> 0:0:2,0\r\na\r\n2\r\n0:0:3,0 --> 0:0:4,0\r\nb\r\n") == ["a", "b"]
