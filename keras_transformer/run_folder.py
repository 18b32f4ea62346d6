"""The run folder: the contract between training, translation and export, as the names of its files."""

import os
import pathlib


class RunFolder:
    """The names of everything that a run leaves behind. Creates nothing; `create` does."""

    def __init__(self, path: str | os.PathLike):
        self.path = pathlib.Path(path)
        self.config = self.path / "config.toml"  # as it took effect, with overrides and defaults
        self.tokenizer = self.path / "tokenizer.model"
        self.model = self.path / "model.json"
        self.weights = self.path / "model.weights.h5"  # what translation uses
        self.checkpoints = self.path / "checkpoints"
        self.metrics = self.path / "metrics.jsonl"
        self.tensorboard = self.path / "tensorboard"
        self.report = self.path / "report.md"
        self.training_text = self.path / "training_text.json"  # which text the weights were trained on
        self.lock = self.path / "lock"  # held while a process trains here
        self.check_lines = self.path / "validation.src.txt"  # source sentences that `export` compares on
