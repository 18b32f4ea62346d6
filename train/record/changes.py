"""The run folder of a training: which configuration may begin and continue it."""

import dataclasses
import json
import logging
import pathlib
from typing import Any

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError, first_line_of
from keras_transformer.ground.files import resolved, write_atomically
from keras_transformer.ground.notations import json_of, toml_of
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.pieces.language_marks import TARGET, Codes, Languages
from keras_transformer.runs.aligned_by import LAST_BUT_ONE
from keras_transformer.runs.inference import TREES, Inference
from keras_transformer.runs.kinds import load_model_config
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import RUN_OPTIONS

from ..config.recorded import BEFORE_THEY_WERE_KEYS
from ..config.run import FORMER_KEYS, RunConfig
from ..workers.tf_config import Worker
from ..workers.workers import Workers
from .finished import refuse_untrained
from .history import Changes

log = logging.getLogger("train")

DEPTH = "model.decoder_layers"
FIXED = (  # sections and keys that decide what a weight means, or which arrays a checkpoint has
    "model.",
    "tokenizer.",
    "training.ema_decay",
    "training.frozen",
    "training.lora_rank",
    "training.lora_alpha",
    "training.lora_matrices",
    "training.optimizer",  # with its options
)


def write_configuration(folder: RunFolder, config: RunConfig, transformer_config: BaseModelConfig) -> None:
    """Write model.json, inference.json and config.toml.

    Each is written in one step: if the process is killed, the old or the new file stays.
    """
    transformer_config.save(folder.model)
    inference_of(config, folder).save(folder.inference_file)
    write_atomically(folder.config, config.to_toml())


def inference_of(config: RunConfig, folder: RunFolder) -> Inference:
    """What commands are told of the run of this configuration in `folder`, which they do not read.

    Trees are searched as in the run's report, and so is text if the run starts from one with its own search, as
    imported models have. For other text, commands keep the defaults that their --help shows, but for a run that reads
    lines of digits. Languages with tags stay those of the model although the text has them no longer.
    """
    names = set(RUN_OPTIONS) if config.data.outputs == TREES else set()
    if config.training.start_from and not names:
        names = set((folder if folder.has_begun() else RunFolder(config.training.start_from)).inference().search)
    search = config.translation.model_dump(include=names - {"keep_letterless"})
    if not config.translation.keep_letterless:
        search["keep_letterless"] = 0
    longest, languages = config.training.row_lengths.source, config.languages
    if languages.source_first == TARGET and folder.has_begun():
        languages = languages.with_earlier(folder.inference().languages)
    alignment = folder.inference().alignment if folder.has_begun() else LAST_BUT_ONE
    return Inference(config.data.outputs, search, longest, languages, alignment)


def check_start(folder: RunFolder, config: RunConfig, worker: Worker) -> None:
    """Check that a run which is to begin with the weights of another one has a model of the same shape.

    The decoder of a Transformer may have fewer layers. Raises ConfigError on the chief, before the text is read, if the
    other run is missing or has another model; and, of a run that has begun too, if its model lacks a language of the
    text.
    """
    if config.training.start_from is None or not worker.is_chief:
        return
    start = RunFolder(config.training.start_from)
    if config.told.are_told:
        for codes in config.data.all_codes():
            check_codes(config.told, codes, start)
    if folder.has_begun():
        return
    for file in (start.model, start.tokenizer, start.weights):
        if not file.exists():
            raise ConfigError(
                f"training.start_from is {start.path}, which has no {file.name}: name the folder of a finished run, "
                "which `keras-transformer import` makes of a model of another system."
            )
    recorded, asked = model_fields(start, config)
    if asked["model.kind"] == TransformerConfig.kind and asked[DEPTH] < recorded[DEPTH]:
        asked[DEPTH] = recorded[DEPTH]
    if changes := differing_keys(recorded, asked):
        differences = "; ".join(f"{key} is {there} there and {here} here" for key, (there, here) in changes.items())
        raise ConfigError(
            f"training.start_from is {start.path}, which has another model: {differences}. Leave the section "
            "[model] out, or give it the values of that run; only the decoder of a Transformer may have fewer layers."
        )


