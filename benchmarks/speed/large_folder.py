"""`python -m benchmarks.speed.large_folder FOLDER`: Hugging Face's M2M100 or T5 with random weights, of any size.

With `--kind madlad` it has the widths of MADLAD-400 with 3 billion parameters, but 3 layers for its 32 on each side.
Its arrays are written one at a time. `python -m benchmarks.speed.large_import FOLDER` imports it.
"""

import enum
import io
import json
import math
import pathlib
import struct
from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
import sentencepiece
import typer

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.fairseq import FAIRSEQ, LANGUAGE_CODES, SPM
from keras_transformer.models.imported.names import D_MODEL, PIECES, Weight, weights_of
from keras_transformer.models.imported.t5 import SPM as T5_SPM
from keras_transformer.models.imported.t5_names import LM_HEAD, SHARED, weights_of_blocks

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}


class Shape(NamedTuple):
    """The size of a model: by default that of M2M-100 with 418 million parameters."""

    layers: int = 12  # of the encoder, and of the decoder
    d_model: int = 1024
    d_ff: int = 4096
    heads: int = 16
    pieces: int = 128_112
    key_dim: int | None = None  # None: d_model / heads


MADLAD = Shape(layers=3, d_model=1024, d_ff=8192, heads=16, pieces=256_000, key_dim=128)


def write_large_folder(folder: pathlib.Path, shape: Shape) -> None:
    """Write a new folder, which `keras-transformer import` takes. Its pieces of text are letters."""
    folder.mkdir(parents=True)
    spm = spm_of_letters()
    processor = sentencepiece.SentencePieceProcessor(model_proto=spm)
    pieces = [*FAIRSEQ, *processor.id_to_piece(list(range(3, len(processor))))]
    (folder / SPM).write_bytes(spm)
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("layers", shape.layers), ("ffn_dim", shape.d_ff), ("attention_heads", shape.heads))
    }
    settings = {
        "model_type": "m2m_100",
        "architectures": ["M2M100ForConditionalGeneration"],
        **sides,
        "d_model": shape.d_model,
        "vocab_size": shape.pieces,
        "max_position_embeddings": 1024,
        "activation_function": "relu",
        "scale_embedding": True,
        "is_encoder_decoder": True,
        **SPECIAL,
    }
    languages = [f"__{code}__" for code in LANGUAGE_CODES["m2m100"].split()]
    files = {
        "config.json": settings,
        "generation_config.json": {"num_beams": 5, "max_length": 200, **SPECIAL},
        "special_tokens_map.json": {
            "additional_special_tokens": languages,
            **dict(zip(("bos_token", "pad_token", "eos_token", "unk_token"), FAIRSEQ, strict=True)),
        },
        "tokenizer_config.json": {"tokenizer_class": "M2M100Tokenizer"},
        "vocab.json": {piece: number for number, piece in enumerate(pieces)},
    }
    write_files(folder, files)
    config = TransformerConfig(**sizes_of(shape), norm="pre")
    weights = [weight for weight in weights_of(config) if weight.huggingface != "final_logits_bias"]
    write_weights(folder / "model.safetensors", config, weights)


def write_large_madlad(folder: pathlib.Path, shape: Shape = MADLAD) -> None:
    """Write a new folder of T5 1.1 with the tag of one language, <2de>."""
    folder.mkdir(parents=True)
    (folder / T5_SPM).write_bytes(spm_of_letters(user_defined_symbols=["<2de>"]))
    settings = {
        "model_type": "t5",
        "architectures": ["T5ForConditionalGeneration"],
        "num_layers": shape.layers,
        "num_heads": shape.heads,
        "d_model": shape.d_model,
        "d_ff": shape.d_ff,
        "d_kv": shape.key_dim,
        "vocab_size": shape.pieces,
        "feed_forward_proj": "gated-gelu",
        "tie_word_embeddings": False,
        "pad_token_id": 1,
        "eos_token_id": 2,
        "decoder_start_token_id": 0,
    }
    write_files(folder, {"config.json": settings, "tokenizer_config.json": {"tokenizer_class": "T5Tokenizer"}})
    config = TransformerConfig(**sizes_of(shape), activation="geglu_tanh", norm="pre", positions="relative")
    tables = [Weight(name, "", name, (PIECES, D_MODEL)) for name in (SHARED, LM_HEAD)]
    write_weights(folder / "model.safetensors", config, [*tables, *weights_of_blocks(config)])


