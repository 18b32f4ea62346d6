"""The settings of a run as one flat dict, to compare runs by."""

import json

from .model import OF_TRAINING
from .run import RunConfig

PATHS = {"run_folder", "cache_folder"}  # where a run is kept, not how it is trained


def effective_settings(config: RunConfig) -> dict[str, bool | int | float | str]:
    """Every key that has a value, set or not, such as {"training.dropout": 0.1, "model.d_model": 512}.

    Keys that are left to the preset have the preset's value: two runs then differ in d_model, not only in a preset's
    name. Keys that are off (None) are left out. Lists are JSON.
    """
    sections = config.model_dump(exclude=PATHS)
    model = config.transformer_config(config.tokenizer.vocab_size)
    sections["model"].update((key, getattr(model, key)) for key in model.fields() if key in sections["model"])
    sections["training"].update((key, getattr(model, key)) for key in OF_TRAINING if key in model.fields())
    return {
        f"{name}.{key}": value if isinstance(value, bool | int | float | str) else json.dumps(value, ensure_ascii=False)
        for name, section in sections.items()
        for key, value in section.items()
        if value is not None
    }
