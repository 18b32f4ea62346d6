"""From the `data` section of a run configuration to sentence pairs."""

import dataclasses

from train.sources.files import files_splits
from train.sources.numbers import numbers_splits
from train.sources.split import CorpusError, Split, skipped_sentence
from train.sources.tfds import tfds_splits

__all__ = ["Corpus", "CorpusError", "Split", "load_corpus", "skipped_sentence"]


@dataclasses.dataclass(frozen=True)
class Corpus:
    """Three splits, each an iterable of (source, target) strings that can be gone through again and again."""

    train: Split
    validation: Split
    test: Split | None  # None: the data has no test set
    source_language: str
    target_language: str


SPLITS = {"files": files_splits, "numbers": numbers_splits, "tfds": tfds_splits}


def load_corpus(data):
    """NumbersData, FilesData or TfdsData -> Corpus. Sentences are read when a split is iterated, not here.

    Raises CorpusError for what can be seen without reading every sentence, such as a missing file.
    """
    return Corpus(*SPLITS[data.source](data), data.source_language, data.target_language)
