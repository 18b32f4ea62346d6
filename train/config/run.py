"""The run configuration: one TOML file, checked where it is read."""

import difflib
import functools
import importlib
import os
import pathlib
import pkgutil
import tomllib
from collections.abc import Callable, Collection, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Union

import pydantic
import tomli_w

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.notations import toml_of
from keras_transformer.model_config import BaseModelConfig
from keras_transformer.pieces.language_marks import NO_LANGUAGES, TARGET, Languages
from keras_transformer.runs.inference import TREES
from keras_transformer.runs.kinds import load_model_config
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.search.options import check_coverage

from . import sources
from .augmentation import AugmentationConfig, check_augmentation
from .cleaning import CleaningConfig
from .data import DataSection
from .model import OF_TRAINING, SET_ELSEWHERE, ModelConfig
from .section import PathText, Section
from .tokenizer import TokenizerConfig, check_tokenizer
from .training import TrainingConfig
from .translation import TranslationConfig

LONGEST = 200  # characters of a value in a message
OF_TABLES = ("model_type", "model_attributes_type", "dict_type")  # pydantic's names for a value that is no table
BRANCHES = ("pair", "tsv", "table")  # names that pydantic puts between the number of an entry and its key


def sections_in(package: ModuleType) -> tuple[type[DataSection], ...]:
    """The sections `data`, one per file of a package."""
    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    return tuple(sorted(DataSection.__subclasses__(), key=lambda section: section.__name__))


SOURCES = sections_in(sources)


class RunConfig(Section):
    """The whole file: two paths and the sections."""

    PATHS = ("run_folder", "cache_folder")
    run_folder: PathText
    cache_folder: PathText | None = None  # encoded text, for several runs; None: `cache_path`
    if TYPE_CHECKING:
        data: DataSection
    else:
        data: Annotated[Union[SOURCES], pydantic.Field(discriminator="source")]  # noqa: UP007
    tokenizer: TokenizerConfig = TokenizerConfig()
    model: ModelConfig = ModelConfig()
    training: TrainingConfig = TrainingConfig()
    translation: TranslationConfig = TranslationConfig()

    @property
    def cache_path(self) -> pathlib.Path:
        """`cache_folder`, or the folder "cache" beside the run folder."""
        return pathlib.Path(self.cache_folder or pathlib.Path(self.run_folder).parent / "cache")

    @property
    def effective_tokenizer(self) -> TokenizerConfig:
        """`tokenizer`; if it names no model and training starts from another run, with the tokenizer of that run."""
        if self.tokenizer.model or not self.training.start_from:
            return self.tokenizer
        return self.tokenizer.model_copy(update={"model": str(RunFolder(self.training.start_from).tokenizer)})

    @property
    def languages(self) -> Languages:
        """Which languages the model of this run reads and writes, and how it is told them.

        Those of the run that it starts from stay, if that is told them by pieces, and others with tags are added.
        """
        own, start = self.data.told_languages, self.start_folder
        if start is None or self.data.outputs == TREES:
            return own
        told = start.inference().languages
        if not told.are_told:
            return told if own == NO_LANGUAGES else own
        if told.source_first == own.source_first == TARGET:
            added = {code: piece for code, piece in own.target.items() if not told.has(TARGET, code)}
            return told._replace(source={**own.source, **told.source}, target={**told.target, **added})
        return told

    @property
    def told(self) -> Languages:
        """The languages by whose pieces training tells the model those of a pair: none, if it starts from no run."""
        return self.languages if self.training.start_from else NO_LANGUAGES

    @property
    def start_folder(self) -> RunFolder | None:
        """The folder that remembers the model which training starts from; None if there is none."""
        return folder_of_start({"run_folder": self.run_folder}, self.training.start_from)

    def transformer_config(self, vocab_size: int) -> BaseModelConfig:
        """The model of this run with a vocabulary of `vocab_size` pieces."""
        return self.model.resolve(vocab_size, self.training)

    def with_tokenizer(self, vocab_size: int, normalization: str) -> "RunConfig":
        """The same with what the tokenizer of the run has: one that is given, or of an earlier version, has its own."""
        own = {"vocab_size": vocab_size, "normalization": normalization}
        return self.model_copy(update={"tokenizer": self.tokenizer.model_copy(update=own)})

    def keys_in(self, mark: str) -> set[str]:
        """The keys that the sections list in "PATHS" or in "AFTER_TRAINING": {"data.train", ...}."""
        sections = {"": self} | {f"{name}.": getattr(self, name) for name in SECTIONS}
        return {f"{prefix}{key}" for prefix, section in sections.items() for key in getattr(section, mark)}

    def to_toml(self) -> str:
        return tomli_w.dumps(self.model_dump(exclude_none=True))


