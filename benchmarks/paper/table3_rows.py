"""The rows of Table 3, as the paper prints them and scaled to another model."""

from typing import NamedTuple

from keras_transformer.config import TABLE_3, TransformerConfig, base, big


class Row(NamedTuple):
    """A row of Table 3 and the paper's figures on newstest2013."""

    name: str
    group: str  # the letter that stands before it
    varied: str  # what it changes, as the table of results has it
    perplexity: float
    bleu: float
    millions: int | None = None  # of parameters; None: as base


ROWS = [
    Row("base", "", "", 4.92, 25.8, 65),
    Row("A_1_head", "A", "h", 5.29, 24.9),
    Row("A_4_heads", "A", "h", 5.00, 25.5),
    Row("A_16_heads", "A", "h", 4.91, 25.8),
    Row("A_32_heads", "A", "h", 5.01, 25.4),
    Row("B_key_dim_16", "B", "d_k", 5.16, 25.1, 58),
    Row("B_key_dim_32", "B", "d_k", 5.01, 25.4, 60),
    Row("C_2_layers", "C", "N", 6.11, 23.7, 36),
    Row("C_4_layers", "C", "N", 5.19, 25.3, 50),
    Row("C_8_layers", "C", "N", 4.88, 25.5, 80),
    Row("C_d_model_256", "C", "d_model", 5.75, 24.5, 28),
    Row("C_d_model_1024", "C", "d_model", 4.66, 26.0, 168),
    Row("C_d_ff_1024", "C", "d_ff", 5.12, 25.4, 53),
    Row("C_d_ff_4096", "C", "d_ff", 4.75, 26.2, 90),
    Row("D_dropout_0.0", "D", "P_drop", 5.77, 24.6),
    Row("D_dropout_0.2", "D", "P_drop", 4.95, 25.5),
    Row("D_label_smoothing_0.0", "D", "epsilon_ls", 4.67, 25.3),
    Row("D_label_smoothing_0.2", "D", "epsilon_ls", 5.47, 25.7),
    Row("E_learned_positions", "E", "positions", 4.92, 25.7),
    Row("big", "", "d_model, d_ff, h, P_drop", 4.33, 26.4, 213),
]

SEEDS = {f"base_seed_{seed}": seed for seed in (2, 3)}  # base again, to see how far a seed alone moves it

SCALED = (
    "encoder_layers",
    "decoder_layers",
    "d_model",
    "d_ff",
    "num_heads",
    "d_k",
    "d_v",
    "dropout",
    "label_smoothing",
)


def paper_config(row: Row) -> TransformerConfig:
    """The model of the row in the paper."""
    return {"base": base, "big": big, **TABLE_3}[row.name]


def overrides_of(row: Row, model: TransformerConfig) -> tuple[str, ...]:
    """What makes the model of a row from `model`, which takes the place of the paper's base.

    A number that the row changes is changed in the same proportion, layers rounded: 1,024 of 512 wide become 256 of
    128. Learned positions are learned positions.
    """
    theirs = paper_config(row)
    settings = {}
    for name in SCALED:
        if getattr(theirs, name) != getattr(base, name):
            settings[name] = scaled(getattr(model, name), getattr(theirs, name), getattr(base, name))
    if theirs.positions != base.positions:
        settings["positions"] = f'"{theirs.positions}"'
        settings["max_positions"] = model.max_positions
    return tuple(f"{KEYS.get(name, f'model.{name}')}={value}" for name, value in settings.items())


KEYS = {
    "d_k": "model.key_dim",
    "d_v": "model.value_dim",
    "dropout": "training.dropout",
    "label_smoothing": "training.label_smoothing",
}


def scaled(own: float, row: float, of_base: float) -> float:
    """The value in proportion; a whole number stays one, and at least 1."""
    value = own * row / of_base
    return max(1, round(value)) if isinstance(own, int) else round(value, 6)
