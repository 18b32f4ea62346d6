"""A Hugging Face folder of M2M100ForConditionalGeneration: the inverse of keras_transformer/models/imported/m2m.py."""

from typing import Any, NamedTuple

import keras
import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.models.imported.fairseq import FAIRSEQ, LANGUAGE, LANGUAGE_CODES, MASK, SPM
from keras_transformer.models.imported.m2m import FUNCTION, MODEL_TYPE
from keras_transformer.models.imported.names import as_huggingface, weights_of
from keras_transformer.models.imported.vocabulary import original, renamed
from keras_transformer.pieces.language_marks import SOURCE, TARGET, Languages
from keras_transformer.pieces.pair_tokenizer import PairTokenizer
from keras_transformer.pieces.tokenizer import Tokenizer

from ..expressible import SIZES, expressible
from ..versions import ExportError
from .settings import Beside, generation_json, shape_json, write_json
from .weights import EPSILON, float32_arrays, refuse_other_widths

BIAS = "final_logits_bias"
RUNTIME = "Hugging Face's M2M100ForConditionalGeneration"
BOS_THERE, PAD_THERE, EOS_THERE, UNK_THERE = range(len(FAIRSEQ))
IDS = {
    "bos_token_id": BOS_THERE,
    "pad_token_id": PAD_THERE,
    "eos_token_id": EOS_THERE,
    "decoder_start_token_id": EOS_THERE,
}
HAS = SIZES | {
    "activation": ("relu", "gelu", "silu", "swish"),
    "norm": (FUNCTION["norm"],),
    "norm_epsilon": (EPSILON,),
    "sinusoids": (FUNCTION["sinusoids"],),
    "first_position": (PAD_THERE + 1,),
    "decoder_start": ("eos",),
    "shared_embeddings": (True,),
}


class Pieces(NamedTuple):
    """The vocabulary of a model in the order of fairseq.

    names, numbers: of each piece there, and its id here. texts: how many of them a text may have: the first ones.
    """

    names: list[str]
    numbers: list[int]
    texts: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Pieces":
        """Raises ExportError for a vocabulary that was not imported from such a model."""
        pieces, bos = tokenizer.pieces(), renamed(FAIRSEQ[BOS_THERE])
        if not isinstance(tokenizer, PairTokenizer) or tokenizer.has_tags or bos not in pieces:
            raise ExportError(
                "transformers has the vocabulary of one of fairseq's models, as of M2M-100 and mBART, and that of this "
                "run is none: export it with --format saved_model or litert."
            )
        special = [pieces.index(bos), PAD, EOS, UNK]
        numbers = special + [number for number in range(len(pieces)) if number not in (*special, BOS)]
        names = FAIRSEQ + [original(pieces[number]) for number in numbers[len(FAIRSEQ) :]]
        silent = (place for place, number in enumerate(numbers) if number in tokenizer.silent and place >= len(FAIRSEQ))
        return cls(names, numbers, next(silent, len(names)))

    @property
    def added(self) -> list[str]:
        """The pieces that no text has."""
        return self.names[self.texts :]

    def language_codes(self) -> str:
        """Return the name of M2M100Tokenizer's list of languages that the pieces have; "" for a model of NLLB.

        Raises ExportError, with the languages that no list has, for others.
        """
        codes = [match["m2m"] for piece in self.added if (match := LANGUAGE.fullmatch(piece)) and match["m2m"]]
        for name, listed in LANGUAGE_CODES.items():
            if codes == listed.split() and self.added[: len(codes)] == [f"__{code}__" for code in codes]:
                return name
        if not codes:
            return ""
        more = [code for code in codes if code not in LANGUAGE_CODES["m2m100"].split()]
        raise ExportError(
            "transformers' M2M100Tokenizer has a list of languages of its own"
            + (f", without {', '.join(more)}" if more else ", in another order")
            + ": export this model with --format saved_model or litert."
        )


def check_m2m(config: BaseModelConfig, tokenizer: Tokenizer) -> None:
    """Raise ExportError, which names the field of model.json or the language, for what transformers cannot express."""
    refuse_other_widths(expressible(config, RUNTIME, HAS), RUNTIME)
    Pieces.of(tokenizer).language_codes()


