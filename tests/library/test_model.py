"""Laws of the whole Transformer: causality, padding, packing, batches, saving, and the number of its weights."""

import dataclasses

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.config import PRESETS
from keras_transformer.layers import DecoderBlock, EncoderBlock
from keras_transformer.model import Transformer, encoder, with_attention
from tests.support.models import SMALL, as_numpy, assert_close, batch_of, randomise, softmax
from train.cost.cost import parameter_count

PAIRS = [([5, 6, 7, 3], [2, 8, 9, 10, 11]), ([12, 13, 3], [2, 14, 15]), ([16, 3], [2, 17, 18, 19])]
SOURCE_LENGTH, TARGET_LENGTH = 10, 13


@pytest.fixture(scope="module", params=["post", "pre"])
def model(request):
    """Both orders of norms; pre-norm with every other option away from its default too."""
    changes = dict(
        norm_kind="rms",
        scale_scores=False,
        embedding_norm=True,
        positions="rotary",
        attention_bias=True,
        shared_embeddings=False,
        key_dim=6,
        value_dim=3,
    )
    config = SMALL if request.param == "post" else SMALL.replace(norm="pre", activation="swiglu", **changes)
    return randomise(Transformer(config))


def padded(pairs=PAIRS):
    """One pair a row."""
    return batch_of([[pair] for pair in pairs], SOURCE_LENGTH, TARGET_LENGTH)


def changed(batch, name, place, value):
    """A copy with one element of one input replaced."""
    copy = batch[name].copy()
    copy[place] = value
    return batch | {name: copy}


# Causality


@pytest.mark.parametrize("position", [0, 2, 4])
def test_changing_a_target_word_leaves_the_logits_before_it_unchanged(model, position):
    batch = padded()
    logits = as_numpy(model(batch))
    other = as_numpy(model(changed(batch, "target_ids", (0, position), 20)))
    assert_close(other[0, :position], logits[0, :position])
    assert np.abs(other[0, position] - logits[0, position]).max() > 1e-3
    assert_close(other[1:], logits[1:])


def test_changing_a_source_word_changes_every_target_position_of_its_pair_and_of_no_other(model):
    batch = batch_of([PAIRS[:2]], SOURCE_LENGTH, TARGET_LENGTH)
    logits = as_numpy(model(batch))
    other = as_numpy(model(changed(batch, "source_ids", (0, 3), 20)))
    assert (np.abs(other - logits)[0, :5].max(axis=-1) > 1e-4).all()
    assert_close(other[0, 5:], logits[0, 5:])


# Padding, packing, batches


@pytest.mark.parametrize("side", ["source", "target"])
def test_the_ids_of_padding_do_not_matter(model, side):
    batch = padded()
    is_padding = batch[f"{side}_segments"] == 0
    other = changed(batch, f"{side}_ids", is_padding, np.arange(is_padding.sum()) % 19 + 4)
    is_real = batch["target_segments"] > 0
    assert_close(as_numpy(model(other))[is_real], as_numpy(model(batch))[is_real])


def test_the_amount_of_padding_does_not_matter(model):
    wide, tight = padded(), batch_of([[pair] for pair in PAIRS], 4, 5)
    is_real = tight["target_segments"] > 0
    assert_close(as_numpy(model(wide))[:, :5][is_real], as_numpy(model(tight))[is_real])


@pytest.mark.slow
def test_packed_pairs_have_the_logits_that_each_has_alone(model):
    packed = as_numpy(model(batch_of([PAIRS, PAIRS[::-1]], SOURCE_LENGTH, TARGET_LENGTH)))
    for row, pairs in zip(packed, [PAIRS, PAIRS[::-1]], strict=True):
        start = 0
        for source, target in pairs:
            alone = as_numpy(model(batch_of([[(source, target)]], len(source), len(target))))
            assert_close(row[start : start + len(target)], alone[0], atol=1e-5)
            start += len(target)


def test_the_order_of_a_batch_is_the_order_of_its_logits(model):
    assert_close(model(padded(PAIRS[::-1])), as_numpy(model(padded()))[::-1])


def test_a_row_of_nothing_but_padding_gives_finite_logits_and_disturbs_no_other(model):
    with_empty_row = {name: np.concatenate([array, np.zeros_like(array[:1])]) for name, array in padded().items()}
    logits = as_numpy(model(with_empty_row))
    assert np.isfinite(logits).all()
    assert_close(logits[:-1], model(padded()))


