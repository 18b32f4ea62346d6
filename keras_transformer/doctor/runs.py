"""Whether a run folder or a preset is whole: its files are there, can be read, and belong together."""

import pathlib
import zipfile
from collections.abc import Callable, Iterator
from typing import Any

import h5py
import numpy as np

from keras_transformer.doctor.finding import Finding, missing, note, ok
from keras_transformer.doctor.packages import version_of
from keras_transformer.ground.errors import UserError, first_line_of
from keras_transformer.ground.files import DAMAGED_ARCHIVE, unpacked_lines
from keras_transformer.ground.notations import json_of, toml_of
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.pieces.pair_tokenizer import open_tokenizer
from keras_transformer.pieces.sources import check_vocabulary
from keras_transformer.runs.confidence import Calibration
from keras_transformer.runs.kinds import load_model_config
from keras_transformer.runs.run_folder import CHECKPOINTS, RunFolder
from keras_transformer.shortlist.shortlist import Shortlist

RESTORE = "copy it again from where the run was trained"

OVERFITS = 1.05  # times the lowest validation loss

FINISH = "keras-transformer train CONFIG finishes a training; else copy the folder again"


def run(folder: RunFolder) -> Iterator[Finding]:
    """Yield findings on each file that translation, export or resumption reads."""
    if lacking := [file for file in (folder.model, folder.tokenizer, folder.weights) if not file.exists()]:
        names = ", ".join(str(file.relative_to(folder.path)) for file in lacking)
        yield missing(f"it has no {names}, so it cannot translate yet", FINISH)
    yield from model(folder)
    yield from inference(folder)
    yield from records(folder)
    yield from newest_checkpoint(folder)
    yield from validations(folder)


def model(folder: RunFolder) -> Iterator[Finding]:
    """Yield findings on model.json, the tokenizer and the weights, of those that are there."""
    try:
        config = load_model_config(folder.model) if folder.model.exists() else None
        if config is not None:
            yield ok(f"{folder.model.name}: a {config.kind} of {config.vocab_size:,} pieces")
        if folder.tokenizer.exists():
            folder.check_tokenizer()
            tokenizer = open_tokenizer(folder.tokenizer)
            if config is not None:
                check_vocabulary(config, tokenizer)
            yield ok(f"{folder.tokenizer.name}: {tokenizer.vocab_size:,} pieces")
    except (UserError, OSError) as error:
        yield missing(first_line_of(error).rstrip("."), RESTORE)
        return
    if folder.weights.exists():
        yield weights(folder.weights, config)
    metadata = folder.path / "metadata.json"  # of a preset
    if metadata.exists():
        yield versions(metadata)


def weights(path: pathlib.Path, config: BaseModelConfig | None) -> Finding:
    """Return the finding on a file of weights: it opens, its numbers are finite, its vocabulary is the model's."""
    arrays: dict[str, tuple[int, ...]] = {}
    try:
        with h5py.File(path) as file:
            damaged = non_finite(file, arrays)
    except (OSError, RuntimeError, ValueError, LookupError) as error:  # HDF5 reports damage by any of these
        return missing(f"{path.name} is damaged: {first_line_of(error)[:-1]}", RESTORE)
    if damaged:
        return missing(f"{path.name} has values that are NaN or infinite in {damaged}", RESTORE)
    if config is not None and not any(config.vocab_size in shape for shape in arrays.values()):
        return missing(
            f"{path.name} has no matrix for {config.vocab_size:,} pieces: it is of another model than model.json",
            RESTORE,
        )
    parameters = sum(int(np.prod(shape)) for shape in arrays.values())
    return ok(f"{path.name}: {len(arrays)} arrays, {parameters:,} parameters, all finite")


def non_finite(file: h5py.File, arrays: dict[str, tuple[int, ...]]) -> str | None:
    """Put the shape of each array of layers into `arrays`; return the name of one with NaN or infinite values."""

    def visit(name: str, item: h5py.Dataset | h5py.Group) -> str | None:
        if isinstance(item, h5py.Dataset):
            arrays[name] = item.shape
            if not np.isfinite(item[()]).all():
                return name
        return None

    return file["layers"].visititems(visit)


def versions(metadata: pathlib.Path) -> Finding:
    """Return the finding on the Keras that wrote a preset, beside the one that is installed."""
    try:
        wrote = json_of(metadata.read_text("utf-8"))["keras_version"]
    except (OSError, ValueError, LookupError, TypeError):
        return note(f"{metadata.name} is damaged", f"{RESTORE}, or go on: nothing needs it")
    return ok(f"written by Keras {wrote}; {version_of('keras') or 'none'} is installed")


