"""The run folder: the contract between training, translation and export."""

import pathlib

from keras_transformer.config import ConfigError


class RunFolder:
    """Names of everything that a run leaves behind; the folder is made where there is none."""

    def __init__(self, path):
        self.path = pathlib.Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"run_folder {self.path} cannot be made: {error.strerror}.") from None
        self.config = self.path / "config.toml"  # as it took effect, overrides and defaults included
        self.tokenizer = self.path / "tokenizer.model"
        self.model = self.path / "model.json"
        self.weights = self.path / "model.weights.h5"  # what translation uses
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / "metrics.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.report = self.path / "report.md"
        self.lock = self.path / "lock"  # held while a process trains here
        self.check_lines = self.path / "validation.src.txt"  # source sentences for `export` to try what it wrote
