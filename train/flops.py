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
