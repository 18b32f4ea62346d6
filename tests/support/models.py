"""Small models and batches that several tests share, and how close is close."""

import functools

import keras
import numpy as np
import sentencepiece
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import EOS
from keras_transformer.model import Transformer

SMALL = TransformerConfig(vocab_size=23, encoder_layers=2, decoder_layers=2, d_model=16, d_ff=24, num_heads=2)
LIVELY = TransformerConfig(
    vocab_size=14, encoder_layers=2, decoder_layers=2, d_model=16, d_ff=24, num_heads=2, shared_embeddings=False
)
GAINS = ("gamma", "scale")  # weights of norms, which are 1 at first
PAIRS = [([5, 6, 7, 3], [2, 8, 9, 10, 11]), ([12, 13, 3], [2, 14, 15]), ([16, 3], [2, 17, 18, 19])]  # ids of SMALL


def assert_close(found, expected, atol=1e-5, rtol=1e-5):
    """Every element within atol + rtol * |expected|; shapes equal; a NaN equals nothing."""
    found, expected = as_numpy(found), as_numpy(expected)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=atol, rtol=rtol, equal_nan=False)


def as_numpy(values):
    """Any tensor, variable or nested list as float64."""
    values = values.value if isinstance(values, keras.Variable) else values
    return (ops.convert_to_numpy(values) if ops.is_tensor(values) else np.asarray(values)).astype("float64")


def randomise(layer, seed=0, scale=0.3):
    """Give every trainable weight, biases and the scales of norms too, its own draw. Returns the layer."""
    generator = np.random.default_rng(seed)
    for weight in layer.trainable_weights:
        weight.assign(generator.normal(0.0, scale, weight.shape) + (1.0 if weight.name in GAINS else 0.0))
    return layer


def normal(*shape, seed=0):
    """Standard normal float32 numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype("float32")


def batch_of(rows, source_length, target_length):
    """The four inputs of a Transformer. Each row is a list of packed pairs (source ids, target ids)."""
    batch = {
        f"{side}_{name}": np.zeros((len(rows), length), "int32")
        for side, length in (("source", source_length), ("target", target_length))
        for name in ("ids", "segments")
    }
    for number, pairs in enumerate(rows):
        for side, sentences in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
            ids = [token for sentence in sentences for token in sentence]
            segments = [segment for segment, sentence in enumerate(sentences, 1) for _ in sentence]
            batch[f"{side}_ids"][number, : len(ids)] = ids
            batch[f"{side}_segments"][number, : len(ids)] = segments
    return batch


def assert_pairs_pack(model):
    """PAIRS in one row have the logits that each of them has alone."""
    packed, start = as_numpy(model(batch_of([PAIRS], 12, 14))), 0
    for pair in PAIRS:
        length = len(pair[1])
        alone = as_numpy(model(batch_of([[pair]], 5, 6)))
        assert_close(packed[0, start : start + length], alone[0, :length])
        start += length


def layer_norm(states, epsilon, gamma=1.0, beta=0.0):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, over the last axis (Ba et al. 2016)."""
    states = as_numpy(states)
    centred = states - states.mean(-1, keepdims=True)
    normalised = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon)
    return normalised * as_numpy(gamma) + as_numpy(beta)


def softmax(scores):
    """In float64."""
    exponentials = np.exp(scores - scores.max(-1, keepdims=True))
    return exponentials / exponentials.sum(-1, keepdims=True)


@functools.cache
def lively_transformer(config=LIVELY, seed=19):
    """A Transformer with random weights whose outputs differ in words and length from source to source.

    The same arguments give the same object, which belongs to all tests.
    """
    generator = np.random.default_rng(seed)
    transformer = Transformer(config)
    for weight in transformer.trainable_weights:
        if weight.name in GAINS:
            continue
        scale = weight.shape[0] ** -0.5 if len(weight.shape) > 1 else 0.1
        if "matrix" in weight.name:
            scale = weight.shape[1] ** -0.5
        if "memory_attention/" in weight.path or "feed_forward/" in weight.path or weight.path.startswith("logits"):
            scale *= 3.0  # what a step reads from the source must outweigh what it repeats
        weight.assign(generator.normal(0.0, scale, weight.shape))
    return transformer


def sources(*lengths, vocab_size=LIVELY.vocab_size, seed=0):
    """Random source ids, int32 (B, longest of `lengths`): words, EOS, PAD."""
    generator = np.random.default_rng(seed)
    ids = np.zeros((len(lengths), max(lengths)), "int32")
    for row, length in zip(ids, lengths, strict=True):
        row[:length] = [*generator.integers(EOS + 1, vocab_size, length - 1), EOS]
    return ids


def pieces_of(tokenizer):
    """Return the written form of every id, in order: that of EOS is "</s>"."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    return [processor.id_to_piece(piece_id) for piece_id in range(tokenizer.vocab_size)]
