"""Sentence pairs from TensorFlow Datasets: a translation set by its name, or a folder in TranslateFolder's layout."""

import functools
import pathlib
from collections.abc import Iterator
from types import ModuleType

from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.files import on_one_line, resolved

from ...config.sources.tfds import TfdsData
from ..corpus import Corpus, CorpusError, Pair, Split
from ..files import file_stamp


def read_corpus(data: TfdsData) -> Corpus:
    """The Corpus of a set; it has no test Split if `test_split` is empty.

    Downloads and prepares the set if necessary. The languages of `data` decide the direction, not the name of the set:
    wmt14_translate/de-en also serves en to de. Raises CorpusError if the set lacks a language or split, or cannot be
    downloaded.
    """
    builder = _folder_builder(data) if _is_translate_folder(data.data_dir) else _prepared_builder(data)
    _check_direction(builder, data)
    train = (_split(builder, data, "train", part) for part in _train_parts(builder, data))
    return Corpus(
        Split.of_shards("data.train_split", train),
        _split(builder, data, "validation", data.validation_split),
        _split(builder, data, "test", data.test_split) if data.test_split else None,
        data.source_language,
        data.target_language,
    )


def _is_translate_folder(data_dir: str | None) -> bool:
    """True for a folder of lang.split.txt files: tfds.folder_dataset.TranslateFolder's layout."""
    return data_dir is not None and any(pathlib.Path(data_dir).expanduser().glob("*.*.txt"))


def _folder_builder(data: TfdsData):
    """The tfds.folder_dataset.TranslateFolder of data_dir."""
    try:
        return _tensorflow_datasets().folder_dataset.TranslateFolder(data.data_dir)
    except ValueError as error:
        raise CorpusError(f"{data.data_dir} is not a folder of aligned LANGUAGE.SPLIT.txt files: {error}.") from None


def _prepared_builder(data: TfdsData):
    """The tfds.core.DatasetBuilder of the set, downloaded and prepared."""
    tfds = _tensorflow_datasets()
    try:
        builder = tfds.builder(data.name, data_dir=data.data_dir)
    except ValueError:
        raise CorpusError(f"TFDS has no set {data.name!r}: {_what_there_is(data.name)}.") from None
    if builder.is_prepared():
        return builder
    if not data.download:
        raise CorpusError(f"The TFDS set {data.name!r} is not in {builder.data_dir}, and data.download is false.")
    try:
        builder.download_and_prepare()
    except Exception as error:  # of requests, TFDS or the operating system: each means that there is no data
        raise CorpusError(
            f"The TFDS set {data.name!r} could not be downloaded: {first_line_of(error)} "
            "Try again later, since such hosts are often busy, or fetch the text yourself and name its files "
            'with data.source = "files".'
        ) from error
    return builder


def _check_direction(builder, data: TfdsData) -> None:
    languages = list(builder.info.features)
    for field in ("source_language", "target_language"):
        if getattr(data, field) not in languages:
            raise CorpusError(
                f"data.{field} is {getattr(data, field)!r}, but {data.name!r} has the languages {', '.join(languages)}."
            )
    if data.source_language == data.target_language:
        raise CorpusError(f"data.source_language and data.target_language are both {data.source_language!r}.")


def _train_parts(builder, data: TfdsData) -> list:
    """data.train_split, or its even parts, one per shard. Each part reads only its own records."""
    if data.shards == 1:
        return [data.train_split]
    if _is_translate_folder(data.data_dir):
        raise CorpusError(
            f"data.shards is {data.shards}, but {data.data_dir} can only be read from beginning to end. Divide "
            'its files and name them with data.source = "files".'
        )
    return _tensorflow_datasets().even_splits(data.train_split, data.shards)


def _split(builder, data: TfdsData, name: str, part) -> Split:
    """The Split data.`name`_split. `part`: a split of TFDS, as a name or as a ReadInstruction for a part of it."""
    try:
        examples = builder.as_dataset(split=part, shuffle_files=False)
    except Exception as error:  # ValueError, KeyError or AssertionError, depending on the builder
        raise CorpusError(
            f"data.{name}_split is {getattr(data, f'{name}_split')!r}, which {data.name!r} does not have: it has the "
            f"splits {', '.join(builder.info.splits)}. {first_line_of(error)}"
        ) from None
    fingerprint = functools.partial(_fingerprint, builder, data, part)
    return Split(f"data.{name}_split", lambda: _pairs(examples, data), fingerprint, told=[data.codes])


def _fingerprint(builder, data: TfdsData, part) -> dict:
    """What decides the pairs. A prepared set never changes; the files of a folder may."""
    folder = pathlib.Path(builder.data_dir)
    files = sorted(folder.glob("*.*.txt")) if _is_translate_folder(data.data_dir) else ()
    return {
        "source": "tfds",
        "set": builder.info.full_name,
        "folder": str(resolved(folder)),
        "files": [[file_stamp(path, "data_dir") for path in files]],
        "part": str(part),
        "languages": [data.source_language, data.target_language],
    }


def _pairs(examples, data: TfdsData) -> Iterator[Pair]:
    for example in examples.as_numpy_iterator():
        source, target = (
            example[language].decode("utf-8") for language in (data.source_language, data.target_language)
        )
        yield on_one_line(source), on_one_line(target)  # as a sentence of a file is


def _what_there_is(name: str) -> str:
    """The configurations of the set, such as the language pairs of wmt14_translate, or where sets are listed."""
    set_name = name.partition("/")[0]
    try:
        configurations = _tensorflow_datasets().builder_cls(set_name).builder_configs
    except ValueError:
        return "https://www.tensorflow.org/datasets/catalog/overview#translate lists the names"
    return f"{set_name} has {', '.join(configurations)}"


def _tensorflow_datasets() -> ModuleType:
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise CorpusError(
            f'data.source = "tfds" needs the package tensorflow-datasets ({error}): pip install tensorflow-datasets.'
        ) from None
    return tensorflow_datasets
