"""Small models that Marian itself trained, their tokenizer, and what Marian makes of 60 lines: tests/data/marian."""

import json
import pathlib
import re
from typing import Any

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import EOS
from keras_transformer.model import Transformer
from keras_transformer.models.imported.marian_yaml import read_vocabulary
from keras_transformer.models.imported.names import weights_of
from keras_transformer.pieces.pair_tokenizer import SPECIAL_PIECES, PairTokenizer, pair_model_bytes
from keras_transformer.runs.saved_run import save_run

from .marian_files import safetensors
from .places import ROOT
from .runs import RUN_MODEL, decisive

MARIAN = ROOT / "tests/data/marian"
TAGS = (">>deu<<", ">>nld<<")  # which a multilingual model has
SELF_ATTENTION, SSRU = "self-attention", "rnn"  # the names of the models


def lines(name: str) -> list[str]:
    """The lines of a text of the fixture."""
    return (MARIAN / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def marian_pieces() -> list[str]:
    """The pieces of vocab.yml in Marian's order: </s>, <unk>, and the rest."""
    return read_vocabulary(MARIAN / "vocab.yml")


def pair_bytes(tags: tuple[str, ...] = ()) -> bytes:
    """The file of the fixture's PairTokenizer, with `tags` among its pieces."""
    source, target = ((MARIAN / f"{side}.spm").read_bytes() for side in ("source", "target"))
    special = list(SPECIAL_PIECES.values())
    return pair_model_bytes(source, target, [*special, *(p for p in marian_pieces() if p not in special), *tags])


def pair_run(folder: pathlib.Path) -> pathlib.Path:
    """Write a run folder of random weights whose tokenizer is a pair with TAGS. Returns the folder."""
    tokenizer = pair_tokenizer(TAGS)
    transformer = Transformer(RUN_MODEL.replace(vocab_size=tokenizer.vocab_size))
    lines_to_check = [*lines("test.en")[:8], *(f"{tag} two hundred" for tag in TAGS)]
    save_run(decisive(transformer, first_piece=EOS + 1), tokenizer, folder, lines_to_check)
    return folder


def pair_tokenizer(tags: tuple[str, ...] = ()) -> PairTokenizer:
    return PairTokenizer.of_bytes(pair_bytes(tags))


def scores_by_marian(name: str) -> np.ndarray:
    """The log-probability of each pair of test.en and test.de."""
    return np.array(list(map(float, lines(f"{name}.scores.txt"))))


def best_by_marian(name: str) -> list[tuple[str, float]]:
    """The best translation of each line of test.en, with its score: beam 6, log-probability per token."""
    best = {}
    for line in lines(f"{name}.beam6.txt"):
        number, pieces, _, score = line.split(" ||| ")
        best.setdefault(int(number), (text_of(pieces), float(score)))
    return [best[number] for number in range(len(best))]


def greedy_by_marian(name: str) -> list[str]:
    """The translation of each line of test.en by greedy search."""
    return list(map(text_of, lines(f"{name}.greedy.txt")))


def text_of(pieces: str) -> str:
    """The text of pieces that stand between spaces."""
    tokenizer = pair_tokenizer()
    return tokenizer.decode([tokenizer.ids[piece] for piece in pieces.split()])


def marian_folder(path: pathlib.Path, name: str = SELF_ATTENTION) -> pathlib.Path:
    """A new folder at `path` with one of the models, as OPUS-MT distributes them."""
    path.mkdir()
    for file in (f"{name}.npz", "source.spm", "target.spm", "vocab.yml"):
        (path / file).write_bytes((MARIAN / file).read_bytes())
    (path / "decoder.yml").write_bytes((MARIAN / f"{name}.npz.decoder.yml").read_bytes())
    return path


def changed_options(path: pathlib.Path, **options: str) -> None:
    """Give the model in a folder other options; `transformer_heads="3"` writes transformer-heads: 3."""
    file = path / f"{SELF_ATTENTION}.npz"
    arrays = dict(np.load(file))
    text = arrays["special:model.yml"].tobytes().decode("utf-8").rstrip("\0\n") + "\n"
    for name, value in options.items():
        key = name.replace("_", "-")
        text = re.sub(rf"(?m)^{key}:.*\n(  .*\n)*", "", text) + (f"{key}: {value}\n" if value else "")
    arrays["special:model.yml"] = np.frombuffer(text.encode("utf-8"), np.int8)
    np.savez(file, **arrays)


def changed_arrays(path: pathlib.Path, **arrays: np.ndarray | None) -> None:
    """Give the model in a folder other arrays, or take some away."""
    file = path / f"{SELF_ATTENTION}.npz"
    kept = {name: array for name, array in {**np.load(file), **arrays}.items() if array is not None}
    np.savez(file, **kept)


def huggingface_folder(path: pathlib.Path, **settings: Any) -> pathlib.Path:
    """A new folder at `path` with the model that Marian trained, as Hugging Face's converter writes it."""
    arrays = dict(np.load(MARIAN / f"{SELF_ATTENTION}.npz"))
    config = TransformerConfig(vocab_size=151, encoder_layers=2, decoder_layers=2, d_model=48, d_ff=96, num_heads=4)
    tensors = {}
    for weight in weights_of(config):
        array = arrays[weight.marian]
        if weight.ours == "embedding/matrix":
            array = np.concatenate([array, np.zeros((1, 48), np.float32)])  # of <pad>
        elif weight.ours == "embedding/bias":
            array = np.concatenate([array, np.zeros((1, 1), np.float32)], axis=1)
        elif len(weight.axes) == 1:
            array = array[0]
        tensors[weight.huggingface] = array.T if weight.is_kernel else array
    path.mkdir()
    (path / "model.safetensors").write_bytes(safetensors(tensors))
    pieces = [*marian_pieces(), "<pad>"]
    written = {
        "vocab.json": {piece: number for number, piece in enumerate(pieces)},
        "config.json": {
            "model_type": "marian",
            "d_model": 48,
            "encoder_layers": 2,
            "decoder_layers": 2,
            "encoder_ffn_dim": 96,
            "decoder_ffn_dim": 96,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "eos_token_id": 0,
            "pad_token_id": 151,
            "decoder_start_token_id": 151,
            "activation_function": "swish",
            "scale_embedding": True,
            "vocab_size": 152,
            "num_beams": 6,
            **settings,
        },
    }
    for name, values in written.items():
        (path / name).write_text(json.dumps(values), encoding="utf-8")
    for name in ("source.spm", "target.spm"):
        (path / name).write_bytes((MARIAN / name).read_bytes())
    return path
