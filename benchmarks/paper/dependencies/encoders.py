"""An encoder of each kind, with equally many parameters, that answers the last words of a row."""

from typing import Any, NamedTuple

from benchmarks.paper.dependencies.tasks import ASKED, VALUES, VOCABULARY, rows_of
from keras_transformer.config import TransformerConfig
from train.cost.cost import parameter_count

KERNEL_SIZE, NEIGHBOURHOOD = 9, 17  # k and r
# Each block reaches 4 words (k = 9) or 8 words (r = 17) to each side; three blocks, 12, 24, or 28 if dilated.
BASE = TransformerConfig(
    vocab_size=1,
    encoder_layers=3,
    decoder_layers=1,
    d_model=32,
    d_ff=128,
    num_heads=2,
    norm="pre",
    dropout=0.0,
)
KINDS = {
    "self_attention": {},
    "recurrent": {"encoder_layer": "recurrent"},
    "convolutional": {"encoder_layer": "convolutional", "kernel_size": KERNEL_SIZE},
    "dilated": {"encoder_layer": "convolutional", "kernel_size": KERNEL_SIZE, "dilated": True},
    "restricted": {"encoder_layer": "restricted", "neighbourhood": NEIGHBOURHOOD},
}
HELD_OUT = 512  # rows on which accuracy is measured


class Effort(NamedTuple):
    """How long a model trains."""

    steps: int
    rows: int  # per step
    learning_rate: float = 3e-3


def config_of(kind: str, vocab_size: int) -> TransformerConfig:
    """The configuration of a kind whose blocks have as many weights as those of self-attention, by choice of d_ff."""
    config = BASE.replace(vocab_size=vocab_size, **KINDS[kind])
    d = config.d_model
    sublayer = {"recurrent": 6 * d**2 + 6 * d, "convolutional": KERNEL_SIZE * d**2 + d}
    spare = 4 * d**2 - sublayer.get(config.encoder_layer, 4 * d**2)
    return config.replace(d_ff=config.d_ff + round(spare / (2 * d + 1)))


def parameters_of(kind: str, task: str) -> int:
    """The number of parameters of `model_of`, from its configuration: embeddings, blocks, last norm and answers."""
    config = config_of(kind, VOCABULARY[task])
    d, layers = config.d_model, config.encoder_layers
    blocks = parameter_count(config.replace(encoder_layers=2 * layers)) - parameter_count(config)  # as many again
    return config.vocab_size * d + blocks + 2 * d + (d + 1) * VALUES


def model_of(kind: str, task: str):
    """A Keras model from ids (B, n) and segments (B, n) to logits (B, ASKED, VALUES) of the last words."""
    import keras

    from keras_transformer.model import Transformer, encoder

    transformer = Transformer(config_of(kind, VOCABULARY[task]))
    inputs = {name: transformer.input[name] for name in ("source_ids", "source_segments")}
    asked = encoder(transformer)(inputs)[:, -ASKED:]
    return keras.Model(inputs, keras.layers.Dense(VALUES, name="answer")(asked))


def train_and_score(kind: str, task: str, distance: int, effort: Effort) -> dict[str, Any]:
    """Train a model on rows that are drawn anew for each step. Returns its accuracy on rows that it has not seen."""
    import time

    import keras
    import numpy as np

    keras.utils.clear_session()
    keras.utils.set_random_seed(1)
    model = model_of(kind, task)
    warm = keras.optimizers.schedules.CosineDecay(
        0.0, effort.steps, warmup_target=effort.learning_rate, warmup_steps=max(1, effort.steps // 10)
    )
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    optimizer = keras.optimizers.Adam(warm, global_clipnorm=1.0)
    model.compile(optimizer, loss, jit_compile=True, steps_per_execution=1)
    began, rows = time.perf_counter(), rows_of(task, distance, effort.steps * effort.rows, seed=1)
    model.fit(inputs_of(rows.ids), rows.answers, batch_size=effort.rows, epochs=1, shuffle=False, verbose=0)
    seconds, held_out = time.perf_counter() - began, rows_of(task, distance, HELD_OUT, seed=2)
    logits = model.predict(inputs_of(held_out.ids), batch_size=effort.rows, verbose=0)
    return {
        "accuracy": float(np.mean(np.argmax(logits, axis=-1) == held_out.answers)),
        "parameters": model.count_params(),
        "seconds": seconds,
    }


def inputs_of(ids) -> dict[str, Any]:
    """Each row is one sentence without padding."""
    import numpy as np

    return {"source_ids": ids, "source_segments": np.ones_like(ids)}
