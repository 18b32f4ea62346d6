"""A folder of Hugging Face's MarianMTModel with random weights, and the model; needs PyTorch and transformers."""

import json
import pathlib
from typing import Any

import numpy as np

from tests.support.marian import MARIAN, marian_pieces

SHAPE = {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64,
}  # fmt: skip
EOS_BIAS = 6.5  # so that translations end


def marian_mt(folder: pathlib.Path, target_pieces: list[str] | None = None, dtype: str = "float32", **settings: Any):
    """Write a folder with a model, and return the model: its settings are those of MarianConfig.

    target_pieces: of a target vocabulary of its own. dtype: of the files.
    """
    import torch
    from transformers import MarianConfig, MarianMTModel

    source = [*marian_pieces(), "<pad>"]
    target = [*target_pieces, "<pad>"] if target_pieces else source
    pad = len(target) - 1
    config = MarianConfig(
        **{
            "vocab_size": len(source),
            "decoder_vocab_size": len(target),
            "pad_token_id": pad,
            "eos_token_id": 0,
            "bos_token_id": 0,
            "decoder_start_token_id": pad,
            "forced_eos_token_id": 0,
            "scale_embedding": True,
            "activation_function": "swish",
            "num_beams": 4,
            **SHAPE,
            **settings,
        }
    )
    torch.manual_seed(1)
    model = MarianMTModel(config).eval()
    randomise(model)
    model.to(getattr(torch, dtype))
    model.save_pretrained(folder)
    if dtype != "float32":  # `float()` would keep sinusoids that were rounded
        model = MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
    names = {"vocab.json": source} | ({"target_vocab.json": target} if target_pieces else {})
    for name, pieces in names.items():
        vocabulary = {piece: number for number, piece in enumerate(pieces)}
        (folder / name).write_text(json.dumps(vocabulary), encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes((MARIAN / name).read_bytes())
    return model


def randomise(model) -> None:
    """Give all weights values that matter; the embedding of <pad> is 0, as in converted models."""
    import torch

    config = model.config
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "embed_positions" in name:
                continue
            if any(part in name for part in ("shared", "embed_tokens", "lm_head")):
                weight.normal_(0, 1.6 * config.d_model**-0.5)
                weight[-1] = 0
            elif "layer_norm" in name:
                weight.copy_(float(name.endswith("weight")) + 0.2 * torch.randn(weight.shape))
            else:
                weight.normal_(0, 1.2 * weight.shape[1] ** -0.5 if weight.ndim == 2 else 0.1)
        model.final_logits_bias.normal_(0, 0.7)
        model.final_logits_bias[0, -1] = 0
        model.final_logits_bias[0, 0] = EOS_BIAS


def random_ids(number: int, pieces: int, seed: int) -> list[list[int]]:
    """Rows of ids of different lengths that end in </s>, which is 0; the last piece is <pad>."""
    chance = np.random.default_rng(seed)
    return [[*chance.integers(2, pieces - 1, length).tolist(), 0] for length in chance.integers(3, 20, number)]


def padded(rows: list[list[int]], pad: int) -> np.ndarray:
    longest = max(map(len, rows))
    return np.array([row + [pad] * (longest - len(row)) for row in rows], np.int32)