SECTIONS: dict[str, tuple[type[Section], ...]] = {
    "data": SOURCES,
    "tokenizer": (TokenizerConfig,),
    "model": (ModelConfig,),
    "training": (TrainingConfig,),
    "translation": (TranslationConfig,),
}
KEYS = [
    "run_folder",
    "cache_folder",
    *(f"{name}.{key}" for name, kinds in SECTIONS.items() for kind in kinds for key in kind.model_fields),
    *(f"data.clean.{key}" for key in CleaningConfig.model_fields),
    *(f"training.augment.{key}" for key in AugmentationConfig.model_fields),
]


# With the values that change nothing: they are left out where a file has them
FORMER_KEYS = {"data.terms": 0, "data.context": 0, "data.context_sides": "source"}

WITHOUT = {  # keys of other programs that this one has not, by a decision
    f"model.{name}": "each head of queries has keys and values of its own; leave it out, or lower model.d_ff, which "
    "saves as much time (docs/variants.md)"
    for name in ("kv_heads", "n_kv_heads", "num_kv_heads", "num_key_value_heads")
}


def load_config(path: str | os.PathLike, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a TOML file, apply `section.key=value` overrides, check the result.

    Values of overrides are TOML (`training.steps=100`, `model.preset="tiny"`); a bare word is a string.
    Raises ConfigError with one line per key that is unknown, missing or ill-typed.
    """
    values = read_toml(path)
    for override in overrides:
        _apply_override(values, override)
    return check_config(values, path, overrides)


def read_toml(path: str | os.PathLike) -> dict[str, Any]:
    """The values in a TOML file; a byte order mark is skipped. Raises ConfigError with the path and the cause."""
    path = pathlib.Path(path)
    try:
        values = toml_of(path.read_bytes().decode("utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"There is no configuration file {path}. See configs/ for examples.") from None
    except OSError as error:
        raise ConfigError(f"The configuration file {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise ConfigError(
            f"{path} is not UTF-8: its byte {error.start + 1} is 0x{byte:02x}. Save it as UTF-8."
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}.") from None
    for name, idle in FORMER_KEYS.items():
        section, key = name.split(".")
        if isinstance(part := values.get(section), dict) and part.get(key) == idle:
            del part[key]
    return values


def check_config(values: dict[str, Any], path: str | os.PathLike, overrides: Sequence[str] = ()) -> RunConfig:
    """The RunConfig of `values`, whose model can be built. Errors name the override or the file that set a key."""
    where = functools.partial(set_by, path=path, overrides=overrides)
    try:
        config = RunConfig.model_validate(completed_by_start(values))
        config = config.model_copy(update={"data": config.data.told_by(config.told)})
        _check_model(config)
    except pydantic.ValidationError as error:
        raise ConfigError("\n".join(sentence(dict(finding), where, KEYS) for finding in error.errors())) from None
    except ConfigError as error:
        raise ConfigError(f"{where('model')}: {error}") from None
    if config.training.best_metric == "f1" and config.data.outputs != TREES:
        raise ConfigError(
            f'{where("training.best_metric")}: training.best_metric is "f1", that of the brackets of trees, but '
            f'data.source is "{config.data.source}" and not "treebank": choose "bleu", "chrf" or "loss".'
        )
    check_tokenizer(config.effective_tokenizer, config.data, where)
    check_augmentation(config.training.augment, config.tokenizer, config.data, where)
    return config


def _check_model(config: RunConfig) -> None:
    """Raises ConfigError for a model that cannot be built or trained, before the corpus is read."""
    training = config.training
    model = config.transformer_config(config.tokenizer.vocab_size)
    check_coverage(model, config.translation.coverage_penalty, "translation.coverage_penalty")
    for name in OF_TRAINING:
        if (value := getattr(training, name)) and name not in model.fields():
            raise ConfigError(
                f"training.{name} is {value}, but model.kind is {model.kind!r}, which has none: leave it out."
            )
    is_aligned = model.memory_attentions and config.data.outputs != TREES
    if training.guided_alignment and not is_aligned:
        why = "the outputs are trees" if model.memory_attentions else "the model attends to no source"
        raise ConfigError(f"training.guided_alignment is {training.guided_alignment}, but {why}: leave it out.")
    shift = training.shift_positions or 0
    for key in ("row_length", "source_row_length"):
        length = getattr(training, key) or 0
        if model.position_limit is not None and length + shift > model.position_limit:
            shifted = f" and training.shift_positions {shift} are" if shift else " is"
            raise ConfigError(
                f"training.{key} {length}{shifted} more than model.max_positions {model.position_limit}, the number "
                "of learned positions: lower the one or raise the other."
            )


def _apply_override(values: dict[str, Any], override: str) -> None:
    """Set the key of `override` in `values`, or leave it out if the value is `null`.

    Raises ConfigError if it is not section.key=value.
    """
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override}: expected section.key=value, for example training.steps=100.")
    try:
        value, *more = toml_of(f"value = {text}").values()
        if more:
            raise ConfigError(f"--set {key}: its value has a line break, which begins another key. Give each a --set.")
    except tomllib.TOMLDecodeError:
        value = text.strip()
    *sections, name = key.strip().split(".")
    for section in sections:
        values = values.setdefault(section, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {override}: {section} is a value, not a section.")
    if value == "null":  # not a value of TOML
        values.pop(name, None)
    else:
        values[name] = value


def completed_by_start(values: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a configuration file with what they leave out and `training.start_from` has.

    Without a section [model], the model is that of the other run, with its keys of [training]. What [translation]
    leaves out is the other run's own search, if it has one, as imported models do and presets, but for its shortlist:
    that is a file of the other run. A run that has begun remembers both itself: the other one may be gone by then.
    Values that make no sense, or name no run, are returned as they are.

    Raises ConfigError if a file of the run is damaged.
    """
    training = values.get("training")
    if not isinstance(training, dict) or not (folder := folder_of_start(values, training.get("start_from"))):
        return values
    values = dict(values)
    if "model" not in values and folder.model.exists():
        config = load_model_config(folder.model)
        fields = {name: value for name, value in config.to_dict().items() if value is not None}
        values["model"] = {name: value for name, value in fields.items() if name not in SET_ELSEWHERE}
        usual = {name: getattr(TransformerConfig, name) for name in OF_TRAINING}
        of_other = {name: fields[name] for name in OF_TRAINING if fields.get(name, usual[name]) != usual[name]}
        values["training"] = of_other | training
    translation, search = values.get("translation", {}), folder.inference().search
    if search and isinstance(translation, dict):
        own = {name: value for name, value in search.items() if name in TranslationConfig.model_fields}
        values["translation"] = {**own, **translation}
    return values


def folder_of_start(values: dict[str, Any], start_from: Any) -> RunFolder | None:
    """Return the folder that remembers the model which training starts from; None if there is none."""
    run_folder = values.get("run_folder")
    if not (isinstance(start_from, str) and start_from):
        return None
    if isinstance(run_folder, str) and (own := RunFolder(pathlib.Path(run_folder).expanduser())).has_begun():
        return own
    return RunFolder(pathlib.Path(start_from).expanduser())


def sentence(finding: dict[str, Any], where: Callable[[str], str], known_keys: Collection[str]) -> str:
    """One of the `errors()` of a pydantic.ValidationError as a sentence.

    where: from a key ("training.steps") to the file or option that set it. known_keys: all keys of a configuration.
    """
    kind, value = finding["type"], finding["input"]
    place, source = [str(part) for part in finding["loc"]], ""
    if place[0] == "data" and len(place) > 1:  # pydantic names the branch of the union: ("data", "files", "train")
        source = f" if data.source is {place.pop(1)!r}"
    if kind in ("union_tag_invalid", "union_tag_not_found"):  # found in the section `data`, about its key `source`
        place, value = ["data", "source"], finding.get("ctx", {}).get("tag")
    key = ".".join(part for part in place if part not in BRANCHES)
    if key in WITHOUT:
        return f"{where(key)}: there is no key {key}{source}: {WITHOUT[key]}."
    if kind == "extra_forbidden":
        likely = _likely(key, known_keys)
        return f"{where(key)}: there is no key {key}{source}" + (f"; did you mean {likely}?" if likely else ".")
    if kind == "none_required":
        return f"{where(key)}: {key} has no use{source}: leave it out."
    if kind in ("missing", "union_tag_not_found"):
        return f"{where(key)}: {key} is missing{source}."
    if kind == "value_error":  # one of our own validators, whose message has the value in it
        said = f"{finding['ctx']['error']}."
        return f"{where(key)}: {said if said.startswith(f'{key}.') else f'{key}: {said}'}"
    if kind == "union_tag_invalid":
        return f"{where(key)}: {key} is {value!r}; it must be one of {finding['ctx']['expected_tags']}."
    message = "input should be a table of keys" if kind in OF_TABLES else finding["msg"]
    shown = repr(value)
    if len(shown) > LONGEST:
        shown = f"{shown[:LONGEST]}..."
    return f"{where(key)}: {key} is {shown}: {message[0].lower()}{message[1:]}."


def set_by(key: str, path: str | os.PathLike, overrides: Sequence[str]) -> str:
    """The last override that sets the key, one inside it, or a value that has it inside; `path` if there is none."""
    inside = f"{key}."
    names = [(f"{override.partition('=')[0].strip()}.", override) for override in overrides]
    options = [override for name, override in names if name.startswith(inside) or inside.startswith(name)]
    return f"--set {options[-1]}" if options else str(path)


def _likely(key: str, known_keys: Collection[str]) -> str | None:
    """The key of the same name in another section, or else the one that looks most like it; None if there is none."""
    if key in known_keys:  # of another data.source
        return None
    by_name: dict[str, list[str]] = {}
    for known in known_keys:
        by_name.setdefault(known.rpartition(".")[2], []).append(known)
    names = difflib.get_close_matches(key.rpartition(".")[2], by_name, 1, 0.7)  # a name itself is the closest
    return difflib.get_close_matches(key, by_name[names[0]], 1, 0)[0] if names else None