def arrays_of_m2m(model: keras.Model, tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """Return the arrays of M2M100ForConditionalGeneration by their names.

    Raises ExportError if the logits have a bias, other than that which keeps BOS from being written.
    """
    arrays = arrays_of_fairseq(model, tokenizer)
    if arrays.pop(BIAS).any():
        raise ExportError(f"The logits of this run have a bias, and {RUNTIME} has none: export it as saved_model.")
    return arrays


def arrays_of_fairseq(model: keras.Model, tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """Return the arrays of a model by the names of Hugging Face, with pieces in the order of fairseq."""
    ours, config, numbers = float32_arrays(model), model.model_config, Pieces.of(tokenizer).numbers
    arrays = {
        weight.huggingface: as_huggingface(weight, ours.get(weight.ours, np.zeros(weight.shape(config), np.float32)))
        for weight in weights_of(config)
    }
    return arrays | {name: arrays[name][numbers] for name in ("model.shared.weight", BIAS)}


def config_json(config: TransformerConfig) -> dict[str, Any]:
    """Return what config.json holds; its vocabulary has one piece fewer, since BOS is </s> there."""
    return {
        "architectures": ["M2M100ForConditionalGeneration"],
        "model_type": MODEL_TYPE,
        **shape_json(config),
        "vocab_size": config.vocab_size - 1,
        "tie_word_embeddings": True,
        **IDS,
    }


def write_m2m(of: Beside) -> None:
    """Write config.json, generation_config.json and the files of the tokenizer."""
    pieces, languages, folder = Pieces.of(of.tokenizer), of.languages, of.folder
    ids = {name: number for number, name in enumerate(pieces.names)}
    write_json(folder / "config.json", config_json(of.config))
    write_json(folder / "generation_config.json", fairseq_generation_json(of, pieces))
    (folder / SPM).write_bytes(of.tokenizer.sentencepiece_models["source.spm"])
    write_json(folder / "tokenizer_config.json", tokenizer_json(pieces, languages, of.longest))
    if pieces.language_codes():
        of_languages = [name for name in pieces.added if LANGUAGE.fullmatch(name)]
        write_json(folder / "special_tokens_map.json", {"additional_special_tokens": of_languages})
        write_json(folder / "vocab.json", {name: ids[name] for name in pieces.names[: pieces.texts]})


def fairseq_generation_json(of: Beside, pieces: Pieces) -> dict[str, Any]:
    """Return what generation_config.json holds: `generate` begins with the default language, if there is one."""
    generation = generation_json(of.options, of.longest) | {"bad_words_ids": [[PAD_THERE], [UNK_THERE]], **IDS}
    if of.languages.target_first and (code := of.languages.default(TARGET)):
        generation["forced_bos_token_id"] = pieces.names.index(of.languages.target[code])
    return generation


def shared_tokenizer_json(languages: Languages, longest: int) -> dict[str, Any]:
    """Return what the tokenizer_config.json of every tokenizer of fairseq's models holds."""
    codes = {"src_lang": languages.default(SOURCE), "tgt_lang": languages.default(TARGET)}
    return {
        **{key: code for key, code in codes.items() if code},
        "model_max_length": longest,
        "bos_token": FAIRSEQ[BOS_THERE],
        "pad_token": FAIRSEQ[PAD_THERE],
        "eos_token": FAIRSEQ[EOS_THERE],
        "unk_token": FAIRSEQ[UNK_THERE],
    }


def tokenizer_json(pieces: Pieces, languages: Languages, longest: int) -> dict[str, Any]:
    """Return what tokenizer_config.json holds."""
    settings: dict[str, Any] = {
        "tokenizer_class": "M2M100Tokenizer" if (codes := pieces.language_codes()) else "NllbTokenizer",
        **shared_tokenizer_json(languages, longest),
    }
    if codes:
        settings["language_codes"] = codes
    else:
        kinds = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}
        settings["legacy_behaviour"] = bool(languages.source_last)
        settings["added_tokens_decoder"] = {
            str(number): {"content": name, **kinds}
            for number, name in enumerate(pieces.names)
            if number >= pieces.texts
        }
        settings["extra_special_tokens"] = [name for name in pieces.added if name != MASK]
    return settings
