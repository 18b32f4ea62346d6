"""A folder of Hugging Face's MarianMTModel: its config.json as a TransformerConfig, its vocabulary, its weights."""

import pathlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.models.imported.arrays import read_settings
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.generation import FORCED_BOS, forced_bos, generation_of, read_by_generate
from keras_transformer.models.imported.marian_files import read_spm
from keras_transformer.models.imported.marian_yaml import read_vocabulary
from keras_transformer.models.imported.model import ImportedModel, languages_of_tags
from keras_transformer.models.imported.vocabulary import Vocabulary
from keras_transformer.models.imported.weight_files import read_weights
from keras_transformer.models.imported.weights import Arrays, Tokens, values_of_blocks
from keras_transformer.pieces.pair_tokenizer import PairTokenizer, pair_model_bytes
from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError

MODEL_TYPE = "marian"
HUGGINGFACE, MARIAN = POSITIONS = ("huggingface", "marian")  # whose function the model is to compute
EPSILON = {HUGGINGFACE: 1e-5, MARIAN: 1e-6}  # of LayerNorm: PyTorch's default, and Marian's
SINUSOIDS = {HUGGINGFACE: "paper", MARIAN: "tensor2tensor"}
ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
NEEDED = {  # what a key of config.json must be; if it is missing, it is so
    "model_type": MODEL_TYPE,
    "is_encoder_decoder": True,
    "scale_embedding": True,
    "normalize_before": False,
}
SHOWN_BY_ARRAYS = {  # what a key usually is that transformers 3 read, for a model with other arrays, which are refused
    "static_position_embeddings": True,
    "normalize_embedding": False,
    "do_blenderbot_90_layernorm": False,
    "add_final_layer_norm": False,
    "add_bias_logits": False,
    "extra_pos_embeddings": 0,  # learned ones; the converter of 2020 wrote the number of pieces
}
IDS = {"eos": "eos_token_id", "pad": "pad_token_id", "start": "decoder_start_token_id"}
SAME_ON_BOTH_SIDES = {"encoder_attention_heads": "decoder_attention_heads", "encoder_ffn_dim": "decoder_ffn_dim"}
POSITION_TABLES = tuple(f"model.{side}.embed_positions.weight" for side in ("encoder", "decoder"))
ROUNDING = 0.01  # how far a table of sinusoids may be off that was kept in bfloat16
NOTES = {
    HUGGINGFACE: "as Hugging Face computes it; Helsinki's weights were trained with Marian's sinusoids and epsilon: "
    "`keras-transformer import --positions marian`",
    MARIAN: "as Marian computes it, with which Helsinki's weights were trained; Hugging Face's sinusoids and epsilon "
    "differ",
}
OF_TABLE = "as Hugging Face computes it, with Marian's sinusoids, which its file holds"


def import_huggingface(folder: pathlib.Path, positions: str = HUGGINGFACE) -> ImportedModel:
    """Read a folder of Hugging Face's MarianMTModel.

    positions: "huggingface" for the function that Hugging Face computes with these weights, or "marian" for that of
    Marian, which differs in the sinusoids, in LayerNorm's epsilon, and in that <pad> is no class.

    Raises ImportedModelError, with the name of the file, key or array, for what cannot be imported, and OSError if a
    file cannot be read.
    """
    path = folder / "config.json"
    settings = read_settings(path)
    check_settings({"scale_embedding": False, **settings}, path, NEEDED)
    forced, file = forced_bos(folder, settings)
    if forced is not None:
        refuse(FORCED_BOS, forced, file, "null, since Marian chooses the first token of an output,")
    arrays = read_weights(folder)
    source, target = vocabularies_in(folder, settings)
    if positions == MARIAN:
        source, target = (side._replace(scores_pad=False) for side in (source, target))
    tokens = tokens_of(arrays, source, target, settings)
    function = {"norm_epsilon": EPSILON[positions], "sinusoids": SINUSOIDS[positions]}
    config = config_of(settings, tokens, path, **function)
    sinusoids, note = sinusoids_in(arrays, config.d_model), NOTES[positions]
    if positions == HUGGINGFACE and sinusoids == SINUSOIDS[MARIAN]:
        config, note = config.replace(sinusoids=sinusoids), OF_TABLE
    values = values_of_blocks(arrays, config, lambda weight: weight.huggingface, is_huggingface=True)
    arrays.refuse_rest()
    generation = generation_of(folder, settings, target)
    return ImportedModel(
        config=config,
        values=values | tokens.values(config),
        tokenizer=tokenizer_of(folder, tokens.pieces()),
        languages=languages_of_tags(tokens.pieces(), pair_in(folder)),
        search=generation.search,
        kind="Hugging Face MarianMT",
        notes=(note, *ignored_keys(settings), *generation.notes),
    )


