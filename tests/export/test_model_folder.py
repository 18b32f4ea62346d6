"""The folder of a model: a new version replaces the old one without a lost request; a broken one does not."""

import asyncio
import http.client
import os
import shutil
import socket
import threading
import time

import pytest
import requests

from export.client.client import ServingClient
from export.client.transports import ClientError
from export.server.model_folder import RETRIES, ModelFolder, State
from export.server.version import Version
from tests.support.echo import write_echo
from tests.support.processes import wait_until
from tests.support.servers import serving

TEXT = "hello"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Versions that mark their answers with a letter; written once, and copied by tests."""
    folder = tmp_path_factory.mktemp("written")
    return {mark: write_echo(folder / mark, mark) for mark in ("a", "b", "c")}


@pytest.fixture
def folder(tmp_path, written):
    (tmp_path / "echo").mkdir()
    shutil.copytree(written["a"], tmp_path / "echo" / "1")
    return tmp_path / "echo"


def publish(version, path):
    """Let a whole version appear in one step, as `keras-transformer export` does."""
    shutil.copytree(version, path.with_name(f".unfinished-{path.name}")).rename(path)


@pytest.mark.nightly
def test_a_new_version_takes_over_and_no_request_is_lost(folder, written):
    answers, errors, is_over = [], [], threading.Event()

    def ask(client):
        while not is_over.is_set():
            try:
                answers.append(client.translate([TEXT])[0].text)
            except ClientError as error:
                errors.append(error)

    with serving(folder, poll_seconds=0.05) as address:
        clients = [ServingClient(url, attempts=1) for url in (address.url, address.grpc_url)]
        threads = [threading.Thread(target=ask, args=[client]) for client in clients]
        for thread in threads:
            thread.start()
        wait_until(lambda: len(answers) > 20)
        publish(written["b"], folder / "2")
        wait_until(lambda: answers[-1] == "b" + TEXT)
        shutil.rmtree(folder / "2")  # rolls back
        wait_until(lambda: answers[-1] == "a" + TEXT)
        is_over.set()
        for thread in threads:
            thread.join()
    assert errors == [] and set(answers) == {"a" + TEXT, "b" + TEXT}


def test_a_request_whose_body_is_slow_is_answered_by_the_version_that_has_come_meanwhile(folder, written):
    body = b'{"inputs": ["hello"]}'
    with serving(folder, poll_seconds=0.05) as address:
        with socket.create_connection((address.host, address.port)) as connection:
            connection.sendall(
                b"POST /v1/models/echo:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n{" % len(body)
            )
            publish(written["b"], folder / "2")
            client = ServingClient(address.url)
            wait_until(lambda: client.translate([TEXT])[0].text == "b" + TEXT)
            wait_until(
                lambda: requests.get(f"{address.url}/versions/1").json()["model_version_status"][0]["state"] == "END"
            )
            connection.sendall(body[1:])
            response = http.client.HTTPResponse(connection)
            response.begin()
            assert response.status == 200 and b"bhello" in response.read()


@pytest.mark.nightly
def test_the_old_version_ends_what_it_has_begun(folder, written):
    answers = []
    with serving(folder, poll_seconds=0.05) as address:
        client = ServingClient(address.url, attempts=1)
        slow = threading.Thread(
            target=lambda: answers.append(client.predict({"text": ["x"], "spin": [2.0]}, "repeat")["repeated"])
        )
        slow.start()
        time.sleep(0.3)
        publish(written["b"], folder / "2")
        wait_until(lambda: client.translate([TEXT])[0].text == "b" + TEXT)
        slow.join()
    assert answers == [["xx"]]


def refresh(model):
    asyncio.run(asyncio.wait_for(model.refresh(), 60))
    version = model.version()
    signature = version.signatures["serving_default"]
    import numpy as np

    return version.run(signature, ("translation",), {"text": np.array([b""], object)})["translation"][0].decode()


def test_the_next_version_does_not_wait_for_the_requests_of_the_one_before(folder, written):
    model = ModelFolder.open(folder)
    first = model.version()
    first.users += 1  # a request of it is being answered
    publish(written["b"], folder / "2")
    assert refresh(model) == "b" and model.status[1].state is State.UNLOADING
    shutil.rmtree(folder / "2")
    assert refresh(model) == "a" and model.version() is not first  # which rolls back at once
    assert (model.status[1].state, model.status[2].state) == (State.AVAILABLE, State.END)
    first.users -= 1


def test_a_broken_version_leaves_the_old_one_serving_and_is_logged_once(folder, written, caplog):
    model = ModelFolder.open(folder)
    broken = shutil.copytree(written["b"], folder / "2")
    data = next((broken / "variables").glob("*data*"))
    whole = data.read_bytes()
    data.write_bytes(b"")
    assert [refresh(model), refresh(model)] == ["a", "a"]
    assert model.status[2].state is State.END and "cannot be loaded" in model.status[2].error
    assert model.status[1] == (State.AVAILABLE, "")
    assert len([record for record in caplog.records if str(broken) in record.getMessage()]) == 1
    data.write_bytes(whole)  # now the copy is complete
    assert refresh(model) == "b"
    assert (model.status[1].state, model.status[2].state) == (State.END, State.AVAILABLE)


def test_another_version_of_the_same_number_is_served(folder, written, caplog):
    """So it is after `rm -r exports/mine` and another export, which counts from 1 again."""
    model = ModelFolder.open(folder)
    shutil.rmtree(folder / "1")
    publish(written["b"], folder / "1")
    assert refresh(model) == "b" and model.status == {1: (State.AVAILABLE, "")}
    assert "version 1 replaces another one of that number" in caplog.text
    assert refresh(model) == "b" and len(caplog.records) == 1


def test_while_the_served_version_is_damaged_it_is_served_from_memory(folder, caplog):
    """So it is while a version is removed file by file: no lower version replaces it."""
    shutil.copytree(folder / "1", folder / "2")
    model = ModelFolder.open(folder)
    next((folder / "2" / "variables").glob("*data*")).unlink()
    assert [refresh(model), refresh(model)] == ["a", "a"] and model.version().number == 2
    assert model.status == {2: (State.AVAILABLE, "")} and caplog.text.count("cannot be loaded") == 1


def test_one_version_alone_can_be_served(folder):
    model = ModelFolder.open(folder / "1")
    assert (model.name, model.version().number) == ("echo", 1)


def test_a_version_that_is_withdrawn_while_it_is_loaded_is_not_served(folder, written, monkeypatch):
    model, warm_up = ModelFolder.open(folder), Version.warm_up

    def withdraw(version):
        if version.number == 2:
            shutil.rmtree(folder / "2")
        return warm_up(version)

    publish(written["b"], folder / "2")
    monkeypatch.setattr(Version, "warm_up", withdraw)
    assert refresh(model) == "a" and model.status[2].state is State.END
    monkeypatch.undo()
    publish(written["b"], folder / "2")
    assert refresh(model) == "b"


@pytest.mark.parametrize("failures, answer", [(1, "b"), (RETRIES, "b"), (RETRIES + 1, "a")])
def test_a_version_that_cannot_be_read_for_a_while_is_tried_once_a_minute_but_not_for_ever(
    failures, answer, folder, written, monkeypatch, caplog
):
    publish(written["b"], folder / "2")
    graph, seconds = folder / "2" / "saved_model.pb", 0.0
    whole, status = graph.read_bytes(), graph.stat()

    def read_from_now_on(content):  # as a disk gives it: sizes and times of the files stay
        graph.write_bytes(content)
        os.utime(graph, ns=(status.st_atime_ns, status.st_mtime_ns))

    read_from_now_on(b"\xff" * len(whole))
    monkeypatch.setattr(time, "monotonic", lambda: seconds)
    model = ModelFolder.open(folder)
    for _ in range(failures - 1):
        seconds += 61.0
        assert refresh(model) == "a"
    read_from_now_on(whole)
    seconds += 59.0
    assert refresh(model) == "a"
    seconds += 2.0
    assert refresh(model) == answer and caplog.text.count("cannot be loaded") == 1


def test_versions_above_64_bits_are_ignored_and_zeros_are_not(folder, written):
    publish(written["b"], folder / str(2**63))
    publish(written["c"], folder / "00000123")
    model = ModelFolder.open(folder)
    assert refresh(model) == "c" and model.version(123).number == 123
    assert set(model.status) == {123}


def test_a_missing_folder_is_logged_once_and_the_version_served_on(folder, caplog):
    model = ModelFolder.open(folder)

    async def watch():
        task = asyncio.create_task(model.watch(0.001))
        folder.rename(folder.with_name("away"))
        await asyncio.sleep(0.1)
        folder.with_name("away").rename(folder)
        await asyncio.sleep(0.1)
        task.cancel()

    asyncio.run(watch())
    assert caplog.text.count("cannot be watched") == 1 and caplog.text.count("can be watched again") == 1
    assert model.version().number == 1