def test_gradients_are_finite_with_padding_and_empty_rows(model):
    batch = {name: np.concatenate([array, np.zeros_like(array[:1])]) for name, array in padded().items()}
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.nn.log_softmax(model(batch))[..., 3])
    for gradient in tape.gradient(loss, model.trainable_weights):
        assert np.isfinite(as_numpy(tf.convert_to_tensor(gradient))).all()


def test_order_matters_to_the_transformer_as_a_whole(model):
    reversed_source = [([7, 6, 5, 3], PAIRS[0][1])]
    difference = as_numpy(model(padded(reversed_source))) - as_numpy(model(padded(PAIRS[:1])))
    assert np.abs(difference[0, :5]).max() > 1e-3


@pytest.mark.slow
def test_compiled_with_xla_the_logits_are_the_same(model):
    compiled = tf.function(lambda batch: model(batch), jit_compile=True)
    assert_close(compiled(padded()), model(padded()), atol=1e-4)


# Its parts


def test_the_encoder_alone_gives_the_memory_that_the_decoder_reads(model):
    batch, config = padded(), model.transformer_config
    _, read, *_ = model.get_layer("decoder_block_1").input
    inner = keras.Model(model.input, read)
    source = {name: batch[name] for name in ("source_ids", "source_segments")}
    memory = encoder(model)(source)
    assert tuple(memory.shape) == (3, SOURCE_LENGTH, config.d_model)
    assert_close(memory, inner(batch))


def test_logits_with_attention_are_the_logits_without(model):
    assert_close(with_attention(model)(padded())["logits"], model(padded()))


def test_every_attention_gives_weights_that_sum_to_1_at_real_positions_and_0_at_padding(model):
    batch, config = batch_of([PAIRS[:2], PAIRS[2:]], SOURCE_LENGTH, TARGET_LENGTH), model.transformer_config
    outputs = with_attention(model)(batch)
    lengths = {"source": SOURCE_LENGTH, "target": TARGET_LENGTH}
    sides = {f"encoder_block_{n}/self": ("source", "source") for n in (1, 2)}
    sides |= {f"decoder_block_{n}/self": ("target", "target") for n in (1, 2)}
    sides |= {f"decoder_block_{n}/memory": ("target", "source") for n in (1, 2)}
    assert set(outputs) == {"logits", *sides}
    for name, (query, key) in sides.items():
        weights, query_segments, key_segments = outputs[name], batch[f"{query}_segments"], batch[f"{key}_segments"]
        assert tuple(weights.shape) == (2, config.num_heads, lengths[query], lengths[key])
        is_real = np.broadcast_to((query_segments > 0)[:, None], weights.shape[:3])
        assert_close(as_numpy(weights).sum(-1), is_real.astype(float))
        is_foreign = np.broadcast_to((query_segments[:, :, None] != key_segments[:, None])[:, None], weights.shape)
        assert_close(as_numpy(weights)[is_foreign], np.zeros(is_foreign.sum()), atol=0)


# Saving and precision


@pytest.mark.slow
def test_a_saved_model_computes_the_same(model, tmp_path):
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, Transformer)
    assert loaded.transformer_config == model.transformer_config
    assert_close(loaded(padded()), model(padded()), atol=0, rtol=0)


def test_fields_of_an_older_file_that_mean_nothing_are_skipped(model):
    config = model.get_config()
    config["config"] |= {"kernel_size": 9, "neighbourhood": 5}
    assert Transformer.from_config(config).transformer_config == model.transformer_config


@pytest.mark.slow
def test_saved_weights_fit_a_new_model_of_the_same_config(model, tmp_path):
    model.save_weights(tmp_path / "model.weights.h5")
    other = Transformer(model.transformer_config)
    other.load_weights(tmp_path / "model.weights.h5")
    assert_close(other(padded()), model(padded()), atol=0, rtol=0)


@pytest.mark.nightly
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_mixed_precision_keeps_weights_in_float32_and_logits_close(model, policy):
    half = Transformer(model.transformer_config, dtype=policy)
    for weight, exact in zip(half.trainable_weights, model.trainable_weights, strict=True):
        assert weight.dtype == "float32"
        weight.assign(exact)
    logits = half(padded())
    assert keras.backend.standardize_dtype(logits.dtype) == policy.removeprefix("mixed_")
    distance = np.abs(softmax(as_numpy(keras.ops.cast(logits, "float32"))) - softmax(as_numpy(model(padded()))))
    assert distance.max() < 0.1  # of a probability; a NaN fails too


@pytest.mark.nightly
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_a_saved_model_keeps_its_precision_and_its_name(policy, tmp_path):
    Transformer(SMALL, dtype=policy, name="small").save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    policies = {layer.dtype_policy.name for layer in loaded.layers if layer.trainable_weights}
    assert (policies, loaded.name) == ({policy}, "small")


