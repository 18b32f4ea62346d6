"""A model and its tokenizer as a run folder, and back: without training it by `keras-transformer train`."""

import os
import pathlib
from collections.abc import Iterable, Sequence

import h5py
import keras
import numpy as np

from keras_transformer.ground.errors import ConfigError, first_line_of
from keras_transformer.ground.files import write_atomically
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.pieces.batching import list_of_lines
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.pieces.sources import check_vocabulary
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.kinds import build_model, config_of, load_model_config
from keras_transformer.runs.run_folder import RunFolder, holds_preset

DTYPES = ("float32", "float16")  # of a file of weights
UNKNOWN = Inference()  # text, and sentences of any length


def save_run(
    transformer: keras.Model,
    tokenizer: Tokenizer,
    path: str | os.PathLike,
    check_lines: Iterable[str] = (),
    inference: Inference = UNKNOWN,
) -> None:
    """Write a model and its tokenizer as a run folder, which every command but `keras-transformer train` opens.

    check_lines: source sentences, such as some of the validation set, on which `keras-transformer export` compares what
    it writes with the Translator; without any, it asks for `--check FILE`.
    inference: whether the model writes text, as most do, or trees; how commands search for its outputs unless they are
    told otherwise; and how many tokens its longest training sentence had, beyond which `translate` warns.

    A folder that save_run or a script wrote is overwritten. It cannot be opened meanwhile, as model.json comes last.
    Raises TypeError if the model is neither a Transformer nor a RecurrentModel, and ConfigError, before anything is
    written, if the tokenizer is of another vocabulary, a weight is quantized, NaN or infinite, a line of `check_lines`
    is more than one line, a value of `inference` makes no sense, or the folder is a run of `keras-transformer train`,
    whose checkpoints and report are of other weights.
    """
    folder = RunFolder(path, is_preset=False)
    if folder.config.exists() or folder.has_begun():
        raise ConfigError(f"{folder.path} is a run folder of `keras-transformer train`: save into another folder.")
    if holds_preset(folder.path):
        raise ConfigError(f"{folder.path} is a preset: save the run into another folder.")
    config = save_parts(folder, transformer, tokenizer, check_lines, inference)
    config.save(folder.model)


def save_parts(
    folder: RunFolder,
    transformer: keras.Model,
    tokenizer: Tokenizer,
    check_lines: Iterable[str],
    inference: Inference,
    dtype: str = "float32",
) -> BaseModelConfig:
    """Write all files of a run but the last one, which says which model it is. Returns what that file is to hold.

    Arguments and errors are those of `save_run` and `save_weights`; the last file is removed first, so that nobody
    opens one half.
    """
    config = config_of(transformer)
    check_vocabulary(config, tokenizer)
    if not isinstance(inference, Inference):
        raise TypeError(f"inference must be an Inference. Received: {inference!r:.60}")
    inference.check()
    lines = list_of_lines(check_lines)
    for line in lines:
        if "\n" in line:
            raise ConfigError(f"check_lines has {line!r}, which is more than one line: split it.")
    check_finite(transformer, dtype)
    folder.tokenizer.parent.mkdir(parents=True, exist_ok=True)
    folder.model.unlink(missing_ok=True)
    write_atomically(folder.tokenizer, tokenizer.model_bytes)
    folder.keep_tokenizer_sum()
    save_weights(transformer, folder.weights, dtype)
    if lines:
        write_atomically(folder.check_lines, "".join(f"{line}\n" for line in lines))
    else:
        folder.check_lines.unlink(missing_ok=True)
    inference.save(folder.inference_file)
    return config


def check_finite(transformer: keras.Model, dtype: str = "float32") -> None:
    """Raises ConfigError if a weight is NaN or infinite, or becomes so in the file of type `dtype`."""
    if dtype not in DTYPES:
        raise ConfigError(f"The dtype of a file of weights is {' or '.join(DTYPES)}, and {dtype!r} was asked for.")
    for weight in transformer.weights:
        values = np.asarray(keras.ops.convert_to_numpy(weight.value), "float32")
        if not np.isfinite(values).all():
            raise ConfigError(f"{weight.path} has values that are NaN or infinite: nothing was saved.")
        if np.abs(values).max(initial=0) > np.finfo(dtype).max:
            raise ConfigError(f"{weight.path} has values that are too large for {dtype}: nothing was saved.")


