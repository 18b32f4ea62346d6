"""A folder of Hugging Face's MBartForConditionalGeneration, as mBART-50 and mBART-25 are: its parts as those of ours.

BART's own tokenizer, a byte-level BPE, cannot be imported; a model of its shape (`model_type` "bart": post-norm) whose
tokenizer is one of mBART's can.
"""

import functools
import pathlib

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.arrays import StoredArrays
from keras_transformer.models.imported.fairseq import FairseqFolder
from keras_transformer.models.imported.huggingface import config_of, refuse
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.names import last_norm
from keras_transformer.models.imported.weights import values_of_blocks

NORM = {"mbart": "pre", "bart": "post"}  # by model_type
NEEDED = {"is_encoder_decoder": True, "tie_word_embeddings": True}
FUNCTION = {"norm_epsilon": 1e-5, "positions": "learned", "embedding_norm": True}
# Of MBartTokenizer and MBart50Tokenizer: the languages whose pieces follow those of text.
LANGUAGES_25 = (
    "ar_AR cs_CZ de_DE en_XX es_XX et_EE fi_FI fr_XX gu_IN hi_IN it_IT ja_XX kk_KZ ko_KR lt_LT lv_LV my_MM ne_NP nl_XX "
    "ro_RO ru_RU si_LK tr_TR vi_VN zh_CN"
).split()
LANGUAGES_50 = [
    *LANGUAGES_25,
    *"af_ZA az_AZ bn_IN fa_IR he_IL hr_HR id_ID ka_GE km_KH mk_MK ml_IN mn_MN mr_IN pl_PL ps_AF pt_XX sv_SE sw_KE "
    "ta_IN te_IN th_TH tl_XX uk_UA ur_PK xh_ZA gl_ES sl_SI".split(),
]
TOKENIZERS = {
    **dict.fromkeys(("MBartTokenizer", "MBartTokenizerFast"), LANGUAGES_25),
    **dict.fromkeys(("MBart50Tokenizer", "MBart50TokenizerFast"), LANGUAGES_50),
}
UNNAMED = {"mbart": "MBartTokenizer", "bart": "BartTokenizer"}  # the class of a tokenizer that names none


def import_mbart(folder: pathlib.Path, model_type: str = "mbart") -> ImportedModel:
    """Read a folder of Hugging Face's MBartForConditionalGeneration, with the function that Hugging Face computes.

    model_type: or "bart", of a BartForConditionalGeneration.

    Raises ImportedModelError, with the name of the file, key or array, for what cannot be imported, and OSError if a
    file cannot be read.
    """
    there = FairseqFolder.read(folder, {"model_type": model_type, **NEEDED}, TOKENIZERS, UNNAMED[model_type])
    path, arrays, settings = folder / "config.json", there.arrays, there.settings
    is_scaled = settings.get("scale_embedding", False)
    if not isinstance(is_scaled, bool):
        refuse("scale_embedding", is_scaled, path, "true or false")
    name = "final_logits_bias"
    bias = arrays.take(name, (len(there.pieces),)) if name in arrays else None
    if not is_scaled:
        there = there._replace(embedding=there.embedding / root(there.embedding.shape[1]))
    tokens = there.tokens(bias)
    function = {"norm": NORM[model_type], "decoder_start": there.start, **FUNCTION}
    function["max_positions"] = settings.get("max_position_embeddings")
    config = config_of(settings, tokens, path, **function)
    values = values_of_blocks(arrays, config, lambda weight: weight.huggingface, is_huggingface=True)
    if not is_scaled:
        values = values | scaled_norm(values, config)
    place = "source_first" if "50" in there.of_tokenizer["tokenizer_class"] else "source_last"
    return there.imported(config, values, tokens, place, "Hugging Face MBart")


def root(d_model: int) -> np.float32:
    """What multiplies an embedding here."""
    return np.float32(d_model**0.5)


def scaled_norm(values: StoredArrays, config: TransformerConfig) -> StoredArrays:
    """Return the weights of the norm before the logits, sqrt(d_model) times as large.

    A model that does not scale its embedding E has E / sqrt(d_model) here, which is read as E. The logits are the
    product of that with the outputs of this norm, which nothing else reads: so they too are what they were.
    """

    def scaled(path: str) -> np.ndarray:
        return values[path] * root(config.d_model)

    return StoredArrays({path: functools.partial(scaled, path) for path in last_norm(config)})
