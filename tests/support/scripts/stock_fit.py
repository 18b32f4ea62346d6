"""Stock `compile`, `fit`, `evaluate`, `save` and `load` of a small Transformer, on whatever backend Keras has."""

import keras
import numpy as np

import keras_transformer as kt
from keras_transformer.layers.dropout import dropout
from tests.support.models import SMALL, randomise

CONFIG = SMALL.replace(encoder_layers=1, decoder_layers=1)


def copying_arrays(rows=16, length=7):
    """Inputs and labels of `rows` sentences of 2 to 6 tokens and EOS, each its own translation."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, length, rows)[:, None]
    places = np.arange(length)
    ids = rng.integers(4, CONFIG.vocab_size, (rows, length))
    labels = np.where(places < sizes, ids, np.where(places == sizes, 3, 0)).astype("int32")
    segments = (places <= sizes).astype("int32")
    target = np.where(segments, np.concatenate([np.full((rows, 1), 2), labels[:, :-1]], axis=1), 0).astype("int32")
    sides = {"source_ids": labels, "source_segments": segments, "target_ids": target, "target_segments": segments}
    return sides, labels


def compiled(dropout=0.1, dtype=None, **options):
    """A small Transformer with weights that depend on nothing, compiled as the documentation does it."""
    model = randomise(kt.Transformer(CONFIG.replace(dropout=dropout), dtype=dtype), scale=0.2)
    model.compile(
        kt.paper_optimizer(CONFIG.d_model, warmup_steps=20),
        loss=kt.LabelSmoothedCrossentropy(),
        metrics=[kt.TokenAccuracy(), kt.Perplexity()],
        **options,
    )
    return model


def one_fit(epochs, dropout=0.1, callbacks=(), dtype=None, **options):
    """A compiled model after `epochs` over the copying sentences, and the history of them."""
    keras.utils.set_random_seed(0)
    model = compiled(dropout, dtype, **options)
    inputs, labels = copying_arrays()
    fit = {"batch_size": 8, "epochs": epochs, "shuffle": False, "verbose": 0, "callbacks": list(callbacks)}
    return model, model.fit(inputs, labels, validation_data=(inputs, labels), **fit).history


def dropout_mask():
    """Which of 1,000 places dropout keeps at rate 0.3, for a seed whose two words are far apart."""
    return keras.ops.convert_to_numpy(dropout(keras.ops.ones(1000), 0.3, np.array([-5, 1_000_003]))) > 0


def fit_save_and_load(folder):
    """Writes what it finds into folder/found.npz."""
    inputs, labels = copying_arrays()
    model, history = one_fit(epochs=2, dropout=0.0)
    evaluated = model.evaluate(inputs, labels, batch_size=8, return_dict=True, verbose=0)
    model.save(folder / "m.keras")
    loaded = keras.models.load_model(folder / "m.keras")
    logits, again = (one.predict(inputs, batch_size=8, verbose=0) for one in (model, loaded))
    assert isinstance(loaded.loss, kt.LabelSmoothedCrossentropy), loaded.loss
    _, with_dropout = one_fit(epochs=1, dropout=0.5)
    np.savez(
        folder / "found.npz",
        logits=logits,
        loaded_logits=again,
        dropout_loss=with_dropout["loss"],
        dropout_mask=dropout_mask(),
        **{f"fit/{name}": values for name, values in history.items()},
        **{f"evaluate/{name}": value for name, value in evaluated.items()},
    )
