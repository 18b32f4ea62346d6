"""The section `data` of a set of TensorFlow Datasets."""

from typing import Literal

from ..data import DataSection


class TfdsData(DataSection):
    """A translation set of TensorFlow Datasets, by name and direction. Its shards are even parts of `train_split`."""

    PATHS = ("data_dir",)
    AFTER_TRAINING = (*DataSection.AFTER_TRAINING, "validation_split", "test_split")

    source: Literal["tfds"]
    name: str  # "wmt14_translate/de-en", "ted_hrlr_translate/pt_to_en"
    source_language: str
    target_language: str
    data_dir: str | None = None  # TFDS's folder, or one of LANGUAGE.SPLIT.txt files, such as en.train.txt
    train_split: str = "train"
    validation_split: str = "validation"
    test_split: str = "test"  # "": none
    download: bool = True

    @property
    def description(self) -> str:
        return f"{self.name} of TensorFlow Datasets, split {self.train_split}"

    def offline(self) -> "TfdsData":
        return self.model_copy(update={"download": False})
