"""What a user writes with stock Keras: compile, fit, evaluate, save, load, export, TensorBoard.

Replicas: test_two_replicas.py. Other backends: test_stock_fit_backends.py.
"""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_transformer as kt
from keras_transformer.inspection import AttentionPictures, BleuScore, SampleTranslations
from keras_transformer.inspection.callbacks import LogFolder
from tests.support.events import read_events, read_pictures
from tests.support.models import assert_close
from tests.support.processes import fork_python
from tests.support.scripts.stock_fit import CONFIG, compiled, copying_arrays, one_fit

pytestmark = pytest.mark.slow
PLAIN = {"jit_compile": False}  # XLA, which Keras takes by default, is for `fitted` and the test of its own
INPUTS, LABELS = copying_arrays()


@pytest.fixture(scope="module")
def logged(tmp_path_factory):
    """The folder in which Keras' callback for TensorBoard has logged the `fit` of `fitted`."""
    return tmp_path_factory.mktemp("logs")


@pytest.fixture(scope="module")
def fitted(logged):
    """A Transformer after some epochs of copying, and the history of its `fit`."""
    return one_fit(epochs=3, callbacks=[keras.callbacks.TensorBoard(logged)])


@functools.cache
def plain_fit():
    """A model after an epoch without dropout and without XLA, and the history of it."""
    return one_fit(epochs=1, dropout=0.0, **PLAIN)


def predictions(model):
    return model.predict(INPUTS, batch_size=8, verbose=0)


def test_fit_lowers_the_loss_and_logs_every_metric(fitted):
    _, history = fitted
    assert set(history) == {f"{side}{name}" for side in ("", "val_") for name in ("loss", "accuracy", "perplexity")}
    assert history["loss"][-1] < history["loss"][0] - 0.1
    assert history["perplexity"][-1] < history["perplexity"][0]
    assert all(np.isfinite(values).all() for values in history.values())


def test_evaluate_gives_the_means_over_all_real_tokens(fitted):
    model, _ = fitted
    found = model.evaluate(INPUTS, LABELS, batch_size=len(LABELS), return_dict=True, verbose=0)
    log_p = np.log(np.exp(predictions(model)) / np.exp(predictions(model)).sum(-1, keepdims=True))
    is_real = LABELS != 0
    nll = -np.take_along_axis(log_p, LABELS[..., None], -1)[..., 0]
    smoothed = 0.9 * nll - 0.1 * log_p.mean(-1)
    assert_close(found["perplexity"], np.exp(nll[is_real].mean()), rtol=1e-4)
    assert_close(found["loss"], smoothed[is_real].mean(), rtol=1e-4)
    assert_close(found["accuracy"], (log_p.argmax(-1) == LABELS)[is_real].mean())


def test_metrics_do_not_depend_on_the_batch_size(fitted):
    model, _ = fitted
    one, other = (model.evaluate(INPUTS, LABELS, batch_size=n, return_dict=True, verbose=0) for n in (2, 7))
    for name in ("accuracy", "perplexity"):
        assert_close(one[name], other[name])


@pytest.mark.release
def test_it_trains_compiled_with_xla_as_without():
    (_, compiled_history), (_, plain) = one_fit(epochs=1, jit_compile=True, dropout=0.0), plain_fit()
    for name in plain:
        assert_close(compiled_history[name], plain[name], rtol=1e-3)


