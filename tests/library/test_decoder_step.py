"""Decoding one position at a time gives the same logits as the whole Transformer."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.ground.tokens import BOS, PAD
from keras_transformer.model import Transformer
from keras_transformer.search.state import gather_hypotheses, gather_sentences, with_room
from keras_transformer.search.step import IncrementalDecoder
from tests.support.models import LIVELY, as_numpy, assert_close, lively_transformer, sources

HYPOTHESES, LENGTH = 3, 5
SOURCES = sources(4, 7, 1)
CONFIGS = {  # with several fields changed; tests/export/test_every_field.py walks each alone
    "post_norm": LIVELY,
    "other_head_widths": LIVELY.replace(key_dim=5, value_dim=3, num_heads=3),
    "biased_gelu": LIVELY.replace(attention_bias=True, activation="gelu", norm="pre"),
    "biased_logits": LIVELY.replace(logits_bias=True, sinusoids="tensor2tensor", shared_embeddings=True),
    "own_logits": LIVELY.replace(shared_embeddings=True, tied_logits=False, decoder_start="pad"),
    "later_positions": LIVELY.replace(first_position=2, norm="pre", decoder_start="eos"),
    "rotary": LIVELY.replace(positions="rotary", norm="pre", norm_kind="rms", activation="swiglu"),
    "relative": LIVELY.replace(positions="relative", relative_buckets=4, relative_distance=3, scale_scores=False),
    "alibi": LIVELY.replace(positions="alibi", num_heads=4),
    "ssru": LIVELY.replace(decoder_layer="ssru"),
    "pre_norm_ssru": LIVELY.replace(decoder_layer="ssru", decoder_layers=3, norm="pre", positions="learned"),
}


def target_ids():
    """Return BOS and random words, int32 (B * HYPOTHESES, LENGTH): a different target for each hypothesis."""
    ids = np.random.default_rng(1).integers(4, LIVELY.vocab_size, (len(SOURCES) * HYPOTHESES, LENGTH))
    ids[:, 0] = BOS
    return ids.astype("int32")


def all_at_once(transformer, source_ids, ids):
    """Return the logits (B * HYPOTHESES, LENGTH, V) of the whole Transformer, each source repeated per hypothesis."""
    source_ids = np.repeat(source_ids, HYPOTHESES, axis=0)
    batch = {
        "source_ids": source_ids,
        "source_segments": (source_ids != PAD).astype("int32"),
        "target_ids": ids,
        "target_segments": np.ones_like(ids),
    }
    return as_numpy(ops.cast(transformer(batch), "float32"))


def one_by_one(transformer, source_ids, ids, has_room=False):
    """Return the same logits from LENGTH steps, with static shapes or with a state that grows."""
    decoder = IncrementalDecoder(transformer)
    weights, state = decoder.step_weights(), decoder.start(source_ids, HYPOTHESES)
    state = with_room(state, LENGTH + 2) if has_room else state
    found = []
    for position, tokens in enumerate(ids.T):
        tokens = ops.convert_to_tensor(tokens.reshape(-1, HYPOTHESES))
        logits, state = decoder.step(weights, state, tokens, ops.convert_to_tensor(position), has_room)
        found.append(as_numpy(logits))
    return np.stack(found, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize("has_room", [False, True], ids=["growing", "static"])
@pytest.mark.parametrize("name", CONFIGS)
def test_cached_equals_uncached(name, has_room):
    transformer, ids = lively_transformer(CONFIGS[name]), target_ids()
    found = one_by_one(transformer, SOURCES, ids, has_room)
    assert found.std() > 0.5  # not all logits are alike
    assert_close(found, all_at_once(transformer, SOURCES, ids), atol=1e-5, rtol=1e-5)


def test_cached_equals_uncached_in_a_block_that_has_everything():
    """LayerNorm first, biases everywhere, other widths of keys than of values, two hypotheses of each source."""
    changes = dict(norm="pre", attention_bias=True, logits_bias=True, key_dim=5, value_dim=3, num_heads=3)
    changes |= dict(scale_scores=False, embedding_norm=True)
    transformer = lively_transformer(LIVELY.replace(encoder_layers=1, decoder_layers=1, activation="gelu", **changes))
    ids = target_ids()[:, :3]
    found = one_by_one(transformer, SOURCES, ids)
    assert found.std() > 0.5
    assert_close(found, all_at_once(transformer, SOURCES, ids))


@pytest.mark.slow
def test_padding_of_the_source_changes_nothing():
    transformer, ids = lively_transformer(), target_ids()
    padded = np.pad(SOURCES, ((0, 0), (0, 6)))
    assert_close(one_by_one(transformer, padded, ids), one_by_one(transformer, SOURCES, ids))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["biased_gelu", next(iter(CONFIGS))])
def test_a_source_of_padding_alone_is_read_as_in_training(name):
    transformer, ids, sources = lively_transformer(CONFIGS[name]), target_ids(), SOURCES.copy()
    sources[0] = PAD
    found = one_by_one(transformer, sources, ids)
    assert_close(found, all_at_once(transformer, sources, ids), atol=1e-5, rtol=1e-5)


def in_bfloat16():
    transformer = Transformer(LIVELY, dtype="mixed_bfloat16")
    for weight, value in zip(transformer.weights, lively_transformer().weights, strict=True):
        weight.assign(value)
    return transformer


@pytest.mark.slow
def test_in_bfloat16_the_cache_is_bfloat16_and_the_logits_are_float32():
    decoder = IncrementalDecoder(in_bfloat16())
    tokens = target_ids()[:, 0].reshape(-1, HYPOTHESES)
    logits, state = decoder.step(decoder.step_weights(), decoder.start(SOURCES, HYPOTHESES), tokens, 0)
    assert logits.dtype == "float32"
    assert {leaf.dtype.name for cache in state.past.caches.shared for leaf in cache} == {"bfloat16"}


@pytest.mark.slow
def test_in_bfloat16_a_step_is_as_exact_as_the_whole_transformer():
    transformer, ids = in_bfloat16(), target_ids()
    exact = all_at_once(lively_transformer(), SOURCES, ids)
    errors = [find(transformer, SOURCES, ids) - exact for find in (one_by_one, all_at_once)]
    of_steps, of_the_whole = (np.sqrt(np.mean(error**2)) for error in errors)
    assert 0 < of_steps < 1.25 * of_the_whole < 0.2 * exact.std()


def test_a_step_adds_an_entry_per_hypothesis_and_the_memory_has_one_row_per_sentence():
    decoder = IncrementalDecoder(lively_transformer())
    state = decoder.start(SOURCES, HYPOTHESES)
    for position in range(2):
        tokens = target_ids()[:, position].reshape(-1, HYPOTHESES)
        _, state = decoder.step(decoder.step_weights(), state, tokens, position)
    shape = (len(SOURCES), LIVELY.num_heads, 2 * HYPOTHESES, LIVELY.d_k)
    assert len(state.memory.shared.of_blocks) == len(state.past.caches.shared) == LIVELY.decoder_layers
    assert {tuple(leaf.shape) for cache in state.past.caches.shared for leaf in cache} == {shape}
    assert {len(leaf) for leaf in keras.tree.flatten(state.memory)} == {len(SOURCES)}
    assert ((as_numpy(state.past.bias) == 0) == np.tile(np.eye(HYPOTHESES), (len(SOURCES), 1, 2))).all()


def test_room_for_later_positions_changes_no_logits():
    decoder = IncrementalDecoder(lively_transformer())
    weights, start = decoder.step_weights(), decoder.start(SOURCES, HYPOTHESES)
    growing, roomy = start, with_room(start, 3)
    for position in range(2):
        tokens = target_ids()[:, position].reshape(-1, HYPOTHESES)
        expected, growing = decoder.step(weights, growing, tokens, position)
        logits, roomy = decoder.step(weights, roomy, tokens, position, has_room=True)
        assert_close(logits, expected)


def after_two_steps(name="post_norm"):
    """A decoder and its state after two steps, in which hypothesis 0 has become the parent of all three."""
    decoder = IncrementalDecoder(lively_transformer(CONFIGS[name]))
    weights, state = decoder.step_weights(), decoder.start(SOURCES, HYPOTHESES)
    for position in range(2):
        tokens = target_ids()[:, position].reshape(-1, HYPOTHESES)
        _, state = decoder.step(weights, state, tokens, position)
        state = gather_hypotheses(state, np.zeros((len(SOURCES), HYPOTHESES), "int32"))
    return decoder, weights, state


@pytest.mark.parametrize("name", ["post_norm", "rotary", "relative"])
def test_entries_of_no_past_leave_and_the_logits_stay(name):
    decoder, weights, state = after_two_steps(name)
    rows = np.array([2, 0], "int32")
    fewer = gather_sentences(state, rows)
    assert {leaf.shape[2] for cache in fewer.past.caches.shared for leaf in cache} == {2}  # of 2 x 3
    tokens = target_ids()[:, 2].reshape(-1, HYPOTHESES)
    logits, _ = decoder.step(weights, state, tokens, 2)
    logits = as_numpy(logits).reshape(len(SOURCES), HYPOTHESES, -1)
    found, _ = decoder.step(weights, fewer, tokens[rows], 2)
    assert_close(as_numpy(found).reshape(2, HYPOTHESES, -1), logits[rows])


@pytest.mark.parametrize("name", ["post_norm", "pre_norm_ssru"])
def test_hypotheses_with_the_same_past_and_token_have_the_same_logits(name):
    decoder, weights, state = after_two_steps(name)
    logits, _ = decoder.step(weights, state, np.full((len(SOURCES), HYPOTHESES), 5, "int32"), 2)
    logits = as_numpy(logits).reshape(len(SOURCES), HYPOTHESES, -1)
    assert_close(logits, logits[:, :1] + 0 * logits)


def test_the_past_of_an_ssru_is_a_vector_per_block_and_hypothesis_however_long_it_is():
    decoder, weights, state = after_two_steps("pre_norm_ssru")
    shape = (len(SOURCES), HYPOTHESES, CONFIGS["pre_norm_ssru"].decoder_layers, LIVELY.d_model)
    assert tuple(state.past.averages.shape) == tuple(with_room(state, 8).past.averages.shape) == shape
    rows = np.array([2, 0], "int32")
    tokens = target_ids()[:, 2].reshape(-1, HYPOTHESES)
    logits, _ = decoder.step(weights, state, tokens, 2)
    found, _ = decoder.step(weights, gather_sentences(state, rows), tokens[rows], 2)
    assert_close(
        as_numpy(found).reshape(2, HYPOTHESES, -1), as_numpy(logits).reshape(len(SOURCES), HYPOTHESES, -1)[rows]
    )
