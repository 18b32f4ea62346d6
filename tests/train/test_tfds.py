"""A set of TensorFlow Datasets is a corpus in the direction asked for; what a set does not have is named."""

import sys

import pytest

from train.config.sources.tfds import TfdsData
from train.data.corpus import CorpusError
from train.data.prepare import load_corpus, load_test_split
from train.data.sources import tfds


@pytest.fixture
def folder(tmp_path):
    """A set in the layout of tfds.folder_dataset.TranslateFolder."""
    pytest.importorskip("tensorflow_datasets")
    for language in ("de", "en"):
        for split in ("train", "validation", "test"):
            (tmp_path / f"{language}.{split}.txt").write_text(f"{split} 1 {language}\n\n{split} 3 {language}\n")
    return tmp_path


def tfds_data(data_dir, **changes):
    fields = {"name": "my_folder", "source_language": "en", "target_language": "de", "data_dir": str(data_dir)}
    return TfdsData(**{"source": "tfds"} | fields | changes)


def test_a_translate_folder_is_a_corpus(folder):
    corpus = load_corpus(tfds_data(folder))
    assert list(corpus.train) == list(corpus.train) == [("train 1 en", "train 1 de"), ("train 3 en", "train 3 de")]
    assert corpus.train.skipped == {"empty source": 1}
    for split, name in ((corpus.validation, "validation"), (corpus.test, "test")):
        assert list(split) == [(f"{name} 1 en", f"{name} 1 de"), (f"{name} 3 en", f"{name} 3 de")]


@pytest.mark.parametrize(
    ("data_dir", "is_one"),
    [("~/texts", True), ("{home}/texts", True), ("~/sets", False), ("~/nowhere", False), (None, False)],
)
def test_a_translate_folder_is_one_of_files_that_are_named_by_language_and_split(
    tmp_path, monkeypatch, data_dir, is_one
):
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("texts/en.train.txt", "sets/readme.txt"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
    assert tfds._is_translate_folder(data_dir and data_dir.format(home=tmp_path)) == is_one


def test_the_direction_is_the_one_asked_for(folder):
    assert next(iter(load_corpus(tfds_data(folder, source_language="de", target_language="en")).train)) == (
        "train 1 de",
        "train 1 en",
    )


def test_an_empty_test_split_is_none(folder):
    data = tfds_data(folder, test_split="")
    assert load_corpus(data).test is None
    assert list(load_test_split(data))[0] == ("validation 1 en", "validation 1 de")
    assert list(load_test_split(tfds_data(folder)))[0] == ("test 1 en", "test 1 de")


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"target_language": "fr"}, "target_language is 'fr', but 'my_folder' has the languages de, en"),
        ({"target_language": "en"}, "are both 'en'"),
        ({"validation_split": "dev"}, "validation_split is 'dev'.* it has the splits .*validation"),
    ],
)
def test_what_a_set_does_not_have_is_named(folder, changes, message):
    with pytest.raises(CorpusError, match=message):
        load_corpus(tfds_data(folder, **changes))


def test_a_folder_that_does_not_match_is_named(folder):
    (folder / "en.train.txt").write_text("one\n")
    with pytest.raises(CorpusError, match="do not match"):
        load_corpus(tfds_data(folder))


def test_an_unknown_set_or_pair_says_what_there_is(tmp_path):
    pytest.importorskip("tensorflow_datasets")
    with pytest.raises(CorpusError, match="no set 'nowhere'.*catalog"):
        load_corpus(tfds_data(tmp_path, name="nowhere"))
    with pytest.raises(CorpusError, match="no set 'wmt14_translate/de-xx'.*de-en, fr-en"):
        load_corpus(tfds_data(tmp_path, name="wmt14_translate/de-xx"))


def test_a_set_that_must_not_be_downloaded_is_named(tmp_path):
    pytest.importorskip("tensorflow_datasets")
    with pytest.raises(CorpusError, match="not in .*wmt14_translate.* data.download is false"):
        load_corpus(tfds_data(tmp_path, name="wmt14_translate/de-en", download=False))


def test_a_failed_download_says_which_address_and_offers_files(tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")

    def fail(self, **_):
        raise tfds.download.DownloadError("Failed to get url http://www.statmt.org/wmt14.tgz. HTTP code: 503.")

    monkeypatch.setattr(tfds.core.DatasetBuilder, "download_and_prepare", fail)
    with pytest.raises(CorpusError, match='wmt14_translate/de-en.*statmt.org/wmt14.tgz. HTTP code: 503.*"files"'):
        load_corpus(tfds_data(tmp_path, name="wmt14_translate/de-en"))


def test_another_direction_of_a_tfds_set_is_another_fingerprint(tmp_path):
    pytest.importorskip("tensorflow_datasets")
    for name in ("en.train.txt", "de.train.txt", "en.validation.txt", "de.validation.txt"):
        (tmp_path / name).write_text("a\nb\n", encoding="utf-8")

    def fingerprint(source_language, target_language, **changes):
        languages = {"source_language": source_language, "target_language": target_language}
        fields = {"source": "tfds", "name": "x", "data_dir": str(tmp_path), "test_split": ""} | languages | changes
        return load_corpus(TfdsData(**fields)).train.fingerprint()

    forward = fingerprint("en", "de")
    assert set(forward) == {"source", "set", "folder", "files", "part", "languages"} and forward["source"] == "tfds"
    assert forward == fingerprint("en", "de") and forward != fingerprint("de", "en")
    assert forward != fingerprint("en", "de", train_split="validation")
    (tmp_path / "de.train.txt").write_text("a\nlonger\n", encoding="utf-8")
    assert forward != fingerprint("en", "de")


def test_a_folder_of_text_files_cannot_be_divided_into_shards(folder):
    with pytest.raises(CorpusError, match='read from beginning to end.*data.source = "files"'):
        load_corpus(tfds_data(folder, shards=2))


def test_without_the_package_it_is_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow_datasets", None)
    sentence = r'data.source = "tfds" needs the package tensorflow-datasets \(.+\): pip install tensorflow-datasets'
    with pytest.raises(CorpusError, match=sentence):
        load_corpus(tfds_data(tmp_path))
