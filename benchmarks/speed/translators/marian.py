"""Hugging Face's `MarianMTModel.generate` in PyTorch, with the same weights.

Marian's layers are the paper's with biases in attention, which are 0 here. The sinusoids are interleaved, as ours are.
"""

import os
import pathlib
import sys
from collections.abc import Mapping

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")

import numpy as np
import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel

from benchmarks.speed.translators import Setting, in_batches
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.search.options import SearchOptions

POSITIONS = 1200
ATTENTIONS = {"self_attn": "self_attention", "encoder_attn": "memory_attention"}
PROJECTIONS = {"q_proj": "query", "k_proj": "key", "v_proj": "value", "out_proj": "output"}


def settings(cores: int) -> list[Setting]:
    return [{"batch_size": 64, "threads": 1}, *({"batch_size": size, "threads": cores} for size in (32, 64))]


class Marian:
    def __init__(self, folder: pathlib.Path):
        run = folder / "run"
        self.tokenizer = sentencepiece.SentencePieceProcessor(model_file=str(run / "tokenizer.model"))
        with np.load(folder / "weights.npz") as weights:
            self.model = marian_model(TransformerConfig.load(run / "model.json"), weights)

    def translate(self, lines: list[str], beam_size: int, forced: int | None, setting: Setting) -> list[str]:
        torch.set_num_threads(setting["threads"])
        length = {"max_new_tokens": forced, "min_new_tokens": forced} if forced else {"max_new_tokens": 128}
        return in_batches(lines, setting["batch_size"], lambda batch: self._translate(batch, beam_size, length))

    def _translate(self, lines: list[str], beam_size: int, length: dict[str, int]) -> list[str]:
        rows = [[*ids, EOS] for ids in self.tokenizer.encode(lines)]
        ids = torch.full((len(rows), max(map(len, rows))), PAD)
        for row, tokens in zip(ids, rows, strict=True):
            row[: len(tokens)] = torch.tensor(tokens)
        with torch.inference_mode():
            outputs = self.model.generate(
                input_ids=ids,
                attention_mask=(ids != PAD).long(),
                num_beams=beam_size,
                do_sample=False,
                length_penalty=SearchOptions.length_penalty,
                **length,
            )
        return self.tokenizer.decode([[int(i) for i in row if i not in (PAD, BOS, EOS)] for row in outputs])


def marian_model(config: TransformerConfig, weights: Mapping[str, np.ndarray]) -> MarianMTModel:
    """The model in inference mode, with `weights` by our paths."""
    shape = {"attention_heads": config.num_heads, "ffn_dim": config.d_ff}
    model = MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            max_position_embeddings=POSITIONS,
            encoder_layers=config.encoder_layers,
            decoder_layers=config.decoder_layers,
            **{f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in shape.items()},
            activation_function="relu",
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
        )
    ).eval()
    state = model.state_dict()
    with torch.no_grad():
        for name, tensor in state.items():
            tensor.copy_(torch.from_numpy(our_weight(name, tuple(tensor.shape), weights)))
        for module in model.modules():
            if isinstance(module, torch.nn.LayerNorm):
                module.eps = config.norm_epsilon
    return model


def our_weight(name: str, shape: tuple[int, ...], weights: Mapping[str, np.ndarray]) -> np.ndarray:
    """Our weight for the name of Marian's, in Marian's layout: matrices are (outputs, inputs)."""
    *scope, layer, kind = ["", *name.split(".")]
    if layer == "embed_positions":
        return sinusoids(*shape)
    if "layers" not in scope:
        embedded = layer in ("shared", "embed_tokens", "lm_head")
        return weights["embedding/matrix"] if embedded else np.zeros(shape, np.float32)
    side, number = scope[scope.index("layers") - 1], int(scope[scope.index("layers") + 1])
    block = f"{side}_block_{number + 1}"
    if layer in PROJECTIONS:
        if kind == "bias":
            return np.zeros(shape, np.float32)
        return weights[f"{block}/{ATTENTIONS[scope[-1]]}/{PROJECTIONS[layer]}/kernel"].T
    if layer in ("fc1", "fc2"):
        weight = weights[f"{block}/feed_forward/{'inner' if layer == 'fc1' else 'outer'}/{keras_name(kind)}"]
        return weight.T if kind == "weight" else weight
    sublayer = {"final_layer_norm": "feed_forward"} | {f"{key}_layer_norm": name for key, name in ATTENTIONS.items()}
    return weights[f"{block}/{sublayer[layer]}_residual/norm/{'gamma' if kind == 'weight' else 'beta'}"]


def keras_name(kind: str) -> str:
    return "kernel" if kind == "weight" else "bias"


def sinusoids(positions: int, d_model: int) -> np.ndarray:
    angles = np.arange(positions)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    return np.stack([np.sin(angles), np.cos(angles)], axis=-1).reshape(positions, d_model).astype(np.float32)


def load(folder: pathlib.Path) -> Marian:
    return Marian(folder)


if __name__ == "__main__":
    from benchmarks.speed.translators.as_program import translate_stdin

    translate_stdin(load(pathlib.Path(sys.argv[1])), settings(torch.get_num_threads())[-1], sys.argv[2:])