def inference(folder: RunFolder) -> Iterator[Finding]:
    """Yield the finding on inference.json, which older runs do not have."""
    try:
        outputs = folder.inference().outputs
    except UserError as error:
        yield missing(first_line_of(error)[:-1], RESTORE)
        return
    yield ok(f"it writes {outputs}")
    if not folder.check_lines.exists():
        yield note(f"it has no {folder.check_lines.name}", "export it with --check FILE: sentences to compare on")


def newest_checkpoint(folder: RunFolder) -> Iterator[Finding]:
    """Yield the finding on the checkpoint from which a training would go on."""
    newest = max(folder.checkpoints.glob(CHECKPOINTS), default=None)
    if newest is None:
        if folder.config.exists():
            yield note("it has no checkpoint", "translate and export do without; train would begin again")
        return
    try:
        with zipfile.ZipFile(newest) as archive:
            damaged = archive.testzip()
    except (OSError, *DAMAGED_ARCHIVE) as error:
        damaged = first_line_of(error)[:-1]
    if damaged:
        yield missing(
            f"checkpoints/{newest.name} is damaged: {damaged}", "remove it: train goes on from the one before"
        )
    else:
        yield ok(f"checkpoints/{newest.name}: complete")


def records(folder: RunFolder) -> Iterator[Finding]:
    """Yield a finding on each of these files that is damaged, and one on how many of them can be read."""
    checks: dict[pathlib.Path, tuple[Callable[[pathlib.Path], object], str]] = {
        folder.config: (check_configuration, f"{RESTORE}, or let train write it again from your CONFIG"),
        folder.history: (objects_in, f"{RESTORE}; without it, report.md does not say how the run was trained"),
        folder.training_text: (objects_in, f"{RESTORE}; without it, train does not see if the text changes"),
        folder.scores: (objects_in, f"{RESTORE}, or run its training command again, which writes it"),
        folder.calibration: (Calibration.load, f"remove it, or keras-transformer calibrate {folder.path}"),
        folder.shortlist: (Shortlist.load, f"remove it, or keras-transformer shortlist {folder.path}"),
        folder.check_lines: (check_text, f"{RESTORE}, or export the run with --check FILE"),
    }
    whole = []
    for file, (check, remedy) in checks.items():
        if not file.exists():
            continue
        try:
            check(file)
        except UserError as error:
            sentence = first_line_of(error)[:-1]
            yield missing(sentence.rpartition(". ")[0] or sentence, remedy)  # which says what to do in its place
        except OSError as error:
            yield missing(first_line_of(error)[:-1], remedy)
        except ValueError as error:  # neither UTF-8, TOML nor JSON, or not what it must hold
            yield missing(f"{file.name} is damaged: {first_line_of(error).rstrip('.')}", remedy)
        else:
            whole.append(file.name)
    if whole:
        yield ok(f"readable: {', '.join(whole)}")


def check_configuration(path: pathlib.Path) -> None:
    """Raises ValueError if a config.toml is not that of a training."""
    values = toml_of(path.read_text("utf-8-sig"))
    if not values:
        raise ValueError("it is empty")
    if not isinstance(values.get("data"), dict):
        raise ValueError("it has no section [data]")


def check_text(path: pathlib.Path) -> None:
    """Raises InputError if a file is not UTF-8, and ValueError if it has no text, as after a loss of power."""
    if not any([line.strip(" \0") for line in unpacked_lines(path)]):
        raise ValueError("it has no text")


def objects_in(path: pathlib.Path) -> list[dict[str, Any]]:
    """Return the objects of a file of JSON, or one per line. Raises ValueError if there is none, or it is damaged."""
    text = path.read_text("utf-8")
    objects = [json_of(part) for part in (text.splitlines() if path.suffix == ".jsonl" else [text])]
    if not objects or not all(isinstance(each, dict) for each in objects):
        raise ValueError("it holds no object of JSON")
    return objects


def validations(folder: RunFolder) -> Iterator[Finding]:
    """Yield a note if the validation loss has risen since its lowest value, as it does when a model overfits."""
    try:
        lines = folder.metrics.read_text("utf-8", "replace").splitlines()
    except OSError:
        return
    losses: dict[int, float] = {}
    for line in lines:
        try:
            values = json_of(line)
            losses[values["step"]] = float(values["validation/loss"])
        except (ValueError, LookupError, TypeError):
            continue  # a line of other metrics, or a damaged one
    if not losses:
        return
    best, last = min(losses, key=losses.__getitem__), max(losses)
    if losses[last] > OVERFITS * losses[best]:
        yield note(
            f"its validation loss was {losses[best]:.3f} at step {best:,} and is {losses[last]:.3f} at step {last:,}: "
            "it overfits",
            "raise training.dropout, add text, or end it with training.patience and training.keep_best",
        )