@pytest.mark.nightly
def test_a_saved_model_comes_back_with_weights_loss_metrics_and_schedule(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    assert type(loaded) is kt.Transformer and loaded.transformer_config == model.transformer_config
    assert_close(predictions(loaded), predictions(model), atol=0, rtol=0)
    assert isinstance(loaded.loss, kt.LabelSmoothedCrossentropy)
    schedule = loaded.optimizer._learning_rate
    assert isinstance(schedule, kt.WarmupInverseSquareRoot)
    assert schedule.get_config() == {"d_model": CONFIG.d_model, "warmup_steps": 20, "factor": 1.0}
    assert int(loaded.optimizer.iterations) == int(model.optimizer.iterations) > 0
    before, after = (m.evaluate(INPUTS, LABELS, return_dict=True, verbose=0) for m in (model, loaded))
    assert before == pytest.approx(after)


def test_training_goes_on_from_a_saved_model_as_without_saving(tmp_path):
    model, _ = plain_fit()
    model.save(tmp_path / "m.keras")
    loaded = keras.models.load_model(tmp_path / "m.keras")
    for one in (model, loaded):
        one.fit(INPUTS, LABELS, batch_size=8, shuffle=False, verbose=0)
    assert_close(predictions(loaded), predictions(model), atol=1e-6)


@pytest.mark.nightly
def test_a_process_that_imports_keras_and_the_package_loads_a_saved_model(fitted, tmp_path):
    model, _ = fitted
    model.save(tmp_path / "m.keras")
    np.savez(tmp_path / "inputs.npz", **INPUTS)
    script = f"""
import os, keras, keras_transformer, numpy
os.chdir({str(tmp_path)!r})
model = keras.models.load_model("m.keras")
numpy.save("logits.npy", model.predict(dict(numpy.load("inputs.npz")), batch_size=8, verbose=0))
"""
    run = fork_python("-c", script)
    assert run.returncode == 0, run.stderr[-2000:]
    assert_close(np.load(tmp_path / "logits.npy"), predictions(model), atol=1e-6)


@pytest.mark.nightly
def test_an_exported_model_gives_the_same_logits_for_any_shape(fitted, tmp_path):
    model, _ = fitted
    model.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(tmp_path / "exported")
    for rows, length in ((16, 7), (3, 5)):
        inputs = {name: tf.constant(ids[:rows, :length]) for name, ids in INPUTS.items()}
        assert_close(served.serve(inputs), model(inputs, training=False), atol=1e-5)


@pytest.mark.nightly
def test_tensorboard_logs_loss_and_metrics_of_every_epoch(fitted, logged):
    _, history = fitted
    for side, prefix in (("train", ""), ("validation", "val_")):
        events = read_events(logged / side)
        for name in ("loss", "accuracy", "perplexity"):
            points = events[f"epoch_{name}"]
            assert [step for step, _ in points] == [0, 1, 2]
            assert_close([value for _, value in points], history[f"{prefix}{name}"], rtol=1e-5)


@pytest.mark.release
def test_half_precision_trains_and_float16_scales_its_loss():
    for precision in ("mixed_bfloat16", "mixed_float16"):
        model, history = one_fit(epochs=3, dtype=precision, **PLAIN)
        assert history["loss"][-1] < history["loss"][0] - 0.1
        assert model.dtype_policy.name == precision
        assert isinstance(model.optimizer, keras.optimizers.LossScaleOptimizer) == (precision == "mixed_float16")


def test_two_batches_with_accumulated_gradients_are_one_update_with_their_mean():
    accumulating, by_hand = compiled(dropout=0.0), compiled(dropout=0.0)
    accumulating.compile(
        keras.optimizers.SGD(0.1, gradient_accumulation_steps=2), loss=kt.LabelSmoothedCrossentropy(), jit_compile=False
    )
    accumulating.fit(INPUTS, LABELS, batch_size=8, shuffle=False, verbose=0)
    weights, gradients = [weight.value for weight in by_hand.trainable_weights], []
    for rows in (slice(0, 8), slice(8, 16)):
        with tf.GradientTape() as tape:
            logits = by_hand({name: ids[rows] for name, ids in INPUTS.items()}, training=True)
            loss = kt.LabelSmoothedCrossentropy()(LABELS[rows], logits)
        gradients.append([tf.convert_to_tensor(gradient) for gradient in tape.gradient(loss, weights)])
    for found, before, one, other in zip(accumulating.trainable_weights, weights, *gradients, strict=True):
        assert_close(found, before - 0.1 * (one + other) / 2, atol=1e-6)


@pytest.mark.nightly
def test_the_logs_of_a_model_do_not_need_a_label_for_padding(fitted):
    """The labels of padding are 0; whatever the model predicts there changes no log."""
    model, _ = fitted
    wider = {name: np.pad(ids, ((0, 0), (0, 3))) for name, ids in INPUTS.items()}
    one = model.evaluate(INPUTS, LABELS, return_dict=True, verbose=0)
    other = model.evaluate(wider, np.pad(LABELS, ((0, 0), (0, 3))), return_dict=True, verbose=0)
    assert one == pytest.approx(other, rel=1e-5)


class Letters:
    """A tokenizer whose pieces are the first letters and the space."""

    vocab_size = 23

    def pieces(self):
        return ["<pad>", "<unk>", "<s>", "</s>", *"abcdefghijklmnopqr "]

    def encode_batch(self, lines):
        return [[self.pieces().index(letter) for letter in line] for line in lines]

    encode_target_batch = encode_batch

    def unknown_tag(self, line):
        return ""

    def decode(self, ids):
        return "".join(self.pieces()[number] for number in ids if number > 3)

    def restored(self, texts):
        return list(texts)


PAIRS = [("a b c d", "a b c d"), ("ab cd", "ab cd ef gh")]


@pytest.mark.nightly
def test_pairs_may_come_from_an_iterator():
    transformer = kt.Transformer(CONFIG.replace(vocab_size=Letters.vocab_size))
    assert BleuScore(transformer, Letters(), iter(PAIRS)).pairs == PAIRS


@pytest.mark.nightly
def test_early_stopping_and_model_checkpoint_go_by_the_bleu_of_translations(tmp_path):
    model = compiled(**PLAIN)
    bleu = BleuScore(model, Letters(), PAIRS, kt.SearchOptions(beam_size=1, extra_length=2))
    log, weights = tmp_path / "logs", tmp_path / "best-{epoch}-{val_bleu:.1f}-{val_chrf:.1f}.weights.h5"
    callbacks = [
        bleu,
        SampleTranslations(bleu, log),
        AttentionPictures(model, Letters(), PAIRS, log),
        keras.callbacks.EarlyStopping("val_bleu", mode="max", patience=1, min_delta=200),  # nothing is so much better
        keras.callbacks.ModelCheckpoint(weights, "val_bleu", mode="max", save_best_only=True, save_weights_only=True),
        keras.callbacks.TensorBoard(log),
    ]
    history = model.fit(INPUTS, LABELS, batch_size=8, epochs=9, verbose=0, callbacks=callbacks).history
    assert len(history["val_bleu"]) == 2 and history["val_chrf"][-1] == bleu.scores.chrf
    translated = bleu.translator.translate([source for source, _ in PAIRS])  # with the last weights
    assert [sample.translation for sample in bleu.samples] == [one.text for one in translated]
    best = {epoch + 1: value for epoch, value in enumerate(history["val_bleu"]) if value == max(history["val_bleu"])}
    saved = [path.name for path in tmp_path.glob("best-*")]
    assert any(name.startswith(f"best-{min(best)}-{best[min(best)]:.1f}-") for name in saved)
    assert [value for _, value in read_events(log / "validation")["epoch_chrf"]] == pytest.approx(history["val_chrf"])
    assert [step for step, _ in read_events(log / "samples")["samples"]] == [0, 1]
    assert [step for step, _ in read_events(log / "attention")["attention/memory_1_head_1/entropy"]] == [0, 1]
    assert [step for step, *_ in read_pictures(log / "attention")["attention_pictures/1_memory_sentence_2"]] == [0, 1]


@pytest.mark.nightly
def test_inspections_in_another_process_go_on_in_the_same_folder(tmp_path):
    for step in (0, 1):
        LogFolder(tmp_path / "samples").write(step, {"validation/samples": f"text {step}"})
    assert read_events(tmp_path / "samples") == {"samples": [(0, "text 0"), (1, "text 1")]}


class Killed(keras.callbacks.Callback):
    """Ends `fit` in the middle of its second epoch, as a kill would."""

    def on_train_batch_end(self, batch, logs=None):
        if self.model.optimizer.iterations == 6:  # of four batches each
            raise KeyboardInterrupt


@pytest.mark.release
def test_a_killed_fit_continues_at_its_epoch(tmp_path):
    """With BackupAndRestore: two epochs, killed in the second, are the weights of two epochs at once."""
    at_once, killed, continued = (compiled(**PLAIN, dropout=0.0) for _ in range(3))
    for model in (killed, continued):
        model.set_weights(at_once.get_weights())
    options = {"batch_size": len(LABELS) // 3, "epochs": 2, "verbose": 0, "shuffle": False}
    at_once.fit(INPUTS, LABELS, **options)
    with pytest.raises(KeyboardInterrupt):
        killed.fit(INPUTS, LABELS, callbacks=[keras.callbacks.BackupAndRestore(tmp_path), Killed()], **options)
    history = continued.fit(INPUTS, LABELS, callbacks=[keras.callbacks.BackupAndRestore(tmp_path)], **options)
    assert history.epoch == [1]
    for one, other in zip(at_once.get_weights(), continued.get_weights(), strict=True):
        assert_close(one, other)


@pytest.mark.release
def test_validation_can_be_of_averaged_weights():
    """`use_ema` and SwapEMAWeights of Keras: val_loss is that of the averages, which `fit` leaves in the model."""
    losses = {}
    for use_ema in (True, False):
        model = compiled(dropout=0.0)
        optimizer = kt.paper_optimizer(CONFIG.d_model, warmup_steps=20, use_ema=use_ema, ema_momentum=0.5)
        model.compile(optimizer, loss=kt.LabelSmoothedCrossentropy(), **PLAIN)
        callbacks = [keras.callbacks.SwapEMAWeights()] if use_ema else []
        options = {"validation_data": (INPUTS, LABELS), "batch_size": 8, "shuffle": False, "verbose": 0}
        losses[use_ema] = model.fit(INPUTS, LABELS, callbacks=callbacks, **options).history["val_loss"][-1]
        again = model.evaluate(INPUTS, LABELS, batch_size=8, return_dict=True, verbose=0)["loss"]
        assert losses[use_ema] == pytest.approx(again, rel=1e-5)
    assert losses[True] != pytest.approx(losses[False], rel=1e-3)
