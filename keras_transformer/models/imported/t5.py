"""A folder of Hugging Face's T5ForConditionalGeneration or MT5ForConditionalGeneration: its parts as those of ours.

T5 (Raffel et al. 2020) has two forms. The first has relu and ties its logits to the embeddings; T5 1.1, mT5 (Xue et al.
2021), ByT5 (Xue et al. 2022) and MADLAD-400 (Kudugunta et al. 2023) have gated GELU and logits of their own. Their
pieces and ids are those of a SentencePiece model, of ByT5 bytes; the decoder begins with the padding.
"""

import math
import pathlib
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import sentencepiece

from keras_transformer.config import GATED_ACTIVATIONS, TransformerConfig
from keras_transformer.models.imported.arrays import read_settings
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.fairseq import all_pieces, pieces_with_ids, tokenizer_settings
from keras_transformer.models.imported.generation import FORCED_BOS, forced_bos, generation_of
from keras_transformer.models.imported.huggingface import IDS, check_settings, described, refuse, special_ids, take_tied
from keras_transformer.models.imported.marian_files import read_spm
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.t5_names import LM_HEAD, SHARED, UNUSED, weights_of_blocks
from keras_transformer.models.imported.vocabulary import Vocabulary, renamed
from keras_transformer.models.imported.weight_files import read_weights
from keras_transformer.models.imported.weights import Arrays, Tokens, values_of_blocks
from keras_transformer.pieces.language_marks import NO_LANGUAGES, TARGET, Languages
from keras_transformer.pieces.languages import CODE
from keras_transformer.pieces.pair_tokenizer import PairTokenizer, pair_model_bytes
from keras_transformer.pieces.tokenizer import processor_of

