"""An exported version, written quickly: unnumbered, unchecked, of a model that never trained."""

from export.saved_model import write_saved_model
from export.serving import ServedTranslator
from keras_transformer.config import SearchOptions
from keras_transformer.translator import Translator, load_run

OPTIONS = SearchOptions(extra_length=12)


def write_version(run, folder, options=OPTIONS, max_source_tokens=512, names=("serving_default",)):
    """Export a run into `folder` as it is, unnumbered and unchecked. Returns a Translator of the same run.

    Each signature takes seconds to write; `names` are those that there shall be, None all.
    """
    transformer, tokenizer = load_run(run)
    translator = Translator(transformer, tokenizer, options, max_source_tokens=max_source_tokens)
    write_saved_model(
        ServedTranslator(transformer, tokenizer, options, translator.max_source_tokens), tokenizer, folder, names
    )  # fmt: skip
    return translator
