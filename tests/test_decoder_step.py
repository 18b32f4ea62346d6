"""Decoding one position at a time gives the same logits as the whole Transformer."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.decoding import IncrementalDecoder
from keras_transformer.model import Transformer
from keras_transformer.tokens import BOS, PAD
from tests.support.models import LIVELY, as_numpy, assert_close, lively_transformer, sources

HYPOTHESES, LENGTH = 3, 5
SOURCES = sources(4, 7, 1)
CONFIGS = {
    "post_norm": LIVELY,
    "pre_norm": LIVELY.replace(norm="pre"),
    "shared_embeddings": LIVELY.replace(shared_embeddings=True),
    "learned_positions": LIVELY.replace(positions="learned", max_positions=8),
    "other_head_widths": LIVELY.replace(key_dim=5, value_dim=3, num_heads=3),
    "biased_gelu": LIVELY.replace(attention_bias=True, activation="gelu", norm="pre"),
    "unequal_depth": LIVELY.replace(encoder_layers=1, decoder_layers=3),
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


def one_by_one(transformer, source_ids, ids):
    """Return the same logits from LENGTH steps."""
    decoder = IncrementalDecoder(transformer)
    memory, cache = decoder.start(source_ids, HYPOTHESES, LENGTH)
    found = []
    for position, tokens in enumerate(ids.T):
        logits, cache = decoder.step(memory, cache, ops.convert_to_tensor(tokens), ops.convert_to_tensor(position))
        found.append(as_numpy(logits))
    return np.stack(found, axis=1)


@pytest.mark.parametrize("name", CONFIGS)
def test_cached_equals_uncached(name):
    transformer, ids = lively_transformer(CONFIGS[name]), target_ids()
    found = one_by_one(transformer, SOURCES, ids)
    assert found.std() > 0.5  # not all logits are alike
    assert_close(found, all_at_once(transformer, SOURCES, ids), atol=1e-5, rtol=1e-5)


def test_padding_of_the_source_changes_nothing():
    transformer, ids = lively_transformer(), target_ids()
    padded = np.pad(SOURCES, ((0, 0), (0, 6)))
    assert_close(one_by_one(transformer, padded, ids), one_by_one(transformer, SOURCES, ids))


def test_in_bfloat16_the_cache_is_bfloat16_and_the_logits_are_float32():
    transformer = Transformer(LIVELY, dtype="mixed_bfloat16")
    for weight, value in zip(transformer.weights, lively_transformer().weights, strict=True):
        weight.assign(value)
    decoder = IncrementalDecoder(transformer)
    memory, cache = decoder.start(SOURCES, HYPOTHESES, LENGTH)
    logits, cache = decoder.step(memory, cache, target_ids()[:, 0], 0)
    assert logits.dtype == "float32" and {leaf.dtype.name for part in cache for leaf in part} == {"bfloat16"}
    found = one_by_one(transformer, SOURCES, target_ids())
    assert_close(found, all_at_once(transformer, SOURCES, target_ids()), atol=0.1, rtol=0.02)


def test_the_cache_has_a_row_per_hypothesis_and_the_memory_one_per_sentence():
    memory, cache = IncrementalDecoder(lively_transformer()).start(SOURCES, HYPOTHESES, LENGTH)
    rows = len(SOURCES) * HYPOTHESES
    assert len(memory) == len(cache.keys) == len(cache.values) == LIVELY.decoder_layers
    assert {tuple(leaf.shape) for part in cache for leaf in part} == {(rows, LIVELY.num_heads, LENGTH, LIVELY.d_k)}
    assert {len(part) for block in memory for part in block} == {len(SOURCES)}
