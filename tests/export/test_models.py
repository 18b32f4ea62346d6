"""Several models and versions: what is served, under which names, and how a change reaches a server that runs."""

import asyncio
import contextlib
import threading

import pytest

from export.server.errors import Code, RequestError
from export.server.model_folder import State, Status
from export.server.models import Models
from export.server.models_config import ALL, Model, Policy
from export.server.protocol import UNKNOWN, status_of
from export.versions import ExportError
from keras_transformer.runs.versions import HIGHEST
from tests.support.light_versions import LightVersion, use_light_versions, write_light

ONLY = lambda *numbers: Policy(HIGHEST, frozenset(numbers))  # noqa: E731


@pytest.fixture(autouse=True)
def closed(monkeypatch):
    return use_light_versions(monkeypatch)


def written(path, *models):
    """Write a file of models in one step. Returns its path."""
    text = []
    for model in models:
        policy = f"specific {{ {' '.join(f'versions: {number}' for number in model.policy.numbers)} }}"
        policy = policy if model.policy.numbers else f"latest {{ num_versions: {min(model.policy.most, 99)} }}"
        labels = "".join(f'version_labels {{ key: "{key}" value: {value} }} ' for key, value in model.labels.items())
        text.append(f'config {{ name: "{model.name}" base_path: "{model.path}" model_platform: "tensorflow" {labels}')
        text.append(f"model_version_policy {{ {policy} }} }}")
    path.with_suffix(".new").write_text("model_config_list { " + "\n".join(text) + " }", encoding="utf-8")
    path.with_suffix(".new").rename(path)
    return path


def opened(tmp_path, *models):
    return Models.in_file(written(tmp_path / "models.config", *models))


def numbers(models, name="mine"):
    [folder] = [folder for folder in models if folder.name == name]
    return [version.number for version in folder.versions]


def refresh(models):
    async def all_of_them():
        for folder in models:
            await folder.refresh()

    asyncio.run(all_of_them())


@pytest.mark.parametrize(
    ("policy", "served"),
    [
        (Policy(), [9]),
        (Policy(2), [9, 4]),
        (ALL, [9, 4, 3, 1]),
        (ONLY(1), [1]),
        (ONLY(3, 4), [4, 3]),
        (ONLY(2, 3), [3]),
    ],
)
def test_a_policy_chooses_among_the_versions_that_are_there(tmp_path, policy, served):
    path = write_light(tmp_path / "mine", 1, 3, 4, 9)
    assert numbers(opened(tmp_path, Model("mine", path, policy))) == served


def test_of_the_two_latest_a_new_one_replaces_the_older(tmp_path, closed):
    path = write_light(tmp_path / "mine", 1, 2)
    models = opened(tmp_path, Model("mine", path, Policy(2)))
    kept = models.version("mine", 2)
    write_light(path, 3)
    refresh(models)
    assert numbers(models) == [3, 2] and closed == [("mine", 1)] and models.version("mine", 2) is kept
    assert {number: status.state for number, status in models.statuses("mine").items()} == {
        3: State.AVAILABLE,
        2: State.AVAILABLE,
        1: State.END,
    }


def test_a_request_names_a_number_or_a_label_or_gets_the_highest(tmp_path):
    path = write_light(tmp_path / "mine", 6, 7)
    models = opened(tmp_path, Model("mine", path, ALL, {"stable": 6, "canary": 7}))
    assert [models.version("mine", choice).number for choice in (None, 6, "stable", "canary")] == [7, 6, 6, 7]


@pytest.mark.parametrize(
    ("name", "choice", "code", "words"),
    [
        ("other", None, Code.NOT_FOUND, "Servable not found for request: Latest(other)"),
        ("other", 3, Code.NOT_FOUND, "Servable not found for request: Specific(other, 3)"),
        ("other", "stable", Code.INVALID_ARGUMENT, "Unrecognized servable version label: stable"),
        ("mine", 3, Code.NOT_FOUND, "Servable not found for request: Specific(mine, 3)"),
        ("mine", "none", Code.INVALID_ARGUMENT, "Unrecognized servable version label: none"),
        ("mine", "early", Code.NOT_FOUND, "Servable not found for request: Specific(mine, 8)"),
    ],
)
def test_what_is_not_served_is_answered_in_the_words_of_tensorflow_serving(tmp_path, name, choice, code, words, caplog):
    models = opened(tmp_path, Model("mine", write_light(tmp_path / "mine", 7), labels={"early": 8}))
    assert "version 8 of model mine, which is not currently available" in caplog.text
    with pytest.raises(RequestError) as error:
        models.version(name, choice)
    assert (error.value.code, error.value.message) == (code, words)


