"""A Hugging Face folder of T5ForConditionalGeneration: the inverse of keras_transformer/models/imported/t5.py.

mT5, ByT5 and MADLAD-400 are written so too: the class computes the same function as theirs.
"""

import math
from typing import Any, NamedTuple, NoReturn

import keras
import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.models.imported.names import as_huggingface, weights_of_tokens
from keras_transformer.models.imported.t5 import ACTIVATIONS, BYTES, FUNCTION, SPM, T5, spm_of_bytes
from keras_transformer.models.imported.t5_names import LM_HEAD, SHARED, biases_of, weights_of_blocks
from keras_transformer.models.imported.vocabulary import NAMES, NO_ROW, original, renamed
from keras_transformer.pieces.language_marks import TARGET, Languages
from keras_transformer.pieces.pair_tokenizer import PairTokenizer
from keras_transformer.pieces.tokenizer import Tokenizer, processor_of

from ..expressible import SIZES, expressible, refuse
from ..versions import ExportError
from .settings import Beside, generation_json, write_json
from .weights import float32_arrays

RUNTIME = "Hugging Face's T5ForConditionalGeneration"
PROJECTIONS = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())} | {"silu": "silu"}
HAS = (
    SIZES
    | {field: (value,) for field, value in FUNCTION.items()}
    | {
        "activation": tuple(PROJECTIONS),
        "attention_bias": (False,),
        "decoder_start": ("pad", "eos", "unk", "bos"),
        "relative_buckets": None,
        "relative_distance": None,
        "shared_embeddings": (True,),
        "tied_logits": (True, False),
    }
)
UNNAMED = "madeupword"  # how an import calls rows of the embedding that no piece has


class Pieces(NamedTuple):
    """The vocabulary of a model in the order of its SentencePiece model.

    names, numbers: of each piece there, and its id here. ids: of special pieces there, by their ids here. texts: how
    many pieces the SentencePiece model has: the first ones.
    """

    names: list[str]
    numbers: list[int]
    ids: dict[int, int]
    texts: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "Pieces":
        """Raises ExportError for a vocabulary that was not imported from such a model."""
        if not isinstance(tokenizer, PairTokenizer) or tokenizer.has_tags:
            refuse_vocabulary()
        processor = processor_of(spm_of(tokenizer), SPM)
        names = processor.id_to_piece(list(range(len(processor))))
        here = {piece: number for number, piece in enumerate(tokenizer.pieces()) if number not in NAMES}
        special = {name: number for number, name in enumerate(names) if renamed(name) not in here}
        end = processor.eos_id() if processor.eos_id() in special.values() else special.get(NAMES[EOS], NO_ROW)
        ids = {UNK: processor.unk_id(), EOS: end}
        rest = [number for number in special.values() if number not in ids.values()]
        if len(rest) == 2 and special.get(NAMES[BOS]) in rest:  # the decoder begins with a piece of its own
            ids[BOS] = special[NAMES[BOS]]
            rest.remove(ids[BOS])
        if len(rest) != 1 or end == NO_ROW:
            refuse_vocabulary()
        ids[PAD] = rest[0]
        here_of = {there: number for number, there in ids.items()}
        numbers = [here_of[there] if there in here_of else here[renamed(name)] for there, name in enumerate(names)]
        more = sorted({*here.values()} - {*numbers})
        names += [original(tokenizer.pieces()[number]) for number in more]
        return cls(names, numbers + more, ids, len(processor))

    @property
    def added(self) -> dict[int, str]:
        """The pieces by id that the SentencePiece model does not have."""
        rest = enumerate(self.names[self.texts :], self.texts)
        return {number: name for number, name in rest if not name.startswith(UNNAMED)}

    def extra_ids(self, are_bytes: bool) -> int:
        """Return how many pieces <extra_id_0> and so on follow in the order of the tokenizer; 0 if in another one."""
        count = sum(name.startswith("<extra_id_") for name in self.names[self.texts :])
        numbers = range(count)[:: 1 if are_bytes else -1]
        expected = [f"<extra_id_{number}>" for number in numbers]
        return count if self.names[self.texts : self.texts + count] == expected else 0


def refuse_vocabulary() -> NoReturn:
    raise ExportError(
        "With relative positions a model is a T5 to transformers, with the vocabulary of one of T5's models, as of mT5 "
        "and MADLAD-400, and that of this run is none: export it with --format saved_model or litert."
    )


def spm_of(tokenizer: Tokenizer) -> bytes:
    return tokenizer.sentencepiece_models["source.spm"]


def check_t5(config: BaseModelConfig, tokenizer: Tokenizer) -> None:
    """Raise ExportError, which names the field of model.json, for what transformers cannot express."""
    pieces = Pieces.of(tokenizer)  # first: another key of the model helps no run with a vocabulary of its own
    config = expressible(config, RUNTIME, HAS)
    if config.d_k != config.d_v:
        refuse("value_dim", config.d_v, RUNTIME, f"key_dim, {config.d_k},")
    start_of(config, pieces)


def start_of(config: TransformerConfig, pieces: Pieces) -> int:
    """Return the id of the piece with which the decoder begins. Raises ExportError if it has none."""
    start = {"pad": PAD, "eos": EOS, "unk": UNK, "bos": BOS}[config.decoder_start]
    if start not in pieces.ids:
        refuse("decoder_start", config.decoder_start, RUNTIME, "pad, eos and unk")
    return pieces.ids[start]


