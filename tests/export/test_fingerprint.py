"""What a version consists of on disk: every change of a file is seen, and what is no file is not read."""

import os
import socket

import pytest

from export.server.model_folder import files_of, fingerprint_of, refuse_pipes
from export.versions import ExportError


@pytest.fixture
def version(tmp_path):
    (tmp_path / "1" / "variables").mkdir(parents=True)
    for name in ("saved_model.pb", "variables/index", "variables/data"):
        (tmp_path / "1" / name).write_text(name)
    return tmp_path / "1"


def other_time(file):
    os.utime(file, ns=(1, 1))


def other_size(file):
    time = file.stat().st_mtime_ns
    file.write_text("other")
    os.utime(file, ns=(time, time))


def other_place(file):
    """A link to a copy with the same size and time."""
    kept = file.rename(file.parents[2] / "kept")
    file.symlink_to(kept)


@pytest.mark.parametrize("name", ["saved_model.pb", "variables/index"])
@pytest.mark.parametrize("change", [other_time, other_size, other_place, lambda file: file.unlink()])
def test_each_change_of_each_file_is_seen_and_nothing_else(name, change, version):
    before = fingerprint_of(version)
    assert fingerprint_of(version) == before and len(before) == 4
    change(version / name)
    assert fingerprint_of(version) != before


def test_files_are_in_order_and_behind_a_link_one_folder_deep(version, tmp_path):
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere" / "deep" / "file").touch()
    (tmp_path / "elsewhere" / "first").touch()
    (version / "assets").symlink_to(tmp_path / "elsewhere")
    names = [str(file.relative_to(version)) for file in files_of(version)]
    assert names == sorted(names)
    assert {"assets/deep", "assets/first", "variables/data"} <= set(names) and "assets/deep/file" not in names


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no pipes in folders")
@pytest.mark.parametrize("is_behind_a_link", [False, True])
@pytest.mark.parametrize("kind", ["pipe", "socket"])
def test_a_pipe_and_a_socket_are_refused_by_name(kind, is_behind_a_link, version, tmp_path, monkeypatch):
    refuse_pipes(version)
    (version / "broken").symlink_to("nowhere")
    refuse_pipes(version)
    place = tmp_path if is_behind_a_link else version / "variables"
    monkeypatch.chdir(place)  # the path of a socket is short
    if kind == "pipe":
        os.mkfifo("odd")
    else:
        socket.socket(socket.AF_UNIX).bind("odd")
    if is_behind_a_link:
        (version / "variables" / "odd").symlink_to(place / "odd")
    with pytest.raises(ExportError, match="variables/odd is neither a file nor a folder"):
        refuse_pipes(version)


def test_a_link_that_leads_nowhere_hides_no_other_file(version):
    before = fingerprint_of(version)
    (version / "a link").symlink_to("nowhere")  # the first one
    assert fingerprint_of(version) == before
