"""Text files as a corpus: every pair is read as it stands, or counted, or named in an error."""

import bz2
import gzip
import lzma
import os
import pathlib

import pytest

from tests.support.places import MULTI30K_CONFIGS
from train.config.run import load_config
from train.config.sources.files import FilesData
from train.config.sources.numbers import NumbersData
from train.config.sources.treebank import TreebankData
from train.data.corpus import CorpusError
from train.data.files import file_stamp
from train.data.prepare import load_corpus, load_test_split


def files(tmp_path, source, target, **more):
    """FilesData whose training split is the given bytes."""
    (tmp_path / "train.en").write_bytes(source)
    (tmp_path / "train.de").write_bytes(target)
    pair = [str(tmp_path / "train.en"), str(tmp_path / "train.de")]
    return FilesData(**{"source": "files", "train": [pair], "validation": [pair]} | more)


def train_pairs(data):
    return list(load_corpus(data).train)


def test_lines_are_pairs(tmp_path):
    assert train_pairs(files(tmp_path, b"a\nb\n", b"x\ny\n")) == [("a", "x"), ("b", "y")]


def test_only_the_line_end_is_stripped(tmp_path):
    assert train_pairs(files(tmp_path, b" a \r\n", b"\tx\t\n")) == [(" a ", "\tx\t")]


def test_only_a_newline_ends_a_line(tmp_path):
    sentence = "one\u2028two\x0bthree\x0cfour\x85five\rsix"
    assert train_pairs(files(tmp_path, sentence.encode() + b"\nb\n", b"x\ny\n")) == [(sentence, "x"), ("b", "y")]


def test_a_byte_order_mark_is_no_part_of_the_first_sentence(tmp_path):
    assert train_pairs(files(tmp_path, b"\xef\xbb\xbfa\n", b"x\n")) == [("a", "x")]


def test_gz_is_unpacked(tmp_path):
    for name, text in (("a.gz", b"a\nb\n"), ("x.gz", b"x\ny\n")):
        (tmp_path / name).write_bytes(gzip.compress(text))
    entry = [str(tmp_path / "a.gz"), str(tmp_path / "x.gz")]
    assert train_pairs(FilesData(source="files", train=[entry], validation=[entry])) == [("a", "x"), ("b", "y")]


