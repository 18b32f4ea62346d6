"""Sentence pairs from TensorFlow Datasets: any translation set by its name, or a folder in TranslateFolder's layout."""

import pathlib

from train.data.corpus import CorpusError, Split
from train.data.files import file_stamp


def tfds_splits(data):
    """TfdsData -> (train, validation, test) Splits; test is None where `test_split` is empty.

    Downloads and prepares the set if need be. The direction is the one that `data` states, whatever the set's name:
    wmt14_translate/de-en also translates from en to de. Raises CorpusError for what the set does not have, and for
    what cannot be downloaded.
    """
    builder = _folder_builder(data) if _is_translate_folder(data.data_dir) else _prepared_builder(data)
    _check_direction(builder, data)
    train = (_split(builder, data, "train", part) for part in _train_parts(builder, data))
    return (
        Split.of_shards("data.train_split", train),
        _split(builder, data, "validation", data.validation_split),
        _split(builder, data, "test", data.test_split) if data.test_split else None,
    )


def _is_translate_folder(data_dir):
    """True for a folder of lang.split.txt files: tfds.folder_dataset.TranslateFolder's layout."""
    return data_dir is not None and any(pathlib.Path(data_dir).expanduser().glob("*.*.txt"))


def _folder_builder(data):
    try:
        return _tensorflow_datasets().folder_dataset.TranslateFolder(data.data_dir)
    except ValueError as error:
        raise CorpusError(f"{data.data_dir} is no folder of aligned LANGUAGE.SPLIT.txt files: {error}.") from None


def _prepared_builder(data):
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
    except Exception as error:  # requests', TFDS' own, the operating system's: each means that there is no data
        raise CorpusError(
            f"The TFDS set {data.name!r} could not be downloaded: {_first_line(error)} "
            "Try again later, since such hosts are often busy, or fetch the text yourself and name its files "
            'with data.source = "files".'
        ) from error
    return builder


def _check_direction(builder, data):
    languages = list(builder.info.features)
    for field in ("source_language", "target_language"):
        if getattr(data, field) not in languages:
            raise CorpusError(
                f"data.{field} is {getattr(data, field)!r}, but {data.name!r} has the languages {', '.join(languages)}."
            )
    if data.source_language == data.target_language:
        raise CorpusError(f"data.source_language and data.target_language are both {data.source_language!r}.")


def _train_parts(builder, data):
    """data.train_split as it is, or in even parts, of which each reads its own records only."""
    if data.shards == 1:
        return [data.train_split]
    if _is_translate_folder(data.data_dir):
        raise CorpusError(
            f"data.shards is {data.shards}, but {data.data_dir} is read from beginning to end. Divide its files and "
            'name them with data.source = "files".'
        )
    return _tensorflow_datasets().even_splits(data.train_split, data.shards)


def _split(builder, data, name, part):
    """`part` is what TFDS calls a split: a name, or a part of one."""
    try:
        examples = builder.as_dataset(split=part, shuffle_files=False)
    except Exception as error:  # ValueError, KeyError or AssertionError, by the kind of builder
        raise CorpusError(
            f"data.{name}_split is {getattr(data, f'{name}_split')!r}, which {data.name!r} cannot give: it has the "
            f"splits {', '.join(builder.info.splits)}. {_first_line(error)}"
        ) from None
    return Split(f"data.{name}_split", lambda: _pairs(examples, data), lambda: _fingerprint(builder, data, part))


def _fingerprint(builder, data, part):
    """A prepared set never changes; the files of a folder may."""
    folder = pathlib.Path(builder.data_dir)
    files = sorted(folder.glob("*.*.txt")) if _is_translate_folder(data.data_dir) else ()
    return {
        "source": "tfds",
        "set": builder.info.full_name,
        "folder": str(folder.resolve()),
        "files": [[file_stamp(path, "data_dir") for path in files]],
        "part": str(part),
        "languages": [data.source_language, data.target_language],
    }


def _pairs(examples, data):
    for example in examples.as_numpy_iterator():
        yield example[data.source_language].decode("utf-8"), example[data.target_language].decode("utf-8")


def _what_there_is(name):
    """What a set can be asked for, such as the pairs of wmt14_translate; for no set, where names are listed."""
    set_name = name.partition("/")[0]
    try:
        configurations = _tensorflow_datasets().builder_cls(set_name).builder_configs
    except ValueError:
        return "https://www.tensorflow.org/datasets/catalog/overview#translate lists the names"
    return f"{set_name} has {', '.join(configurations)}"


def _tensorflow_datasets():
    try:
        import tensorflow_datasets
    except ImportError as error:
        raise CorpusError(
            f'data.source = "tfds" needs the package tensorflow-datasets ({error}): pip install tensorflow-datasets.'
        ) from None
    return tensorflow_datasets


def _first_line(error):
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0].rstrip(".") + "."
