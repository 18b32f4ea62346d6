"""What docs/from_tutorial.md says of TensorFlow's tutorial: names, numbers, and which of its parts compute the same."""

import re

import keras
import numpy as np
import pytest

import keras_transformer as kt
from tests.support.models import assert_close, normal
from tests.support.places import ROOT
from train.config.run import load_config
from train.cost.cost import parameter_count

PAGE = (ROOT / "docs/from_tutorial.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line[:3] == "| `"]
CLASSES = """positional_encoding PositionalEmbedding BaseAttention CrossAttention GlobalSelfAttention
CausalSelfAttention FeedForward EncoderLayer Encoder DecoderLayer Decoder Transformer CustomSchedule masked_loss
masked_accuracy Translator ExportTranslator""".split()
TUTORIAL_PARAMETERS = 10_184_162  # its own summary: 7,765 and 7,010 pieces


def tutorial_positions(length, depth):
    """All sines, then all cosines."""
    rates = 10_000 ** -(np.arange(depth / 2) / (depth / 2))
    angles = np.arange(length)[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)


def test_every_class_and_function_of_the_tutorial_has_a_row():
    first_cells = " ".join(row[0] for row in ROWS)
    assert [name for name in CLASSES if f"`{name}`" not in first_cells] == []


def test_every_name_of_the_library_on_the_page_exists():
    names = set(re.findall(r"\bkt\.(\w+)", PAGE))
    assert len(names) > 15 and [name for name in names if not hasattr(kt, name)] == []


def test_the_configuration_loads_and_its_model_has_the_tutorials_shape_and_size():
    config = load_config(ROOT / "configs/tutorial_pt_en.toml")
    assert (config.data.source, config.data.name) == ("tfds", "ted_hrlr_translate/pt_to_en")
    model = config.transformer_config(config.tokenizer.vocab_size)
    shape = model.encoder_layers, model.decoder_layers, model.d_model, model.d_ff, model.num_heads, model.dropout
    assert shape == (4, 4, 128, 512, 8, 0.1)
    assert parameter_count(model) == pytest.approx(TUTORIAL_PARAMETERS, rel=0.03)
    theirs = parameter_count(model.replace(vocab_size=1)) - (3 * 128 + 1) + 128 * (7_765 + 7_010 + 7_010) + 7_010
    assert theirs == TUTORIAL_PARAMETERS  # the difference is the vocabulary alone
    papers = kt.TransformerConfig(vocab_size=8000, encoder_layers=4, decoder_layers=4, d_model=128, d_ff=512)
    assert f"{parameter_count(papers) / 1e6:.1f} million" in PAGE


def test_positions_are_the_tutorials_in_another_order_of_columns():
    theirs, ours = tutorial_positions(50, 128), kt.sinusoidal_encoding(np.arange(50), 128)
    assert_close(np.asarray(ours)[:, [*range(0, 128, 2), *range(1, 128, 2)]], theirs, atol=1e-5)


def test_embeddings_of_keras_are_half_as_wide_as_the_positions_and_ours_of_width_1():
    of_keras = keras.layers.Embedding(4_000, 128)
    of_keras.build()
    assert np.std(of_keras.embeddings) * 128**0.5 == pytest.approx(0.33, abs=0.01)
    assert np.sqrt(np.mean(tutorial_positions(50, 128) ** 2)) == pytest.approx(0.71, abs=0.01)
    assert np.std(kt.TokenEmbedding(4_000, 128)(np.arange(4_000)[None])) == pytest.approx(1.0, abs=0.01)


def test_the_schedule_is_one_update_ahead_of_the_tutorials():
    steps = np.array([1.0, 2.0, 3_999.0, 4_000.0, 16_200.0])
    theirs = 128**-0.5 * np.minimum(steps**-0.5, steps * 4_000**-1.5)  # and 0 at step 0, its first
    assert_close(kt.WarmupInverseSquareRoot(128)(steps - 1), theirs, atol=0, rtol=1e-5)


def test_loss_and_accuracy_are_the_tutorials_masked_ones():
    labels, logits = np.array([[5, 1, 3, 0, 0], [2, 3, 0, 0, 0]]), normal(2, 5, 7)
    is_real = labels != 0
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    losses = -np.take_along_axis(log_probs, labels[..., None], -1)[..., 0]
    assert_close(kt.LabelSmoothedCrossentropy(0.0)(labels, logits), losses[is_real].mean())
    accuracy = kt.TokenAccuracy()
    accuracy.update_state(labels, logits)
    assert_close(accuracy.result(), (logits.argmax(-1) == labels)[is_real].mean())


def test_attention_of_keras_3_takes_the_mask_off_its_arguments_so_that_a_second_one_attends_to_padding():
    memory = keras.layers.Embedding(9, 8, mask_zero=True)(np.array([[5, 6, 0, 0]]))
    query, on_padding = normal(1, 3, 8), []
    for _ in range(2):
        attention = keras.layers.MultiHeadAttention(num_heads=2, key_dim=4)
        _, weights = attention(query, memory, return_attention_scores=True)
        on_padding.append(float(np.max(np.asarray(weights)[..., 2:])))
    assert on_padding[0] == 0 < on_padding[1]


def test_the_vocabulary_of_keras_must_be_a_python_number():
    with pytest.raises(ValueError, match="input_dim.*must be a positive integer"):
        keras.layers.Embedding(np.int32(7_765), 128)