def check_codes(languages: Languages, codes: Codes, start: RunFolder) -> None:
    """Raises ConfigError if a model lacks the languages of a text that it is to be trained on, or must be told them."""
    try:
        languages.told(codes)
    except ConfigError as error:
        raise ConfigError(
            f"training.start_from is {start.path}: {error} Set data.source_language and data.target_language, or "
            "source_language and target_language of each entry of data.train, data.validation and data.test."
        ) from None


def check_unchanged(folder: RunFolder, config: RunConfig) -> Changes:
    """Compare `config` with what the run folder records, if it has a checkpoint. Logs every key that differs.

    Returns these keys, each with its values before and now as text.

    config.toml is the record. If it is damaged or missing, that is logged and model.json takes its place: the caller
    writes config.toml again. Raises ConfigError if a key differs that changes what the weights mean, and if
    there is a finished model without a checkpoint, which a training would replace.
    """
    if not folder.has_begun():
        if folder.weights.exists():
            raise ConfigError(
                f"{folder.path} has a finished model, {folder.weights.name}, and no checkpoint to go on from: training "
                "would begin anew and replace it. Set another run_folder, or remove that file first."
            )
        return {}
    try:
        recorded: dict[str, Any] = BEFORE_THEY_WERE_KEYS | recorded_values(folder)
    except (OSError, ValueError) as error:  # ValueError: neither TOML nor UTF-8
        reason = first_line_of(error)[:-1]
        log.warning("%s cannot be read (%s): it is written again from the given configuration", folder.config, reason)
        refuse(folder, differing_keys(*model_fields(folder, config)))
        return {}
    changes = differing_keys(recorded, flattened(config.to_toml()))
    changes.pop("run_folder", None)
    tokenizer_model = config.effective_tokenizer.model
    if tokenizer_model:  # decides its number of pieces; `prepare_tokenizer` refuses another number that is asked for
        changes.pop("tokenizer.vocab_size", None)
    if tokenizer_model or "normalization" not in config.tokenizer.model_fields_set:  # the tokenizer keeps its own
        changes.pop("tokenizer.normalization", None)
    fixed = {key: change for key, change in changes.items() if key.startswith(FIXED)}
    was_given = recorded.get("tokenizer.model") or recorded.get("training.start_from")
    if config.tokenizer.model and not was_given:
        raise ConfigError(
            f"{folder.path} has learned its tokenizer, and tokenizer.model is now {config.tokenizer.model}: leave it "
            "out, or set another run_folder."
        )
    if tokenizer_model and is_tokenizer_of(folder, pathlib.Path(tokenizer_model)):
        fixed.pop("tokenizer.model", None)  # it has moved
    if fixed and all(key.startswith("model.") for key in fixed) and is_same_model(folder, config):
        fixed = {}  # a value of the preset is written out, or no longer
    if "'mixed_float16'" in changes.get("training.precision", ()):  # which alone scales its loss
        fixed["training.precision"] = changes["training.precision"]
    refuse(folder, fixed)
    beside = [beside_paths(config, values) for values in (recorded, flattened(config.to_toml()))]
    refuse_untrained(folder, config, changes, config.keys_in("PATHS") - differing_keys(*beside).keys())
    refuse_another_start(folder, recorded.get("training.start_from"), config.training.start_from)
    for key, (before, now) in changes.items():
        log.info("the configuration has changed since this run began: %s was %s and is %s", key, before, now)
    return changes


def recorded_values(folder: RunFolder) -> dict[str, Any]:
    """The flat values of config.toml, without idle former keys. Raises OSError or, if it is damaged, ValueError."""
    values = flattened(folder.config.read_text(encoding="utf-8"))
    if not values:
        raise ValueError("it is empty")
    return {key: value for key, value in values.items() if key not in FORMER_KEYS or value != FORMER_KEYS[key]}