def test_tsv_gives_its_first_two_columns(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tx\nb\ty\tattribution\n", encoding="utf-8")
    path = str(tmp_path / "pairs.tsv")
    assert train_pairs(FilesData(source="files", train=[path], validation=[path])) == [("a", "x"), ("b", "y")]


def test_entries_follow_one_another(tmp_path):
    data = files(tmp_path, b"a\n", b"x\n")
    assert train_pairs(data.model_copy(update={"train": data.train * 2})) == [("a", "x")] * 2


def test_a_limit_takes_the_first_training_pairs_alone_and_is_another_text(tmp_path):
    whole = load_corpus(files(tmp_path, b"a\nb\nc\n", b"x\ny\nz\n"))
    part = load_corpus(files(tmp_path, b"a\nb\nc\n", b"x\ny\nz\n", train_pairs=2))
    assert list(part.train) == [("a", "x"), ("b", "y")] == list(whole.train)[:2]
    assert list(part.validation) == list(whole.validation) and len(list(whole.train)) == 3
    assert part.train.fingerprint() != whole.train.fingerprint()


def test_a_limit_needs_one_shard(tmp_path):
    with pytest.raises(ValueError, match="train_pairs 2 needs shards = 1"):
        files(tmp_path, b"a\n", b"x\n", train_pairs=2, shards=2)


def test_a_tag_stands_before_every_source_sentence_of_its_entry_but_no_empty_one(tmp_path):
    data = files(tmp_path, b"a\n \nc\n", b"x\ny\nz\n")
    plain, table = data.train[0], {"files": data.train[0], "tag": "<2de>"}
    tagged = FilesData(source="files", train=[plain, table], validation=[table])
    assert train_pairs(tagged) == [("a", "x"), ("c", "z"), ("<2de>a", "x"), ("<2de>c", "z")]
    corpus = load_corpus(tagged)
    assert corpus.symbols == ("<2de>",) and list(corpus.validation) == [("<2de>a", "x"), ("<2de>c", "z")]
    assert load_test_split(tagged).fingerprint() == corpus.validation.fingerprint()
    assert corpus.validation.fingerprint() != load_corpus(data).validation.fingerprint()
    assert corpus.train.fingerprint()["tags"] == ["", "<2de>"]


@pytest.mark.parametrize("written", [b"<bt> a\n<bt>\n<bt> c\n", b"<bt>a\n<bt>\n<bt>c\n", b"a\n\nc\n"])
def test_back_translated_text_has_its_tag_once_whoever_wrote_it(tmp_path, written):
    """With a space `cluster back-translate --tag` writes it, before a translation that is empty too."""
    pair = files(tmp_path, written, b"x\ny\nz\n").train[0]
    data = FilesData(source="files", train=[{"files": pair, "tag": "<bt>"}], validation=[pair])
    assert train_pairs(data) == [("<bt>a", "x"), ("<bt>c", "z")]


def test_a_split_can_be_read_again_and_counts_anew(tmp_path):
    split = load_corpus(files(tmp_path, b"a\n \nb\nc\n", b"x\ny\n\nz\n")).train
    for _ in range(2):
        assert list(split) == [("a", "x"), ("c", "z")]
        assert split.skipped == {"empty source": 1, "empty target": 1}


def test_a_split_in_memory_needs_its_files_no_more(tmp_path):
    split = load_corpus(files(tmp_path, b"a\n \nb\n", b"x\ny\nz\n")).train
    held = split.in_memory()
    for path in tmp_path.iterdir():
        path.unlink()
    for _ in range(2):
        assert list(held) == [("a", "x"), ("b", "z")]
        assert held.skipped == {"empty source": 1} and split.skipped == {}


@pytest.mark.parametrize("blank", [" ", "\t", "\u3000", "\u2028", "\u200b", "\u2060", "\u00ad", "\ufeff\ufeff"])
def test_a_side_of_spaces_or_invisible_characters_alone_is_empty(tmp_path, blank):
    split = load_corpus(files(tmp_path, f"a\n{blank}\nc\n".encode(), f"x\ny\n{blank}\n".encode())).train
    assert list(split) == [("a", "x")]
    assert split.skipped == {"empty source": 1, "empty target": 1}


def test_languages_are_those_of_the_configuration(tmp_path):
    corpus = load_corpus(files(tmp_path, b"a\n", b"x\n", source_language="en", target_language="de"))
    assert (corpus.source_language, corpus.target_language) == ("en", "de")


@pytest.mark.parametrize(
    "source, target, message",
    [
        (b"a\nb\nc\n", b"x\n", "train.en has 3 lines and .*train.de has 1.*train.de ends before line 2"),
        (b"a\n", b"x\ny\n", "train.de has 2 lines and .*train.en has 1.*train.en ends before line 2"),
        (b"a\nb\n", b"x\n\xe4\n", "train.de, line 2 is not UTF-8.* 0xe4"),
        (b"a\n", "xy\n".encode("utf-16"), "train.de, line 1 is not UTF-8.* UTF-16: .*iconv -f UTF-16 "),
        (b"a\n", "xy\n".encode("utf-16-le"), "train.de, line 1 is not UTF-8.* UTF-16LE: .*iconv -f UTF-16LE "),
        (gzip.compress(b"a\n", mtime=0), b"x\n", "train.en is gzip-compressed but not named .gz"),
        (lzma.compress(b"a\n"), b"x\n", "train.en is compressed: unpack it, for example with `unxz"),
        (b"a\n", bz2.compress(b"x\n"), "train.de is compressed: unpack it, for example with `bunzip2"),
        (b"\n\n", b"x\ny\n", "data.train has no sentence pair left. Skipped: 2 empty source."),
        (b"", b"", "data.train has no sentence pair left. Skipped: none."),
    ],
)
def test_bad_files_are_named_with_the_line(tmp_path, source, target, message):
    with pytest.raises(CorpusError, match=message):
        train_pairs(files(tmp_path, source, target))


def test_a_line_without_a_tab_is_named(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tx\nb y\n", encoding="utf-8")
    path = str(tmp_path / "pairs.tsv")
    with pytest.raises(CorpusError, match="pairs.tsv, line 2 has no tab"):
        train_pairs(FilesData(source="files", train=[path], validation=[path]))


def test_a_blank_line_of_a_tsv_file_is_skipped_and_counted_as_an_empty_pair(tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tx\n\n \nb\ty\n\n", encoding="utf-8")
    path = str(tmp_path / "pairs.tsv")
    split = load_corpus(FilesData(source="files", train=[path], validation=[path])).validation
    assert list(split) == [("a", "x"), ("b", "y")] and sum(split.skipped.values()) == 3


def test_the_fingerprint_of_plain_files_has_nothing_but_them(tmp_path):
    """So that a text which was encoded, or recorded by a run, before there were tags is known again."""
    data = files(tmp_path, b"a\nb\n", b"x\ny\n")
    assert set(load_corpus(data).train.fingerprint()) == {"source", "files"}
    assert set(load_corpus(data.model_copy(update={"train_pairs": 1})).train.fingerprint()) == {
        "source",
        "files",
        "pairs",
    }


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_missing_file_is_named_before_anything_is_read(tmp_path, split):
    data = files(tmp_path, b"a\n", b"x\n", **{split: [[str(tmp_path / "train.en"), str(tmp_path / "none.de")]]})
    for load in (load_corpus, load_test_split)[: None if split == "test" else 1]:
        with pytest.raises(CorpusError, match=f"data.{split} names .*none.de, but there is no such file"):
            load(data)


@pytest.mark.parametrize("kind, why", [("folder", "a folder: name files"), ("pipe", "a pipe or a device, and text is")])
def test_what_is_no_file_is_named(tmp_path, kind, why):
    """As of `<(zcat train.en.zst)` in a shell."""
    path = tmp_path / "text"
    path.mkdir() if kind == "folder" else os.mkfifo(path)
    with pytest.raises(CorpusError, match=f"data.train names .*text, which is {why}"):
        file_stamp(path, "train")


@pytest.mark.parametrize("config", MULTI30K_CONFIGS, ids=lambda path: path.stem)
def test_missing_files_of_multi30k_are_named_with_the_command_that_gets_them(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CorpusError, match=r"data/multi30k/train\.\w\w\.gz, .*make multi30k`"):
        load_corpus(load_config(config).data)
    with pytest.raises(CorpusError, match=r"data/multi30k/captions\.de, .*make multi30k CAPTIONS=1`"):
        file_stamp(pathlib.Path("data/multi30k/captions.de"), "train")


def test_an_entry_of_three_files_is_refused(tmp_path):
    data = files(tmp_path, b"a\n", b"x\n")
    with pytest.raises(CorpusError, match="data.train has .*, an entry of 3 files: an entry is "):
        load_corpus(data.model_copy(update={"train": [data.train[0] + data.train[0][:1]]}))


def middle_flipped(content):
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :]


PACKED = gzip.compress(b"".join(f"sentence {number}\n".encode() for number in range(5_000)), mtime=0)


@pytest.mark.parametrize(
    "content, message",
    [
        (PACKED[:-20], "broken.gz cannot be decompressed after line [1-9].*ended before the end.*: copy it again"),
        (
            PACKED[:10] + b"\xff" + PACKED[11:],
            "broken.gz cannot be decompressed after line 0: .*block type",
        ),  # zlib.error
        (middle_flipped(PACKED), "broken.gz cannot be decompressed after line"),
        (PACKED[:-8] + bytes(8), "broken.gz cannot be decompressed after line 5,000"),  # a wrong checksum
        (b"not packed\n", "broken.gz cannot be decompressed after line 0"),
        (gzip.compress(PACKED, mtime=0), "broken.gz is compressed twice"),
    ],
)
def test_a_broken_gz_is_named_with_line_and_cause(tmp_path, content, message):
    (tmp_path / "broken.gz").write_bytes(content)
    (tmp_path / "intact").write_bytes(gzip.decompress(PACKED))
    entry = [str(tmp_path / "broken.gz"), str(tmp_path / "intact")]
    with pytest.raises(CorpusError, match=message):
        train_pairs(FilesData(source="files", train=[entry], validation=[entry]))


def test_two_files_in_a_flat_list_are_read_as_tsv_with_a_hint_at_the_pair(tmp_path):
    flat = [path for (pair,) in [files(tmp_path, b"a b\n", b"x y\n").train] for path in pair]
    with pytest.raises(CorpusError) as error:
        train_pairs(FilesData(source="files", train=flat, validation=flat))
    for part in (f"{flat[0]}, line 1", "data.train", f'[["{flat[0]}", "{flat[1]}"]]'):
        assert part in str(error.value)


@pytest.mark.parametrize("has_pair", [False, True])
def test_one_tsv_file_without_tabs_gets_no_hint_at_a_pair(tmp_path, has_pair):
    data = files(tmp_path, b"a b\n", b"x y\n")
    path = data.train[0][0]
    with pytest.raises(CorpusError) as error:
        train_pairs(FilesData(source="files", train=[path, *data.train * has_pair], validation=[path]))
    assert f"{path}, line 1" in str(error.value) and "[[" not in str(error.value)


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_the_same_file_on_both_sides_is_refused(tmp_path, split):
    (tmp_path / "elsewhere").symlink_to(tmp_path)
    path = tmp_path / "train.en"
    with pytest.raises(CorpusError, match=f"data.{split} names .*train.en as source and as target"):
        load_corpus(files(tmp_path, b"a\n", b"x\n", **{split: [[str(path), str(tmp_path / "elsewhere" / "train.en")]]}))


def test_the_paths_of_a_section_are_the_files_of_every_split_in_the_home_folder_too(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    tree = tmp_path / "wsj" / "00" / "wsj_0001.mrg"
    tree.parent.mkdir(parents=True)
    for path in (tree, tree.with_name("README")):
        path.touch()
    splits = {"train": [["~/a", "b"]], "validation": ["c"], "test": [{"files": ["d", "~/e"]}]}
    assert [*map(str, FilesData(source="files", **splits).paths())] == [
        f"{tmp_path}/a",
        "b",
        "c",
        "d",
        f"{tmp_path}/e",
    ]
    assert TreebankData(source="treebank", files=["~/wsj", "~/all.txt"]).paths() == [tree, tmp_path / "all.txt"]
    plain = NumbersData(source="numbers")
    assert (plain.paths(), plain.tags, plain.unfit_tokenizer, plain.beside_paths({})) == ([], (), {}, {})
