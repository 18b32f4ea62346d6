"""A folder that Marian wrote: its options as a TransformerConfig, its vocabulary, its weights."""

import json
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.arrays import read_npz
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.marian_files import MarianFiles
from keras_transformer.models.imported.marian_yaml import read_options
from keras_transformer.models.imported.model import ImportedModel, languages_of_tags
from keras_transformer.models.imported.vocabulary import Vocabulary
from keras_transformer.models.imported.weights import Arrays, Tokens, values_of_blocks

OPTIONS = "special:model.yml"  # the array of model.npz that holds them, as text
EPSILON = 1e-6  # of LayerNorm, in Marian's code
ACTIVATIONS = "relu", "swish", "gelu"
# what an option must be: its first value if it is missing, as in models of before there was such an option
NEEDED = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "transformer-ffn-depth": (2,),
    "transformer-decoder-ffn-depth": (0, 2),
    "transformer-no-projection": (False,),
    "transformer-no-bias": (False,),
    "transformer-no-affine": (False,),
    "transformer-pool": (False,),
    "transformer-attention-mask": ("default",),
    "transformer-alibi-shift": (False,),
    "transformer-alibi-trainable": (False,),
    "transformer-disable-position-embeddings": (False,),
    "transformer-train-position-embeddings": (False,),
    "factors-dim-emb": (0,),
    "lemma-dim-emb": (0,),
    "lemma-dependency": ("",),
    "input-types": ((), ("sequence",), ("sequence", "sequence")),
    "right-left": (False,),
    "ulr": (False,),
}
NEEDED_OF_RNN = {  # likewise, if what reads the past in the decoder is recurrent
    "dec-cell": ("ssru",),
    "transformer-rnn-projection": (False,),
    "layer-normalization": (False,),
}
DECODER_LAYERS = {"self-attention": "self_attention", "rnn": "ssru"}
NORMS = {  # of the operations before and after a sublayer, and behind the last block: n is LayerNorm, a the sum
    ("", "an", ""): "post",
    ("n", "a", "n"): "pre",
}


def import_marian(path: pathlib.Path) -> ImportedModel:
    """Read a folder that Marian wrote, or a model.npz in one.

    Raises ImportedModelError, with the name of the file, option or array, for what cannot be imported, and OSError if a
    file cannot be read.
    """
    files = MarianFiles.of(path)
    content = read_npz(files.model)
    if OPTIONS not in content:
        raise ImportedModelError(f"{files.model} has no array {OPTIONS}, so it is not a model of Marian.")
    options = read_options(content[OPTIONS].tobytes(), files.model)
    check_options(options, files.model)
    arrays = Arrays(content, files.model)
    arrays.rest.remove(OPTIONS)
    vocabularies = files.vocabularies()
    tokens = tokens_of(arrays, vocabularies.source, vocabularies.target, options.get("dim-emb"))
    config = config_of(options, tokens, files.model)
    values = values_of_blocks(arrays, config, lambda weight: weight.marian, is_huggingface=False)
    arrays.refuse_rest()
    return ImportedModel(
        config=config,
        values=values | tokens.values(config),
        tokenizer=vocabularies.tokenizer(tokens.pieces()),
        languages=languages_of_tags(tokens.pieces(), files.languages()[0] if files.languages()[1] else (None, None)),
        search=search_of(files.decoder_options()),
        kind="Marian",
        notes=(*notes_of(files.decoder_options()), *notes_of_moses(files, vocabularies.languages)),
    )


def check_options(options: Mapping[str, Any], path: pathlib.Path) -> None:
    """Raises ImportedModelError for an option whose value makes another model than ours."""
    is_recurrent = options.get("transformer-decoder-autoreg") == "rnn"
    for name, allowed in (NEEDED | (NEEDED_OF_RNN if is_recurrent else {})).items():
        value = options.get(name, allowed[0])
        comparable = "" if value is None else tuple(value) if isinstance(value, list) else value
        if comparable not in allowed and not (comparable == "" and () in allowed):
            refuse(
                name,
                value,
                path,
                " or ".join(as_yaml(list(choice) if isinstance(choice, tuple) else choice) for choice in allowed),
            )
    tied = options.get("transformer-tied-layers") or []
    if list(tied) != list(range(1, len(tied) + 1)):
        refuse("transformer-tied-layers", tied, path, "an empty list")
    if activation_of(options) not in ACTIVATIONS:
        refuse("transformer-ffn-activation", activation_of(options), path, ", ".join(ACTIVATIONS))
    if options.get("transformer-decoder-dim-ffn", 0) not in (0, options.get("transformer-dim-ffn")):
        refuse("transformer-decoder-dim-ffn", options["transformer-decoder-dim-ffn"], path, "that of the encoder")
    embedded = operations(options, "transformer-postprocess-emb")
    if embedded:
        refuse("transformer-postprocess-emb", options["transformer-postprocess-emb"], path, "d or nothing")


