"""Presets by name, as Keras users know them: `Translator.from_preset(name)` and `save_to_preset(folder)`.

A preset has the layout of keras-hub's (its utils/preset_utils.py), with classes of this project and without that
package:

    config.json         the model as Keras serializes it; last written, so that a folder without it is none
    model.weights.h5    its weights
    tokenizer.json      the class of the tokenizer, as in presets of keras-hub
    assets/tokenizer/   tokenizer.model and its SHA-256
    metadata.json       versions, parameters, date
    inference.json      as in a run folder: what commands need to know beside the model

keras-hub has no place for the last one, and ignores it. A preset is opened wherever a run folder is.
"""

import datetime
import importlib.metadata
import json
import logging
import os
import pathlib
import tempfile
from collections.abc import Iterable

import keras

from keras_transformer.config import PRESETS
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.notations import REGISTERED_NAME
from keras_transformer.models.hub import download, is_on_hub
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.kinds import build_model, config_of, kind_of, load_model_config
from keras_transformer.runs.run_folder import RunFolder, holds_preset
from keras_transformer.runs.saved_run import check_finite, save_parts, save_weights, with_weights
from keras_transformer.translation_model import TranslationModel

log = logging.getLogger("keras_transformer")


def load_model(name: str | os.PathLike, kind: type[TranslationModel]) -> keras.Model:
    """Return the model of a preset, or of a run folder: see `TranslationModel.from_preset`."""
    folder = RunFolder(folder_of(name))
    folder.check_has(folder.model, folder.weights)
    config = load_model_config(folder.model)
    if not isinstance(config, kind.config_class):
        other = kind_of(config).model.__name__
        raise ConfigError(f"{name} holds a {other}, not a {kind.__name__}: open it with kt.{other}.from_preset.")
    return with_weights(build_model(config, dtype="float32"), folder.weights)


def save_model(model: keras.Model, path: str | os.PathLike) -> None:
    """Write a model as a preset: see `TranslationModel.save_to_preset`."""
    folder = folder_to_save(path)
    config_of(model)
    check_finite(model)
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.model.unlink(missing_ok=True)
    save_weights(model, folder.weights)
    save_description(model, folder)


def save_with_tokenizer(
    model: keras.Model,
    tokenizer: Tokenizer,
    path: str | os.PathLike,
    check_lines: Iterable[str],
    inference: Inference,
    dtype: str,
) -> None:
    """Write a model and its tokenizer as a preset that translates: see `Translator.save_to_preset`."""
    folder = folder_to_save(path)
    save_parts(folder, model, tokenizer, check_lines, inference, dtype)
    kind = type(tokenizer)
    serialized = {
        "module": "keras_transformer",  # where its public name stays, whatever file defines it
        "class_name": kind.__name__,
        "config": {},
        REGISTERED_NAME: f"keras_transformer>{kind.__name__}",
    }
    write_atomically(folder.path / "tokenizer.json", as_json(serialized))
    save_description(model, folder)


def folder_to_save(path: str | os.PathLike) -> RunFolder:
    """Return the files of a preset at `path`. Raises ConfigError if a run folder is there."""
    if not holds_preset(pathlib.Path(path)):
        run = RunFolder(path, is_preset=False)
        if run.model.exists() or run.config.exists() or run.has_begun():
            raise ConfigError(f"{path} is a run folder: save the preset into another folder.")
    return RunFolder(path, is_preset=True)


def save_description(model: keras.Model, folder: RunFolder) -> None:
    """Write metadata.json and, last, config.json."""
    metadata = {
        "keras_version": keras.__version__,
        "tensorflow_version": importlib.metadata.version("tensorflow"),
        "parameter_count": model.count_params(),
        "date_saved": datetime.datetime.now().strftime("%Y-%m-%d@%H:%M:%S"),
    }
    write_atomically(folder.path / "metadata.json", as_json(metadata))
    kind = kind_of(config_of(model)).model  # of a clone too, which is a keras.Model
    serialized = {
        "module": kind.__module__,
        "class_name": kind.__name__,
        "config": TranslationModel.values_of_file(model),
        REGISTERED_NAME: keras.saving.get_registered_name(kind),
    }
    write_atomically(folder.model, as_json(serialized))


def as_json(values: dict) -> str:
    return json.dumps(values, indent=4) + "\n"


def folder_of(name: str | os.PathLike) -> pathlib.Path:
    """Return the folder that a name means: itself, or for hf://USER/MODEL[@REVISION] what is downloaded from there.

    Raises UserError if it cannot be downloaded, or holds no model that this project has.
    """
    if is_on_hub(name):
        return run_in(download(name))
    if name in PRESETS and not os.path.exists(name):
        raise ConfigError(
            f"{name} is a shape without weights: kt.Transformer(kt.preset({name!r})) makes an untrained model of it."
        )
    return pathlib.Path(name)


def run_in(folder: pathlib.Path) -> pathlib.Path:
    """Return the run folder or preset that `download` left in a folder: itself, or an import of its MarianMT model.

    An import is kept in the hub's cache of assets, by repository and commit. Raises UserError if the model cannot be
    imported.
    """
    if RunFolder(folder).model.exists():
        return folder
    from huggingface_hub import cached_assets_path, constants

    repository, commit = folder.parents[1].name, folder.name  # of CACHE/models--USER--MODEL/snapshots/COMMIT
    assets = cached_assets_path("keras-transformer", repository, commit, assets_dir=constants.HF_ASSETS_CACHE)
    run = assets / "run"
    if not run.exists():
        import_into(run, folder)
    return run


def import_into(run: pathlib.Path, folder: pathlib.Path) -> None:
    """Import a MarianMT model as the run folder `run`, which appears whole, whoever else imports it too."""
    from keras_transformer.models.imported.folder import import_folder, write_run

    model = import_folder(folder)
    with tempfile.TemporaryDirectory(dir=run.parent) as staging:
        write_run(model, pathlib.Path(staging) / "run")
        try:
            os.rename(pathlib.Path(staging) / "run", run)
        except OSError:
            if not run.exists():
                raise
    model.log_notes()