def test_the_state_of_what_never_was_is_not_found(tmp_path):
    models = opened(tmp_path, Model("mine", write_light(tmp_path / "mine", 7)))
    for name, number, words in (
        ("mine", 3, "Could not find version 3 of model mine"),
        ("other", None, "Could not find any versions of model other"),
    ):
        with pytest.raises(RequestError, match=words) as error:
            models.statuses(name, number)
        assert error.value.code is Code.NOT_FOUND


def test_what_is_served_stays_while_the_version_that_shall_replace_it_fails(tmp_path, closed):
    path = write_light(tmp_path / "mine", 6)
    models = opened(tmp_path, Model("mine", path, ONLY(6), {"stable": 6}))
    write_light(path, 7, content="no memory")
    with pytest.raises(RequestError, match="name: mine due to error: .*no memory") as error:
        asyncio.run(models.reload([Model("mine", path, ONLY(7), {"stable": 7})]))
    assert error.value.code is Code.UNKNOWN
    assert models.version("mine", "stable").number == 6 and closed == []  # a label means the old version until then
    assert "no memory" in models.statuses("mine")[7].error
    (path / "7" / "saved_model.pb").write_text("good")
    refresh(models)
    assert models.version("mine", "stable").number == 7 and closed == [("mine", 6)]


def test_a_label_means_its_new_version_once_the_old_one_is_gone(tmp_path):
    path = write_light(tmp_path / "mine", 5, 6)
    models = opened(tmp_path, Model("mine", path, ONLY(5, 6), {"stable": 6}))
    for policy, meant in ((ONLY(5, 6), 6), (ONLY(5), 7)):
        with pytest.raises(RequestError, match="label to version 7"):
            asyncio.run(models.reload([Model("mine", path, policy, {"stable": 7})]))
        with contextlib.nullcontext() if meant == 6 else pytest.raises(RequestError, match=r"Specific\(mine, 7\)"):
            assert models.version("mine", "stable").number == meant


def test_a_reload_adds_removes_and_leaves_the_others_alone(tmp_path, closed):
    paths = {name: write_light(tmp_path / name, 1) for name in ("kept", "gone", "new")}
    models = opened(tmp_path, *(Model(name, paths[name]) for name in ("kept", "gone")))
    kept, gone = models.version("kept"), models.version("gone")
    gone.users += 1  # a request of it is being answered

    async def reload():
        await models.reload([Model("new", paths["new"]), Model("kept", paths["kept"])])
        assert closed == []
        gone.users -= 1
        await asyncio.sleep(0.2)
        assert not models._reloads and not removed._closing  # all have ended

    removed = models._folders["gone"]
    asyncio.run(reload())
    assert models.names == ["new", "kept"] and models.version("kept") is kept and closed == [("gone", 1)]
    with pytest.raises(RequestError, match=r"Latest\(gone\)"):
        models.version("gone")


def test_another_folder_of_a_model_replaces_its_version_of_the_same_number(tmp_path, closed):
    old, new = write_light(tmp_path / "old", 1), write_light(tmp_path / "new", 1)
    models = opened(tmp_path, Model("mine", old))
    asyncio.run(models.reload([Model("mine", new)]))
    assert models.version("mine", 1).path == new / "1" and closed == [("mine", 1)]
    assert models.statuses("mine")[1].state is State.AVAILABLE


def test_a_server_starts_only_if_each_model_can_be_served(tmp_path):
    good = Model("good", write_light(tmp_path / "good", 1))
    with pytest.raises(ExportError, match="has no version 2"):
        opened(tmp_path, good, Model("bad", good.path, ONLY(2)))
    with pytest.raises(ExportError, match="no memory"):
        opened(tmp_path, good, Model("bad", write_light(tmp_path / "bad", 1, content="no memory")))
    with pytest.raises(ExportError, match="does not exist"):
        opened(tmp_path, good, Model("bad", tmp_path / "none"))


def test_a_version_that_is_asked_for_and_not_there_is_logged_once(tmp_path, caplog):
    path = write_light(tmp_path / "mine", 1)
    models = opened(tmp_path, Model("mine", path, ONLY(1, 2)))
    refresh(models)
    assert numbers(models) == [1] and caplog.text.count("has no version 2") == 1


