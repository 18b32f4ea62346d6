"""Which system a folder is of, and its model as a run folder."""

import functools
import os
import pathlib
import shutil
from collections.abc import Callable, Iterable

from keras_transformer.models.imported.arrays import read_json
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.families import why_not
from keras_transformer.models.imported.huggingface import HUGGINGFACE, MARIAN, MODEL_TYPE, POSITIONS, import_huggingface
from keras_transformer.models.imported.m2m import import_m2m
from keras_transformer.models.imported.marian import import_marian
from keras_transformer.models.imported.mbart import import_mbart
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.t5 import import_t5

READERS: dict[str, Callable[..., ImportedModel]] = {  # of FAMILIES
    MODEL_TYPE: import_huggingface,
    "m2m_100": import_m2m,
    "mbart": import_mbart,
    "bart": functools.partial(import_mbart, model_type="bart"),
    "t5": import_t5,
    "mt5": import_t5,
}
OF_MARIAN = "*.npz", "decoder.yml", "*.bin"  # files of which its folders have at least one


def import_folder(path: str | os.PathLike, positions: str | None = None) -> ImportedModel:
    """Read a model of Marian, or of one of FAMILIES, from its folder, or from a model.npz in one.

    positions: "huggingface" or "marian", whose function a folder of Hugging Face is to compute; None: Hugging Face's.
    One of Marian computes that of Marian.

    Raises ImportedModelError for what cannot be imported, and OSError if a file cannot be read.
    """
    path = pathlib.Path(path)
    if positions not in (None, *POSITIONS):
        raise ImportedModelError(f"positions is {positions!r}; it must be one of {', '.join(POSITIONS)}.")
    if not path.exists():
        raise ImportedModelError(f"There is no folder {path}.")
    if path.is_dir() and (path / "config.json").exists():
        kind = read_json(path / "config.json").get("model_type")
        if kind not in list(READERS):  # a list, since a stranger's model_type may have no hash
            raise ImportedModelError(
                f"{path / 'config.json'} has model_type: {kind!r:.60}; only {', '.join(READERS)} can be imported."
                f"{why_not(kind)}"
            )
        if kind != MODEL_TYPE and positions == MARIAN:
            raise ImportedModelError(f"{path} is not of Marian: its positions can be {HUGGINGFACE} alone.")
        model = READERS[kind](path, MARIAN) if positions == MARIAN else READERS[kind](path)
        model.inference().check()
        return model
    if path.is_dir() and not any(True for pattern in OF_MARIAN for _ in path.glob(pattern)):
        raise ImportedModelError(
            f"{path} has neither a config.json, as a model of Hugging Face, nor a decoder.yml or an .npz, as one of "
            "Marian."
        )
    if positions == HUGGINGFACE:
        raise ImportedModelError(f"{path} is of Marian: its positions can be {MARIAN} alone.")
    model = import_marian(path)
    model.inference().check()
    return model


def write_run(model: ImportedModel, run: str | os.PathLike, check_lines: Iterable[str] = ()) -> None:
    """Write an imported model as a run folder, which appears whole or not at all; `check_lines`: see `save_run`.

    Raises ImportedModelError if there is something at `run` already.
    """
    from keras_transformer.models.imported.stored import stored_transformer
    from keras_transformer.runs.saved_run import save_run

    run = pathlib.Path(run).absolute()
    refuse_existing(run)
    staging = run.with_name(f"{run.name}.part")
    shutil.rmtree(staging, ignore_errors=True)  # of an import that was killed
    try:
        with stored_transformer(model) as transformer:
            save_run(transformer, model.tokenizer, staging, check_lines, model.inference())
        os.rename(staging, run)
    except BaseException:  # Ctrl-C too leaves no part behind
        shutil.rmtree(staging, ignore_errors=True)
        raise


def refuse_existing(run: pathlib.Path) -> None:
    """Raises ImportedModelError if there is something at the path of a run folder, other than an empty folder."""
    if run.is_dir() and not any(run.iterdir()):
        return
    if run.exists() or run.is_symlink():
        raise ImportedModelError(f"{run} exists already: name a folder that does not.")
