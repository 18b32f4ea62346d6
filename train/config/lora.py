"""Which matrices LoRA adapts, of which shapes: `training.lora_rank` with its keys (Hu et al. 2021)."""

from keras_transformer.config import GATED_ACTIVATIONS, TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.model_config import BaseModelConfig

from .training import LoraName, TrainingConfig

OF_PAPER: tuple[LoraName, ...] = ("query", "value")  # which the paper adapts in most experiments (section 5.1)
Shape = tuple[int, int]


def lora_names(training: TrainingConfig) -> tuple[LoraName, ...]:
    """What is trained: matrices by adapters, norms and embeddings as they are. Nothing if `lora_rank` is 0."""
    return tuple(dict.fromkeys(training.lora_matrices or OF_PAPER)) if training.lora_rank else ()


def shapes_of(config: TransformerConfig) -> dict[str, list[Shape]]:
    """The shapes (inputs, outputs) of all matrices of a Transformer that LoRA can adapt, by the name of their kind."""
    attentions = config.decoder_layers * (1 if config.decoder_layer == "ssru" else 2)
    attentions += config.encoder_layers if config.encoder_layer in ("self_attention", "restricted") else 0
    keys, values = config.num_heads * config.d_k, config.num_heads * config.d_v
    inner = [(config.d_model, config.d_ff)] * (2 if config.activation in GATED_ACTIVATIONS else 1)
    return {
        "query": [(config.d_model, keys)] * attentions,
        "key": [(config.d_model, keys)] * attentions,
        "value": [(config.d_model, values)] * attentions,
        "output": [(values, config.d_model)] * attentions,
        "ffn": [*inner, (config.d_ff, config.d_model)] * (config.encoder_layers + config.decoder_layers),
    }


def adapted_shapes(training: TrainingConfig, config: TransformerConfig) -> list[Shape]:
    """The shapes (inputs, outputs) of the matrices that get an adapter; norms and embeddings get none."""
    shapes = shapes_of(config)
    return [shape for name in lora_names(training) for shape in shapes.get(name, ())]


def check_lora(training: TrainingConfig, config: BaseModelConfig) -> None:
    """Raises ConfigError for adapters that have nothing to adapt, or are no smaller than what they adapt."""
    rank = training.lora_rank
    if not rank:
        return
    asked = f"training.lora_rank is {rank}"
    if not training.start_from:
        raise ConfigError(
            f"{asked}, and training begins with random weights, of which all have to learn: set training.start_from to "
            "the run folder of a trained model, or leave lora_rank out."
        )
    if not isinstance(config, TransformerConfig):
        raise ConfigError(
            f"{asked}, and model.kind is {config.kind!r}, which has none of the matrices that it adapts: leave it out."
        )
    if training.frozen:
        raise ConfigError(
            f"training.frozen is {training.frozen}, and {asked}, with which all weights stay as they are but its "
            "adapters: leave one of the two out; training.lora_matrices says what is adapted."
        )
    shapes = adapted_shapes(training, config)
    if not shapes:
        raise ConfigError(
            f"{asked}, and training.lora_matrices is {training.lora_matrices}, without a matrix to adapt: add some of "
            f"{', '.join(shapes_of(config))}."
        )
    for name in lora_names(training):
        for shape in shapes_of(config).get(name, ()):
            if rank > min(shape):
                raise ConfigError(
                    f'{asked}, more than the width of the matrix "{name}", {shape[0]} x {shape[1]}: an adapter is '
                    f"narrower than what it adapts. Set at most {min(shape)}, or leave that name out of "
                    "training.lora_matrices."
                )
