"""Floating-point operations of training, from the shapes alone: what Table 2 of the paper calls training cost."""


def forward_flops(config, source_length, target_length):
    """FLOPs of the matrix products for one sentence pair of these lengths, attention over its own tokens included.

    Embedding look-ups, softmax, LayerNorm and other work that grows with d_model alone are left out, as is usual.
    """
    heads, d_k, d_v, d_model = config.num_heads, config.key_dim, config.value_dim, config.d_model
    query_and_output = 2 * d_model * heads * (d_k + d_v)
    key_and_value = 2 * d_model * heads * (d_k + d_v)
    feed_forward = 4 * d_model * config.d_ff
    attended = 2 * heads * (d_k + d_v)  # for one query and one key: their product, and the value's share
    encoder_block = source_length * (query_and_output + key_and_value + feed_forward + source_length * attended)
    decoder_block = target_length * (
        2 * query_and_output + key_and_value + feed_forward + (target_length + source_length) * attended
    )
    decoder_block += source_length * key_and_value  # the encoder's output as keys and values
    logits = 2 * target_length * d_model * config.vocab_size
    return config.encoder_layers * encoder_block + config.decoder_layers * decoder_block + logits


def training_flops(config, source_length, target_length):
    """Forward and backward pass: the backward one multiplies twice as much."""
    return 3 * forward_flops(config, source_length, target_length)


def corpus_flops(config, pairs, target_tokens):
    """Training FLOPs of `target_tokens` of an EncodedPairs, every sentence taken to have the mean length."""
    source_length, target_length = pairs.source_tokens / len(pairs), pairs.target_tokens / len(pairs)
    return training_flops(config, source_length, target_length) / target_length * target_tokens


def parameter_count(config):
    """Number of trainable weights, from the formula alone.

    An attention has d_model h (2 d_k + 2 d_v) weights, a feed-forward network 2 d_model d_ff + d_ff + d_model, a
    LayerNorm 2 d_model; an encoder block one attention and two norms, a decoder block two and three.
    """
    d_model, heads = config.d_model, config.num_heads
    projected = heads * (2 * config.key_dim + config.value_dim)
    attention = d_model * (projected + heads * config.value_dim)
    if config.attention_bias:
        attention += projected + d_model
    feed_forward = 2 * d_model * config.d_ff + config.d_ff + d_model
    norm = 2 * d_model
    blocks = config.encoder_layers * (attention + feed_forward + 2 * norm)
    blocks += config.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    tables = config.vocab_size * d_model * (1 if config.shared_embeddings else 3)
    tables += 2 * config.max_positions * d_model if config.positions == "learned" else 0
    return blocks + tables + (2 * norm if config.norm == "pre" else 0)


def memory_bytes(settings, batches, parts):
    """Weights, gradients and Adam's two moments; logits and their gradient; what the backward pass keeps of each block.

    An estimate from shapes in float32, for a batch done in `parts`, by devices or one after the other: a block keeps
    about 8 arrays of d_model, 2 of d_ff and one of scores a head.
    """
    rows, length = batches.rows_per_batch // parts, batches.row_lengths.target
    blocks = settings.encoder_layers + 2 * settings.decoder_layers
    a_position = blocks * (8 * settings.d_model + 2 * settings.d_ff + 2 * settings.num_heads * length)
    return 4 * (4 * parameter_count(settings) + rows * length * (2 * settings.vocab_size + a_position))
