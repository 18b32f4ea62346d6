"""generation_config.json: how `generate` of transformers searches with a model, and what of it a run folder keeps."""

import pathlib
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.models.imported.arrays import read_settings
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.vocabulary import Vocabulary
from keras_transformer.search.options import OPTIONS, SearchOptions, checked

GENERATION = "generation_config.json"
FORCED_BOS = "forced_bos_token_id"
KEPT = {"num_beams": "beam_size", "length_penalty": "length_penalty"}  # from keys to fields of SearchOptions
OF_REPETITION = ("no_repeat_ngram_size", "repetition_penalty")  # kept if a search here can have the value
OTHER = {  # keys that change what `generate` returns: the values with which they do not; it may also be null
    "begin_suppress_tokens": (),
    "bad_words_ids": (),
    "constraints": (),
    "diversity_penalty": (0,),
    "do_sample": (False,),
    "early_stopping": (False,),
    "encoder_no_repeat_ngram_size": (0,),
    "encoder_repetition_penalty": (1,),
    "exponential_decay_length_penalty": (),
    "force_words_ids": (),
    "forced_decoder_ids": (),
    "guidance_scale": (1,),
    "max_time": (),
    "min_length": (0, 1),
    "min_new_tokens": (0,),
    "no_repeat_ngram_size": (0,),
    "num_beam_groups": (1,),
    "num_return_sequences": (1,),
    "penalty_alpha": (0,),
    "repetition_penalty": (1,),
    "sequence_bias": (),
    "stop_strings": (),
    "suppress_tokens": (),
    "watermarking_config": (),
}
OF_IDS = {"begin_suppress_tokens", "bad_words_ids", "suppress_tokens"}  # which may name what is never written here
ENDS = ("eos_token_id", "forced_eos_token_id")  # one id, or a list of them
LIMITS = ("max_length", "max_new_tokens")


class Generation(NamedTuple):
    """How a run searches, by fields of SearchOptions, and sentences about what it does not keep."""

    search: dict[str, Any]
    notes: tuple[str, ...] = ()


def generation_of(folder: pathlib.Path, settings: Mapping[str, Any], vocabulary: Vocabulary) -> Generation:
    """Return how `generate` searches with the model in a folder, and what of that a run does not keep.

    settings: of its config.json. vocabulary: that of what it writes. Raises ImportedModelError, with the file and the
    key, for a value that no search can have.
    """
    values, file = read_by_generate(folder, settings)
    kept = {key: values[key] for key in OF_REPETITION if key in values and values[key] not in OTHER[key]}
    kept = {key: value for key, value in kept.items() if is_possible(key, value)}
    others = {key: value for key, value in values.items() if key not in kept}
    return Generation(search_of(values, file) | kept, tuple(not_kept(others, vocabulary, file.name)))


def read_by_generate(folder: pathlib.Path, settings: Mapping[str, Any]) -> tuple[Mapping[str, Any], pathlib.Path]:
    """Return what `generate` reads, and its file: generation_config.json, or `settings` of config.json without one."""
    path = folder / GENERATION
    return (read_settings(path), path) if path.exists() else (settings, folder / "config.json")


def is_possible(key: str, value: Any) -> bool:
    """Return whether a search can have a value for one of its options."""
    try:
        return checked(OPTIONS[key], value) is not None
    except ConfigError:
        return False


def search_of(values: Mapping[str, Any], file: pathlib.Path) -> dict[str, Any]:
    """Return what of a search a run keeps, by fields of SearchOptions; see `generation_of`."""
    search: dict[str, Any] = {"length_normalization": "tokens", "length_penalty": 1.0}
    for key in KEPT.keys() & values.keys():
        try:
            SearchOptions(**{KEPT[key]: values[key]})
        except ConfigError as error:
            raise ImportedModelError(f"{file} has a {key} that no search can have: {error}") from None
        search[KEPT[key]] = values[key]
    return search


def not_kept(values: Mapping[str, Any], vocabulary: Vocabulary, file: str) -> Iterator[str]:
    """Yield the sentences about keys of a file that change what `generate` returns, and nothing here."""
    never = {vocabulary.unk, vocabulary.pad, vocabulary.start} - {vocabulary.eos}
    ends = (vocabulary.eos, [vocabulary.eos])
    found = {key: values[key] for key, neutral in OTHER.items() if key in values and values[key] not in neutral}
    found = {key: value for key, value in found.items() if key not in OF_IDS or not are_among(value, never)}
    found |= {key: values[key] for key in ENDS if key in values and values[key] not in ends}
    if found:
        asked = [key for key, value in found.items() if key in OPTIONS and is_possible(key, value)]
        yield (
            f"{file} has {written(found)}, which a run does not keep: translations may differ from those of "
            "transformers" + (f"; ask for {' and '.join(asked)} in a call" if asked else "")
        )
    if limits := {key: values[key] for key in LIMITS if key in values}:
        yield (
            f"{file} has {written(limits)}; here a translation has at most the tokens of its source and "
            f"{SearchOptions().extra_length} more, unless a call asks otherwise"
        )


def written(values: Mapping[str, Any]) -> str:
    """Return keys and values as a sentence has them."""
    return ", ".join(f"{key}: {value!r:.40}" for key, value in values.items())


def are_among(value: Any, ids: Collection[int | None]) -> bool:
    """Return whether a value is a list of ids of these alone, or of lists that each have one of them."""
    return isinstance(value, list) and all(each in [*ids, *([number] for number in ids)] for each in value)


def forced_bos(folder: pathlib.Path, settings: Mapping[str, Any]) -> tuple[Any, pathlib.Path]:
    """Return the id of the token with which `generate` begins every output, None without one, and the file of it."""
    values, file = read_by_generate(folder, settings)
    return values.get(FORCED_BOS), file
