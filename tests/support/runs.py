"""Run folders: how a run of seconds is configured, and a run folder as training leaves it, with random weights."""

import functools
import json
import pathlib
import tempfile

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import EOS
from keras_transformer.layers.normalization import NORMS
from keras_transformer.model import Transformer
from keras_transformer.pieces.tokenizer import train_tokenizer
from tests.support.models import GAINS
from tests.support.processes import python

# numbers below 1,000, a model of 16 dimensions, five steps
CONFIG = """
[data]
source = "numbers"
maximum = 999
train_pairs = 300
validation_pairs = 8
test_pairs = 12

[tokenizer]
vocab_size = 300

[model]
preset = "tiny"
encoder_layers = 1
decoder_layers = 1
d_model = 16
d_ff = 32
num_heads = 2

[training]
steps = 5
tokens_per_batch = 256
row_length = 64
warmup_steps = 10
checkpoint_every = 2
keep_checkpoints = 3
average_checkpoints = 2
validate_every = 2
log_every = 2
histograms_every = 2
xla = false
precision = "float32"
"""


def write_config(folder, name="run"):
    """A configuration file in `folder` whose run folder is folder/name. Returns its path."""
    path = folder / f"{name}.toml"
    path.write_text(f'run_folder = "{folder / name}"\n{CONFIG}', encoding="utf-8")
    return path


def first_training(folder):
    """Train a run in a process of its own, and keep what it printed in process.json."""
    process = python("-m", "train", write_config(folder))
    assert process.returncode == 0, process.stderr[-3000:]
    outcome = {name: getattr(process, name) for name in ("returncode", "stdout", "stderr")}
    (folder / "process.json").write_text(json.dumps(outcome), encoding="utf-8")


def metrics_of(folder):
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]


def steps_of(folder):
    """The steps of the training's own lines in metrics.jsonl."""
    return [line["step"] for line in metrics_of(folder) if "train/loss" in line]


# a run folder with random weights

SENTENCES = [
    "the cat sat on the mat",
    "a dog runs across the green field",
    "Zwei Männer kochen in der Küche .",
    "two hundred and forty-one",
    "a",
    "forty-one dogs",
    "der Küche",
    "kochen",
    "hundred",
]
FIRST_PIECE = 260  # after special ids and bytes
RUN_MODEL = TransformerConfig(
    vocab_size=330, encoder_layers=1, decoder_layers=1, d_model=32, d_ff=48, num_heads=4, dropout=0.5
)


def random_run(folder, **changes):
    """Write a run folder as training leaves it; `changes` are fields of RUN_MODEL. Returns the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    config = RUN_MODEL.replace(**changes)
    config.save(folder / "model.json")
    (folder / "tokenizer.model").write_bytes(tokenizer_bytes())
    decisive(Transformer(config)).save_weights(str(folder / "model.weights.h5"))
    (folder / "validation.src.txt").write_text("".join(f"{line}\n" for line in SENTENCES), encoding="utf-8")
    return folder


@functools.cache
def tokenizer_bytes():
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tokenizer.model"
        train_tokenizer(SENTENCES * 5, path, RUN_MODEL.vocab_size)
        return path.read_bytes()


def decisive(transformer, seed=7, end=6.0, first_piece=FIRST_PIECE):
    """Weights so wide that hypotheses are far apart, not ties; few bytes, and EOS likelier by `end` in its logit."""
    config, generator = transformer.transformer_config, np.random.default_rng(seed)
    for weight in transformer.trainable_weights:
        drawn = generator.normal(0.0, 0.5, weight.shape)
        if weight.path.endswith("/matrix"):
            drawn[EOS + 1 : first_piece] *= 0.02
        if weight.name not in GAINS:
            weight.assign(drawn)
    table = transformer.get_layer("embedding" if config.shared_embeddings else "logits").matrix
    end_vector = np.array(table)[EOS]
    last_block = transformer.get_layer(f"decoder_block_{config.decoder_layers}")
    has_norm_at_end = NORMS[config.norm].leaves_sum
    norm = transformer.get_layer("decoder_norm") if has_norm_at_end else last_block.feed_forward_residual.norm
    if hasattr(norm, "beta"):
        norm.beta.assign(np.array(norm.beta) + end * end_vector / (end_vector @ end_vector))
    return transformer
