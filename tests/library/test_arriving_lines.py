"""Lines of a stream as they arrive: whoever waits for the answer to a line gets it."""

import io
import os
import pty
import select
import threading

import pytest

from keras_transformer.commands import arriving_lines, console, files
from keras_transformer.commands.arriving_lines import ArrivingLines
from keras_transformer.commands.files import FileArguments, road_of_lines, translate_files

TEXTS = [b"", b"\n", b"a", b"a\n", b"a\nb", b"a\r\n\n\nb\n", b"x" * 200_000 + b"\n" + b"y" * 70_000]


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: f"{text[:9]!r}")
@pytest.mark.parametrize("piece", [1, 3, arriving_lines.PIECE])
def test_the_lines_are_those_of_the_stream(tmp_path, monkeypatch, text, piece):
    monkeypatch.setattr(arriving_lines, "PIECE", max(piece, len(text) // 1_000))
    (tmp_path / "file").write_bytes(text)
    for opened in (io.BytesIO(text), open(tmp_path / "file", "rb")):
        with opened as stream:
            lines = ArrivingLines(stream)
            assert not lines.are_awaited() and list(lines) == list(io.BytesIO(text)) and not lines.are_awaited()


@pytest.fixture(params=["pipe", "terminal"])
def ends(request):
    """The two ends of a stream: to read, binary, and to write, a descriptor."""
    reading, writing = os.pipe() if request.param == "pipe" else pty.openpty()[::-1]
    with open(reading, "rb") as stream:
        yield stream, writing


def test_a_line_is_awaited_until_its_end_has_come(ends):
    stream, writing = ends
    lines = ArrivingLines(stream)
    assert lines.are_awaited()
    os.write(writing, b"one\ntwo\nthr")
    assert [(lines.are_awaited(), next(lines)) for _ in range(2)] == [(False, b"one\n"), (False, b"two\n")]
    assert lines.are_awaited()
    os.write(writing, b"ee\n")
    assert not lines.are_awaited() and next(lines) == b"three\n"
    os.close(writing)


@pytest.fixture
def talk(monkeypatch):
    """A function that answers lines by `translate`, each of which is written when the answer to the last has come."""

    def talk(translate, *lines):
        (asked, asking), (answered, answering) = os.pipe(), os.pipe()
        monkeypatch.setattr(console.sys, "stdin", io.TextIOWrapper(open(asked, "rb")))
        monkeypatch.setattr(console.sys, "stdout", io.TextIOWrapper(open(answering, "wb")))
        thread = threading.Thread(target=translate, daemon=True)
        thread.start()
        with open(answered, "rb", buffering=0) as answers, open(asking, "wb", buffering=0) as questions:
            for line in lines:
                questions.write(line)
                yield answers.readline() if select.select([answers], [], [], 10)[0] else None
        thread.join(10)

    return talk


def upper(lines, first_line):
    return [f"{first_line + number} {line.upper()}\n" for number, line in enumerate(lines)]


def of_files():
    translate_files(road_of_lines(upper, iter), FileArguments("lines", (), "en", None, None), 128, dict)


@pytest.mark.parametrize("translate", [lambda: console.translate_lines(upper, 128), of_files])
def test_a_program_that_waits_for_each_answer_gets_it(talk, translate):
    assert list(talk(translate, b"a\n", b"b\nc\n", b"")) == [b"1 A\n", b"2 B\n", b"3 C\n"]


def test_what_nobody_waits_for_is_written_by_many(tmp_path, monkeypatch):
    """To a file: each write is flushed to the disk."""
    monkeypatch.setattr(files.ArrivingLines, "are_awaited", lambda self: True)
    (tmp_path / "in").write_text("a\n" * 5)
    sizes = []

    def counted(lines, first_line):
        sizes.append(len(lines))
        return upper(lines, first_line)

    paths = FileArguments("lines", (), "en", tmp_path / "in", tmp_path / "out")
    translate_files(road_of_lines(counted, iter), paths, 128, dict)
    assert sizes == [5]
