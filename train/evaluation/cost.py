"""What training costs, from shapes alone: parameters, memory, and floating-point operations (Table 2 of the paper)."""

from keras_transformer.config import TransformerConfig
from train.data.encoding import EncodedPairs, EncodedShards


def forward_flops(config: TransformerConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the matrix products for one sentence pair of these lengths, which attends to its own tokens only.

    As is usual, work that grows with d_model alone, such as embedding look-ups, softmax and LayerNorm, is left out.
    """
    heads, d_k, d_v, d_model = config.num_heads, config.d_k, config.d_v, config.d_model
    query_and_output = 2 * d_model * heads * (d_k + d_v)
    key_and_value = 2 * d_model * heads * (d_k + d_v)
    feed_forward = 4 * d_model * config.d_ff
    attended = 2 * heads * (d_k + d_v)  # per query and key: their product, and the weighted value
    encoder_block = source_length * (query_and_output + key_and_value + feed_forward + source_length * attended)
    decoder_block = target_length * (
        2 * query_and_output + key_and_value + feed_forward + (target_length + source_length) * attended
    )
    decoder_block += source_length * key_and_value  # the encoder's output as keys and values
    logits = 2 * target_length * d_model * config.vocab_size
    return config.encoder_layers * encoder_block + config.decoder_layers * decoder_block + logits


def training_flops(config: TransformerConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the forward and the backward pass, which multiplies twice as much as the forward pass."""
    return 3 * forward_flops(config, source_length, target_length)


def corpus_flops(config: TransformerConfig, pairs: EncodedPairs | EncodedShards, target_tokens: float) -> float:
    """Training FLOPs of `target_tokens` tokens of these pairs, as if every sentence had the mean length."""
    source_length, target_length = pairs.source_tokens / len(pairs), pairs.target_tokens / len(pairs)
    return training_flops(config, source_length, target_length) / target_length * target_tokens


def parameter_count(config: TransformerConfig) -> int:
    """Number of trainable weights, from the formula alone.

    An attention has d_model h (2 d_k + 2 d_v) weights, a feed-forward network 2 d_model d_ff + d_ff + d_model, a
    LayerNorm 2 d_model; an encoder block one attention and two norms, a decoder block two and three.
    """
    d_model, heads = config.d_model, config.num_heads
    projected = heads * (2 * config.d_k + config.d_v)
    attention = d_model * (projected + heads * config.d_v)
    if config.attention_bias:
        attention += projected + d_model
    feed_forward = 2 * d_model * config.d_ff + config.d_ff + d_model
    norm = 2 * d_model
    blocks = config.encoder_layers * (attention + feed_forward + 2 * norm)
    blocks += config.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    tables = config.vocab_size * d_model * (1 if config.shared_embeddings else 3)
    tables += 2 * config.max_positions * d_model if config.positions == "learned" else 0
    return blocks + tables + (2 * norm if config.norm == "pre" else 0)


def memory_bytes(config: TransformerConfig, rows: int, row_length: int) -> int:
    """Memory that training takes on one device, estimated from shapes in float32.

    Weights, gradients and Adam's two moments; for `rows` rows done at once, the logits and their gradient and what the
    backward pass keeps: per block about 8 arrays of d_model, 2 of d_ff, and per head one of scores. A decoder block
    counts twice.
    """
    blocks = config.encoder_layers + 2 * config.decoder_layers
    per_position = blocks * (8 * config.d_model + 2 * config.d_ff + 2 * config.num_heads * row_length)
    return 4 * (4 * parameter_count(config) + rows * row_length * (2 * config.vocab_size + per_position))
