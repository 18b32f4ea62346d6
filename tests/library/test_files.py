"""Reading lines and replacing files atomically."""

import bz2
import errno
import gzip
import lzma
import os
import pathlib

import pytest

from keras_transformer.commands.arriving_lines import ArrivingLines
from keras_transformer.ground import files
from keras_transformer.ground.errors import InputError, first_line_of
from keras_transformer.ground.files import (
    behind_links,
    check_replaceable,
    read_lines,
    sha256_of_folder,
    stderr_into,
    write_atomically,
)


def test_only_a_line_feed_ends_a_line_and_carriage_return_and_byte_order_mark_are_removed():
    stream = [b"\xef\xbb\xbfone\r\n", "two\u2028still two\n".encode(), b"\n", b"\xef\xbb\xbflast"]
    assert list(read_lines(stream, "x")) == ["one", "two\u2028still two", "", "\ufefflast"]


def test_bytes_that_are_not_utf_8_are_named_by_line_and_byte():
    with pytest.raises(InputError, match="in.txt, line 2 .* byte 3 is 0xff"):
        list(read_lines([b"fine\n", b"ab\xff\n"], "in.txt"))


@pytest.mark.parametrize(
    "content, cause",
    [
        (gzip.compress(b"a line", mtime=0), "gzip"),
        ("a line".encode("utf-16"), "UTF-16"),
        (b"\xfe\xff\x00a", "UTF-16"),
        ("\ufeffa line".encode("utf-32-le"), "UTF-32"),
        ("\ufeffa line".encode("utf-32-be"), "UTF-32"),
        ("für\n".encode("utf-16-le"), "UTF-16LE"),
        ("a line".encode("utf-16-be"), "UTF-16BE"),
        (b"\x7fELF\x02\x01\x00\x00\xf0", "no text"),
        (b"caf\xe9", "WINDOWS-1252"),
        (lzma.compress(b"a line"), "unxz"),
        (bz2.compress(b"a line"), "bunzip2"),
        (b"\x28\xb5\x2f\xfd\x04\x00", "unzstd"),
        (b"PK\x03\x04\x14\xff", "funzip"),
        (b"PK\x03\x04\x14\xff" + 24 * b"\0" + b"[Content_Types].xml", "an office program"),  # .docx
        (b"PK\x03\x04\x14\xff" + 24 * b"\0" + b"mimetypeapplication/epub", "an e-book"),
    ],
)
def test_the_likely_cause_is_named(content, cause):
    with pytest.raises(InputError, match=f"line 1 .*{cause}"):
        list(read_lines([content], "in.txt"))


@pytest.mark.parametrize("last", [b"", b"\n"])
@pytest.mark.parametrize("opened", ["a file", "gzip", "lines as they arrive"])
def test_no_more_is_read_of_a_line_than_its_bound(tmp_path, monkeypatch, opened, last):
    """As of /dev/zero, which has no end, and of a small file that is gigabytes when it is unpacked."""
    monkeypatch.setattr(files, "LONGEST_LINE", 1 << 20)
    content = [b"a\n", b"b" * ((1 << 20) - 1), b"\n", b"c" * (1 << 23), last, b"d\n"]
    path = tmp_path / "in.txt"
    path.write_bytes(gzip.compress(b"".join(content)) if opened == "gzip" else b"".join(content))
    with (gzip.open if opened == "gzip" else open)(path, "rb") as stream:
        lines = read_lines(ArrivingLines(stream) if opened == "lines as they arrive" else stream, "in.txt")
        assert [next(lines), len(next(lines))] == ["a", (1 << 20) - 1]
        with pytest.raises(InputError, match="in.txt, line 3 is longer than 1 MiB.* give a file of text"):
            next(lines)
        assert stream.tell() < 3 << 20


def test_a_file_whose_reading_fails_is_named(tmp_path):
    def failing():
        yield b"fine\n"
        raise OSError(errno.EIO, "Input/output error")

    lines = read_lines(failing(), tmp_path / "in.txt")
    assert next(lines) == "fine"
    with pytest.raises(OSError) as caught:
        next(lines)
    assert first_line_of(caught.value) == f"{tmp_path / 'in.txt'}: Input/output error."


