"""What training costs, from shapes alone: parameters, memory, and floating-point operations (Table 2 of the paper).

Each kind of model has a module with the same three formulas, as `kinds.py` of the library has its layers.
"""

from keras_transformer.config import TransformerConfig
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.recurrent.config import RecurrentConfig

from ..config.training import RowLengths, TrainingConfig
from ..data.encoding import EncodedPairs, EncodedShards
from . import recurrent_cost, transformer_cost

FORMULAS = {TransformerConfig.kind: transformer_cost, RecurrentConfig.kind: recurrent_cost}


def forward_flops(config: BaseModelConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the matrix products for one sentence pair of these lengths.

    As is usual, work that grows with d_model alone, such as embedding look-ups, softmax and LayerNorm, is left out.
    """
    return FORMULAS[config.kind].forward_flops(config, source_length, target_length)


def training_flops(config: BaseModelConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the forward and the backward pass, which multiplies twice as much as the forward pass."""
    return 3 * forward_flops(config, source_length, target_length)


def corpus_flops(config: BaseModelConfig, pairs: EncodedPairs | EncodedShards, target_tokens: float) -> float:
    """Training FLOPs of `target_tokens` tokens of these pairs, as if every sentence had the mean length."""
    source_length, target_length = pairs.source_tokens / len(pairs), pairs.target_tokens / len(pairs)
    return training_flops(config, source_length, target_length) / target_length * target_tokens


def parameter_count(config: BaseModelConfig) -> int:
    """Number of trainable weights, from the formula alone."""
    return FORMULAS[config.kind].parameter_count(config)


def arrays_per_weight(training: TrainingConfig) -> int:
    """Arrays of the size of all weights that training keeps at once, at most.

    These are the weights, their gradients and Adam's two moments; the moving average, if there is one; and weights and
    gradients once more if a step is inspected for histograms.
    """
    is_inspected = 0 < training.histograms_every <= training.steps
    return 4 + (training.ema_decay is not None) + 2 * is_inspected


def memory_bytes(config: BaseModelConfig, rows: int, lengths: RowLengths, copies: int = 4) -> int:
    """Memory that training takes on one device, estimated from shapes in float32.

    It is `copies` times the weights (see `arrays_per_weight`), and for `rows` rows at once the logits, their gradient,
    and what the backward pass keeps.
    """
    logits = 2 * lengths.target * config.vocab_size
    kept = FORMULAS[config.kind].kept_per_row(config, lengths)
    return 4 * (copies * parameter_count(config) + rows * (logits + kept))
