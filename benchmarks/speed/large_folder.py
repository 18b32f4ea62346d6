"""`python -m benchmarks.speed.large_folder FOLDER`: Hugging Face's M2M100 with random weights, of any size.

Its arrays are written one at a time. `python -m benchmarks.speed.large_import FOLDER` imports it.
"""

import io
import json
import math
import pathlib
import struct
from typing import Annotated, NamedTuple

import numpy as np
import sentencepiece
import typer

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.fairseq import FAIRSEQ, LANGUAGE_CODES, SPM
from keras_transformer.models.imported.names import weights_of

LETTERS = "abcdefghijklmnopqrstuvwxyz"
SPECIAL = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}


class Shape(NamedTuple):
    """The size of a model: by default that of M2M-100 with 418 million parameters."""

    layers: int = 12  # of the encoder, and of the decoder
    d_model: int = 1024
    d_ff: int = 4096
    heads: int = 16
    pieces: int = 128_112


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
    for name, values in files.items():
        (folder / name).write_text(json.dumps(values), encoding="utf-8")
    write_weights(folder / "model.safetensors", shape)


def spm_of_letters() -> bytes:
    """Return a SentencePiece model whose pieces are single letters, with fairseq's first ids."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(LETTERS)] * 3),
        model_writer=model,
        model_type="char",
        vocab_size=len(LETTERS) + 4,
        minloglevel=2,
    )
    return model.getvalue()


def write_weights(path: pathlib.Path, shape: Shape) -> None:
    """Write a model.safetensors of float32: kernels whose rows keep the size of what they multiply, no biases."""
    config = TransformerConfig(
        vocab_size=shape.pieces,
        encoder_layers=shape.layers,
        decoder_layers=shape.layers,
        d_model=shape.d_model,
        d_ff=shape.d_ff,
        num_heads=shape.heads,
        norm="pre",
    )
    weights = [weight for weight in weights_of(config) if weight.huggingface != "final_logits_bias"]
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
                values *= np.float32(shape.d_model**-0.5)
            else:
                values = np.full(sizes, weight.ours.endswith("gamma"), np.float32)
            values.tofile(file)


def main(
    folder: Annotated[pathlib.Path, typer.Argument(help="A folder that does not exist.")],
    layers: Annotated[int, typer.Option(min=1, help="Of the encoder, and of the decoder.")] = Shape().layers,
    d_model: Annotated[int, typer.Option(min=16, help="The width; a multiple of 16.")] = Shape().d_model,
    pieces: Annotated[int, typer.Option(min=200, help="Of the vocabulary.")] = Shape().pieces,
) -> None:
    write_large_folder(folder, Shape(layers, d_model, 4 * d_model, pieces=pieces))


if __name__ == "__main__":
    typer.run(main)
