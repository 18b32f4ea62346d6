"""A file of models is read as TensorFlow Serving reads it, and what cannot be served is named."""

import contextlib
import pathlib

import pytest

from export.server.models_config import ALL, LATEST, MOST_BYTES, Model, Policy, read_models
from export.versions import ExportError
from keras_transformer.runs.versions import HIGHEST
from tests.support.light_versions import write_light
from tests.support.places import ROOT

START = 'name: "mine" base_path: "/models/mine" model_platform: "tensorflow"'


def read(tmp_path, *configs):
    (tmp_path / "models.config").write_text(
        "model_config_list {" + "".join(f"config {{ {config} }}" for config in configs) + "}", encoding="utf-8"
    )
    return read_models(tmp_path / "models.config")


def test_the_file_of_tensorflow_serving_is_read_as_it_is():
    assert read_models(ROOT / "serving" / "models.config") == [Model("mine", pathlib.Path("/models/mine"))]


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ("", LATEST),
        ("model_version_policy {}", LATEST),
        ("model_version_policy { latest {} }", LATEST),
        ("model_version_policy { latest { num_versions: 0 } }", LATEST),
        ("model_version_policy { latest { num_versions: 3 } }", Policy(3)),
        ("model_version_policy { all {} }", ALL),
        ("model_version_policy { specific { versions: 6 versions: 7 versions: 7 } }", Policy(HIGHEST, {6, 7})),
    ],
)
def test_a_policy_names_versions(tmp_path, text, policy):
    assert read(tmp_path, f"{START} {text}")[0].policy == policy


def test_models_keep_their_order_and_their_labels(tmp_path):
    other = START.replace("mine", "another")
    models = read(tmp_path, f'{START} version_labels {{ key: "stable" value: 6 }}', other)
    assert [(model.name, model.labels) for model in models] == [("mine", {"stable": 6}), ("another", {})]


def test_the_old_way_to_say_tensorflow_is_understood(tmp_path):
    assert read(tmp_path, 'name: "mine" base_path: "/models/mine" model_type: TENSORFLOW')[0].name == "mine"


@pytest.mark.parametrize(
    ("configs", "part"),
    [
        ([], "no model"),
        ([START, START], "Illegal to list model mine multiple times in config list"),
        ([START.replace("mine", "a/b", 1)], "'a/b'"),
        ([START.replace("mine", "a:b", 1)], "'a:b'"),
        ([START.replace("mine", "", 1)], "''"),
        ([START.replace("/models", "models")], "'models/mine'; it must begin with '/'"),
        ([START.replace("/models", "gs://bucket")], "'gs://bucket/mine'"),
        ([START.replace("tensorflow", "other")], "'other'; it must be 'tensorflow'"),
        (['name: "mine" base_path: "/m"'], "model_platform ''"),
        ([f"{START} model_type: OTHER"], None),
        ([f"{START} model_version_policy {{ specific {{}} }}"], "without versions"),
        ([f"{START} model_version_policy {{ specific {{ versions: -1 }} }}"], "below 0"),
        ([f"{START} model_version_policy {{ specific {{ versions: 1 versions: -1 }} }}"], "below 0"),
        ([f"{START} logging_config {{}}"], "--log-requests"),
        ([f"{START} none: 1"], "none"),
        (["name: "], "is no file of models"),
    ],
)
def test_what_cannot_be_served_is_named(tmp_path, configs, part):
    if part is None:
        assert read(tmp_path, *configs)
        return
    with pytest.raises(ExportError) as error:
        read(tmp_path, *configs)
    assert part in str(error.value) and "models.config" in str(error.value)


def test_another_kind_of_configuration_is_refused(tmp_path):
    (tmp_path / "models.config").write_text("custom_model_config {}")
    with pytest.raises(ExportError, match="no model_config_list"):
        read_models(tmp_path / "models.config")


def test_a_base_path_is_the_folder_of_versions(tmp_path):
    version = write_light(tmp_path / "mine", 3) / "3"
    with pytest.raises(ExportError, match="is a version; it must be the folder above"):
        read(tmp_path, START.replace("/models/mine", str(version)))


@pytest.mark.parametrize("more", [0, 1])
def test_a_file_has_so_many_bytes_at_most(tmp_path, more):
    text = f"model_config_list {{ config {{ {START} }} }}\n# "
    (tmp_path / "file").write_text(text + "x" * (MOST_BYTES - len(text) + more))
    with pytest.raises(ExportError, match=f"more than {MOST_BYTES} bytes") if more else contextlib.nullcontext():
        assert len(read_models(tmp_path / "file")) == 1


@pytest.mark.parametrize(
    ("content", "part"), [(b"\xff", "UTF-8"), (b"#" * (1 << 21), "bytes"), (None, "cannot be read")]
)
def test_a_file_that_is_no_text_or_too_long_is_not_read(tmp_path, content, part):
    if content is not None:
        (tmp_path / "file").write_bytes(content)
    with pytest.raises(ExportError, match=part):
        read_models(tmp_path / "file")
