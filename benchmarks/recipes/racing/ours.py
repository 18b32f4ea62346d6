"""This project in the race: `keras-transformer train`."""

import json
import pathlib
import signal
import sys

import numpy as np

from benchmarks.recipes.racing.racer import Contestant
from keras_transformer.runs.run_folder import CHECKPOINTS
from keras_transformer.search.options import SearchOptions

TOKENS_PER_BATCH = 2048
CHECKPOINT_EVERY = 100  # steps; race.md has how many seconds that is


class Ours(Contestant):
    name, label, stop_signal = "ours", "this project", signal.SIGTERM

    def command(self) -> list[str]:
        config = self.folder / "race.toml"
        config.write_text(self.config(), encoding="utf-8")
        return [sys.executable, "-m", "train", str(config)]

    def config(self) -> str:
        """Return the configuration: that of configs/multi30k.toml, but for its rows and what both share."""
        task, text = self.task, self.task.text

        def pair(split: str) -> str:
            return json.dumps([[str(text / f"{split}.en"), str(text / f"{split}.de")]])

        return f"""run_folder = {json.dumps(str(self.folder / "run"))}
cache_folder = {json.dumps(str(self.folder / "cache"))}

[data]
source = "files"
source_language = "en"
target_language = "de"
train = {pair("train")}
validation = {pair("val")}

[tokenizer]
model = {json.dumps(str(task.tokenizer))}

[model]
preset = "tiny"
encoder_layers = {task.layers}
decoder_layers = {task.layers}
d_model = {task.d_model}
d_ff = {task.d_ff}
num_heads = {task.num_heads}

[training]
steps = 1_000_000
tokens_per_batch = {TOKENS_PER_BATCH}
row_length = 64
source_row_length = 62
dropout = {task.dropout}
label_smoothing = {task.label_smoothing}
warmup_steps = {task.warmup_steps}
learning_rate_factor = 0.8
checkpoint_every = {CHECKPOINT_EVERY}
keep_checkpoints = 100_000
validate_every = 1_000_000
"""

    def checkpoints(self) -> dict[int, pathlib.Path]:
        paths = (self.folder / "run" / "checkpoints").glob(CHECKPOINTS)
        return {int(path.stem.removeprefix("step-")): path for path in paths}

    def tokens(self, checkpoint: pathlib.Path) -> int:
        with np.load(checkpoint) as archive:
            return int(json.loads(str(archive["progress"]))["target_tokens"])

    def search_options(self) -> SearchOptions:
        """Return how it searches."""
        return SearchOptions(self.task.beam_size, self.task.length_penalty)

    def translate(self, checkpoint: pathlib.Path, split: str) -> list[str]:
        from keras_transformer.config import TransformerConfig
        from keras_transformer.model import Transformer
        from keras_transformer.pieces.tokenizer import Tokenizer
        from keras_transformer.runs.run_folder import RunFolder
        from keras_transformer.translation.parallel import tune_for_translation
        from keras_transformer.translation.translator import Translator
        from train.loop.checkpoints import assign_weights, read_weights

        folder = RunFolder(self.folder / "run")
        tune_for_translation()
        transformer = Transformer(TransformerConfig.load(folder.model))
        assign_weights(transformer, read_weights(checkpoint))
        translator = Translator(transformer, Tokenizer(folder.tokenizer), self.search_options())
        return [translation.text for translation in translator.translate(self.task.lines(split, "en"))]