@pytest.mark.parametrize(
    ("content", "lines"), [(b"one\rtwo\rthree", 3), (b"one\rtwo\r", 2), (b"\xef\xbb\xbfone\r\rtwo", 3)]
)
def test_a_text_whose_lines_end_in_cr_alone_is_refused(content, lines):
    with pytest.raises(InputError, match=rf"in.txt has {lines} lines that end in CR alone.*tr '.r' '.n'"):
        list(read_lines([content], "in.txt"))


@pytest.mark.parametrize("content", [b"one\r", b"one\r\n", b"one\r\r\n", b"one\rtwo\n"])
def test_a_cr_beside_a_line_feed_is_a_character_of_a_line(content):
    assert list(read_lines([content], "in.txt")) == [content.decode().removesuffix("\n").removesuffix("\r")]


def test_a_nul_here_and_there_is_a_character_of_a_line():
    for line in ("\0", "a\0", "\0a", "a\0b", "\0a\0\0", "\0\0\0\0"):
        assert list(read_lines([line.encode(), b"x\0y\0"], "in.txt")) == [line, "x\0y\0"]


def test_lines_before_an_invalid_one_are_read():
    lines = read_lines([b"one\n", b"two\n", b"\xff\n"], "in.txt")
    assert [next(lines), next(lines)] == ["one", "two"]
    with pytest.raises(InputError):
        next(lines)


@pytest.mark.parametrize("content", ["grün\n", "grün\n".encode(), lambda file: file.write("grün\n".encode())])
def test_a_file_is_replaced_by_text_bytes_or_what_a_function_writes(tmp_path, content):
    path = tmp_path / "file"
    path.write_text("old")
    write_atomically(path, content)
    assert path.read_bytes() == "grün\n".encode()
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_write_leaves_the_old_content_and_nothing_else(tmp_path):
    def fail(file):
        file.write(b"half")
        raise KeyboardInterrupt

    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


def test_the_old_content_stays_until_the_new_content_is_complete(tmp_path):
    path, seen = tmp_path / "file", []
    path.write_text("old")
    write_atomically(path, lambda file: seen.append((file.write(b"new"), path.read_text())))
    assert seen == [(3, "old")] and path.read_text() == "new"


@pytest.mark.parametrize("name", ["", ".", "folder", "/"])
def test_a_folder_is_not_a_file_to_write(tmp_path, monkeypatch, name):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(IsADirectoryError) as caught:
        write_atomically(name, "text")
    assert caught.value.filename == (name or ".") and [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_an_error_of_a_write_names_the_file(tmp_path):
    def fail(file):
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError) as caught:
        write_atomically(tmp_path / "file", fail)
    assert (caught.value.filename, caught.value.errno) == (str(tmp_path / "file"), errno.ENOSPC)
    with pytest.raises(FileNotFoundError) as caught:  # of another file, which it names itself
        write_atomically(tmp_path / "file", lambda file: open(tmp_path / "other"))
    assert caught.value.filename == str(tmp_path / "other")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_an_error_of_the_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(tmp_path / "none" / "file", "text")
    assert caught.value.filename == str(tmp_path / "none" / "file")


def test_the_content_is_on_the_disk_in_full_before_it_has_the_name(tmp_path, monkeypatch):
    """A machine that loses its power would otherwise keep the name, and zeros behind it."""
    calls, fsync, replace = [], os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda file: calls.append(os.fstat(file)) or fsync(file))
    monkeypatch.setattr(os, "replace", lambda part, path: calls.append(os.stat(part)) or replace(part, path))
    write_atomically(tmp_path / "file", "content")
    synced, renamed = calls
    assert os.path.samestat(synced, renamed) and synced.st_size == renamed.st_size == len("content")


def test_a_file_written_atomically_holds_the_new_or_the_old_content(tmp_path):
    path = tmp_path / "file"

    def fail(file):
        file.write(b"new")
        raise KeyboardInterrupt

    write_atomically(path, lambda file: file.write(b"old"))
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, fail)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
    write_atomically(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="Windows has neither such links nor such permissions")
