"""The section `model` of a run configuration: the kind of model and its shape."""

from typing import Annotated, Any, get_type_hints

import pydantic

from keras_transformer.config import preset
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import CONFIGS

from .section import OneOf, Section

OF_TRAINING = ("dropout", "label_smoothing", "shift_positions")  # fields of a model that are keys of [training]
SET_ELSEWHERE = ("vocab_size", *OF_TRAINING)  # by the tokenizer and by the section [training]
OF_A_KIND: dict[str, Any] = {  # the other fields, as pydantic takes them: type and default
    name: (get_type_hints(config)[name] | None, None)
    for config in CONFIGS.values()
    for name in config.fields()
    if name not in SET_ELSEWHERE
}


class FieldsOfAllKinds(Section):
    """What the section has for every kind of model."""

    kind: Annotated[str, OneOf(tuple(CONFIGS))] = "transformer"
    preset: str | None = None


ModelFields = pydantic.create_model("ModelFields", __base__=FieldsOfAllKinds, **OF_A_KIND)


class ModelConfig(ModelFields):
    """The kind of model, and what differs from a preset of Transformers, or from the defaults of another kind.

    None means the preset's value, or the default.
    """

    @pydantic.model_validator(mode="before")
    @classmethod
    def begin_with_base(cls, values: Any) -> Any:
        """A Transformer that names no preset is "base"; another kind has no presets."""
        if isinstance(values, dict) and values.get("kind", "transformer") == "transformer":
            return {**values, "preset": values.get("preset", "base")}
        return values

    @pydantic.model_validator(mode="after")
    def check_fields(self) -> "ModelConfig":
        allowed = {"kind", *CONFIGS[self.kind].fields()} | ({"preset"} if self.kind == "transformer" else set())
        for name, value in self:
            if value is not None and name not in allowed:
                kinds = [kind for kind, config in CONFIGS.items() if name in config.fields()] or ["transformer"]
                raise ValueError(
                    f"model.{name} is {value!r}, but model.kind is {self.kind!r}: {name} is of the kind {kinds[0]!r}, "
                    "so leave one of the two out"
                )
        return self

    def resolve(self, vocab_size: int, training: object = None) -> BaseModelConfig:
        """Combine this section with the tokenizer's vocabulary, and with the fields of `training` in OF_TRAINING.

        training: the section, or another model with these fields; None is a section that leaves them to the preset. A
        field that this kind of model does not have is left out.
        """
        of_training = {name: getattr(training, name, None) for name in OF_TRAINING}
        changes = self.model_dump(include=set(OF_A_KIND)) | of_training
        values = {name: value for name, value in changes.items() if value is not None}
        defaults = preset(self.preset or "base") if self.kind == "transformer" else RecurrentConfig()
        own = {name: value for name, value in values.items() if name in defaults.fields()}
        return defaults.replace(vocab_size=vocab_size, **own)
