"""What a Transformer costs, from its shapes alone: matrix products (Table 2 of the paper), weights, and memory."""

from keras_transformer.config import GATED_ACTIVATIONS, TransformerConfig

from ..config.lora import adapted_shapes, lora_names
from ..config.training import RowLengths, TrainingConfig


def forward_flops(config: TransformerConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the matrix products for one sentence pair of these lengths, which attends to its own tokens only."""
    d_model, projections = config.d_model, attention_projections(config)
    feed_forward = 2 * network_matrices(config) * d_model * config.d_ff
    attended = 2 * config.num_heads * (config.d_k + config.d_v)  # per query and key: their product, the weighted value
    encoder_block = source_length * (feed_forward + encoder_sublayer_flops(config, source_length))
    if config.decoder_layer == "ssru":
        past: float = 4 * d_model**2  # two matrices
    else:
        past = 2 * projections + target_length * attended  # queries and outputs, keys and values
    decoder_block = target_length * (past + projections + source_length * attended + feed_forward)
    decoder_block += source_length * projections  # the encoder's output as keys and values
    logits = 2 * target_length * d_model * config.vocab_size
    return config.encoder_layers * encoder_block + config.decoder_layers * decoder_block + logits


def attention_projections(config: TransformerConfig) -> int:
    """FLOPs per position of the projections to queries and outputs together, or to keys and values together."""
    return 2 * config.d_model * config.num_heads * (config.d_k + config.d_v)


def network_matrices(config: TransformerConfig) -> int:
    """Matrices of a feed-forward network, each d_model x d_ff."""
    return 3 if config.activation in GATED_ACTIVATIONS else 2


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


def parameter_count(config: TransformerConfig) -> int:
    """Number of weights.

    An attention has d_model h (2 d_k + 2 d_v) weights, a feed-forward network 2 d_model d_ff + d_ff + d_model, a gated
    one 3 d_model d_ff, a LayerNorm 2 d_model and an RMSNorm d_model; an encoder block one attention and two norms, a
    decoder block two and three. In place of attention, a convolution has k d_model^2 + d_model weights, a GRU
    6 d_model^2 + 6 d_model, and an SSRU 2 d_model^2 + d_model.
    """
    d_model, heads = config.d_model, config.num_heads
    projected = heads * (2 * config.d_k + config.d_v)
    attention = d_model * (projected + heads * config.d_v)
    if config.attention_bias:
        attention += projected + d_model
    feed_forward = network_matrices(config) * d_model * config.d_ff
    if config.feed_forward_bias and config.activation not in GATED_ACTIVATIONS:
        feed_forward += config.d_ff + d_model
    sublayers = {"convolutional": config.kernel_size * d_model**2 + d_model, "recurrent": 6 * d_model**2 + 6 * d_model}
    sublayer = sublayers.get(config.encoder_layer, attention)
    blocks = config.encoder_layers * (sublayer + feed_forward)
    past = 2 * d_model**2 + d_model if config.decoder_layer == "ssru" else attention
    blocks += config.decoder_layers * (past + attention + feed_forward)
    tables = 2 * config.max_positions * d_model if config.positions == "learned" else 0
    tables += 2 * config.relative_buckets * heads if config.positions == "relative" else 0
    return blocks + tables + norm_count(config) + embedding_count(config)


def norm_count(config: TransformerConfig) -> int:
    """Number of weights of all norms: of every block, and of the ends that have one."""
    from keras_transformer.layers import normalization

    ends = normalization.NORMS[config.norm].leaves_sum + config.embedding_norm
    norms = 2 * config.encoder_layers + 3 * config.decoder_layers + 2 * ends
    return norms * normalization.NORM_KINDS[config.norm_kind].arrays * config.d_model


def embedding_count(config: TransformerConfig) -> int:
    """Number of weights that embed tokens and score them, the biases of logits included."""
    from keras_transformer.model import embedding_names  # here: estimates of time need no Keras

    bias = config.vocab_size if config.logits_bias else 0
    return config.vocab_size * config.d_model * len({*embedding_names(config)}) + bias


def lora_count(training: TrainingConfig, config: TransformerConfig) -> int:
    """Number of weights that training with LoRA adds: of the rank times what goes into and out of each matrix."""
    return sum(training.lora_rank * sum(shape) for shape in adapted_shapes(training, config))


def lora_trained(training: TrainingConfig, config: TransformerConfig) -> int:
    """Number of weights that training with LoRA trains: those of `lora_count`, and norms and embeddings if named."""
    if config.decoder_start != "bos":  # then the bias keeps BOS from being written, and does not train
        config = config.replace(logits_bias=False)
    as_they_are = {"norms": norm_count, "embeddings": embedding_count}
    named = [count for name, count in as_they_are.items() if name in lora_names(training)]
    return lora_count(training, config) + sum(count(config) for count in named)


def kept_per_row(config: TransformerConfig, lengths: RowLengths) -> int:
    """Numbers of a row that the backward pass keeps, without the logits.

    Per position of a block about 8 arrays of d_model and 2 of d_ff, of a gated network 4, which a decoder block has
    twice, and per head and attention the scores of the positions it sees, twice. Every kind of block counts as one with
    self-attention, which keeps the most.
    """
    of_network = 4 if config.activation in GATED_ACTIVATIONS else 2
    arrays, scores = 8 * config.d_model + of_network * config.d_ff, 2 * config.num_heads
    encoder = lengths.source * config.encoder_layers * (arrays + scores * lengths.source)
    return encoder + lengths.target * config.decoder_layers * (2 * arrays + scores * (lengths.source + lengths.target))
