"""This project in the race: `keras-transformer train`."""

import json
import pathlib
import signal
import sys

import numpy as np
import tomli_w

from benchmarks.recipes.racing.racer import Contestant, Task
from keras_transformer.runs.run_folder import CHECKPOINTS, RunFolder
from keras_transformer.search.options import GNMT, SearchOptions
from train.config.run import load_config

SPLITS = ("train", "val")
CHECKPOINT_EVERY = 100  # steps; race.md has how many seconds that is


class Ours(Contestant):
    name, label, stop_signal = "ours", "this project", signal.SIGTERM

    def __init__(self, folder: pathlib.Path, task: Task, length_normalization: str = GNMT):
        super().__init__(folder, task)
        self.length_normalization = length_normalization

    @property
    def note(self) -> str:
        precision = load_config(RunFolder(self.folder / "run").config).training.precision
        return f"This project packs rows, trains in {precision}, and does not validate in the race."

    def command(self) -> list[str]:
        path = self.folder / "race.toml"
        path.write_text(self.config(), encoding="utf-8")
        return [sys.executable, "-m", "train", str(path)]

    def config(self) -> str:
        """Return the configuration of the task with its text and tokenizer, which do not change, and without an end."""
        task = self.task
        values = load_config(task.config, task.overrides).model_dump(exclude_unset=True)
        pairs = {split: [str(task.text / f"{split}.{language}") for language in task.languages] for split in SPLITS}
        values["data"] = {"source": "files", "train": [pairs["train"]], "validation": [pairs["val"]]}
        values["tokenizer"] = {"model": str(task.tokenizer)}
        values["training"].pop("augment", None)
        values["training"] |= {
            "steps": 1_000_000,
            "cooldown_steps": 0,
            "checkpoint_every": CHECKPOINT_EVERY,
            "keep_checkpoints": 100_000,
            "average_checkpoints": 1,
            "validate_every": 1_000_000,
        }
        folders = {"run_folder": str(self.folder / "run"), "cache_folder": str(self.folder / "cache")}
        return tomli_w.dumps({**values, **folders})

    def checkpoints(self) -> dict[int, pathlib.Path]:
        paths = (self.folder / "run" / "checkpoints").glob(CHECKPOINTS)
        return {int(path.stem.removeprefix("step-")): path for path in paths}

    def tokens(self, checkpoint: pathlib.Path) -> int:
        with np.load(checkpoint) as archive:
            return int(json.loads(str(archive["progress"]))["target_tokens"])

    def search_options(self) -> SearchOptions:
        """Return how it searches."""
        return SearchOptions(
            self.task.beam_size, self.task.length_penalty, length_normalization=self.length_normalization
        )

    def translate(self, checkpoint: pathlib.Path, split: str) -> list[str]:
        from keras_transformer.config import TransformerConfig
        from keras_transformer.model import Transformer
        from keras_transformer.pieces.tokenizer import Tokenizer
        from keras_transformer.translation.parallel import tune_for_translation
        from keras_transformer.translation.translator import Translator
        from train.loop.checkpoints import assign_weights, read_weights

        folder = RunFolder(self.folder / "run")
        tune_for_translation()
        transformer = Transformer(TransformerConfig.load(folder.model))
        assign_weights(transformer, read_weights(checkpoint))
        translator = Translator(transformer, Tokenizer(folder.tokenizer), self.search_options())
        return [
            translation.text for translation in translator.translate(self.task.lines(split, self.task.languages[0]))
        ]
