"""What a recurrent model costs, from its shapes alone: matrix products, weights, and memory."""

from keras_transformer.recurrent.config import RecurrentConfig

from ..config.training import RowLengths

GATES = {"gru": 3, "lstm": 4}


def forward_flops(config: RecurrentConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the matrix products for one sentence pair of these lengths."""
    d_model, gates = config.d_model, GATES[config.cell]
    directions = d_model // config.units
    encoder_layer = source_length * directions * 2 * gates * config.units * (d_model + config.units)
    decoder_layer = target_length * 4 * gates * d_model**2
    flops = config.encoder_layers * encoder_layer + config.decoder_layers * decoder_layer
    if is_fed(config):
        flops += target_length * 2 * gates * d_model**2
    if config.attention != "none":
        score_and_context = target_length * source_length * 4 * d_model
        flops += score_and_context + target_length * 4 * d_model**2  # and the attentional state
        flops += 2 * d_model**2 * source_length * (config.attention in ("general", "additive"))  # keys
        flops += 2 * d_model**2 * target_length * (config.attention == "additive")  # queries
    return flops + 2 * target_length * d_model * config.vocab_size


def is_fed(config: RecurrentConfig) -> bool:
    """True if the decoder reads an attentional state or a context beside the token."""
    return config.feeds_input or config.attention == "additive"


def parameter_count(config: RecurrentConfig) -> int:
    """Number of trainable weights.

    A cell has gates * units * (input width + units + 2) weights, each kind of attention those of its score, and the
    attentional state 2 d_model^2 + d_model.
    """
    d_model, gates = config.d_model, GATES[config.cell]
    encoder_layer = gates * d_model * (d_model + config.units + 2)  # of both directions together, if there are two
    decoder_layer = gates * d_model * (2 * d_model + 2)
    count = config.encoder_layers * encoder_layer + config.decoder_layers * decoder_layer
    count += gates * d_model**2 if is_fed(config) else 0
    count += {"none": 0, "dot": 0, "general": d_model**2, "additive": 2 * d_model**2 + d_model}[config.attention]
    count += 2 * d_model**2 + d_model if config.attention != "none" else 0
    return count + config.vocab_size * d_model * (1 if config.shared_embeddings else 3)


def kept_per_row(config: RecurrentConfig, lengths: RowLengths) -> int:
    """Numbers of a row that the backward pass keeps, without the logits.

    Per position of a layer about twice its gates and 4 states; per target position a distribution over the source, and
    for additive attention the hidden layer of every score.
    """
    positions = config.encoder_layers * lengths.source + config.decoder_layers * lengths.target
    kept = positions * (2 * GATES[config.cell] + 4) * config.d_model
    if config.attention != "none":
        kept += lengths.target * 4 * (lengths.source + config.d_model)
    return kept + (lengths.target * lengths.source * config.d_model if config.attention == "additive" else 0)
