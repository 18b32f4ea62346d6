"""Each symptom of docs/trouble.md, made on purpose: it looks as the page says, and the program says its sentence."""

import functools
import json
import math
import shutil
import types

import keras
import numpy as np
import pytest
from keras import ops

import keras_transformer as kt
from keras_transformer.doctor.runs import model, validations
from keras_transformer.inspection.samples import Sample
from keras_transformer.runs.run_folder import RunFolder
from tests.support.places import CONFIGS, ROOT
from tests.support.training import PAIRS, fit_in, no_validation, scores_of, training_model
from tests.train.test_preflight import found
from train.config.run import load_config
from train.config.training import TrainingConfig
from train.cost import preflight
from train.data.batches import PackedBatches
from train.loop.divergence import DivergenceError
from train.loop.progress import Progress
from train.loop.symptoms import symptoms

PAGE = (ROOT / "docs/trouble.md").read_text(encoding="utf-8")
LEARNED = Progress(step=200, has_learned=True)


def assert_on_page(sentence, words):
    """A sentence says these words, and the page has them where it says "it says"."""
    assert words in sentence and words in PAGE


# text and settings, before the first step


def test_duplicates_are_a_warning_from_a_quarter_on():
    pairs = [(str(number), "x") for number in range(6)]
    [some, *_] = preflight.corpus_lines(found([[*pairs, ("0", "x"), ("1", "x")]], pairs[:1]))
    assert some.endswith("in the same text")  # 2 of 8
    [many, overlap] = preflight.corpus_lines(found([[*pairs, *pairs[:3]]], [pairs[0], ("new", "x")]))
    assert_on_page(many, "they are learned by heart; set data.clean.duplicates = true")
    assert_on_page(overlap, "overlap: 1 of 2 validation pairs are training pairs too: scores will be too high;")


@pytest.mark.parametrize(("tokens", "is_small"), [(256, True), (999, True), (1_000, False), (25_000, False)])
def test_a_batch_of_few_tokens_is_a_warning(tokens, is_small):
    lines = list(preflight.batch_lines(TrainingConfig(tokens_per_batch=tokens)))
    assert len(lines) == is_small
    if tokens == 256:
        assert_on_page(lines[0], "training.tokens_per_batch 256 is small, so that gradients are mostly noise:")


@pytest.mark.parametrize(
    ("changes", "rate"),
    [
        ({"warmup_steps": 4_000}, None),  # the paper: 6.99e-4
        ({"warmup_steps": 1}, "0.0442"),  # 512^-0.5
        ({"warmup_steps": 400, "learning_rate_factor": 10}, "0.0221"),
        ({"warmup_steps": 100, "learning_rate_factor": 10, "steps": 10}, None),  # ends at a tenth of its peak
        ({"schedule": "constant", "learning_rate": 0.1}, "0.1"),
        ({"schedule": "constant", "learning_rate": 0.1, "optimizer": "sgd"}, None),
        ({"schedule": "constant", "learning_rate": 0.001}, None),
    ],
)
def test_a_rate_that_no_adam_bears_is_a_warning_with_its_highest_value(changes, rate):
    lines = list(preflight.rate_lines(TrainingConfig(**changes), 512))
    assert len(lines) == (rate is not None)
    if rate:
        assert lines[0].startswith(f"the learning rate rises to {rate}; ") and "above 0.01 a Transformer rarely" in PAGE


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_no_recipe_of_this_project_is_warned_of(path):
    config = load_config(path)
    d_model = getattr(config.transformer_config(config.tokenizer.vocab_size), "d_model", 512)
    assert not [*preflight.batch_lines(config.training), *preflight.rate_lines(config.training, d_model)]


def test_the_vocabulary_of_another_run_is_missing_to_doctor(random_folder, tmp_path):
    folder = RunFolder(shutil.copytree(random_folder, tmp_path / "run"))
    folder.keep_tokenizer_sum()
    kt.train_tokenizer(
        [f"other words {n}" for n in range(99)], folder.tokenizer, kt.load_run(random_folder)[1].vocab_size
    )
    *_, finding = model(folder)
    assert finding.state == "MISSING"
    assert_on_page(finding.text, "is not the tokenizer that the weights were trained with: its SHA-256 is")


# training


