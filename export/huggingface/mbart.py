"""A Hugging Face folder of MBartForConditionalGeneration, or of BART's shape: the inverse of an import of mbart.py."""

from typing import Any

import keras
import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import BOS
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.models.imported.fairseq import MASK, SPM
from keras_transformer.models.imported.mbart import LANGUAGES_25, LANGUAGES_50, NORM
from keras_transformer.models.imported.names import as_huggingface, weights_of_tokens
from keras_transformer.pieces.language_marks import TARGET, Languages
from keras_transformer.pieces.tokenizer import Tokenizer

from ..expressible import SIZES, expressible, refuse
from ..versions import ExportError
from .m2m import BIAS, IDS, Pieces, arrays_of_fairseq, fairseq_generation_json, shared_tokenizer_json
from .settings import Beside, shape_json, write_json
from .weights import EPSILON, float32_arrays, refuse_other_widths

RUNTIME = "Hugging Face's MBartForConditionalGeneration"
HAS = SIZES | {
    "activation": ("relu", "gelu", "silu", "swish"),
    "norm": tuple(NORM.values()),
    "norm_epsilon": (EPSILON,),
    "positions": ("learned",),
    "embedding_norm": (True,),
    "decoder_start": ("eos", "bos"),
    "shared_embeddings": (True,),
}
TOKENIZERS = {"MBart50Tokenizer": LANGUAGES_50, "MBartTokenizer": LANGUAGES_25}


def check_mbart(config: BaseModelConfig, tokenizer: Tokenizer) -> None:
    """Raise ExportError, which names the field of model.json or the languages, for what transformers cannot express."""
    refuse_other_widths(expressible(config, RUNTIME, HAS), RUNTIME)
    tokenizer_class(Pieces.of(tokenizer))


def tokenizer_class(pieces: Pieces) -> str:
    """Return the class of tokenizer with these pieces. Raises ExportError if there is none."""
    for name, languages in TOKENIZERS.items():
        if pieces.added == [*languages, MASK]:
            return name
    raise ExportError(
        f"transformers' {' and '.join(TOKENIZERS)} have lists of languages of their own, and this run has others: "
        "export it with --format saved_model or litert."
    )


def start_of(config: TransformerConfig, languages: Languages, pieces: Pieces) -> int:
    """Return the id of the piece with which the decoder begins, </s> or the one language that the model writes.

    Raises ExportError if it begins with another.
    """
    if config.decoder_start == "eos":
        return IDS["decoder_start_token_id"]
    if languages.target_first or languages.default(TARGET) not in pieces.added:
        refuse("decoder_start", config.decoder_start, RUNTIME, "eos, or a language's piece of a model that writes one,")
    return pieces.names.index(languages.default(TARGET))


def arrays_of_mbart(model: keras.Model, tokenizer: Tokenizer, languages: Languages) -> dict[str, np.ndarray]:
    """Return the arrays of MBartForConditionalGeneration by their names.

    The piece with which the decoder begins gets the row of BOS, which training may have changed.
    """
    arrays, config = arrays_of_fairseq(model, tokenizer), model.model_config
    if config.decoder_start == "bos":
        matrix = next(weight for weight in weights_of_tokens(config) if weight.ours == "embedding/matrix")
        rows = as_huggingface(matrix, float32_arrays(model)[matrix.ours])
        arrays[matrix.huggingface][start_of(config, languages, Pieces.of(tokenizer))] = rows[BOS]
    return arrays | {BIAS: arrays[BIAS].reshape(1, -1)}


def write_mbart(of: Beside) -> None:
    """Write config.json, generation_config.json and the files of the tokenizer."""
    pieces, positions = Pieces.of(of.tokenizer), {"max_position_embeddings": of.config.max_positions}
    start = {"decoder_start_token_id": start_of(of.config, of.languages, pieces)}
    generation = fairseq_generation_json(of, pieces) | start
    generation["max_length"] = min(generation["max_length"], of.config.max_positions)
    write_json(of.folder / "config.json", config_json(of.config) | positions | start)
    write_json(of.folder / "generation_config.json", generation)
    (of.folder / SPM).write_bytes(of.tokenizer.sentencepiece_models["source.spm"])
    name = tokenizer_class(pieces)
    settings = shared_tokenizer_json(of.languages, of.longest)
    write_json(of.folder / "tokenizer_config.json", {"tokenizer_class": name, **settings})
    write_json(of.folder / "special_tokens_map.json", {"additional_special_tokens": TOKENIZERS[name]})


def config_json(config: TransformerConfig) -> dict[str, Any]:
    """Return what config.json holds, but for the start of the decoder; BOS is another piece there."""
    name = next(name for name, norm in NORM.items() if norm == config.norm)
    return {
        "architectures": [f"{'Bart' if name == 'bart' else 'MBart'}ForConditionalGeneration"],
        "model_type": name,
        **shape_json(config),
        "vocab_size": config.vocab_size - 1,
        "tie_word_embeddings": True,
        **IDS,
        "forced_eos_token_id": IDS["eos_token_id"],
    }
