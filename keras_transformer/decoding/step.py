"""The decoder as a function of (state, token) to (state, logits): what every search calls."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.layers.blocks import ProjectedMemory
from keras_transformer.masks import segment_mask
from keras_transformer.model import Transformer, encoder
from keras_transformer.tokens import PAD


class DecoderCache(NamedTuple):
    """The keys and values of all positions decoded so far: tuples with one array per decoder block.

    N = B * K rows: hypothesis k of sentence b is row b * K + k. L is the length of the longest output.
    """

    keys: Any  # arrays (N, H, L, d_k)
    values: Any  # arrays (N, H, L, d_v)


class IncrementalDecoder:
    """The decoder of a Transformer, run one position at a time.

    `start(source_ids, hypotheses, length)` runs the encoder once and returns the memory and an empty cache.
    `step(memory, cache, tokens, position)` returns the logits of the next token and the extended cache.
    """

    def __init__(self, transformer: Transformer):
        config = transformer.transformer_config
        self.config = config
        self.encoder = encoder(transformer)
        self.embedding = transformer.get_layer("embedding" if config.shared_embeddings else "target_embedding")
        self.logits = transformer.get_layer("embedding" if config.shared_embeddings else "logits")
        self.positions = transformer.get_layer("target_positions")
        self.blocks = [transformer.get_layer(f"decoder_block_{n + 1}") for n in range(config.decoder_layers)]
        self.last_norm = transformer.get_layer("decoder_norm") if config.norm == "pre" else None

    def start(self, source_ids, hypotheses: int, length) -> tuple[tuple[ProjectedMemory, ...], DecoderCache]:
        """Run the encoder, and allocate a cache for `hypotheses` outputs of up to `length` tokens per sentence.

        Shapes: source_ids int (B, S), PAD after the end of each sentence.
        Returns one ProjectedMemory per block and an empty DecoderCache.
        """
        source_ids = ops.convert_to_tensor(source_ids, dtype="int32")
        segments = ops.cast(ops.not_equal(source_ids, PAD), "int32")
        memory = self.encoder({"source_ids": source_ids, "source_segments": segments}, training=False)
        mask = segment_mask(ops.ones_like(segments[:, :1]), segments)  # (B, 1, S)
        memories = tuple(ProjectedMemory(*block.memory_attention.project_memory(memory), mask) for block in self.blocks)
        rows = ops.shape(source_ids)[0] * hypotheses

        def empty(width):
            shape = (rows, self.config.num_heads, length, width)
            return tuple(ops.zeros(shape, self.blocks[0].compute_dtype) for _ in self.blocks)

        return memories, DecoderCache(empty(self.config.d_k), empty(self.config.d_v))

    def step(self, memories, cache, tokens, position):
        """Feed `tokens` int (N,) at `position` int (). Return float32 logits (N, vocab_size) and the new cache."""
        states = self.positions(self.embedding(ops.expand_dims(tokens, 1)), ops.reshape(position, (1, 1)))
        all_keys, all_values = [], []
        for block, memory, keys, values in zip(self.blocks, memories, *cache, strict=True):
            states, keys, values = block.step(states, position, keys, values, memory)
            all_keys.append(keys)
            all_values.append(values)
        if self.last_norm is not None:
            states = self.last_norm(states)
        logits = ops.cast(self.logits(states, reverse=True), "float32")
        return logits[:, 0], DecoderCache(tuple(all_keys), tuple(all_values))