def test_whoever_asks_for_a_reload_may_leave_before_it_ends(tmp_path, monkeypatch):
    paths = {name: write_light(tmp_path / name, 1) for name in ("mine", "new")}
    models = opened(tmp_path, Model("mine", paths["mine"]))

    async def leave():
        with contextlib.suppress(asyncio.CancelledError):
            caller = asyncio.create_task(models.reload([Model(name, path) for name, path in paths.items()]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            caller.cancel()
            await caller
        await asyncio.gather(*models._reloads)

    asyncio.run(leave())
    assert models.version("new").number == 1


def test_a_model_that_is_removed_while_a_version_loads_leaves_none_in_memory(tmp_path, monkeypatch, closed):
    path, begun, is_over = write_light(tmp_path / "gone", 1), threading.Event(), threading.Event()
    models = opened(tmp_path, Model("gone", path), Model("kept", path))
    [gone] = [folder for folder in models if folder.name == "gone"]
    monkeypatch.setattr(LightVersion, "warm_up", lambda version: begun.set() or is_over.wait(30))
    write_light(path, 2)

    async def remove():
        loading = asyncio.create_task(gone.refresh())
        await asyncio.to_thread(begun.wait, 30)
        assert (gone.status[1].state, gone.status[2].state) == (State.AVAILABLE, State.LOADING)
        removing = asyncio.create_task(models.reload([Model("kept", path)]))
        await asyncio.sleep(0.05)
        is_over.set()
        await asyncio.gather(loading, removing)
        await gone.refresh()

    asyncio.run(remove())
    assert gone.versions == [] and sorted(closed) == [("gone", 1), ("gone", 2), ("kept", 1)]
    assert numbers(models, "kept") == [2]


def watched(models, change):
    """Let models be watched while `change` runs, which waits for what it expects."""

    async def watch():
        watching = asyncio.create_task(models.watch(0.01, 0.01))
        await asyncio.wait_for(change(), 30)
        watching.cancel()

    asyncio.run(watch())


async def until(is_so):
    while not is_so():
        await asyncio.sleep(0.01)


def test_a_change_of_the_file_is_served_and_the_new_model_is_watched_too(tmp_path, closed):
    paths = {name: write_light(tmp_path / name, 1) for name in ("mine", "new")}
    models = opened(tmp_path, Model("mine", paths["mine"]))

    async def change():
        written(models.file, *(Model(name, path) for name, path in paths.items()))
        await until(lambda: "new" in models and numbers(models, "new") == [1])
        for path in paths.values():
            write_light(path, 2)
        await until(lambda: numbers(models, "new") == numbers(models) == [2])
        written(models.file, Model("new", paths["new"], Policy(2)))
        await until(lambda: models.names == ["new"] and numbers(models, "new") == [2, 1])
        await until(lambda: ("mine", 2) in closed)

    watched(models, change)


def test_a_damaged_file_is_logged_once_and_changes_nothing(tmp_path, caplog):
    path = write_light(tmp_path / "mine", 1)
    models = opened(tmp_path, Model("mine", path))

    async def change():
        models.file.write_text("nonsense")
        await asyncio.sleep(0.2)
        assert models.version("mine").number == 1 and caplog.text.count("is no file of models") == 1
        written(models.file, Model("other", path))
        await until(lambda: models.names == ["other"])

    watched(models, change)


def test_what_the_file_does_not_change_a_reload_by_rpc_does(tmp_path):
    """The file is not read into a server again and again: it counts when it says something else than before."""
    path = write_light(tmp_path / "mine", 1)
    models = opened(tmp_path, Model("mine", path))

    async def change():
        written(models.file, Model("new", path))
        await until(lambda: models.names == ["new"])
        await models.reload([Model("other", path)])
        await asyncio.sleep(0.1)
        assert models.names == ["other"]

    watched(models, change)


def test_a_status_has_the_versions_in_their_order_and_the_reason_of_a_failure():
    response = status_of({9: Status(State.AVAILABLE), 4: Status(State.END, "no graph")})
    found = [
        (each.version, each.state, each.status.error_code, each.status.error_message)
        for each in response.model_version_status
    ]
    assert found == [(9, State.AVAILABLE.value, 0, ""), (4, State.END.value, UNKNOWN, "no graph")]
