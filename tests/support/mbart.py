"""Small folders of Hugging Face's MBart and Bart with random weights and mBART's tokenizers: without its packages."""

import json
import pathlib
from typing import Any

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.fairseq import FAIRSEQ, MASK
from keras_transformer.models.imported.mbart import LANGUAGES_25, LANGUAGES_50
from keras_transformer.models.imported.names import weights_of

from . import m2m
from .m2m import SHAPE
from .marian_files import safetensors

POSITIONS = 120
SPECIAL = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
FIFTY, ONE_TARGET, UNSCALED, BART = KINDS = ("mbart50", "mbart25", "unscaled", "bart")
CODES = {FIFTY: LANGUAGES_50, ONE_TARGET: LANGUAGES_25, UNSCALED: LANGUAGES_50, BART: LANGUAGES_25}
PAIR = ("en_XX", "ro_RO")
LOGIT_OF_END = {FIFTY: 4.0, ONE_TARGET: 4.0, UNSCALED: 1.6, BART: 2.6}  # more than without, so that outputs end


def spm() -> bytes:
    """A SentencePiece model as mBART's is: unigram pieces."""
    return m2m.spm("unigram", 260)


def text_pieces() -> list[str]:
    return m2m.text_pieces(spm())


def all_pieces(kind: str) -> list[str]:
    return [*text_pieces(), *CODES[kind], MASK]


def config_of(kind: str) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=len(all_pieces(kind)),
        norm="post" if kind == BART else "pre",
        positions="learned",
        max_positions=POSITIONS,
        embedding_norm=True,
        **SHAPE,
    )


def arrays_of_mbart(kind: str, strength: float = 1.2) -> dict[str, np.ndarray]:
    """Random weights by the names of Hugging Face, that matter, those of no position too."""
    config, chance, arrays = config_of(kind), np.random.default_rng(1), {}
    is_scaled = kind in (FIFTY, ONE_TARGET)
    for weight in weights_of(config):
        array = chance.normal(size=weight.huggingface_shape(config)).astype(np.float32)
        if "norm" in weight.ours:
            array = np.float32(weight.ours.endswith("gamma")) + 0.2 * array
        elif array.ndim == 2:
            array *= (strength if weight.is_kernel else 1.0) * array.shape[1] ** -0.5
            if "positions" in weight.ours:
                array *= 3 if is_scaled else 1
        else:
            array *= 0.1
        arrays[weight.huggingface] = array
    arrays["final_logits_bias"] = arrays["final_logits_bias"].reshape(1, -1)
    arrays["final_logits_bias"][0, FAIRSEQ.index("</s>")] += LOGIT_OF_END[kind]
    return arrays


def mbart_folder(path: pathlib.Path, kind: str = FIFTY, strength: float = 1.2, **settings: Any) -> pathlib.Path:
    """A new folder at `path` with a model; `settings` are of config.json."""
    pieces = all_pieces(kind)
    start = {"decoder_start_token_id": pieces.index(PAIR[1])} if kind == ONE_TARGET else {}
    path.mkdir()
    (path / "model.safetensors").write_bytes(safetensors(arrays_of_mbart(kind, strength)))
    (path / "sentencepiece.bpe.model").write_bytes(spm())
    written: dict[str, dict] = {
        "config.json": {
            "model_type": "bart" if kind == BART else "mbart",
            "architectures": ["BartForConditionalGeneration" if kind == BART else "MBartForConditionalGeneration"],
            **{f"{side}_layers": SHAPE[f"{side}_layers"] for side in ("encoder", "decoder")},
            **{f"{side}_ffn_dim": SHAPE["d_ff"] for side in ("encoder", "decoder")},
            **{f"{side}_attention_heads": SHAPE["num_heads"] for side in ("encoder", "decoder")},
            "d_model": SHAPE["d_model"],
            "vocab_size": len(pieces),
            "max_position_embeddings": POSITIONS,
            "activation_function": "gelu",
            "scale_embedding": kind in (FIFTY, ONE_TARGET),
            "is_encoder_decoder": True,
            "forced_eos_token_id": 2,
            **SPECIAL,
            **start,
            **settings,
        },
        "generation_config.json": {"num_beams": 5, "max_length": 200, **SPECIAL, **start},
        "special_tokens_map.json": {"additional_special_tokens": CODES[kind]},
        "tokenizer_config.json": {
            "tokenizer_class": "MBart50Tokenizer" if CODES[kind] is LANGUAGES_50 else "MBartTokenizer"
        },
    }
    for name, values in written.items():
        (path / name).write_text(json.dumps(values), encoding="utf-8")
    return path