T5, MT5 = "t5", "mt5"  # model_type
NEEDED = {"is_encoder_decoder": True}
CLASSES = {T5: "T5ForConditionalGeneration", MT5: "MT5ForConditionalGeneration"}
BYTES = "ByT5Tokenizer"  # of ByT5, which has no file: its pieces are bytes
TOKENIZERS = ("T5Tokenizer", "T5TokenizerFast", "MT5Tokenizer", "MT5TokenizerFast", BYTES)
SPM = "spiece.model"
ACTIVATIONS = {  # by feed_forward_proj
    "relu": "relu",
    "gelu": "gelu",
    "silu": "swish",
    "swish": "swish",
    "gated-gelu": "geglu_tanh",  # whatever its name says: gelu_new
    "gated-gelu_new": "geglu_tanh",
    "gated-silu": "swiglu",
}
DEFAULTS = {  # of T5Config
    "d_kv": 64,
    "layer_norm_epsilon": 1e-6,
    "relative_attention_num_buckets": 32,
    "relative_attention_max_distance": 128,
    IDS["pad"]: 0,
    IDS["eos"]: 1,
}
PROJECTIONS = {T5: "relu", MT5: "gated-gelu"}  # feed_forward_proj, if config.json has none
FUNCTION: dict[str, Any] = {
    "norm": "pre",
    "norm_kind": "rms",
    "scale_scores": False,
    "positions": "relative",
}
EMBEDDINGS = (SHARED, "encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
EXTRA_IDS = 100  # pieces <extra_id_0> and so on that T5Tokenizer adds, unless it is told otherwise
TAG = re.compile(r"<2(?P<code>\w+)>")  # of MADLAD-400
TASK = re.compile(r"translation_(?P<source>\w+)_to_(?P<target>\w+)")


def import_t5(folder: pathlib.Path) -> ImportedModel:
    """Read a folder of Hugging Face's T5 or mT5, with the function that Hugging Face computes.

    Raises ImportedModelError, with the name of the file, key or array, for what cannot be imported, and OSError if a
    file cannot be read.
    """
    path = folder / "config.json"
    settings = DEFAULTS | read_settings(path)
    check_settings({"activation_function": "relu", **settings}, path, NEEDED)
    check_class(settings, path)
    forced, file = forced_bos(folder, settings)
    if forced is not None:
        refuse(FORCED_BOS, forced, file, "null, since T5 chooses the first token of an output,")
    of_tokenizer = tokenizer_settings(folder, TOKENIZERS, "T5Tokenizer", settings)
    arrays = read_weights(folder)
    embedding = take_tied(arrays, EMBEDDINGS, (settings.get("vocab_size"), settings.get("d_model")))
    spm = spm_of_bytes() if of_tokenizer["tokenizer_class"] == BYTES else spm_in(folder)
    processor = processor_of(spm, folder / SPM)
    pieces = pieces_of(processor, folder, of_tokenizer, len(embedding))
    vocabulary = vocabulary_of(pieces, processor, settings, path)
    factor = np.float32(1 / math.sqrt(embedding.shape[1]))
    logits = logits_of(arrays, embedding, settings)
    embedding = embedding * factor  # which ours multiplies by sqrt(d_model)
    if logits is None:
        logits = embedding
    elif is_scaled(settings):
        logits = logits * factor
    tokens = Tokens(vocabulary, vocabulary, embedding, embedding, logits, np.zeros(len(pieces), np.float32))
    config = config_of_t5(settings, tokens, path)
    if UNUSED in arrays:
        arrays.take(UNUSED, (None, None))
    values = values_of_blocks(arrays, config, lambda weight: weight.huggingface, True, weights_of_blocks(config))
    arrays.refuse_rest()
    silent = {number for number in range(len(processor)) if is_silent(processor, number)}
    controls = [renamed(piece) for number, piece in enumerate(pieces) if number in silent or number >= len(processor)]
    own = tokens.pieces()
    languages, notes = languages_of(processor, settings)
    generation = generation_of(folder, settings, vocabulary)
    return ImportedModel(
        config=config,
        values=values | tokens.values(config),
        tokenizer=PairTokenizer.of_bytes(pair_model_bytes(spm, spm, own, controls), "The tokenizer"),
        search=generation.search,
        kind=f"Hugging Face {CLASSES[settings['model_type']].removesuffix('ForConditionalGeneration')}",
        notes=(*notes, *generation.notes),
        languages=languages,
    )


def check_class(settings: Mapping[str, Any], path: pathlib.Path) -> None:
    """Raises ImportedModelError for a model without a decoder, and for keys that contradict each other."""
    name = CLASSES[settings["model_type"]]
    if settings.get("architectures", [name]) not in (
        [name],
        [name.replace("ForConditionalGeneration", "WithLMHeadModel")],
    ):
        refuse("architectures", settings["architectures"], path, name)
    projection = projection_of(settings)
    if not isinstance(projection, str) or projection not in ACTIVATIONS:
        refuse("feed_forward_proj", projection, path, ", ".join(ACTIVATIONS))
    gate, _, activation = projection.rpartition("-")
    told = {"is_gated_act": bool(gate), "dense_act_fn": "gelu_new" if projection == "gated-gelu" else activation}
    for key, expected in told.items():
        if settings.get(key, expected) != expected:
            refuse(key, settings[key], path, f"{expected!r}, as feed_forward_proj says,")


def projection_of(settings: Mapping[str, Any]) -> Any:
    """Return what the feed-forward networks are, as T5 names it."""
    return settings.get("feed_forward_proj", PROJECTIONS[settings["model_type"]])


def spm_in(folder: pathlib.Path) -> bytes:
    """Return the SentencePiece model of both sides. Raises ImportedModelError if it is missing."""
    if not (folder / SPM).exists():
        raise ImportedModelError(f"{folder} has no {SPM}, the SentencePiece model of both sides.")
    return read_spm(folder / SPM)


def spm_of_bytes() -> bytes:
    """Return a SentencePiece model that does what ByT5Tokenizer does: each byte is a piece, and nothing else is one."""
    from sentencepiece import sentencepiece_model_pb2  # protobuf, which TensorFlow brings

    model = sentencepiece_model_pb2.ModelProto()
    kinds = model.SentencePiece.Type
    for piece, kind in (("<pad>", kinds.CONTROL), ("</s>", kinds.CONTROL), ("<unk>", kinds.UNKNOWN)):
        model.pieces.add(piece=piece, score=0.0, type=kind)
    for byte in range(256):
        model.pieces.add(piece=f"<0x{byte:02X}>", score=0.0, type=kinds.BYTE)
    trainer, normalizer = model.trainer_spec, model.normalizer_spec
    trainer.model_type, trainer.byte_fallback, trainer.vocab_size = trainer.CHAR, True, len(model.pieces)
    trainer.pad_id, trainer.eos_id, trainer.unk_id, trainer.bos_id = 0, 1, 2, -1
    normalizer.name, normalizer.add_dummy_prefix = "identity", False
    normalizer.remove_extra_whitespaces = normalizer.escape_whitespaces = False
    return model.SerializeToString()


def pieces_of(
    processor: sentencepiece.SentencePieceProcessor, folder: pathlib.Path, of_tokenizer: Mapping[str, Any], rows: int
) -> list[str]:
    """Return the name of every row of the embedding: pieces of the SentencePiece model, extra ids, and what is added.

    T5Tokenizer numbers its extra ids downwards: the last one is <extra_id_0>; ByT5Tokenizer upwards. Raises
    ImportedModelError if a piece has no row, or two.
    """
    text = processor.id_to_piece(list(range(len(processor))))
    are_bytes = of_tokenizer["tokenizer_class"] == BYTES
    if type(count := of_tokenizer.get("extra_ids", 125 if are_bytes else EXTRA_IDS)) is not int:
        refuse("extra_ids", count, folder / "tokenizer_config.json", "a number of pieces")
    numbers = range(count)[:: 1 if are_bytes else -1][: max(rows - len(text), 0)]
    extra = [f"<extra_id_{number}>" for number in numbers]
    added = {} if {*extra} & {*text} else dict(enumerate(extra, len(text)))
    given = {number: piece for number, piece in pieces_with_ids(folder, of_tokenizer) if number >= len(text)}
    return all_pieces(text, added | given, rows, folder)


def vocabulary_of(
    pieces: list[str],
    processor: sentencepiece.SentencePieceProcessor,
    settings: Mapping[str, Any],
    path: pathlib.Path,
) -> Vocabulary:
    """Return the vocabulary with its special ids. Raises ImportedModelError if both files tell another end."""
    ids = special_ids({IDS["start"]: settings.get(IDS["pad"]), **settings}, path)
    if (end := processor.eos_id()) not in (-1, ids["eos"]):
        raise ImportedModelError(f"{path} has {IDS['eos']}: {ids['eos']}, but the end in {SPM} has the id {end}.")
    return Vocabulary.of_pieces(pieces, path.parent, unk=processor.unk_id(), **ids)


def is_silent(processor: sentencepiece.SentencePieceProcessor, number: int) -> bool:
    """Return whether no text has a piece of the SentencePiece model."""
    return processor.is_control(number) or processor.is_unknown(number) or processor.is_unused(number)


def is_scaled(settings: Mapping[str, Any]) -> bool:
    """Return whether the decoder's output is multiplied by d_model^-0.5, as in the first T5. mT5 never is.

    transformers 5 writes a key of its own, beside which tie_word_embeddings says nothing.
    """
    is_tied = settings.get("tie_word_embeddings", True) is not False
    return settings["model_type"] == T5 and bool(settings.get("scale_decoder_outputs", is_tied))


def logits_of(arrays: Arrays, embedding: np.ndarray, settings: Mapping[str, Any]) -> np.ndarray | None:
    """Take the matrix of the logits; None if it is that of the embeddings, and scaled.

    Raises ImportedModelError if config.json tells one, and the file has the other.
    """
    is_told = settings["model_type"] == T5 and "scale_decoder_outputs" not in settings
    is_tied = settings.get("tie_word_embeddings", True) is not False
    if LM_HEAD not in arrays and (is_tied or not is_told) and settings["model_type"] == T5:
        return None if is_scaled(settings) else embedding
    logits = arrays.take(LM_HEAD, embedding.shape)
    if not np.array_equal(logits, embedding):
        if is_told and is_tied:
            raise ImportedModelError(
                f"{arrays.path} has a {LM_HEAD} that is not the embedding, although tie_word_embeddings is true in "
                "config.json."
            )
        return logits
    return None if is_scaled(settings) else logits


SIZES = {"encoder_layers": "num_layers", "d_model": "d_model", "d_ff": "d_ff", "num_heads": "num_heads"}


def config_of_t5(settings: Mapping[str, Any], tokens: Tokens, path: pathlib.Path) -> TransformerConfig:
    """Return the configuration that config.json describes. Raises ImportedModelError if a key is missing."""
    vocabulary = tokens.source
    starts = {vocabulary.eos: "eos", vocabulary.unk: "unk", vocabulary.pad: "pad"}
    decoder = "num_decoder_layers" if "num_decoder_layers" in settings else "num_layers"
    activation = ACTIVATIONS[projection_of(settings)]
    return described(
        settings,
        path,
        SIZES | {"decoder_layers": decoder},
        vocab_size=len(tokens.pieces()),
        key_dim=settings["d_kv"],
        value_dim=settings["d_kv"],
        activation=activation,
        feed_forward_bias=activation in GATED_ACTIVATIONS,  # which have none whatever it is
        **FUNCTION,
        norm_epsilon=settings["layer_norm_epsilon"],
        relative_buckets=settings["relative_attention_num_buckets"],
        relative_distance=settings["relative_attention_max_distance"],
        decoder_start=starts.get(vocabulary.start, "bos"),
        tied_logits=tokens.logits is tokens.embed_target,
        logits_bias=True,
    )


def languages_of(
    processor: sentencepiece.SentencePieceProcessor, settings: Mapping[str, Any]
) -> tuple[Languages, tuple[str, ...]]:
    """Return the languages that a model writes, and a sentence on what of them could not be used.

    MADLAD-400 has a tag for each, such as <2de>; T5 has words, which task_specific_params of config.json name.
    """
    tags = (match for piece in processor.id_to_piece(list(range(len(processor)))) if (match := TAG.fullmatch(piece)))
    if targets := {tag["code"]: tag[0] for tag in tags if CODE.fullmatch(tag["code"])}:
        return Languages({}, pieces_by_code(processor, targets), source_first=TARGET), ()
    tasks = settings.get("task_specific_params")
    found = {
        (task["source"], task["target"]): values["prefix"]
        for name, values in (tasks.items() if isinstance(tasks, Mapping) else ())
        if (task := TASK.fullmatch(name)) and isinstance(values, Mapping) and isinstance(values.get("prefix"), str)
    }
    prefixes = {pair: prefix for pair, prefix in found.items() if prefix.strip()}
    sources, targets = {source for source, _ in prefixes}, {target: prefix for (_, target), prefix in prefixes.items()}
    if len(sources) == 1:
        return Languages(dict.fromkeys(sources, ""), pieces_by_code(processor, targets), source_first=TARGET), ()
    if sources:
        return NO_LANGUAGES, (
            "the words that tell it its task stand before each line: " + ", ".join(prefixes.values()),
        )
    return NO_LANGUAGES, ()


def pieces_by_code(processor: sentencepiece.SentencePieceProcessor, texts: Mapping[str, str]) -> dict[str, str]:
    """Return the pieces of the text that stands before a line, by the code of the language that it asks for."""
    return {code: " ".join(processor.encode(text.strip(), out_type=str)) for code, text in texts.items()}