def sizes_of(shape: Shape) -> dict[str, Any]:
    """Return the fields of TransformerConfig that a shape has."""
    layers = {"encoder_layers": shape.layers, "decoder_layers": shape.layers, "num_heads": shape.heads}
    widths = {"d_model": shape.d_model, "d_ff": shape.d_ff, "key_dim": shape.key_dim, "value_dim": shape.key_dim}
    return {**layers, **widths, "vocab_size": shape.pieces}


def write_files(folder: pathlib.Path, files: dict[str, dict]) -> None:
    """Write files of JSON."""
    for name, values in files.items():
        (folder / name).write_text(json.dumps(values), encoding="utf-8")


def spm_of_letters(**more: Any) -> bytes:
    """Return a SentencePiece model whose pieces are single letters; <unk>, <s> and </s> have the ids 0, 1 and 2."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(LETTERS)] * 3),
        model_writer=model,
        model_type="char",
        vocab_size=len(LETTERS) + 4 + len(more.get("user_defined_symbols", ())),
        minloglevel=2,
        **more,
    )
    return model.getvalue()


def write_weights(path: pathlib.Path, config: TransformerConfig, weights: Sequence[Weight]) -> None:
    """Write a model.safetensors of float32: kernels whose rows keep the size of what they multiply, no biases."""
    header, end = {}, 0
    for weight in weights:
        sizes = weight.shape(config)
        begin, end = end, end + 4 * math.prod(sizes)
        header[weight.huggingface] = {
            "dtype": "F32",
            "shape": sizes[::-1] if weight.is_kernel else sizes,
            "data_offsets": [begin, end],
        }
    text = json.dumps(header).encode()
    random = np.random.default_rng(1)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for weight in weights:
            sizes = weight.shape(config)
            if len(sizes) == 2:
                values = random.standard_normal(sizes[::-1] if weight.is_kernel else sizes, np.float32)
                values *= np.float32(config.d_model**-0.5)
            else:
                values = np.full(sizes, weight.ours.endswith(("gamma", "scale")), np.float32)
            values.tofile(file)


class Kind(enum.StrEnum):
    m2m = "m2m"
    madlad = "madlad"


def main(
    folder: Annotated[pathlib.Path, typer.Argument(help="A folder that does not exist.")],
    kind: Annotated[Kind, typer.Option(help="M2M-100, or MADLAD-400, a T5.")] = Kind.m2m,
    layers: Annotated[int | None, typer.Option(min=1, help="Of the encoder, and of the decoder.")] = None,
    d_model: Annotated[int | None, typer.Option(min=16, help="The width; a multiple of 16.")] = None,
    pieces: Annotated[int | None, typer.Option(min=200, help="Of the vocabulary.")] = None,
) -> None:
    shape = MADLAD if kind == Kind.madlad else Shape()
    if d_model:  # the network and the heads keep their proportions
        key_dim = shape.key_dim and shape.key_dim * d_model // shape.d_model
        shape = shape._replace(d_model=d_model, d_ff=shape.d_ff * d_model // shape.d_model, key_dim=key_dim)
    shape = shape._replace(layers=layers or shape.layers, pieces=pieces or shape.pieces)
    (write_large_madlad if kind == Kind.madlad else write_large_folder)(folder, shape)


if __name__ == "__main__":
    typer.run(main)
