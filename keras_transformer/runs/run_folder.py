"""The run folder: the contract between training, translation and export, as the names of its files."""

import os
import pathlib

from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.ground.files import resolved, sha256_of, write_atomically
from keras_transformer.ground.notations import REGISTERED_NAME
from keras_transformer.runs.inference import Inference, inference_in_config
from keras_transformer.runs.lite_folder import is_lite_folder

CHECKPOINTS = f"step-{8 * '[0-9]'}.npz"  # a pattern: one that was put aside has another name
RUN_MODEL, PRESET_MODEL = "model.json", "config.json"  # which model it is, in a run and in a preset
SAVED_MODEL = "saved_model.pb"  # what makes a folder a version of an export
TOKENIZER_ASSETS = "assets/tokenizer"  # of a preset


class RunFolder:
    """The paths of all files of a run, as attributes. Creates nothing.

    A preset (presets.py) is opened as a run is: it has the same files, three of them at other places. `is_preset`: None
    means as the folder is found.
    """

    def __init__(self, path: str | os.PathLike, is_preset: bool | None = None):
        self.path = pathlib.Path(path)
        if is_preset is None:
            is_preset = holds_preset(self.path)
        assets = self.path / TOKENIZER_ASSETS if is_preset else self.path
        self.config = self.path / "config.toml"  # the effective configuration, with overrides and defaults
        self.tokenizer = assets / "tokenizer.model"
        self.tokenizer_sum = assets / "tokenizer.model.sha256"  # as the command sha256sum writes and checks it
        self.model = self.path / (PRESET_MODEL if is_preset else RUN_MODEL)
        self.inference_file = self.path / "inference.json"  # what the model writes, and how commands search for it
        self.weights = self.path / "model.weights.h5"  # what translation uses
        self.calibration = self.path / "calibration.json"  # from a score to a confidence, if it was calibrated
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / "metrics.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.report = self.path / "report.md"
        self.scores = self.path / "scores.json"  # the scores of the report, for programs
        self.shortlist = self.path / "shortlist.npz"  # which target pieces a search considers for each source piece
        self.curves = self.path / "curves.png"  # which the report shows
        self.history = self.path / "history.jsonl"  # which commit and which configuration trained from which step on
        self.training_text = self.path / "training_text.json"  # which text the weights were trained on
        self.lock = self.path / "lock"  # held while a process trains here
        self.check_lines = self.path / "validation.src.txt"  # the source sentences on which `export` compares

    def check_exists(self) -> None:
        """Raises ConfigError if there is no such folder."""
        if not self.path.is_dir():
            raise ConfigError(
                f"There is no run folder {self.path}. `keras-transformer train CONFIG` makes one, and hf://USER/MODEL "
                "names one on the Hugging Face hub."
            )

    def check_has(self, *files: pathlib.Path) -> None:
        """Raises ConfigError if there is no such folder, or if one of these of its files is missing."""
        self.check_exists()
        for file in files:
            if not file.exists():
                if holds_export(self.path):
                    raise ConfigError(
                        f"{self.path} is an export, not a run folder: `keras-transformer translate-export {self.path}` "
                        "translates with it; for all else, give the run that it was made of."
                    )
                raise ConfigError(
                    f"{self.path} has no {file.relative_to(self.path)}: it is not a run folder, or its training has "
                    "not finished. `keras-transformer train CONFIG` finishes it."
                )

    def refuse_own_file(self, option: str, path: pathlib.Path) -> None:
        """Raises ConfigError if `path`, to which a command would write by its `option`, is a file of this run."""
        place = resolved(path)
        if any(place.is_relative_to(resolved(own)) for own in vars(self).values() if own != self.path):
            raise ConfigError(f"{option} {path} is a file of the run {self.path}: name another one.")

    def check_tokenizer(self) -> None:
        """Raises ConfigError if tokenizer.model is not the one that the weights were trained with.

        Ids would then stand for other words. A run without a tokenizer.model.sha256 is not checked.
        """
        if not self.tokenizer_sum.exists():
            return
        expected = self.tokenizer_sum.read_text(encoding="utf-8", errors="replace").split(" ")[0]
        actual = sha256_of(self.tokenizer)
        if actual != expected:
            raise ConfigError(
                f"{self.tokenizer} is not the tokenizer that the weights were trained with: its SHA-256 is "
                f"{actual[:12]}..., and {self.tokenizer_sum.name} has {expected[:12]}... Put the right one back."
            )

    def keep_tokenizer_sum(self) -> None:
        """Write the SHA-256 of tokenizer.model."""
        write_atomically(self.tokenizer_sum, f"{sha256_of(self.tokenizer)}  {self.tokenizer.name}\n")

    def inference(self) -> Inference:
        """What inference.json says; of a run that was trained before there was such a file, what its config.toml says.

        Raises ConfigError if inference.json is damaged.
        """
        if self.inference_file.exists():
            return Inference.load(self.inference_file)
        return inference_in_config(self.config)

    def has_begun(self) -> bool:
        """Return whether there is a checkpoint to continue from."""
        return any(self.checkpoints.glob(CHECKPOINTS))


def holds_export(path: pathlib.Path) -> bool:
    """Return whether a folder is a version, a folder of versions, or a LiteRT model, as `export` writes them."""
    return any((place / SAVED_MODEL).is_file() or is_lite_folder(place) for place in (path, *path.glob("[0-9]*")))


def refuse_run(path: pathlib.Path, error: type[UserError]) -> None:
    """Raise `error` if a folder that has to be an export is a run folder."""
    if RunFolder(path).model.exists():
        raise error(f"{path} is a run folder, not an export: `keras-transformer export {path} --to FOLDER` writes one.")


def holds_preset(path: pathlib.Path) -> bool:
    """Return whether a folder is a preset of Keras, of this project or another, and not a run folder."""
    try:
        return not (path / RUN_MODEL).exists() and f'"{REGISTERED_NAME}"' in (path / PRESET_MODEL).read_text("utf-8")
    except (OSError, ValueError):
        return False