def save_weights(transformer: keras.Model, path: pathlib.Path, dtype: str = "float32") -> None:
    """Replace the file at `path` in one step: a reader finds the old weights or the new ones, never a part.

    The new ones are flushed to the disk before they take the name, so that this holds after a power failure too. In
    "float16" the file is half as large; Keras reads it as it reads the other.
    """
    part = path.with_name("part.weights.h5")  # Keras requires this ending
    try:
        transformer.save_weights(part)
        if dtype == "float16":
            round_to_half(part)
        with open(part, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:  # Ctrl-C too leaves no part behind; all go on to the caller
        part.unlink(missing_ok=True)
        whole_of(part).unlink(missing_ok=True)
        raise


def whole_of(path: pathlib.Path) -> pathlib.Path:
    """Where the weights at `path` are while they are rounded."""
    return path.with_name("whole.weights.h5")


def round_to_half(path: pathlib.Path) -> None:
    """Write a file of float32 weights again, its arrays rounded to float16."""
    whole = whole_of(path)
    os.replace(path, whole)
    with h5py.File(whole) as source, h5py.File(path, "w") as target:

        def copy(name: str, item: h5py.Group | h5py.Dataset) -> None:
            if isinstance(item, h5py.Dataset):
                # by NumPy: where rounding carries into the exponent, HDF5's own conversion halves the value
                copied = target.create_dataset(name, data=item[()].astype("float16"))
            else:
                copied = target.require_group(name)
            copied.attrs.update(item.attrs)

        source.visititems(copy)
        target.attrs.update(source.attrs)
    whole.unlink()


def load_run(path: str | os.PathLike) -> tuple[keras.Model, Tokenizer]:
    """Return the model, a Transformer or a RecurrentModel, and the Tokenizer of a run folder, or of a preset.

    The model is float32, as its file is, whatever the global dtype policy. Raises UserError if a file is missing or
    damaged.
    """
    folder = RunFolder(path)
    folder.check_has(folder.model, folder.tokenizer, folder.weights)
    folder.check_tokenizer()
    tokenizer = open_tokenizer(folder.tokenizer)
    config = load_model_config(folder.model)
    try:
        check_vocabulary(config, tokenizer)
    except ConfigError as error:
        raise ConfigError(f"{folder.path}: {error}") from None
    return with_weights(build_model(config, dtype="float32"), folder.weights), tokenizer


def load_runs(paths: Sequence[str | os.PathLike]) -> tuple[list[keras.Model], Tokenizer]:
    """Return the models of several run folders, and the Tokenizer that they all have: see `load_run`.

    Also raises ConfigError if `paths` is empty, or if a folder has another tokenizer than the first.
    """
    if not paths:
        raise ConfigError("There is no run folder to open: give one or more.")
    runs = [load_run(path) for path in paths]
    tokenizer = runs[0][1]
    for path, (_, other) in zip(paths, runs, strict=True):
        if other.model_bytes != tokenizer.model_bytes:
            raise ConfigError(
                f"{path} has another tokenizer than {paths[0]}, so that their pieces are not the same words: an "
                "ensemble needs runs with the same tokenizer.model, as different seeds of one configuration have."
            )
    return [model for model, _ in runs], tokenizer


def with_weights(transformer: keras.Model, path: str | os.PathLike) -> keras.Model:
    """Load the weights at `path` into the transformer. Raises ConfigError if they are damaged or of another model."""
    try:
        transformer.load_weights(path)
        held = arrays_in(path)
    except (OSError, ValueError, RuntimeError, LookupError) as error:  # HDF5 reports damage by any of these
        raise ConfigError(
            f"{path} is damaged, or does not hold the weights of the model that model.json describes: "
            f"{first_line_of(error)}"
        ) from None
    if held != len(transformer.weights):  # Keras ignores arrays that the model has no place for
        raise ConfigError(
            f"{path} does not hold the weights of the model that model.json describes: it has {held} arrays, and that "
            f"model has {len(transformer.weights)}."
        )
    for weight in transformer.weights:
        if not np.isfinite(weight.numpy()).all():
            raise ConfigError(f"{path} is damaged: {weight.path} has values that are NaN or infinite.")
    return transformer


def arrays_in(path: str | os.PathLike) -> int:
    """The number of arrays of layers in a file of weights; Keras puts those of the optimizer beside them."""
    names = []
    with h5py.File(path) as file:
        file["layers"].visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return len(names)
