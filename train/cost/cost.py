"""What training costs, from shapes alone: parameters, memory, and floating-point operations (Table 2 of the paper).

Each kind of model has a module with the same three formulas, as `kinds.py` of the library has its layers.
"""

from typing import NamedTuple

from keras_transformer.config import TransformerConfig
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.recurrent.config import RecurrentConfig

from ..config.training import RowLengths, TrainingConfig
from ..data.encoding import EncodedPairs, EncodedShards
from . import recurrent_cost, transformer_cost

OF_PROCESS = {True: 400 << 20, False: 150 << 20}  # bytes beside its arrays, with XLA, which compiles, and without
FORMULAS = {TransformerConfig.kind: transformer_cost, RecurrentConfig.kind: recurrent_cost}


def forward_flops(config: BaseModelConfig, source_length: float, target_length: float) -> float:
    """FLOPs of the matrix products for one sentence pair of these lengths.

    As is usual, work that grows with d_model alone, such as embedding look-ups, softmax and LayerNorm, is left out.
    """
    return FORMULAS[config.kind].forward_flops(config, source_length, target_length)


def training_flops(config: BaseModelConfig, source_length: float, target_length: float, passes: int = 3) -> float:
    """FLOPs of the forward and the backward pass, which multiplies twice as much as the forward pass.

    passes: the forward pass counts once, see `passes_of`.
    """
    return passes * forward_flops(config, source_length, target_length)


def corpus_flops(
    config: BaseModelConfig, pairs: EncodedPairs | EncodedShards, target_tokens: float, passes: int
) -> float:
    """Training FLOPs of `target_tokens` tokens of these pairs, as if every sentence had the mean length."""
    source_length, target_length = pairs.source_tokens / len(pairs), pairs.target_tokens / len(pairs)
    return training_flops(config, source_length, target_length, passes) / target_length * target_tokens


def parameter_count(config: BaseModelConfig) -> int:
    """Number of weights, from the formula alone."""
    return FORMULAS[config.kind].parameter_count(config)


def trained_count(training: TrainingConfig, config: BaseModelConfig) -> int:
    """Number of weights that training changes: all of them, or with LoRA what that adds; `frozen` is left out."""
    if training.lora_rank and isinstance(config, TransformerConfig):
        return transformer_cost.lora_trained(training, config)
    return parameter_count(config)


def passes_of(training: TrainingConfig) -> int:
    """How often a step multiplies as much as its forward pass: with LoRA once less, without gradients of weights.

    Those of the few matrices that LoRA adapts are left out.
    """
    return 2 if training.lora_rank else 3


def arrays_per_weight(training: TrainingConfig) -> float:
    """Arrays of the size of all weights that are trained that training keeps at once, at most.

    These are the weights and their gradients; what the optimizer keeps, Adam two moments, and the moving average, if
    there is one; and weights and gradients once more if a step is inspected for histograms.
    """
    from ..step.optimizer import slots_per_weight  # here, so that estimates of operations need no TensorFlow

    is_inspected = 0 < training.histograms_every <= training.steps
    return 2 + slots_per_weight(training) + 2 * is_inspected


class NumberSizes(NamedTuple):
    """Bytes that training takes for a number."""

    kept: float = 4  # that the backward pass keeps, see `kept_per_row`
    logit: float = 8  # with its gradient


USUAL = NumberSizes()


def number_sizes(training: TrainingConfig, on_gpu: bool) -> NumberSizes:
    """What a number takes in this precision, as measured on a CPU (see `training_memory`).

    Softmax and LayerNorm compute in float32 in any precision, so that half the width saves a quarter; under XLA on a
    CPU nearly nothing. Without XLA there is one array more of the logits, and in half precision a half one.
    """
    is_half = training.precision.startswith("mixed")
    if training.xla:
        return NumberSizes(kept=3 if is_half and on_gpu else 4)
    return NumberSizes(kept=3, logit=14) if is_half else NumberSizes(kept=4, logit=12)


def memory_bytes(
    config: BaseModelConfig, rows: int, lengths: RowLengths, copies: float = 4, sizes: NumberSizes = USUAL
) -> int:
    """Memory that training takes on one device for its arrays, estimated from shapes.

    It is `copies` times all weights in float32 (see `arrays_per_weight`), and for `rows` rows at once the logits, their
    gradient, and what the backward pass keeps.
    """
    logits = lengths.target * config.vocab_size * sizes.logit
    kept = FORMULAS[config.kind].kept_per_row(config, lengths) * sizes.kept
    return round(4 * copies * parameter_count(config) + rows * (logits + kept))


def training_memory(
    training: TrainingConfig, config: BaseModelConfig, rows: int, lengths: RowLengths, on_gpu: bool = False
) -> int:
    """Memory that a process takes with `rows` rows at once, beside what it holds before the model is built.

    These are arrays, compiled code and buffers: 0.8 to 1.1 times what resident memory grows by on a CPU until a few
    steps are taken, see docs/training.md. The searches of validation, pictures and the report are left out.
    """
    copies = arrays_per_weight(training)
    if training.lora_rank:  # the weights once, and all that is kept of what is trained
        copies = 1 + copies * trained_count(training, config) / parameter_count(config)
    arrays = memory_bytes(config, rows, lengths, copies, number_sizes(training, on_gpu))
    return arrays + OF_PROCESS[training.xla]
