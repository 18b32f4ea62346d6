"""Small folders of Hugging Face's T5, T5 1.1, mT5 and MADLAD-400 with random weights, made without its packages."""

import functools
import json
import pathlib
from typing import Any

import numpy as np
import sentencepiece

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.names import D_MODEL
from keras_transformer.models.imported.t5 import spm_of_bytes
from keras_transformer.models.imported.t5_names import LM_HEAD, SHARED, weights_of_blocks

from .m2m import SCRIPTS
from .marian import lines
from .marian_files import safetensors
from .runs import SENTENCES
from .sentencepiece_models import trained_model

SHAPE = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 48, "num_heads": 4, "key_dim": 8}
T5, V11, MT5, MADLAD, BYT5 = KINDS = ("t5", "v1.1", "mt5", "madlad", "byt5")
CODES = ("de", "fr", "zh", "ru_Latn", "kjg")  # of MADLAD-400
EOS = 1  # of T5
UNNAMED = 5  # rows of the embedding that no piece has
EXTRA = {T5: 100, V11: 100, MT5: 0, MADLAD: 0, BYT5: 125}  # pieces that the tokenizer adds
TASKS = {
    "summarization": {"prefix": "summarize: ", "num_beams": 4},
    "translation_en_to_de": {"prefix": "translate English to German: ", "num_beams": 4},
    "translation_en_to_fr": {"prefix": "translate English to French: ", "num_beams": 4},
}
STRONG = 5.0  # weights of sublayers beside which the last token counts little, so that outputs are lively
END = {
    T5: 4.0,
    V11: 45.0,
    MT5: 65.0,
    MADLAD: 65.0,
    BYT5: 65.0,
}  # makes the logit of the end larger, so that translations end
CONSTANT = 10.0  # of the first channel of all states, which only the logit of the end reads


@functools.cache
def spm(kind: str) -> bytes:
    """A SentencePiece model with the ids and special pieces of such a model."""
    if kind == BYT5:
        return spm_of_bytes()
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    more: dict[str, Any] = {}
    if kind == MADLAD:
        ids = {"unk_id": 0, "bos_id": 1, "eos_id": 2, "pad_id": -1}
        more = {"user_defined_symbols": [f"<2{code}>" for code in (*CODES, "translate")]}
    if kind == MT5:
        more = {"user_defined_symbols": [f"\u2581<extra_id_{number}>" for number in reversed(range(4))]}
    has_bytes = kind in (MT5, MADLAD)
    more |= {"vocab_size": 620 if has_bytes else 360, "byte_fallback": has_bytes, "hard_vocab_limit": False}
    texts = [*SENTENCES, *lines("test.en"), *lines("test.de"), *SCRIPTS, *task_words()] * 3
    return trained_model(texts, model_type="unigram", **ids, **more)


def task_words() -> list[str]:
    return [task["prefix"] for task in TASKS.values()]


def pieces_of(kind: str) -> list[str]:
    """The pieces of the tokenizer by id."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm(kind))
    extra = [f"<extra_id_{number}>" for number in reversed(range(EXTRA[kind]))]
    extra = extra[::-1] if kind == BYT5 else extra
    return [*processor.id_to_piece(list(range(len(processor)))), *extra]


def config_of(rows: int, kind: str) -> TransformerConfig:
    return TransformerConfig(
        vocab_size=rows,
        **SHAPE,
        activation="relu" if kind == T5 else "geglu_tanh",
        feed_forward_bias=kind != T5,
        norm="pre",
        norm_kind="rms",
        positions="relative",
    )


def arrays_of_t5(rows: int, kind: str, strength: float = 1.2) -> dict[str, np.ndarray]:
    """Random weights by the names of Hugging Face, that matter."""
    config, chance = config_of(rows, kind), np.random.default_rng(1)
    arrays: dict[str, np.ndarray] = {SHARED: chance.normal(size=(rows, config.d_model)).astype("f4")}
    for weight in weights_of_blocks(config):
        array = chance.normal(size=weight.shape(config)).astype("f4")
        if len(weight.axes) == 1:
            array = 1 + 0.2 * array
        elif weight.is_kernel:
            array = array.T * np.float32(strength * array.shape[0] ** -0.5)
            if weight.axes[1] == D_MODEL:
                array[0] = 0
        arrays[weight.huggingface] = array
    arrays[SHARED][:, 0], end = CONSTANT, END[kind] * (strength / STRONG) ** 2
    if kind == T5:
        arrays[SHARED][EOS, 0] += end * config.d_model**0.5
        return arrays
    arrays[LM_HEAD] = chance.normal(size=(rows, config.d_model)).astype("f4") * 0.3
    arrays[LM_HEAD][:, 0] = 0
    arrays[LM_HEAD][2 if kind == MADLAD else EOS, 0] = end
    return arrays


def t5_folder(path: pathlib.Path, kind: str = V11, strength: float = 1.2, **settings: Any) -> pathlib.Path:
    """A new folder at `path` with a model; `settings` are of config.json."""
    rows = len(pieces_of(kind)) + UNNAMED
    path.mkdir()
    (path / "model.safetensors").write_bytes(safetensors(arrays_of_t5(rows, kind, strength)))
    if kind != BYT5:
        (path / "spiece.model").write_bytes(spm(kind))
    special = {"pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    if kind == MADLAD:
        special = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}
    written: dict[str, dict] = {
        "config.json": {
            "model_type": "mt5" if kind == MT5 else "t5",
            "architectures": ["MT5ForConditionalGeneration" if kind == MT5 else "T5ForConditionalGeneration"],
            "num_layers": SHAPE["encoder_layers"],
            "num_decoder_layers": SHAPE["decoder_layers"],
            "num_heads": SHAPE["num_heads"],
            "d_model": SHAPE["d_model"],
            "d_ff": SHAPE["d_ff"],
            "d_kv": SHAPE["key_dim"],
            "vocab_size": rows,
            "feed_forward_proj": "relu" if kind == T5 else "gated-gelu",
            "tie_word_embeddings": kind == T5,
            "relative_attention_num_buckets": 32,
            "is_encoder_decoder": True,
            **({"task_specific_params": TASKS} if kind == T5 else {}),
            **special,
            **settings,
        },
        "generation_config.json": {"num_beams": 3, **special},
        "tokenizer_config.json": {
            "tokenizer_class": "ByT5Tokenizer" if kind == BYT5 else "T5Tokenizer",
            "extra_ids": EXTRA[kind],
        },
    }
    if kind == MADLAD:
        tokens = {"pad_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
        written["tokenizer_config.json"] |= tokens
    for name, values in written.items():
        (path / name).write_text(json.dumps(values), encoding="utf-8")
    return path