@pytest.mark.slow
def test_dropout_draws_another_mask_in_each_training_call_and_none_in_inference(model):
    batch = padded()
    assert_close(model(batch, training=False), model(batch), atol=0, rtol=0)
    first, second = (as_numpy(model(batch, training=True)) for _ in range(2))
    assert np.abs(first - second).max() > 1e-3


@pytest.mark.slow
def test_the_loss_of_a_training_step_depends_on_dropout(eager):
    batch, losses = padded(), {}
    for rate in (0.0, 0.5):
        model = randomise(Transformer(SMALL.replace(dropout=rate)))
        model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True), jit_compile=False)
        in_inference = model.test_on_batch(batch, batch["target_ids"])
        losses[rate] = model.train_on_batch(batch, batch["target_ids"]) - in_inference
    assert losses[0.0] == pytest.approx(0.0, abs=1e-5)
    assert abs(losses[0.5]) > 1e-2


@pytest.mark.parametrize("side", ["source", "target"])
def test_dropout_falls_on_the_sum_of_embedding_and_position(model, side):
    # section 5.4; what is kept is divided by 1 - P_drop
    sum_of_both = "embedding_norm" if model.transformer_config.embedding_norm else "positions"
    before, after = (model.get_layer(f"{side}_{name}").output for name in (sum_of_both, "dropout"))
    parts = keras.Model(model.input, [before, after])
    before, after = (as_numpy(states) for states in parts(padded(PAIRS * 20), training=True))
    is_kept = after != 0
    assert (~is_kept).mean() == pytest.approx(0.1, abs=0.02)  # over 9,600 draws: s.e. 0.003
    assert_close(after[is_kept], before[is_kept] / 0.9)


# Options, numbers of weights and their shapes

BLOCK_OPTIONS = dict(
    num_heads=3,
    key_dim=5,
    value_dim=7,
    d_ff=11,
    activation="gelu",
    dropout=0.25,
    norm="pre",
    norm_kind="rms",
    norm_epsilon=0.5,
    attention_bias=True,
    scale_scores=False,
    feed_forward_bias=False,
)


def test_every_argument_of_a_block_comes_from_the_config():
    model = Transformer(SMALL.replace(**BLOCK_OPTIONS))
    blocks = [layer for layer in model.layers if isinstance(layer, EncoderBlock | DecoderBlock)]
    assert len(blocks) == 4
    for block in blocks:
        config = block.get_config()
        assert config.keys() - keras.layers.Layer().get_config().keys() == BLOCK_OPTIONS.keys()
        assert BLOCK_OPTIONS.items() <= config.items()
    assert [model.get_layer(f"{side}_norm").epsilon for side in ("encoder", "decoder")] == [0.5, 0.5]
    assert [model.get_layer(f"{side}_dropout").rate for side in ("source", "target")] == [0.25, 0.25]


def shape_fields(config):
    """What decides the shapes: presets that differ in dropout or label smoothing alone are built once."""
    return {n: v for n, v in dataclasses.asdict(config).items() if n not in ("dropout", "label_smoothing")}


DISTINCT = {str(shape_fields(config)): name for name, config in reversed(PRESETS.items())}.values()


@pytest.mark.nightly
@pytest.mark.parametrize("name", DISTINCT)
def test_a_preset_at_a_sixteenth_of_its_width_builds_the_shapes_of_its_fields(name):
    whole = PRESETS[name]
    widths = dict(d_model=whole.d_model, d_ff=whole.d_ff, key_dim=whole.d_k, value_dim=whole.d_v)
    config = whole.replace(vocab_size=7, **{name: max(1, width // 16) for name, width in widths.items()})
    model = Transformer(config)
    blocks = [layer for layer in model.layers if "_block_" in layer.name]
    assert len(blocks) == whole.encoder_layers + whole.decoder_layers
    for block in blocks:
        attention, d_model = block.self_attention, config.d_model
        assert attention.query_projection.kernel.shape == (d_model, whole.num_heads * config.key_dim)
        assert attention.value_projection.kernel.shape == (d_model, whole.num_heads * config.value_dim)
        assert attention.output_projection.kernel.shape == (whole.num_heads * config.value_dim, d_model)
        assert block.feed_forward.inner.kernel.shape == (d_model, config.d_ff)
    assert sum(int(np.prod(weight.shape)) for weight in model.trainable_weights) == parameter_count(config)
    assert model.output.shape == (None, None, 7)