def losses_of(folder):
    lines = map(json.loads, (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return [line["train/loss"] for line in lines if "train/loss" in line]


@functools.cache
def trainable():
    return training_model()


@pytest.mark.nightly
def test_a_rate_too_high_ends_above_guessing_or_as_divergence(tmp_path):
    """From the same weights, a rate 1,000 times as high learns less in 40 steps than the one that is right."""
    right = fit_in(tmp_path / "right", training_model(), steps=40, validate_every=40)
    assert right.has_learned
    try:
        fit_in(tmp_path / "high", training_model(learning_rate_factor=1_000.0), steps=40, learning_rate_factor=1_000.0)
    except DivergenceError as error:
        assert_on_page(str(error), "Training has diverged.")
    else:
        assert min(losses_of(tmp_path / "high")[-10:]) > max(losses_of(tmp_path / "right")[-10:])


def test_the_loss_of_small_batches_jumps_more(tmp_path):
    """Of the same untrained weights: the loss of batches of 16 tokens scatters more than twice as much as of 256."""
    network = trainable()

    def scatter(tokens):
        batches = PackedBatches(PAIRS, tokens, TrainingConfig(row_length=16).row_lengths, 3)
        losses = [float(network.sums_and_gradients(tensors_of(batches.batch(n)), 0, 0)[0].loss) for n in range(8)]
        sizes = [float((batches.batch(n)["labels"] > 0).sum()) for n in range(8)]
        return np.std([loss / size for loss, size in zip(losses, sizes, strict=True)])

    assert scatter(16) > 2 * scatter(256)


def tensors_of(batch):
    return {name: ops.convert_to_tensor(ids) for name, ids in batch.items()}


def validation(translations, accuracy=0.5, chrf=50.0):
    samples = [Sample(f"source {number}", "reference", text) for number, text in enumerate(translations)]
    return no_validation()._replace(samples=samples, token_accuracy=accuracy, scores=scores_of(chrf=chrf))


def test_a_sound_validation_has_no_symptom():
    assert not list(symptoms(validation(["a", "b", "c", "d"], accuracy=0.95), LEARNED))


def test_a_loss_that_was_never_below_guessing_is_said():
    [sentence] = symptoms(validation(["a", "b", "c", "d"]), Progress(step=200))
    assert_on_page(sentence, "no step up to 200 had a loss below that of guessing, ln(number of pieces):")


@pytest.mark.parametrize(
    ("translations", "is_said"),
    [
        (["A man"] * 4, True),
        (["A man", "A man", "b", "c"], True),
        (["A man", "b", "c", "d"], False),
        (["a"] * 3, False),
    ],
)
def test_the_same_translation_of_half_of_the_sentences_is_said(translations, is_said):
    sentences = list(symptoms(validation(translations), LEARNED))
    assert len(sentences) == is_said
    if translations == ["A man"] * 4:
        assert_on_page(sentences[0], "4 of 4 different sentences have the translation 'A man'")


def test_one_sentence_many_times_is_no_symptom():
    one = validation(["a"])
    assert not list(symptoms(one._replace(samples=one.samples * 9), LEARNED))


def test_tokens_that_are_known_beforehand_and_translations_that_are_not_are_said():
    [sentence] = symptoms(validation(["a", "b", "c", "d"], accuracy=0.97, chrf=3.1), LEARNED)
    assert_on_page(sentence, "given the reference, 97% of its tokens are predicted, but translations have chrF 3.1:")


SYMBOLS, LENGTH = 20, 8


def language_model(mask_of):
    """A decoder of one block, as code of one's own has it, with the mask that `mask_of` makes of segments."""
    ids, segments = keras.Input((LENGTH,), dtype="int32"), keras.Input((LENGTH,), dtype="int32")
    embedded = kt.SinusoidalPositions()(kt.TokenEmbedding(SYMBOLS + 4, 32)(ids), kt.PositionsInSegment()(segments))
    output, _ = kt.MultiHeadAttention(num_heads=2, key_dim=16)(embedded, embedded, mask_of(segments))
    states = keras.layers.LayerNormalization()(keras.layers.Add()([embedded, output]))
    return keras.Model([ids, segments], keras.layers.Dense(SYMBOLS + 4)(states))


def loss_after_training(mask_of):
    """Of symbols that are drawn at random: nothing can predict them but the symbols themselves."""
    keras.utils.set_random_seed(1)
    symbols = np.random.default_rng(0).integers(4, SYMBOLS + 4, (4_096, LENGTH)).astype("int32")
    inputs = np.hstack([np.full((4_096, 1), 2, "int32"), symbols[:, :-1]])  # shifted right
    network = language_model(mask_of)
    network.compile(keras.optimizers.Adam(0.003), loss=kt.LabelSmoothedCrossentropy(0.0))
    data = [inputs, np.ones_like(inputs)], symbols
    return network.fit(*data, batch_size=64, epochs=4, verbose=0).history["loss"][-1]


@pytest.mark.nightly
def test_a_mask_that_leaks_brings_the_loss_below_what_is_possible():
    """Every symbol but the last stands in the input, one place further on."""
    possible = math.log(SYMBOLS)
    assert loss_after_training(kt.CausalSegmentMask()) == pytest.approx(possible, abs=0.1)
    segments_alone = kt.SegmentMask()
    assert loss_after_training(lambda segments: segments_alone(segments, segments)) < 0.6 * possible


# a run folder, afterwards


@pytest.mark.parametrize(
    ("losses", "is_said"),
    [([3.0, 2.0, 2.5], True), ([3.0, 2.5, 2.0], False), ([3.0, 2.0, 2.05], False), ([], False)],
)
def test_a_validation_loss_that_rises_again_is_a_note_of_doctor(tmp_path, losses, is_said):
    lines = [json.dumps({"step": 100 * step, "validation/loss": loss}) for step, loss in enumerate(losses)]
    (tmp_path / "metrics.jsonl").write_text("\n".join([*lines, '{"step": 1, "train/loss": 9.0}', "{dam"]), "utf-8")
    findings = list(validations(RunFolder(tmp_path)))
    assert [finding.state for finding in findings] == ["note"] * is_said
    if is_said:
        assert findings[0].text == "its validation loss was 2.000 at step 100 and is 2.500 at step 200: it overfits"
    assert not list(validations(types.SimpleNamespace(metrics=tmp_path / "none")))