def test_a_planted_link_is_not_followed(tmp_path):
    victim, path = tmp_path / "victim", tmp_path / "X"
    victim.write_text("untouched")
    path.with_name("X.part").symlink_to(victim)
    write_atomically(path, "new")
    assert path.read_text() == "new" and victim.read_text() == "untouched"
    assert not path.is_symlink() and not path.with_name("X.part").exists()
    path.unlink()
    path.symlink_to(victim)
    write_atomically(path, "newer")
    assert path.read_text() == "newer" and victim.read_text() == "untouched"


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such links")
def test_the_file_behind_links_is_what_a_user_names_by_them(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("far/file")
    (tmp_path / "circle").symlink_to("circle")
    for _ in range(2):  # there is no such file yet; there is one
        assert behind_links(tmp_path / "one") == (tmp_path / "far/file").resolve()
        write_atomically(behind_links(tmp_path / "one"), "new")
        assert (tmp_path / "one").is_symlink() and (tmp_path / "far/file").read_text() == "new"
    assert os.listdir(tmp_path / "far") == ["file"]
    for path in (pathlib.Path("name"), tmp_path / "far/../far/file", tmp_path / "nothing"):
        assert behind_links(path) is path
    with pytest.raises(OSError, match="circle"):
        behind_links(tmp_path / "circle")
    with pytest.raises(OSError, match="would be replaced: name a file"):
        behind_links(pathlib.Path("/dev/stdout"))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such permissions")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666, 0o444])
def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path, mode):
    path = tmp_path / "X"
    path.write_text("old")
    path.chmod(mode)
    write_atomically(path, lambda file: os.fstat(file.fileno()).st_mode & 0o777 == mode and file.write(b"new"))
    assert path.read_text() == "new" and path.stat().st_mode & 0o777 == mode
    fresh = tmp_path / "fresh"
    write_atomically(fresh, "x")
    (tmp_path / "other").write_text("x")
    assert fresh.stat().st_mode == (tmp_path / "other").stat().st_mode  # of the umask


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such files")
def test_a_folder_and_a_device_are_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    for path, sentence in ((tmp_path, "a folder"), (tmp_path / "pipe", "a pipe"), (tmp_path / "link", "a pipe")):
        with pytest.raises(OSError, match=sentence):
            write_atomically(path, "x")
    assert (tmp_path / "pipe").is_fifo() and (tmp_path / "link").is_symlink()


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="this system has no such files")
@pytest.mark.parametrize("name", ["/dev/fd/{}", "/proc/self/fd/{}"])
def test_the_name_of_a_stream_is_not_replaced_even_if_it_leads_to_a_file(tmp_path, name):
    """As /dev/stdout after `> page.html`: root would replace it for every process."""
    with open(tmp_path / "text", "w") as file, pytest.raises(OSError, match="would be replaced: name a file"):
        write_atomically(name.format(file.fileno()), "x")
    with pytest.raises(OSError, match="would be replaced: name a file"):
        check_replaceable(pathlib.Path("/dev/stdout"))
    write_atomically(tmp_path / "dev", "x")  # another folder, and a name that only looks alike


def test_a_folder_is_another_one_if_a_file_has_another_name_or_content(tmp_path):
    (tmp_path / "in").mkdir()
    sums = [sha256_of_folder(tmp_path)]
    (tmp_path / "in" / "index").write_text("a")
    sums.append(sha256_of_folder(tmp_path))
    (tmp_path / "in" / "index").write_text("b")
    sums.append(sha256_of_folder(tmp_path))
    (tmp_path / "in" / "index").rename(tmp_path / "index")
    sums.append(sha256_of_folder(tmp_path))
    assert len(set(sums)) == 4 and sha256_of_folder(tmp_path) == sums[-1]


def test_what_goes_to_stderr_goes_into_a_file_meanwhile_unless_there_is_no_stderr(tmp_path, monkeypatch):
    with open(tmp_path / "errors", "w+b") as file:
        with stderr_into(file):
            os.write(2, b"native\n")
        os.write(2, b"")
        file.seek(0)
        assert file.read() == b"native\n"

        def closed(number):
            raise OSError(errno.EBADF, "Bad file descriptor")

        monkeypatch.setattr(os, "dup", closed)
        before = os.fstat(2)
        with stderr_into(file):
            assert os.path.samestat(os.fstat(2), before)
