"""Links and pipes that somebody plants where a model is served from, or where an export is written."""

import asyncio
import os
import pathlib
import shutil
import threading

import pytest
import requests

from export.server.model_folder import ModelFolder, State
from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.version import Version
from export.versions import ExportError, publish, unfinished_version
from keras_transformer.runs.versions import CERTIFICATE
from tests.support.echo import write_echo
from tests.support.processes import wait_until

pytestmark = pytest.mark.release
OPTIONS = ServerOptions(port=0, grpc_port=0, poll_seconds=0.02)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Two versions whose files have the same sizes and times, as those of two trainings unpacked from archives."""
    folder = tmp_path_factory.mktemp("written")
    versions = {mark: write_echo(folder / mark, mark) for mark in ("a", "b")}
    for path in folder.rglob("*"):
        os.utime(path, (0, 0))
    return versions


@pytest.fixture
def folder(tmp_path, written):
    """A folder with the version 1, which marks its answers with an "a"."""
    shutil.copytree(written["a"], tmp_path / "echo" / "1")
    return tmp_path / "echo"


def turn(link, target):
    """Let a link lead to something else, in one step."""
    link.with_name(f".{link.name}.new").symlink_to(target)
    link.with_name(f".{link.name}.new").rename(link)


def answer(server):
    return requests.post(f"{server.url}:predict", json={"inputs": [""]}).json()["outputs"]["translation"][0]


def mark_of(model):
    """The mark of what a folder serves now, after another look at it."""
    import numpy as np

    asyncio.run(asyncio.wait_for(model.refresh(), 60))
    version = model.version()
    signature = version.signatures["serving_default"]
    return version.run(signature, ("translation",), {"text": np.array([b""], object)})["translation"][0].decode()


# links inside a served folder


@pytest.mark.parametrize("name", ["", "variables"])
def test_a_link_that_is_turned_changes_what_is_served(folder, written, name):
    """Even if the files behind it have the same sizes and times."""
    link, targets = folder / "1" / name, {mark: version / name for mark, version in written.items()}
    shutil.rmtree(link)
    link.symlink_to(targets["a"])
    model = ModelFolder.open(folder)
    assert mark_of(model) == "a"
    turn(link, targets["b"])
    assert mark_of(model) == "b"


def test_a_link_that_is_turned_while_its_version_loads_is_looked_at_again(folder, written, monkeypatch):
    model, warm_up = ModelFolder.open(folder), Version.warm_up
    (folder / "2").symlink_to(written["a"])

    def turn_once(version):
        if version.number == 2:
            monkeypatch.undo()
            turn(folder / "2", written["b"])
        return warm_up(version)

    monkeypatch.setattr(Version, "warm_up", turn_once)
    assert mark_of(model) == "a" and model.status[2].state is State.END
    assert mark_of(model) == "b" and model.status[2].state is State.AVAILABLE


def test_links_that_are_turned_all_the_time_lose_no_request(folder, written):
    targets, is_over = [*written.values(), folder.parent / "nothing"], threading.Event()

    def go_on():
        while not is_over.is_set():
            for target in targets:
                turn(folder / "2", target)
                is_over.wait(0.05)

    (folder / "2").symlink_to(written["a"])
    with local_server(folder, OPTIONS) as server:
        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            assert {answer(server) for _ in range(100)} <= {"a", "b"}
        finally:
            is_over.set()
            thread.join()
        turn(folder / "2", written["b"])
        wait_until(lambda: answer(server) == "b", [])


@pytest.mark.parametrize("target", ["7", ".", "..", "nothing", "/dev/null", "/dev/zero", "/etc/passwd", "/etc"])
def test_a_link_that_is_no_version_is_none(folder, target):
    (folder / "7").symlink_to(target)
    model = ModelFolder.open(folder)
    assert mark_of(model) == "a" and model.version().number == 1


def test_links_inside_a_version_that_lead_round_or_away_are_not_walked(folder, monkeypatch):
    for name, target in (("round", "."), ("self", "self"), ("away", "/"), ("up", "../..")):
        (folder / "1" / name).symlink_to(target)
    looked_at, realpath = [], os.path.realpath
    monkeypatch.setattr(os.path, "realpath", lambda path: looked_at.append(path) or realpath(path))
    model = ModelFolder.open(folder)
    assert mark_of(model) == "a" and len(looked_at) < 1000


@pytest.mark.parametrize("name", [CERTIFICATE, "variables/variables.index", "assets.extra/tf_serving_warmup_requests"])
@pytest.mark.parametrize("target", ["pipe", "/dev/zero"])
def test_what_never_ends_is_not_read(folder, written, name, target, caplog):
    os.mkfifo(folder.parent / "pipe")
    with local_server(folder, OPTIONS) as server:
        planted = shutil.copytree(written["b"], folder / ".2") / name
        planted.unlink(missing_ok=True)
        planted.parent.mkdir(exist_ok=True)
        planted.symlink_to(folder.parent / target)
        planted.parents[name.count("/")].rename(folder / "2")
        wait_until(lambda: "neither a file nor a folder" in caplog.text, [])
        assert answer(server) == "a" and requests.get(server.page_url, timeout=20).status_code == 200
        shutil.copytree(written["b"], folder / ".3").rename(folder / "3")
        wait_until(lambda: answer(server) == "b", [])
    assert caplog.text.count("neither a file nor a folder") == 1


def test_a_certificate_that_leads_elsewhere_shows_nothing_of_it(folder):
    secret = folder.parent / "secret"
    secret.write_text("the secret")
    (folder / "1" / CERTIFICATE).symlink_to(secret)
    with local_server(folder, OPTIONS) as server:
        assert "secret" not in requests.get(server.page_url).text


def test_a_version_that_may_not_be_read_keeps_no_other_from_being_served(folder, written, monkeypatch, caplog):
    is_file = pathlib.Path.is_file

    def refuse(path):
        if "7" in path.parts:
            raise PermissionError(13, "Permission denied")
        return is_file(path)

    monkeypatch.setattr(pathlib.Path, "is_file", refuse)
    model = ModelFolder.open(folder)
    (folder / "7").mkdir()
    assert [mark_of(model), mark_of(model)] == ["a", "a"]
    shutil.copytree(written["b"], folder / "2")
    assert mark_of(model) == "b" and caplog.text.count("7 cannot be read: Permission denied.") == 1


# links where an export is written


def test_an_export_writes_into_no_link(tmp_path):
    """A number that a link has, to something or to nothing, is taken."""
    victim, exports = tmp_path / "victim", tmp_path / "exports"
    victim.mkdir()
    exports.mkdir()
    (exports / "1").symlink_to(victim)
    (exports / "2").symlink_to("nothing")
    with unfinished_version(exports) as unfinished:
        (unfinished / "saved_model.pb").touch()
        (exports / "3").symlink_to("nothing")
        assert publish(unfinished) == exports / "4"
    assert list(victim.iterdir()) == [] and not (exports / "4").is_symlink()


def test_remains_that_are_a_link_or_a_pipe_are_neither_followed_nor_waited_for(tmp_path, caplog):
    victim, exports = tmp_path / "victim", tmp_path / "exports"
    victim.mkdir()
    exports.mkdir()
    (victim / "file").touch()
    (exports / ".unfinished-1").symlink_to(victim)
    os.mkfifo(exports / ".unfinished-2")
    for path in (victim, exports / ".unfinished-2"):
        os.utime(path, (0, 0))
    with unfinished_version(exports) as unfinished:
        assert unfinished.parent == exports
    assert (victim / "file").exists() and caplog.text == ""


def test_a_folder_that_is_a_link_to_nothing_is_refused(tmp_path):
    (tmp_path / "exports").symlink_to("nothing")
    with pytest.raises(ExportError, match="not a folder"), unfinished_version(tmp_path / "exports"):
        pass
    assert (tmp_path / "exports").is_symlink()