def arrays_of_t5(model: keras.Model, tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    """Return the arrays of T5ForConditionalGeneration by their names.

    Raises ExportError if the logits, or networks that are not gated, have biases other than zeros: T5 has none.
    """
    ours, config, numbers = float32_arrays(model), model.model_config, Pieces.of(tokenizer).numbers
    matrix, *more = weights_of_tokens(config)
    for weight in [*biases_of(config), more[-1]]:
        bias = ours.pop(weight.ours, np.zeros(1, np.float32))
        if (bias[numbers] if weight is more[-1] and len(bias) > 1 else bias).any():
            raise ExportError(
                f"This run has a bias, {weight.ours}, and {RUNTIME} has none: export it with --format saved_model or "
                "litert."
            )
    arrays = {SHARED: unscaled(as_huggingface(matrix, ours.pop(matrix.ours))[numbers])}
    if not config.tied_logits:
        arrays[LM_HEAD] = as_huggingface(more[0], ours.pop(more[0].ours))[numbers]
    blocks = {weight.huggingface: as_huggingface(weight, ours.pop(weight.ours)) for weight in weights_of_blocks(config)}
    if ours:
        raise ExportError(f"{RUNTIME} has no place for the weights {', '.join(sorted(ours))}.")
    return arrays | blocks


def unscaled(embedding: np.ndarray) -> np.ndarray:
    """Return the embedding that T5 does not multiply by sqrt(d_model): (pieces, d_model).

    An import multiplies it by a rounded 1 / sqrt(d_model). Of the numbers that are nearest to the quotient, the one is
    taken whose product is the weight, so that an import that goes out comes in again as it was.
    """
    factor = np.float32(1 / math.sqrt(embedding.shape[1]))
    found = embedding / factor
    for limit in (-np.inf, np.inf):
        near = np.nextafter(embedding / factor, np.float32(limit))
        found = np.where((found * factor != embedding) & (near * factor == embedding), near, found)
    return found


def config_json(config: TransformerConfig, pieces: Pieces) -> dict[str, Any]:
    """Return what config.json holds, but for the tasks; BOS is another piece there."""
    return {
        "architectures": ["T5ForConditionalGeneration"],
        "model_type": T5,
        "is_encoder_decoder": True,
        "d_model": config.d_model,
        "d_kv": config.d_k,
        "d_ff": config.d_ff,
        "num_layers": config.encoder_layers,
        "num_decoder_layers": config.decoder_layers,
        "num_heads": config.num_heads,
        "relative_attention_num_buckets": config.relative_buckets,
        "relative_attention_max_distance": config.relative_distance,
        "feed_forward_proj": PROJECTIONS[config.activation],
        "layer_norm_epsilon": config.norm_epsilon,
        "dropout_rate": config.dropout,
        "vocab_size": len(pieces.names),
        "tie_word_embeddings": config.tied_logits,
        "dtype": "float32",
        **ids_json(config, pieces),
    }


def ids_json(config: TransformerConfig, pieces: Pieces) -> dict[str, int]:
    ids = {"pad_token_id": pieces.ids[PAD], "eos_token_id": pieces.ids[EOS]}
    return ids | {"decoder_start_token_id": start_of(config, pieces)}


def words_before(languages: Languages, code: str) -> str:
    """Return the text that stands before a line to be translated into a language; "" if there is none."""
    if languages.source_first != TARGET or not (written := languages.target.get(code, "")):
        return ""
    return written.replace(" ", "").replace("\u2581", " ").strip() + " "


def tasks_json(languages: Languages) -> dict[str, Any]:
    """Return the tasks of T5, which are told in words; {} for a model with tags of languages."""
    return {
        f"translation_{source}_to_{target}": {"prefix": words_before(languages, target)}
        for source in languages.source
        for target in languages.target
        if words_before(languages, target)
    }


def write_t5(of: Beside) -> None:
    """Write config.json, generation_config.json and the files of the tokenizer."""
    pieces, folder = Pieces.of(of.tokenizer), of.folder
    ids = ids_json(of.config, pieces)
    tasks = {"task_specific_params": tasks} if (tasks := tasks_json(of.languages)) else {}
    write_json(folder / "config.json", config_json(of.config, pieces) | tasks)
    generation = generation_json(of.options, of.longest) | {
        "max_length": of.longest + of.options.extra_length + 1,  # of relative positions there is no last one
        "bad_words_ids": [[pieces.ids[special]] for special in (PAD, UNK, BOS) if special in pieces.ids],
        "forced_eos_token_id": pieces.ids[EOS],
        **ids,
    }
    del generation["bos_token_id"]
    write_json(folder / "generation_config.json", generation)
    spm = spm_of(of.tokenizer)
    if not (are_bytes := spm == spm_of_bytes()):
        (folder / SPM).write_bytes(spm)
    kinds = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False, "special": True}
    settings = {
        "tokenizer_class": BYTES if are_bytes else "T5Tokenizer",
        "extra_ids": pieces.extra_ids(are_bytes),
        "model_max_length": of.longest,
        **{f"{name}_token": pieces.names[pieces.ids[special]] for name, special in SPECIAL.items()},
        "added_tokens_decoder": {str(number): {"content": name, **kinds} for number, name in pieces.added.items()},
    }
    write_json(folder / "tokenizer_config.json", settings)


SPECIAL = {"pad": PAD, "eos": EOS, "unk": UNK}
