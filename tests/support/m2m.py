"""Small folders of Hugging Face's M2M100 with random weights, as M2M-100 and NLLB-200 are: without its packages."""

import base64
import functools
import json
import pathlib
from typing import Any

import numpy as np
import sentencepiece
from sentencepiece import sentencepiece_model_pb2

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.fairseq import FAIRSEQ, LANGUAGE_CODES, MASK
from keras_transformer.models.imported.names import weights_of

from .marian import lines
from .marian_files import safetensors
from .runs import SENTENCES
from .sentencepiece_models import trained_model

SHAPE = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 32, "d_ff": 48, "num_heads": 4}
SCRIPTS = ["日本語のテキストです", "Привет, мир! Как дела?", "مرحبا بالعالم", "It's 12.5 °C — naïve café"]
NLLB_CODES = ["ace_Arab", "ace_Latn", "deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant", "zul_Latn"]
STRONG = 5.0  # weights of sublayers beside which the last token counts little, so that outputs are lively
SPECIAL = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
LOGIT_OF_END = {"m2m": 4.0, "nllb": 2.0, "legacy": 2.0}  # more than without, so that translations end
UNNAMED = 3  # rows of the embedding that no piece has
M2M, NLLB, LEGACY = KINDS = ("m2m", "nllb", "legacy")


@functools.cache
def spm(model_type: str = "bpe", vocab_size: int = 300) -> bytes:
    """A SentencePiece model with the ids that fairseq's have: <unk> 0, <s> 1, </s> 2."""
    texts = [*SENTENCES, *lines("test.en"), *lines("test.de"), *SCRIPTS] * 3
    how = {"model_type": model_type, "vocab_size": vocab_size, "hard_vocab_limit": model_type == "bpe"}
    return trained_model(texts, **how)


def text_pieces(model: bytes | None = None) -> list[str]:
    """The pieces of a text by id: fairseq's order."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model or spm())
    return [*FAIRSEQ, *processor.id_to_piece(list(range(3, len(processor))))]


def added_pieces(kind: str) -> list[str]:
    if kind == M2M:
        return [f"__{code}__" for code in LANGUAGE_CODES["m2m100"].split()]
    return [*NLLB_CODES, MASK]


def arrays_of_m2m(rows: int, kind: str = M2M, strength: float = 1.2) -> dict[str, np.ndarray]:
    """Random weights by the names of Hugging Face, that matter."""
    config = TransformerConfig(vocab_size=rows, norm="pre", **SHAPE)
    chance, arrays = np.random.default_rng(1), {}
    for weight in weights_of(config):
        if weight.huggingface == "final_logits_bias":
            continue
        array = chance.normal(size=weight.shape(config)).astype(np.float32)
        if "norm" in weight.ours:
            array = np.float32(weight.ours.endswith("gamma")) + 0.2 * array
        elif array.ndim == 2:
            array *= (strength if weight.is_kernel else 1.0) * array.shape[1] ** -0.5
        else:
            array *= 0.1
        arrays[weight.huggingface] = array.T if weight.is_kernel else array
    end = arrays["model.shared.weight"][FAIRSEQ.index("</s>")]
    arrays["model.decoder.layer_norm.bias"] += LOGIT_OF_END[kind] * end / (end @ end)
    return arrays


def m2m_folder(path: pathlib.Path, kind: str = M2M, strength: float = 1.2, **settings: Any) -> pathlib.Path:
    """A new folder at `path` with a model; `settings` are of config.json."""
    text, added = text_pieces(), added_pieces(kind)
    rows = len(text) + len(added) + UNNAMED
    path.mkdir()
    (path / "model.safetensors").write_bytes(safetensors(arrays_of_m2m(rows, kind, strength)))
    (path / "sentencepiece.bpe.model").write_bytes(spm())
    written: dict[str, dict] = {
        "config.json": {
            "model_type": "m2m_100",
            "architectures": ["M2M100ForConditionalGeneration"],
            **{f"{side}_{name}": SHAPE[f"{side}_{name}"] for side in ("encoder", "decoder") for name in ("layers",)},
            **{f"{side}_ffn_dim": SHAPE["d_ff"] for side in ("encoder", "decoder")},
            **{f"{side}_attention_heads": SHAPE["num_heads"] for side in ("encoder", "decoder")},
            "d_model": SHAPE["d_model"],
            "vocab_size": rows,
            "max_position_embeddings": 64,
            "activation_function": "relu",
            "scale_embedding": True,
            "is_encoder_decoder": True,
            **SPECIAL,
            **settings,
        },
        "generation_config.json": {"num_beams": 5, "max_length": 200, **SPECIAL},
        "special_tokens_map.json": {"additional_special_tokens": [piece for piece in added if piece != MASK]},
        "tokenizer_config.json": {"tokenizer_class": "M2M100Tokenizer" if kind == M2M else "NllbTokenizer"},
    }
    if kind == M2M:
        written["vocab.json"] = {piece: number for number, piece in enumerate(text)}
    else:
        written["tokenizer_config.json"]["legacy_behaviour"] = kind == LEGACY
    for name, values in written.items():
        (path / name).write_text(json.dumps(values), encoding="utf-8")
    return path


def tokenizer_json(**changes: Any) -> dict[str, Any]:
    """The tokenizer.json of NLLB-200 as transformers 4 converts one; `changes` are of its parts, or of its model."""
    text, added = text_pieces(), added_pieces(NLLB)
    proto = sentencepiece_model_pb2.ModelProto.FromString(spm())
    charsmap = base64.b64encode(proto.normalizer_spec.precompiled_charsmap).decode()
    pairs = [(piece[:end], piece[end:]) for piece in text[4:] for end in range(1, len(piece))]
    merges = [" ".join(pair) for pair in pairs if {*pair} <= {*text[4:]}]
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    rules = {"type": "Precompiled", "precompiled_charsmap": charsmap}
    parts = {
        "added_tokens": [
            {"id": number, "content": piece, "special": True}
            for number, piece in [*enumerate(FAIRSEQ), *enumerate(added, len(text))]
        ],
        "normalizer": {"type": "Sequence", "normalizers": [rules, spaces]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": "<unk>",
            "fuse_unk": True,
            "vocab": {piece: number for number, piece in enumerate([*text, *added])},
            "merges": merges,
        },
    }
    of_model = {name: value for name, value in changes.items() if name not in parts}
    return parts | {name: changes[name] for name in parts if name in changes} | {"model": parts["model"] | of_model}


def changed(folder: pathlib.Path, name: str, **values: Any) -> pathlib.Path:
    """Give a file of JSON in a folder other values. Returns the folder."""
    path = folder / name
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    path.write_text(json.dumps(old | values), encoding="utf-8")
    return folder
