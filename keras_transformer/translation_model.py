"""TranslationModel: what the Transformer and its ancestors have in common as Keras models."""

import dataclasses
import inspect
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any, ClassVar, Self

import keras

from keras_transformer.layers.composite import refuse_quantized
from keras_transformer.model_config import KIND, BaseModelConfig

INPUTS = ("source_ids", "source_segments", "target_ids", "target_segments")


class TranslationModel(keras.Model):
    """A functional model from four inputs to logits, which is saved as its configuration and its weights.

    Its file also holds which layers are frozen, by their flag `trainable`. `layer.trainable = True` trains them again
    after `load_model`, as in every functional model.
    """

    config_class: ClassVar[type[BaseModelConfig]]
    presets: ClassVar[Callable[[], ModuleType] | None] = None  # imports what opens presets; keras_transformer sets it

    @classmethod
    def check_config(cls, config: BaseModelConfig) -> None:
        """Raises TypeError for what is not a configuration of this class, such as the name of a preset."""
        if not isinstance(config, cls.config_class):
            raise TypeError(f"A {cls.__name__} is made of a {cls.config_class.__name__}. Received: {config!r:.60}")

    def __init__(self, config: BaseModelConfig, policy: keras.DTypePolicy, inputs: dict, logits, **kwargs):
        super().__init__(inputs=inputs, outputs=logits, **kwargs)
        self.dtype_policy = policy  # `compile` goes by it: mixed_float16 needs a loss scale
        self.model_config = config
        self.precision = policy.name

    def save(self, *args, **kwargs) -> None:
        """As in Keras. Raises ValueError, before the file is opened, if `quantize` has changed a layer."""
        refuse_quantized(self)
        super().save(*args, **kwargs)

    def get_config(self) -> dict:
        """Return what `from_config` makes the model of; a subclass adds its own arguments of `__init__`.

        Raises ValueError if `quantize` has changed a layer: the file would not open. Raises NotImplementedError for a
        subclass that has arguments and not this method.
        """
        own = inspect.signature(type(self).__init__).parameters.keys() - {"self", "config", "dtype", "name", "kwargs"}
        if own and type(self).get_config is TranslationModel.get_config:
            raise NotImplementedError(
                f"{type(self).__name__}.__init__ has the argument {min(own)}, which a file would lose: override "
                "get_config, and add it to what super().get_config() returns."
            )
        return self.values_of_file()

    def values_of_file(self) -> dict:
        """Return the arguments of a model of this kind, and which of its layers are frozen."""
        refuse_quantized(self)
        return {
            "config": dataclasses.asdict(self.model_config),
            "dtype": self.precision,
            "name": self.name,
            "trainable": self.trainable,
            "frozen": frozen_parts(self),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: dict | None = None) -> Self:
        arguments = {**config}
        trainable, frozen = arguments.pop("trainable", True), arguments.pop("frozen", [])
        if "config" in arguments:  # which a subclass may leave out that makes one itself
            values = {KIND: cls.config_class.kind, **arguments["config"]}
            arguments["config"] = cls.config_class.from_values(values)
        build: Callable[..., Self] = cls
        model = build(**arguments)
        model.trainable = trainable
        freeze_only(model, frozen)
        return model

    @classmethod
    def from_preset(cls, name: str | os.PathLike) -> Self:
        """Return the model of a preset, in float32.

            kt.Transformer.from_preset("presets/mine")

        `name` is a folder that `save_to_preset` wrote, a run folder, or hf://USER/MODEL[@REVISION]: such a folder, or a
        MarianMT model, on the Hugging Face hub. Raises UserError if it cannot be had, is damaged, or holds a model of
        another class.
        """
        return cls._module_of_presets().load_model(name, cls)

    def save_to_preset(self, folder: str | os.PathLike) -> None:
        """Write the model as a preset in the layout of keras-hub, without a tokenizer: Translator writes one with it.

        A preset that is there is overwritten. Raises ConfigError, before anything is written, if a run folder is there,
        or if a weight is quantized, NaN or infinite.
        """
        self._module_of_presets().save_model(self, folder)

    @classmethod
    def _module_of_presets(cls) -> ModuleType:
        if TranslationModel.presets is None:
            raise ImportError(f"Presets need `import keras_transformer as kt` and kt.{cls.__name__}.")
        return TranslationModel.presets()


