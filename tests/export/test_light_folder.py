"""Models whose versions load at once: which are served, which are closed, and what is remembered."""

import asyncio
import os
import shutil

import pytest

from export.server.model_folder import ModelFolder, State
from export.server.models_config import Model, Policy
from export.versions import ExportError
from tests.support.light_versions import use_light_versions, write_light


@pytest.fixture
def closed(monkeypatch):
    return use_light_versions(monkeypatch)


def opened(path, *policy, **labels):
    return ModelFolder(Model("mine", path, Policy(*policy), labels)).loaded()


def numbers(folder):
    return [version.number for version in folder.versions]


def test_what_was_served_stays_if_nothing_else_can_be(tmp_path, closed):
    folder = opened(write_light(tmp_path / "mine", 1, 2))
    for number in (1, 2):
        shutil.rmtree(tmp_path / "mine" / str(number))
    asyncio.run(folder.refresh())
    assert numbers(folder) == [2] and closed == []


def test_a_version_with_a_pipe_is_not_opened(tmp_path, closed):
    write_light(tmp_path / "mine", 1)
    os.mkfifo(tmp_path / "mine" / "1" / "assets")
    with pytest.raises(ExportError, match="assets is neither a file nor a folder"):
        opened(tmp_path / "mine")


def test_a_version_that_still_answers_is_closed_after_its_last_request(tmp_path, closed):
    folder = opened(write_light(tmp_path / "mine", 1))
    old = folder.version()
    old.users = 1

    async def replace():
        write_light(tmp_path / "mine", 2)
        await folder.refresh()
        await asyncio.sleep(0.06)
        assert numbers(folder) == [2] and closed == [] and folder.status[1].state is State.UNLOADING
        old.users = 0
        while not closed:
            await asyncio.sleep(0.01)
        assert folder.status[1].state is State.END

    asyncio.run(asyncio.wait_for(replace(), 10))


@pytest.mark.parametrize(
    ("tries", "seconds", "is_tried"), [(1, 59, False), (1, 61, True), (5, 61, True), (6, 61, False)]
)
def test_a_load_that_failed_is_tried_again_five_times_a_minute_apart(tries, seconds, is_tried, tmp_path, closed):
    write_light(tmp_path / "mine", 1)
    folder = opened(tmp_path / "mine")
    write_light(tmp_path / "mine", 2, content="no memory")
    asyncio.run(folder.refresh())
    [(path, failure)] = folder._failures.items()
    assert (path.name, failure.tries, numbers(folder)) == ("2", 1, [1])
    folder._failures[path] = failure._replace(tries=tries, at=failure.at - seconds)
    asyncio.run(folder.refresh())
    assert folder._failures[path].tries == tries + is_tried


@pytest.mark.parametrize("number", [2, 5])
def test_a_label_means_the_version_that_it_had_until_its_new_one_is_served(number, tmp_path, closed):
    folder = opened(write_light(tmp_path / "mine", 1, 2), 9, stable=1)
    assert folder.version("stable").number == 1
    folder.configure(Model("mine", tmp_path / "mine", Policy(9), {"stable": number}))
    assert folder.version("stable").number == 1  # nobody has looked yet
    asyncio.run(folder.refresh())
    assert folder.version("stable").number == (2 if number == 2 else 1)
    write_light(tmp_path / "mine", 5)
    asyncio.run(folder.refresh())
    assert folder.version("stable").number == number


def test_a_folder_that_is_closed_serves_nothing_and_looks_for_nothing(tmp_path, closed):
    folder = opened(write_light(tmp_path / "mine", 1))
    asyncio.run(folder.close())
    assert numbers(folder) == [] and closed == [("mine", 1)]
    asyncio.run(folder.refresh())
    asyncio.run(asyncio.wait_for(folder.watch(0.0), 10))
    assert numbers(folder) == []


def test_each_reason_is_given_once(tmp_path, closed):
    write_light(tmp_path / "mine", 1, content="no memory")
    with pytest.raises(ExportError) as error:
        opened(tmp_path / "mine")
    assert str(error.value).count("no memory") == 1
    with pytest.raises(ExportError, match="can be served: .*has no version 7"):
        opened(tmp_path / "mine", 1, frozenset([7]))
