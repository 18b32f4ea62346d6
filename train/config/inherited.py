"""What a configuration leaves out and takes from the run whose weights it starts from."""

import pathlib
from typing import Any

from keras_transformer.config import TransformerConfig
from keras_transformer.runs.kinds import load_model_config
from keras_transformer.runs.run_folder import RunFolder

from .model import SET_ELSEWHERE
from .translation import TranslationConfig

RATES = ("dropout", "label_smoothing")  # of a model, which are keys of [training]


def completed_by_start(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration file with what they leave out and `training.start_from` has.

    Without a section [model], the model is that of the other run, its two rates included. What [translation] leaves out
    is the other run's own search, if it has one, as imported models do and presets, but for its shortlist: that is a
    file of the other run. A run that has begun remembers both itself: the other one may be gone by then. Values that
    make no sense, or name no run, are returned as they are.

    Raises ConfigError if a file of the run is damaged.
    """
    training = values.get("training")
    if not isinstance(training, dict) or not (folder := folder_of_start(values, training.get("start_from"))):
        return values
    values = dict(values)
    if "model" not in values and folder.model.exists():
        config = load_model_config(folder.model)
        fields = {name: value for name, value in config.to_dict().items() if value is not None}
        values["model"] = {name: value for name, value in fields.items() if name not in SET_ELSEWHERE}
        rates = {name: fields[name] for name in RATES if fields[name] != getattr(TransformerConfig, name)}
        values["training"] = rates | training
    translation, search = values.get("translation", {}), folder.inference().search
    if search and isinstance(translation, dict):
        own = {name: value for name, value in search.items() if name in TranslationConfig.model_fields}
        values["translation"] = {**own, **translation}
    return values


def folder_of_start(values: dict[str, Any], start_from: Any) -> RunFolder | None:
    """Return the folder that remembers the model which training starts from; None if there is none."""
    run_folder = values.get("run_folder")
    if not (isinstance(start_from, str) and start_from):
        return None
    if isinstance(run_folder, str) and (own := RunFolder(pathlib.Path(run_folder).expanduser())).has_begun():
        return own
    return RunFolder(pathlib.Path(start_from).expanduser())
