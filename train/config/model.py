"""The section `model` of a run configuration: the kind of model and its shape."""

from typing import Annotated, Any, get_type_hints

import pydantic

from keras_transformer.config import preset
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import CONFIGS

from .section import OneOf, Section

SET_ELSEWHERE = ("vocab_size", "dropout", "label_smoothing")  # by the tokenizer and by the section [training]
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
                    f"model.{name} is {value!r}, but model.kind is {self.kind!r}: {name} is of the kind {kinds[0]!r}"
                )
        return self

    def resolve(
        self, vocab_size: int, dropout: float | None = None, label_smoothing: float | None = None
    ) -> BaseModelConfig:
        """Combine this section with the tokenizer's vocabulary and the values of the training section."""
        changes = self.model_dump(include=set(OF_A_KIND)) | {
            "dropout": dropout,
            "label_smoothing": label_smoothing,
        }
        values = {name: value for name, value in changes.items() if value is not None}
        defaults = preset(self.preset or "base") if self.kind == "transformer" else RecurrentConfig()
        return defaults.replace(vocab_size=vocab_size, **values)