def model_fields(folder: RunFolder, config: RunConfig) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of the configuration in model.json, and those that `config` asks for; none if there is no file.

    The vocabulary's size and the keys of [training] are not in the model section: they are taken from model.json.
    """
    if not folder.model.exists():
        return {}, {}
    recorded = load_model_config(folder.model)
    asked = config.model.resolve(recorded.vocab_size, recorded)

    def fields(model):
        values = {"kind": model.kind} | dataclasses.asdict(model)
        if isinstance(model, TransformerConfig):
            values |= {"key_dim": model.d_k, "value_dim": model.d_v}
        return {f"model.{name}": value for name, value in values.items()}

    return fields(recorded), fields(asked)


def is_same_model(folder: RunFolder, config: RunConfig) -> bool:
    """Whether model.json holds the model that `config` asks for, in whatever keys. False if there is no file."""
    return folder.model.exists() and not differing_keys(*model_fields(folder, config))


def is_tokenizer_of(folder: RunFolder, path: pathlib.Path) -> bool:
    """Whether the tokenizer at `path` is the one in the run folder, or is gone since it was copied there."""
    return not path.exists() or (folder.tokenizer.exists() and path.read_bytes() == folder.tokenizer.read_bytes())


def refuse(folder: RunFolder, changes: Changes) -> None:
    """Raises ConfigError if there are any of these changes."""
    if changes:
        differences = "; ".join(f"{key} was {before} and is {now}" for key, (before, now) in changes.items())
        raise ConfigError(
            f"{folder.path} was begun with another model, tokenizer or optimizer: {differences}. Its checkpoints would "
            "not fit: go back to that configuration, or set another run_folder."
        )


def refuse_another_start(folder: RunFolder, before: str | None, now: str | None) -> None:
    """Raises ConfigError if a run that has begun is now to start from another run, or from none."""
    if before == now or (before and now and resolved(before) == resolved(now)):
        return
    began = f"from the weights of {before}" if before else "from random weights"
    raise ConfigError(
        f"{folder.path} was begun {began}, and training.start_from is now {now or 'not set'}: a run starts once. Go "
        "back to that configuration, or set another run_folder."
    )


def check_same_on_all_workers(config: RunConfig, workers: Workers) -> None:
    """Raises ConfigError on a worker whose configuration differs from the chief's; paths may differ."""
    own = without_paths(config)
    differing = differing_keys(own, json_of(workers.text_of_chief(json.dumps(own))))
    if differing:
        different = [f"{key} is {here} here and {there} there" for key, (here, there) in differing.items()]
        raise ConfigError(
            f"This worker's configuration is not that of worker 0: {'; '.join(different)}. "
            "Start every worker with the same configuration."
        )


def without_paths(config: RunConfig) -> dict[str, Any]:
    """What all workers must have alike: of the training files their tags and weights, not where they are."""
    values, paths = flattened(config.to_toml()), config.keys_in("PATHS")
    marked = {key: marks for key, marks in beside_paths(config, values).items() if any(marks)}
    return {key: value for key, value in values.items() if key not in paths} | marked


def beside_paths(config: RunConfig, values: dict[str, Any]) -> dict[str, list[str]]:
    """What the paths in flat values say beside where files are, as the source of `config` reads them."""
    section = {key.removeprefix("data."): value for key, value in values.items() if key.startswith("data.")}
    return {f"data.{key}": value for key, value in config.data.beside_paths(section, config.told.are_told).items()}


def differing_keys(before: dict[str, Any], now: dict[str, Any]) -> Changes:
    """Of each key at which two flat configurations differ, both values as text; "not set" for a missing one."""

    def text_of(values: dict[str, Any], key: str) -> str:
        return repr(values[key]) if key in values else "not set"

    return {
        key: (text_of(before, key), text_of(now, key))
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
    }


def flattened(toml: str) -> dict[str, Any]:
    """TOML text as one dict: [a] b = 1 becomes {"a.b": 1}."""

    def pairs(values, prefix):
        for key, value in values.items():
            if isinstance(value, dict):
                yield from pairs(value, f"{prefix}{key}.")
            else:
                yield f"{prefix}{key}", value

    return dict(pairs(toml_of(toml), ""))