def policy_of(dtype: Any) -> keras.DTypePolicy:
    """Return the dtype policy of a model: None is the global one. Raises ValueError for one that differs by layer."""
    policy = keras.dtype_policies.get(dtype)
    if isinstance(policy, keras.dtype_policies.DTypePolicyMap):
        raise ValueError(
            "All layers of a model have one dtype policy, and a DTypePolicyMap was given: give one policy, such as "
            "'mixed_bfloat16'."
        )
    return policy


def config_in_clone(model: Any) -> dict[str, Any] | None:
    """Return the configuration that the layers of a model carry, as a dict; None if it is no clone of one of ours.

    `keras.models.clone_model` makes a keras.Model of the same inputs, layers and output, without its configuration.
    """
    is_clone = isinstance(model, keras.Model) and isinstance(getattr(model, "output", None), keras.KerasTensor)
    if not is_clone or not isinstance(model.input, dict) or set(model.input) != set(INPUTS):
        return None
    return next((values for layer in model.layers if (values := getattr(layer, "of_model", None))), None)


def difference_in_graph(model: keras.Model, other: keras.Model) -> str | None:
    """Return in what the graph of a functional model differs from that of another, as words; None if it does not.

    Layers are compared by what Keras saves of them and by their inputs, but not by their flag `trainable`.
    """
    graphs = [functional_config(each) for each in (model, other)]
    layers, expected = ({layer["name"]: layer for layer in graph["layers"]} for graph in graphs)
    for name in expected.keys() - layers.keys():
        return f"it lacks the layer {name!r}"
    for name in layers.keys() - expected.keys():
        return f"it has the layer {name!r} too"
    for name, layer in layers.items():
        if without_trainable(layer) != without_trainable(expected[name]):
            return f"its layer {name!r} is another"
    ends = ("input_layers", "output_layers")
    return None if all(graphs[0][end] == graphs[1][end] for end in ends) else "its output is that of another layer"


def functional_config(model: keras.Model) -> dict[str, Any]:
    """Return what Keras saves of the graph of a functional model, of whatever class the model is."""
    return keras.Model(model.input, model.output).get_config()


def without_trainable(values: Any) -> Any:
    """Return nested dicts and lists without the keys `trainable`."""
    if isinstance(values, dict):
        return {key: without_trainable(value) for key, value in values.items() if key != "trainable"}
    return list(map(without_trainable, values)) if isinstance(values, list | tuple) else values


def frozen_parts(model: keras.Model) -> list[str]:
    """Return the paths of the layers whose flag `trainable` is False, and of other weights that do not train."""
    layers = [layer.path for layer in layers_with_weights(model) if not layer.trainable]
    weights = [weight.path for weight in model.weights if not weight.trainable]
    return layers + [path for path in weights if path.rpartition("/")[0] not in layers]


def freeze_only(model: keras.Model, paths: list[str]) -> None:
    """Freeze the layers and weights of a new model at these paths, and let all others train.

    A layer is frozen by its flag, also if the paths name all its weights, as those of older files do. If only the
    weights were frozen, `layer.trainable = True` would change nothing, because the flag would be True already.
    """
    for layer in layers_with_weights(model):  # an outer layer sets the flags of its parts, so it comes first
        layer.trainable = layer.path not in paths and not all(weight.path in paths for weight in layer.weights)
    for weight in model.weights:
        if weight.path in paths:
            weight.trainable = False


def layers_with_weights(model: keras.Model) -> list[keras.layers.Layer]:
    """Return the layers of a model that have weights, and their parts, each after the layer that it is a part of."""
    return [layer for layer in model._flatten_layers(include_self=False) if layer.weights]
