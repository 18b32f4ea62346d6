"""Arguments of transformers' translation pipeline, and of its `generate`, as what a search here is asked.

Of each argument one of three holds: it is read, it changes nothing here, or one sentence refuses it. docs/
from_transformers.md has them all.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.search.options import OPTIONS, TOKENS, checked

SAMPLING = ("temperature", "top_k", "top_p", "seed")
SAMPLED_FROM = 50  # the top_k of transformers, unless it is given
READ = (  # arguments of a call, and of the making of a pipeline
    *("src_lang", "tgt_lang", "batch_size", "clean_up_tokenization_spaces"),
    *("num_beams", "num_return_sequences", "length_penalty", "do_sample", *SAMPLING),
    *("max_length", "max_new_tokens", "min_length", "min_new_tokens", "no_repeat_ngram_size", "repetition_penalty"),
)
CHANGE_NOTHING = frozenset(
    """
    early_stopping use_cache truncation padding return_text num_workers framework use_fast use_safetensors
    low_cpu_mem_usage trust_remote_code
    """.split()
)


class Refused(NamedTuple):
    """What is refused unless its value is one of those that ask for nothing. instead: the rest of the sentence."""

    instead: str
    nothing: tuple[Any, ...] = (None,)


REFUSED = {
    "return_tensors": Refused("ids of pieces have other numbers here: read translation_text", (None, False)),
    "return_type": Refused("a translation comes as text: leave it out", (None, 1)),
    "num_beam_groups": Refused("sibling_penalty of kt.SearchOptions makes hypotheses differ", (None, 1)),
    "diversity_penalty": Refused("sibling_penalty of kt.SearchOptions makes hypotheses differ", (None, 0)),
    "forced_bos_token_id": Refused("name the language by tgt_lang"),
    "bad_words_ids": Refused("forbid phrases by `protect` of kt.Translator.translate"),
    "force_words_ids": Refused("name phrases by `required` of kt.Translator.translate"),
    "constraints": Refused("name phrases by `required` of kt.Translator.translate"),
    "generation_config": Refused("give its values as arguments"),
    "stop_sequence": Refused("a translation ends where its model ends it"),
    "config": Refused("a folder has its own"),
    "feature_extractor": Refused("a translation has none"),
    "image_processor": Refused("a translation has none"),
    "processor": Refused("a translation has none"),
    "pipeline_class": Refused("there is one"),
    "model_kwargs": Refused("give dtype alone", (None, {})),
    "device_map": Refused("a model is on one device, that of TensorFlow", (None, "auto", "cpu")),
    "token": Refused("give it in the variable HF_TOKEN"),
    "use_auth_token": Refused("give it in the variable HF_TOKEN"),
}


class Asked(NamedTuple):
    """What a call asks for.

    search: options by fields of SearchOptions. n_best: translations of each text. source_language, target_language:
    codes, "" if left out. batch_size: texts that are read and translated together; None: left out. cleans_up: whether
    spaces before punctuation go.
    """

    search: Mapping[str, Any] = {}
    n_best: int = 1
    source_language: str = ""
    target_language: str = ""
    batch_size: int | None = None
    cleans_up: bool = False


def read(arguments: Mapping[str, Any], beam_size: int, extra_length: int = 0) -> Asked:
    """Return what arguments ask for; None is as left out.

    beam_size, extra_length: of the model's own search. Raises ConfigError for an argument that is unknown or refused,
    or for its value.
    """
    refuse(arguments)
    asked = {name: value for name, value in arguments.items() if value is not None and name in READ}
    n_best = number("n_best", asked, "num_return_sequences", 1)
    search = {**lengths(asked, extra_length), **beams(asked, beam_size, n_best)}
    for name in ("no_repeat_ngram_size", "repetition_penalty"):
        if name in asked:
            search[name] = number(name, asked, name, 0)
    for name in ("src_lang", "tgt_lang"):
        if not isinstance(asked.get(name, ""), str):
            raise ConfigError(f"{name} is {asked[name]!r:.60}; it must be the code of a language, such as 'de'.")
    batch_size = asked.get("batch_size")
    if batch_size is not None and (type(batch_size) is not int or batch_size < 1):
        raise ConfigError(f"batch_size is {batch_size!r:.60}; it must be a whole number of at least 1.")
    return Asked(
        search=search,
        n_best=n_best,
        source_language=asked.get("src_lang", ""),
        target_language=asked.get("tgt_lang", ""),
        batch_size=batch_size,
        cleans_up=bool(asked.get("clean_up_tokenization_spaces", False)),
    )


def refuse(arguments: Mapping[str, Any]) -> None:
    """Raises ConfigError for an argument that is unknown, or that is refused and asks for something."""
    for name, value in arguments.items():
        if name in REFUSED:
            refused = REFUSED[name]
            if not any(type(value) is type(nothing) and value == nothing for nothing in refused.nothing):
                raise ConfigError(f"A pipeline here does not take {name}={value!r:.40}: {refused.instead}.")
        elif name not in READ and name not in CHANGE_NOTHING:
            raise ConfigError(f"A pipeline here does not know {name!r:.60}; it takes {', '.join(READ)}.")


def number(option: str, asked: Mapping[str, Any], name: str, default: Any) -> Any:
    """Return the value of an argument, which is an option of the search by another name."""
    return checked(dataclasses.replace(OPTIONS[option], name=name), asked.get(name, default))


def lengths(asked: Mapping[str, Any], extra_length: int) -> dict[str, Any]:
    """Return the shortest and the longest translation, as tokens that a search counts: those of the text, and EOS.

    In transformers the token with which a decoder starts counts in max_length and min_length, EOS does not in the
    least length, and max_new_tokens wins over max_length.
    """
    search: dict[str, Any] = {}
    least = 1
    if "min_length" in asked:
        least = max(count("min_length", asked, 0), 1)
    if "min_new_tokens" in asked:
        least = max(least, count("min_new_tokens", asked, 0) + 1)
    if "max_new_tokens" in asked:
        search["max_length"] = count("max_new_tokens", asked, 1)
    elif "max_length" in asked:
        search["max_length"] = count("max_length", asked, 2) - 1
    if least > 1:
        search["min_length"] = least
    most = search.get("max_length")
    if most is not None and least > most:
        raise ConfigError(
            f"A translation is to have at least {least} tokens, its end included, and at most {most}: change "
            "min_length or max_length."
        )
    if search:  # of a short text too
        search["extra_length"] = most or max(least, extra_length)
    return search


def count(name: str, asked: Mapping[str, Any], lowest: int) -> int:
    """Return a number of tokens."""
    option = dataclasses.replace(OPTIONS["min_length"], name=name, lowest=lowest)
    return int(checked(option, asked[name]) or 0)


def beams(asked: Mapping[str, Any], beam_size: int, n_best: int) -> dict[str, Any]:
    """Return how hypotheses are found and compared."""
    search: dict[str, Any] = {}
    if "num_beams" in asked:
        beam_size = search["beam_size"] = number("beam_size", asked, "num_beams", 1)
    if asked.get("do_sample"):
        if "num_beams" in asked and beam_size > 1:
            raise ConfigError(
                f"do_sample=True with num_beams={beam_size} draws among hypotheses, which this search does not do: "
                "leave one of them out."
            )
        search |= {"temperature": 1.0, "top_k": SAMPLED_FROM}
        search |= {name: number(name, asked, name, None) for name in SAMPLING if name in asked}
        if search["temperature"] == 0:
            raise ConfigError("temperature is 0; a sample needs one above 0, and do_sample=False draws none.")
        beam_size = search["beam_size"] = n_best
    if n_best > beam_size:
        raise ConfigError(f"num_return_sequences is {n_best} and num_beams {beam_size}: raise num_beams.")
    if n_best > 1:
        search["n_best"] = n_best
    if "length_penalty" in asked:
        search["length_penalty"] = number("length_penalty", asked, "length_penalty", 1.0)
        search["length_normalization"] = TOKENS
    return search


NAMES = {  # of the arguments that ask for a field of SearchOptions
    "beam_size": "num_beams",
    "n_best": "num_return_sequences",
    "max_length": "max_new_tokens",
    "extra_length": "max_new_tokens",
}
