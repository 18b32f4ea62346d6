"""The files beside the weights of a Hugging Face folder: config.json, generation_config.json and the tokenizer's."""

import json
import pathlib
from typing import Any, NamedTuple

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.pieces.language_marks import Languages as Told
from keras_transformer.pieces.pair_tokenizer import PairTokenizer
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.search.options import SearchOptions

from .weights import POSITIONS

IDS = {"pad_token_id": PAD, "eos_token_id": EOS, "bos_token_id": BOS, "decoder_start_token_id": BOS}
NEVER_WRITTEN = [[PAD], [UNK], [BOS]]


class Languages(NamedTuple):
    """What a model translates from and into, as the configuration of its run says; None if it does not."""

    source: str | None = None
    target: str | None = None


class Beside(NamedTuple):
    """What the files beside the weights tell of a model.

    languages: how it is told them. pair: the languages of a model of one pair. longest: tokens of a source, at most.
    folder: where the files are written.
    """

    config: TransformerConfig
    tokenizer: Tokenizer
    languages: Told
    pair: Languages
    options: SearchOptions
    longest: int
    folder: pathlib.Path


def shape_json(config: TransformerConfig) -> dict[str, Any]:
    """Return the keys of config.json that tell the shape of a model of any kind."""
    sides = {
        f"{side}_{name}": value
        for side in ("encoder", "decoder")
        for name, value in (("attention_heads", config.num_heads), ("ffn_dim", config.d_ff))
    }
    return {
        "is_encoder_decoder": True,
        "d_model": config.d_model,
        "encoder_layers": config.encoder_layers,
        "decoder_layers": config.decoder_layers,
        **sides,
        "activation_function": config.activation,
        "dropout": config.dropout,
        "max_position_embeddings": POSITIONS,
        "scale_embedding": True,
        "dtype": "float32",
    }


def config_json(config: TransformerConfig) -> dict[str, Any]:
    """Return what config.json of a MarianMTModel holds: the shape of the model."""
    return {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        **shape_json(config),
        "vocab_size": config.vocab_size,
        "decoder_vocab_size": config.vocab_size,
        "share_encoder_decoder_embeddings": config.shared_embeddings,
        "tie_word_embeddings": config.shared_embeddings,
        "static_position_embeddings": True,
        "normalize_before": False,  # this key and the next two: what transformers 4 and older ask for
        "normalize_embedding": False,
        "add_final_layer_norm": False,
        **IDS,
        "forced_eos_token_id": EOS,
    }


def generation_json(options: SearchOptions, max_source_tokens: int) -> dict[str, Any]:
    """Return what generation_config.json holds: how `generate` searches unless it is told otherwise."""
    return {
        "num_beams": options.beam_size,
        "length_penalty": options.length_penalty,
        "no_repeat_ngram_size": options.no_repeat_ngram_size,
        "repetition_penalty": options.repetition_penalty,
        "max_length": min(max_source_tokens + options.extra_length + 1, POSITIONS),  # BOS is counted there
        "bad_words_ids": NEVER_WRITTEN,
        **IDS,
        "forced_eos_token_id": EOS,
    }


def write_beside_marian(of: Beside) -> None:
    """Write config.json, generation_config.json and the files of the tokenizer."""
    write_json(of.folder / "config.json", config_json(of.config))
    write_json(of.folder / "generation_config.json", generation_json(of.options, of.longest))
    write_tokenizer(of.tokenizer, of.pair, of.longest, of.folder)


def write_tokenizer(tokenizer: Tokenizer, languages: Languages, max_source_tokens: int, folder: pathlib.Path) -> None:
    """Write the files of a MarianTokenizer with the same ids."""
    models = 2 * (tokenizer.model_bytes,)
    if isinstance(tokenizer, PairTokenizer):
        models = tokenizer.source_spm, tokenizer.target_spm
    for name, model in zip(("source.spm", "target.spm"), models, strict=True):
        (folder / name).write_bytes(model)
    pieces = tokenizer.pieces()
    write_json(folder / "vocab.json", {piece: number for number, piece in enumerate(pieces)})
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages.source,
        "target_lang": languages.target,
        "model_max_length": max_source_tokens,
        "separate_vocabs": False,
        "unk_token": pieces[UNK],
        "eos_token": pieces[EOS],
        "pad_token": pieces[PAD],
    }
    write_json(folder / "tokenizer_config.json", {name: value for name, value in settings.items() if value is not None})


def write_json(path: pathlib.Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
