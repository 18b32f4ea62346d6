"""A reload of models: all are loaded before one is dropped, and what cannot be loaded is an error with its reason."""

import asyncio

import pytest

from export.server.errors import Code, RequestError
from export.server.models_config import Model, Policy
from keras_transformer.runs.versions import HIGHEST
from tests.export.test_models import closed, numbers, opened, refresh, until, watched, written  # noqa: F401 (closed)
from tests.support.light_versions import write_light


def reload(models, *asked):
    asyncio.run(models.reload(list(asked)))


def test_a_new_model_that_cannot_be_loaded_is_an_error_and_the_others_are_served(tmp_path):
    good, bad = write_light(tmp_path / "good", 1), tmp_path / "bad"
    models = opened(tmp_path, Model("mine", good))
    for content, part in ((None, "No such file"), ("no memory", "no memory")):
        if content:
            write_light(bad, 1, content=content)
        with pytest.raises(RequestError, match=f"1 model.s. did not become available: .*bad.*{part}") as error:
            asyncio.run(models.reload([Model("bad", bad), Model("mine", good), Model("more", good)]))
        assert error.value.code is Code.UNKNOWN
        assert models.version("mine").number == models.version("more").number == 1
    (bad / "1" / "saved_model.pb").write_text("good")
    refresh(models)
    assert models.version("bad").number == 1


# What a folder may be, of which no version can be served, and the reason
BAD = {
    "missing": (lambda path: None, "No such file or directory"),
    "empty": (lambda path: path.mkdir(), "has no version"),
    "damaged": (lambda path: write_light(path, 1, content="no memory"), "cannot be loaded: no memory"),
    "without that number": (lambda path: write_light(path, 1), "has no version 2"),
    "a file": (lambda path: path.write_text(""), "Not a directory"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("is_known", [True, False])
def test_a_reload_that_cannot_be_done_says_why_and_takes_nothing_away(tmp_path, closed, kind, is_known):  # noqa: F811
    """Whether the model is served already, from another folder, or is a new one."""
    write, reason = BAD[kind]
    good, bad = write_light(tmp_path / "good", 1), tmp_path / "bad"
    models = opened(tmp_path, Model("mine", good), Model("other", good))
    write(bad)
    policy = Policy(HIGHEST, frozenset([2])) if kind == "without that number" else Policy()
    with pytest.raises(RequestError, match=f"1 model.s. did not become available: .*due to error: .*{reason}"):
        reload(models, Model("mine" if is_known else "new", bad, policy))
    assert numbers(models) == numbers(models, "other") == [1] and closed == []
    reload(models, Model("mine", good))
    assert models.names == ["mine"] and numbers(models) == [1]


def test_what_a_file_leaves_out_is_dropped_as_soon_as_the_rest_is_served(tmp_path, closed):  # noqa: F811
    good, late = write_light(tmp_path / "good", 1), tmp_path / "late"
    models = opened(tmp_path, Model("mine", good))

    async def change():
        written(models.file, Model("new", late))
        await until(lambda: models.names == ["new", "mine"])
        await asyncio.sleep(0.1)
        assert numbers(models) == [1] and closed == []
        write_light(late, 1)
        await until(lambda: models.names == ["new"])

    watched(models, change)
    assert numbers(models, "new") == [1] and closed == [("mine", 1)]
