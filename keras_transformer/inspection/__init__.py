"""What TensorBoard shows of a Transformer. A script imports its callbacks from here.

    from keras_transformer.inspection import AttentionPictures, BleuScore, SampleTranslations

    bleu = BleuScore(transformer, tokenizer, validation_pairs)
    samples = SampleTranslations(bleu, "logs")
    pictures = AttentionPictures(transformer, tokenizer, validation_pairs[:3], "logs")
    transformer.fit(dataset, epochs=50, callbacks=[bleu, samples, pictures, keras.callbacks.TensorBoard("logs")])

Names are imported when they are first used, as in `keras_transformer`: the other modules need no Keras.
"""

# ruff: noqa: F401
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers
    from keras_transformer.inspection.callbacks import AttentionPictures, BleuScore, SampleTranslations

__all__ = ["AttentionPictures", "BleuScore", "SampleTranslations"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.callbacks"), name)
