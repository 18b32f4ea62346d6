"""A model by its name, as what translates with it: the one place that knows every kind of folder.

TensorFlow is imported for what needs it alone: a LiteRT model does not.
"""

import os
import pathlib
import re
from typing import TYPE_CHECKING

from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.models.hub import is_on_hub
from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.runs.lite_folder import is_lite_folder
from keras_transformer.runs.run_folder import RunFolder, holds_export
from keras_transformer.text.road import Engine

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.translation.translator import Translator

# USER/MODEL[@REVISION], as transformers names it
HUB_ID = re.compile(r"(?<![\w.-])\w[\w.-]*+/\w[\w.-]*(@[\w./-]+)?", re.ASCII)
MODELS_OF_OTHERS = "config.json", "decoder.yml", "*.npz"  # files of which a folder that is imported has one
FLOAT32 = "float32"


def open_engine(name: str | os.PathLike, batch_size: int = BATCH_SIZE, precision: str = FLOAT32) -> Engine:
    """Return what translates with the model of this name.

    `name` is a run folder, a preset, an export (its newest version, or one version), a LiteRT model, or a folder of
    Hugging Face's MarianMT, of OPUS-MT or of Marian, which is imported into memory; or hf://USER/MODEL[@REVISION], or
    USER/MODEL[@REVISION] if there is no such folder. `precision` is "float32" or "bfloat16"; an export has that of its
    weights. Raises UserError if the model cannot be had, or is damaged.
    """
    path = pathlib.Path(name)
    if path.is_dir() and not RunFolder(path).model.exists() and holds_export(path):
        return opened_export(path, batch_size, precision)
    from keras_transformer.translation.translator import Translator

    if is_on_hub(name):
        return Translator.from_preset(name, batch_size=batch_size, precision=precision)
    if path.exists() and not RunFolder(path).model.exists() and is_of_others(path):
        return imported(path, batch_size, precision)
    if path.exists() or not HUB_ID.fullmatch(os.fspath(name)):
        return Translator.load(path, batch_size=batch_size, precision=precision)
    try:
        return Translator.from_preset(f"hf://{os.fspath(name)}", batch_size=batch_size, precision=precision)
    except UserError as error:
        raise ConfigError(f"There is no folder {name}, which may be a name on the hub; but {error}") from None


def opened_export(path: pathlib.Path, batch_size: int, precision: str) -> Engine:
    """Open a LiteRT model, or a SavedModel. Raises UserError if it is damaged, or of another precision."""
    if precision != FLOAT32:
        raise ConfigError(f"{path} is an export, which has the precision of its weights: leave {precision} out.")
    if is_lite_folder(path):
        from keras_transformer.lite.translator import LiteTranslator

        return LiteTranslator(path)
    from keras_transformer.translation.exported import ExportedTranslator

    return ExportedTranslator(path, batch_size)


def is_of_others(path: pathlib.Path) -> bool:
    """Return whether something holds a model of Hugging Face or of Marian, and not a run that is not finished."""
    if path.is_file():
        return path.suffix == ".npz"
    return not RunFolder(path).config.exists() and any(any(path.glob(name)) for name in MODELS_OF_OTHERS)


def imported(path: pathlib.Path, batch_size: int, precision: str) -> "Translator":
    """Import a model of another system, and write nothing. Raises UserError if it cannot be imported."""
    from keras_transformer.models.imported.folder import import_folder
    from keras_transformer.translation.translator import Translator

    model = import_folder(path)
    model.log_notes()
    inference = model.inference()
    return Translator(
        model.transformer(),
        model.tokenizer,
        inference.options(),
        batch_size,
        precision=precision,
        languages=inference.languages,
    )
