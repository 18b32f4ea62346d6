"""A folder of Hugging Face's M2M100ForConditionalGeneration, as M2M-100 and NLLB-200 are."""

import pathlib

from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.fairseq import FairseqFolder
from keras_transformer.models.imported.huggingface import config_of, sinusoids_in
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.weights import Arrays, values_of_blocks

MODEL_TYPE = "m2m_100"
NEEDED = {
    "model_type": MODEL_TYPE,
    "is_encoder_decoder": True,
    "scale_embedding": True,
    "tie_word_embeddings": True,
}
FUNCTION = {"norm": "pre", "norm_epsilon": 1e-5, "sinusoids": "tensor2tensor"}
TABLES = tuple(f"model.{side}.embed_positions.weights" for side in ("encoder", "decoder"))  # of transformers 4
UNNAMED = "M2M100Tokenizer"  # the class of a tokenizer that names none
TOKENIZERS: dict[str, list[str]] = {UNNAMED: [], "NllbTokenizer": [], "NllbTokenizerFast": []}


def import_m2m(folder: pathlib.Path) -> ImportedModel:
    """Read a folder of Hugging Face's M2M100ForConditionalGeneration, with the function that Hugging Face computes.

    Raises ImportedModelError, with the name of the file, key or array, for what cannot be imported, and OSError if a
    file cannot be read.
    """
    there = FairseqFolder.read(folder, NEEDED, TOKENIZERS, UNNAMED)
    first_position, tokens = there.ids["pad"] + 1, there.tokens()
    function = {**FUNCTION, "first_position": first_position, "decoder_start": there.start}
    config = config_of(there.settings, tokens, folder / "config.json", **function)
    check_tables(there.arrays, config.d_model, first_position)
    values = values_of_blocks(there.arrays, config, lambda weight: weight.huggingface, is_huggingface=True)
    place = "source_last" if there.of_tokenizer.get("legacy_behaviour", False) else "source_first"
    return there.imported(config, values, tokens, place, "Hugging Face M2M100")


def check_tables(arrays: Arrays, d_model: int, first_position: int) -> None:
    """Take the tables of sinusoids that old files hold. Raises ImportedModelError if they have others."""
    if sinusoids_in(arrays, d_model, TABLES, first_position) not in (None, FUNCTION["sinusoids"]):
        raise ImportedModelError(f"{arrays.path} has the sinusoids of the paper; M2M100 has those of tensor2tensor.")