def refuse(name: str, value: Any, path: pathlib.Path, expected: str) -> None:
    """Raises ImportedModelError for an option of a model."""
    raise ImportedModelError(f"{path} has the option {name}: {as_yaml(value)}; only {expected} can be imported.")


def as_yaml(value: Any) -> str:
    """Return the value of an option as Marian's files have it."""
    return json.dumps(value) if isinstance(value, bool | list) else str(value)


def activation_of(options: Mapping[str, Any]) -> Any:
    """Return the activation of the feed-forward network."""
    return options.get("transformer-ffn-activation", "swish")


def operations(options: Mapping[str, Any], name: str, default: str = "") -> str:
    """Return the operations around sublayers that an option has, without dropout, which inference has not."""
    return (options.get(name, default) or "").replace("d", "")


def config_of(options: Mapping[str, Any], tokens: Tokens, path: pathlib.Path) -> TransformerConfig:
    """Return the configuration that these options describe. Raises ImportedModelError if one is missing."""
    before, after, top = (
        operations(options, f"transformer-{name}", default)
        for name, default in (("preprocess", ""), ("postprocess", "dan"), ("postprocess-top", ""))
    )
    if (before, after, top) not in NORMS:
        raise ImportedModelError(
            f'{path} has the options transformer-preprocess: "{before}", transformer-postprocess: "{after}" and '
            f'transformer-postprocess-top: "{top}" (without d, dropout); only "", "an" and "", or "n", "a" and "n" can '
            "be imported."
        )
    try:
        sizes = {
            "encoder_layers": options["enc-depth"],
            "decoder_layers": options["dec-depth"],
            "d_model": options["dim-emb"],
            "d_ff": options["transformer-dim-ffn"],
            "num_heads": options["transformer-heads"],
        }
    except KeyError as error:
        raise ImportedModelError(f"{path} has no option {error}, which every transformer of Marian has.") from None
    return TransformerConfig(
        vocab_size=len(tokens.pieces()),
        **sizes,
        activation=activation_of(options),
        norm=NORMS[before, after, top],
        norm_epsilon=EPSILON,
        sinusoids="tensor2tensor",
        decoder_layer=DECODER_LAYERS[options.get("transformer-decoder-autoreg", "self-attention")],
        attention_bias=True,
        shared_embeddings=tokens.is_shared,
        logits_bias=True,
    )


def tokens_of(arrays: Arrays, source: Vocabulary, target: Vocabulary, d_model: int | None) -> Tokens:
    """Take the embeddings, and the matrix and bias of the logits; some of them may be one."""
    if "Wemb" in arrays:
        if source != target:
            raise ImportedModelError(
                f"{arrays.path} has one matrix Wemb for two vocabularies that differ: name the one that it has in "
                "decoder.yml."
            )
        embed_source = embed_target = arrays.take("Wemb", (len(source.pieces), d_model))
    else:
        embed_source = arrays.take("encoder_Wemb", (len(source.pieces), d_model))
        embed_target = arrays.take("decoder_Wemb", (len(target.pieces), d_model))
    logits, classes = embed_target, len(target.pieces)
    if "decoder_ff_logit_out_Wt" in arrays:
        logits = arrays.take("decoder_ff_logit_out_Wt", (classes, d_model))
    elif "decoder_ff_logit_out_W" in arrays:
        logits = arrays.take("decoder_ff_logit_out_W", (d_model, classes)).T
    has_bias = "decoder_ff_logit_out_b" in arrays  # not with the option output-omit-bias
    bias = arrays.take("decoder_ff_logit_out_b", (classes,)) if has_bias else np.zeros(classes, np.float32)
    return Tokens(source, target, embed_source, embed_target, logits, bias)


def search_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a decoder.yml says of the search, by fields of SearchOptions."""
    normalize = options.get("normalize") or 0
    search = {"length_normalization": "tokens", "length_penalty": 1.0 if normalize is True else normalize}
    return search | ({"beam_size": options["beam-size"]} if "beam-size" in options else {})


def notes_of(options: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a decoder.yml says of the search that searches here do not do."""
    for name in ("word-penalty", "allow-unk"):
        if options.get(name):
            yield f"{name}: {options[name]} in its decoder.yml has no counterpart: translations are without it"


def notes_of_moses(files: MarianFiles, languages: tuple[str, str] | None) -> Iterator[str]:
    """Yield by whose rules words are divided, if Moses divides them."""
    if languages:
        source, target = languages
        why = "as its folder is called" if files.languages()[1] else "since its folder is not called like opus-mt-en-de"
        yield f"words by Moses' rules of {source} and {target}, {why}"