def pair_in(folder: pathlib.Path) -> tuple[str | None, str | None]:
    """Return the codes of the languages that the tokenizer's settings tell; None for what they do not."""
    path = folder / "tokenizer_config.json"
    settings = read_settings(path) if path.exists() else {}
    source, target = (settings.get(key) for key in ("source_lang", "target_lang"))
    return source if isinstance(source, str) else None, target if isinstance(target, str) else None


def check_settings(settings: Mapping[str, Any], path: pathlib.Path, needed: Mapping[str, Any]) -> None:
    """Raises ImportedModelError for a key of config.json whose value makes another model than ours; see NEEDED."""
    for name, expected in needed.items():
        if settings.get(name, expected) != expected:
            refuse(name, settings[name], path, repr(expected))
    for name, other in SAME_ON_BOTH_SIDES.items():
        if settings.get(name) != settings.get(other):
            refuse(other, settings.get(other), path, f"that of {name}, {settings.get(name)!r},")
    activation = settings.get("activation_function")
    if not isinstance(activation, str) or activation not in ACTIVATIONS:
        refuse("activation_function", activation, path, ", ".join(ACTIVATIONS))


def ignored_keys(settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence if config.json has unusual values of SHOWN_BY_ARRAYS."""
    unusual = {name: settings[name] for name, usual in SHOWN_BY_ARRAYS.items() if settings.get(name, usual) != usual}
    if unusual:
        yield (
            f"config.json has {', '.join(f'{name}: {value!r}' for name, value in unusual.items())}; its arrays show "
            "that nothing follows from it"
        )


def refuse(name: str, value: Any, path: pathlib.Path, expected: str) -> None:
    """Raises ImportedModelError for a key of config.json."""
    raise ImportedModelError(f"{path} has {name}: {value!r}; only {expected} can be imported.")


SIZES = {  # fields of TransformerConfig by keys of config.json
    "encoder_layers": "encoder_layers",
    "decoder_layers": "decoder_layers",
    "d_model": "d_model",
    "d_ff": "encoder_ffn_dim",
    "num_heads": "encoder_attention_heads",
}


def config_of(settings: Mapping[str, Any], tokens: Tokens, path: pathlib.Path, **function: Any) -> TransformerConfig:
    """Return the configuration that config.json describes. Raises ImportedModelError if a key is missing.

    function: the fields of TransformerConfig that all models of a kind have alike.
    """
    return described(
        settings,
        path,
        SIZES,
        vocab_size=len(tokens.pieces()),
        activation=ACTIVATIONS[settings["activation_function"]],
        **function,
        attention_bias=True,
        shared_embeddings=tokens.is_shared,
        logits_bias=True,
    )


def described(
    settings: Mapping[str, Any], path: pathlib.Path, sizes: Mapping[str, str], **fields: Any
) -> TransformerConfig:
    """Return a configuration of these fields and of sizes in config.json: its keys, by field of TransformerConfig.

    Raises ImportedModelError if a key is missing, or a value makes no sense.
    """
    try:
        values = {field: settings[key] for field, key in sizes.items()}
    except KeyError as error:
        raise ImportedModelError(f"{path} has no {error}, which every model of its kind has.") from None
    try:
        return TransformerConfig(**values, **fields)
    except ConfigError as error:
        raise ImportedModelError(f"{path} does not describe a model: {error}") from None


def vocabularies_in(folder: pathlib.Path, settings: Mapping[str, Any]) -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of both sides; most models have one for both."""
    path = folder / "vocab.json"
    pieces = read_vocabulary(path)
    ids = special_ids({IDS["start"]: settings.get(IDS["pad"]), **settings}, folder / "config.json")
    if settings.get("share_encoder_decoder_embeddings", True) or not (folder / "target_vocab.json").exists():
        both = Vocabulary.of_pieces(pieces, path, **ids)
        return both, both
    own_pad = {"pad": pieces.index("<pad>")} if "<pad>" in pieces else {}
    source = Vocabulary.of_pieces(pieces, path, **own_pad)
    target_path = folder / "target_vocab.json"
    return source, Vocabulary.of_pieces(read_vocabulary(target_path), target_path, **ids)


def special_ids(settings: Mapping[str, Any], path: pathlib.Path) -> dict[str, int]:
    """Return the ids of special pieces by their names in Vocabulary.

    settings: of config.json, which is at `path`. The start of generation_config.json beside it comes before its own,
    as `generate` has it. Raises ImportedModelError if an id is missing.
    """
    ids: dict[str, tuple[Any, pathlib.Path]] = {name: (settings.get(key), path) for name, key in IDS.items()}
    values, file = read_by_generate(path.parent, settings)
    if IDS["start"] in values:
        ids["start"] = values[IDS["start"]], file
    for name, (number, file) in ids.items():
        if type(number) is not int:
            raise ImportedModelError(f"{file} has {IDS[name]}: {number!r}; it must be an id.")
    return {name: number for name, (number, _) in ids.items()}


def tokens_of(arrays: Arrays, source: Vocabulary, target: Vocabulary, settings: Mapping[str, Any]) -> Tokens:
    """Take the embeddings, and the matrix and bias of the logits.

    Files have the matrix of tied ones once or several times: those must then be equal.
    """
    rows, columns = len(source.pieces), settings.get("d_model")
    encoder, decoder = (f"model.{side}.embed_tokens.weight" for side in ("encoder", "decoder"))
    if settings.get("share_encoder_decoder_embeddings", True):
        embed_source = embed_target = take_tied(arrays, ("model.shared.weight", encoder, decoder), (rows, columns))
    else:
        drop_if_equal(arrays, "model.shared.weight", (encoder, decoder))
        embed_source = arrays.take(encoder, (rows, columns))
        embed_target = arrays.take(decoder, (len(target.pieces), columns))
    bias = arrays.take("final_logits_bias", (len(target.pieces),))
    if not settings.get("tie_word_embeddings", True):
        logits = arrays.take("lm_head.weight", embed_target.shape)
        return Tokens(source, target, embed_source, embed_target, logits, bias)
    if "lm_head.weight" in arrays and not np.array_equal(
        arrays.take("lm_head.weight", embed_target.shape), embed_target
    ):
        raise ImportedModelError(
            f"{arrays.path} has a lm_head.weight that is not the embedding, although tie_word_embeddings is true in "
            "config.json."
        )
    return Tokens(source, target, embed_source, embed_target, embed_target, bias)


def take_tied(arrays: Arrays, names: tuple[str, ...], shape: tuple[int | None, ...]) -> np.ndarray:
    """Take the array that is there under one or more of these names. Raises ImportedModelError if they differ."""
    present = [name for name in names if name in arrays] or [names[0]]
    first = arrays.take(present[0], shape)
    for name in present[1:]:  # one at a time: each may be a quarter of the model
        if not np.array_equal(first, arrays.take(name, shape)):
            raise ImportedModelError(f"{arrays.path} has a {name} that is not {present[0]}, although both are shared.")
    return first


def drop_if_equal(arrays: Arrays, name: str, names: tuple[str, ...]) -> None:
    """Drop an array that is another one as well."""
    if name in arrays and any(
        other in arrays and np.array_equal(arrays.arrays[name], arrays.arrays[other]) for other in names
    ):
        arrays.rest.remove(name)


def sinusoids_in(
    arrays: Arrays, d_model: int, names: Iterable[str] = POSITION_TABLES, first_position: int = 0
) -> str | None:
    """Take the tables of positions that some files hold, which Hugging Face then adds in place of its own sinusoids.

    Returns whose sinusoids they have; None if there are no tables. Raises ImportedModelError for tables of anything
    else, and if those of the two sides differ.
    """
    kinds = {
        name: sinusoids_of(arrays.take(name, (None, d_model)), f"The array {name} of {arrays.path}", first_position)
        for name in names
        if name in arrays
    }
    if len(set(kinds.values())) > 1:
        raise ImportedModelError(f"{arrays.path} has other sinusoids for its encoder than for its decoder.")
    return next(iter(kinds.values()), None)


def sinusoids_of(table: np.ndarray, name: str, first_position: int = 0) -> str:
    """Return whose sinusoids a table has, (positions, d_model). Raises ImportedModelError if it has others.

    Rows before `first_position` may have anything.
    """
    half = table.shape[1] // 2
    errors = {}
    for kind, longest in (("paper", half), ("tensor2tensor", max(half - 1, 1))):
        angles = np.arange(first_position, len(table))[:, np.newaxis] / 10000.0 ** (np.arange(half) / longest)
        expected = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
        errors[kind] = np.abs(expected - table[first_position:]).max(initial=0)
    kind = min(errors, key=errors.__getitem__)
    if errors[kind] > ROUNDING:
        raise ImportedModelError(f"{name} is not a table of sinusoids.")
    return kind


def tokenizer_of(folder: pathlib.Path, pieces: list[str]) -> Tokenizer:
    """Return the tokenizer with these pieces by their ids. Raises ImportedModelError if an .spm is missing."""
    models = []
    for name in ("source.spm", "target.spm"):
        if not (folder / name).exists():
            raise ImportedModelError(f"{folder} has no {name}: the SentencePiece models of both sides are needed.")
        models.append(read_spm(folder / name))
    source, target = models
    if source == target and has_own_ids(source, pieces):
        return Tokenizer.of_bytes(source, folder / "source.spm")
    return PairTokenizer.of_bytes(pair_model_bytes(source, target, pieces), "The tokenizer")


def has_own_ids(model: bytes, pieces: list[str]) -> bool:
    """Whether a SentencePiece model has these pieces by the same ids, as one that a model of ours was exported with."""
    try:
        return Tokenizer.of_bytes(model).pieces() == pieces
    except TokenizerError:
        return False
