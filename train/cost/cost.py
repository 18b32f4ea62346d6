"""What training costs, from shapes alone: parameters, memory, and floating-point operations (Table 2 of the paper)."""

from keras_transformer.config import TransformerConfig
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.recurrent.config import RecurrentConfig

from ..config.training import RowLengths, TrainingConfig
from ..data.encoding import EncodedPairs, EncodedShards
from . import recurrent_cost


def forward_flops(config: BaseModelConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the matrix products for one sentence pair of these lengths, which attends to its own tokens only.

    As is usual, work that grows with d_model alone, such as embedding look-ups, softmax and LayerNorm, is left out.
    """
    if isinstance(config, RecurrentConfig):
        return recurrent_cost.forward_flops(config, source_length, target_length)
    d_model, projections = config.d_model, attention_projections(config)
    feed_forward = 4 * d_model * config.d_ff
    attended = 2 * config.num_heads * (config.d_k + config.d_v)  # per query and key: their product, the weighted value
    encoder_block = source_length * (feed_forward + encoder_sublayer_flops(config, source_length))
    decoder_block = target_length * (
        3 * projections + feed_forward + (target_length + source_length) * attended
    )  # self-attention has queries, outputs, keys and values; attention to the encoder's output queries and outputs
    decoder_block += source_length * projections  # the encoder's output as keys and values
    logits = 2 * target_length * d_model * config.vocab_size
    return config.encoder_layers * encoder_block + config.decoder_layers * decoder_block + logits


def attention_projections(config: TransformerConfig) -> int:
    """FLOPs per position of the projections to queries and outputs together, or to keys and values together."""
    return 2 * config.d_model * config.num_heads * (config.d_k + config.d_v)


def encoder_sublayer_flops(config: TransformerConfig, length: float) -> float:
    """FLOPs per position of what mixes the `length` positions of a sentence in an encoder block: Table 1, divided by n.

    Restricted self-attention counts the keys that a position may attend to; its blocks multiply up to twice as many.
    """
    if config.encoder_layer == "convolutional":
        return 2 * config.kernel_size * config.d_model**2
    if config.encoder_layer == "recurrent":  # three gates, each a product with the input and one with the state
        return 12 * config.d_model**2
    keys = min(length, config.neighbourhood) if config.encoder_layer == "restricted" else length
    return 2 * attention_projections(config) + 2 * config.num_heads * (config.d_k + config.d_v) * keys


def training_flops(config: BaseModelConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the forward and the backward pass, which multiplies twice as much as the forward pass."""
    return 3 * forward_flops(config, source_length, target_length)


def corpus_flops(config: BaseModelConfig, pairs: EncodedPairs | EncodedShards, target_tokens: float) -> float:
    """Training FLOPs of `target_tokens` tokens of these pairs, as if every sentence had the mean length."""
    source_length, target_length = pairs.source_tokens / len(pairs), pairs.target_tokens / len(pairs)
    return training_flops(config, source_length, target_length) / target_length * target_tokens


def parameter_count(config: BaseModelConfig) -> int:
    """Number of trainable weights, from the formula alone.

    An attention has d_model h (2 d_k + 2 d_v) weights, a feed-forward network 2 d_model d_ff + d_ff + d_model, a
    LayerNorm 2 d_model; an encoder block one attention and two norms, a decoder block two and three. In place of
    attention, a convolution has k d_model^2 + d_model weights and a GRU 6 d_model^2 + 6 d_model.
    """
    if isinstance(config, RecurrentConfig):
        return recurrent_cost.parameter_count(config)
    d_model, heads = config.d_model, config.num_heads
    projected = heads * (2 * config.d_k + config.d_v)
    attention = d_model * (projected + heads * config.d_v)
    if config.attention_bias:
        attention += projected + d_model
    feed_forward = 2 * d_model * config.d_ff + config.d_ff + d_model
    norm = 2 * d_model
    sublayers = {"convolutional": config.kernel_size * d_model**2 + d_model, "recurrent": 6 * d_model**2 + 6 * d_model}
    sublayer = sublayers.get(config.encoder_layer, attention)
    blocks = config.encoder_layers * (sublayer + feed_forward + 2 * norm)
    blocks += config.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    tables = config.vocab_size * d_model * (1 if config.shared_embeddings else 3)
    tables += 2 * config.max_positions * d_model if config.positions == "learned" else 0
    return blocks + tables + (2 * norm if config.norm == "pre" else 0)


def arrays_per_weight(training: TrainingConfig) -> int:
    """Arrays of the size of all weights that training keeps at once, at most.

    The weights, their gradients and Adam's two moments; a moving average; and of a step that is inspected for
    histograms, weights and gradients once more.
    """
    is_inspected = 0 < training.histograms_every <= training.steps
    return 4 + (training.ema_decay is not None) + 2 * is_inspected


def memory_bytes(config: BaseModelConfig, rows: int, lengths: RowLengths, copies: int = 4) -> int:
    """Memory that training takes on one device, estimated from shapes in float32.

    `copies` times the weights (see `arrays_per_weight`); for `rows` rows done at once, the logits and their gradient
    and what the backward pass keeps: per position of a block about 8 arrays of d_model and 2 of d_ff, which a decoder
    block has twice, and per head and attention the scores of the positions it sees, twice. Every kind of encoder block
    counts as one with self-attention, which takes the most.
    """
    if isinstance(config, RecurrentConfig):
        kept = recurrent_cost.kept_per_row(config, lengths)
    else:
        arrays, scores = 8 * config.d_model + 2 * config.d_ff, 2 * config.num_heads
        kept = lengths.source * config.encoder_layers * (arrays + scores * lengths.source)
        kept += lengths.target * config.decoder_layers * (2 * arrays + scores * (lengths.source + lengths.target))
    logits = 2 * lengths.target * config.vocab_size
    return 4 * (copies * parameter_count(config) + rows * (logits + kept))
