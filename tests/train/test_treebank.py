"""Trees of the Penn format: what is left of them, how they are divided, and what is said of files that have none."""

import zipfile

import pydantic
import pytest

from keras_transformer.pieces.tokenizer import Tokenizer
from tests.support.places import TREEBANK
from tests.support.segmentation import drawn_by
from train.config.sources.treebank import TreebankData
from train.config.tokenizer import TokenizerConfig
from train.data.corpus import CorpusError
from train.data.prepare import load_corpus, load_test_split
from train.data.trees import category, read_trees
from train.data.vocabulary import prepare_tokenizer

# traces, functions, indices, an empty outermost bracket, over several lines
VINKEN = """
( (S
    (NP-SBJ-1 (NNP Mr.) (NNP Vinken) )
    (VP (VBZ is)
      (VP (VBN named)
        (S
          (NP-SBJ (-NONE- *-1) )
          (NP-PRD=2 (NN chairman) ))
        (SBAR-PRP (-NONE- 0) (S (-NONE- *T*-1)))))
    (. .) ))
"""
FLIES = "(S (NP (NN time)) (VP (VBZ flies)))\n"


def trees(text):
    return list(read_trees(text, "a.mrg"))


def treebank(*files, **changes):
    return TreebankData(**{"source": "treebank", "files": list(map(str, files)), "division": "files"} | changes)


@pytest.fixture
def sections(tmp_path):
    """A folder with two trees in each of the sections 00 to 04, one file in a folder of its own."""
    for section in range(5):
        folder = tmp_path / "wsj" / f"{section:02}"
        folder.mkdir(parents=True)
        (folder / f"wsj_{section:02}07.mrg").write_text(FLIES + FLIES.replace("time", f"word{section}"))
    (tmp_path / "wsj" / "README").write_text("no tree")
    return tmp_path / "wsj"


@pytest.mark.parametrize("division", ["files", "trees"])
@pytest.mark.parametrize("count", [2, 3])
def test_three_files_or_trees_are_enough_for_three_splits(tmp_path, division, count):
    paths = [tmp_path / f"{number}.mrg" for number in range(count)]
    for path in paths:
        path.write_text(FLIES)
    if count == 3:
        corpus = load_corpus(treebank(*paths, division=division))
        assert [len(split.trees) for split in (corpus.train, corpus.validation, corpus.test)] == [1, 1, 1]
        return
    with pytest.raises(CorpusError, match=f'"{division}", .* one for each of three splits; data.files has 2'):
        load_corpus(treebank(*paths, division=division))


def test_traces_and_functions_are_gone_and_words_and_tags_are_kept():
    (tree,) = trees(VINKEN)
    assert tree.words == ("Mr.", "Vinken", "is", "named", "chairman", ".")
    assert tree.tags == ("NNP", "NNP", "VBZ", "VBN", "NN", ".")
    source, target = tree.pair
    assert source == "Mr. Vinken is named chairman ."
    assert target == "(S (NP XX XX )NP (VP XX (VP XX (S (NP XX )NP )S )VP )VP XX )S"


@pytest.mark.parametrize(
    "text, target",
    [
        ("( (S (NP (NN a))))", "(S (NP XX )NP )S"),
        ("(TOP (S (NP (NN a))))", "(S (NP XX )NP )S"),
        ("( (NN a))", "(TOP XX )TOP"),  # no phrase: the outermost bracket is the only one
        ("(NN a)", "(TOP XX )TOP"),
        ("( (S (NN a)) (. .))", "(TOP (S XX )S XX )TOP"),  # more than one thing in it
        ("((ROOT (S (NN a))))", "(S XX )S"),
        ("(S(NP(NN a))(VP(VB b)))", "(S (NP XX )NP (VP XX )VP )S"),  # without spaces
    ],
)
def test_the_outermost_bracket(text, target):
    (tree,) = trees(text)
    assert " ".join(tree.symbols) == target


def test_a_tree_without_words_is_no_sentence():
    assert trees("( (S (NP (-NONE- *))))" + FLIES + "() (S (NP))") == trees(FLIES)


@pytest.mark.parametrize(
    "label, left",
    [("NP-SBJ-1", "NP"), ("NP=2", "NP"), ("ADVP|PRT", "ADVP"), ("S", "S"), ("", "TOP"), ("-LRB-", "-LRB-")],
)
def test_a_category_is_a_label_without_function(label, left):
    assert category(label) == left


@pytest.mark.parametrize(
    "text, line, cause",
    [
        (FLIES + "\ntime flies\n", 3, "'time' outside of any tree"),
        (FLIES + "time" + FLIES, 2, "'time' outside"),
        (FLIES + ")", 2, "outside"),
        (FLIES + "\n\n(S (NP (NN a))\n", 4, "never closed"),
        ("(S (NP (NN time) flies))", 1, "'flies' has no bracket of its own"),
        ("\n" + "(S " * 5000 + "(NN a)" + ")" * 5000, 2, "not a tree: .*depth"),
    ],
)
def test_what_is_no_tree_is_named_by_file_and_line(text, line, cause):
    with pytest.raises(CorpusError, match=rf"a\.mrg, line {line}\b.*{cause}"):
        trees(text)


def test_sections_are_found_in_the_names_of_files(sections):
    data = treebank(
        sections, division="sections", train_sections="00,02-03", validation_sections="01", test_sections="04"
    )
    corpus = load_corpus(data)
    assert [len(split.trees) for split in (corpus.train, corpus.validation, corpus.test)] == [6, 2, 2]
    assert list(corpus.test) == [tree.pair for tree in corpus.test.trees] and ("word4 flies") in dict(corpus.test)
    assert list(load_test_split(data)) == list(corpus.test)
    assert corpus.train.description == "6 trees: sections 00,02-03 by file name" == f"6 trees: {corpus.train.part}"


def test_a_split_without_a_tree_is_named_and_the_sizes_of_the_others_are_logged(sections, caplog):
    caplog.set_level("INFO", "train")
    (sections / "01" / "wsj_0107.mrg").write_text("( (S (NP (-NONE- *))))")
    by_sections = {"division": "sections", "train_sections": "00,02", "test_sections": "04"}
    with pytest.raises(CorpusError, match="data.validation has no tree: sections 01 by file name"):
        load_corpus(treebank(sections, validation_sections="01", **by_sections))
    assert caplog.messages == ["data.train: 4 trees, sections 00,02 by file name"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"train_sections": "2-21"}, "'2-21' names no sections"),
        ({"train_sections": "02-22"}, "in two of"),
        ({"validation_share": 0.5, "test_share": 0.5}, "nothing for training"),
        (
            {"division": "sections", "test_share": 0.2},
            'test_share is 0.2, but division is "sections".*leave it out, or .*"files" or "trees"',
        ),
        ({"division": "files", "test_sections": "24"}, "test_sections is '24', but division is \"files\""),
        ({"shards": 2}, "should be 1"),
        ({"files": []}, "at least 1"),
    ],
)
def test_a_configuration_that_makes_no_sense(changes, message):
    with pytest.raises(pydantic.ValidationError, match=message):
        treebank("a.mrg", **changes)


def test_whole_files_are_drawn_by_the_seed_alike_from_a_folder_and_from_a_zip(sections, tmp_path):
    (sections / "._wsj_0001.mrg").write_bytes(b"\x00\x05\x16\x07")  # of macOS
    with zipfile.ZipFile(tmp_path / "wsj.zip", "w") as archive:
        for path in sorted(sections.rglob("*.mrg"), reverse=True):
            archive.write(path, path.relative_to(tmp_path))
    folder, packed = (load_corpus(treebank(path, seed=4)) for path in (sections, tmp_path / "wsj.zip"))
    for name in ("train", "validation", "test"):
        split = getattr(folder, name)
        assert list(split) == list(getattr(packed, name))
        assert [tree.words[0] for tree in split.trees[::2]] == ["time"] * (len(split.trees) // 2)  # files stay whole
    words = [tree.words[0] for split in (folder.train, folder.validation, folder.test) for tree in split.trees]
    assert sorted(words) == ["time"] * 5 + [f"word{number}" for number in range(5)]
    assert "seed 4" in folder.test.part and "whole files" in folder.test.part
    others = [list(load_corpus(treebank(sections, seed=seed)).test) for seed in range(8)]
    assert len({tuple(pairs) for pairs in others}) > 1


def test_files_that_cannot_be_read(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.zip").write_bytes(b"PK no zip")
    (tmp_path / "latin.mrg").write_bytes(b"\n(NN caf\xe9)")
    for name, place in (("encrypted", None), ("torn", 60)):
        with zipfile.ZipFile(tmp_path / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("wsj_0001.mrg", "((S (NN word)))" * 999)
        content = bytearray((tmp_path / f"{name}.zip").read_bytes())
        for header, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
            content[content.index(header) + flags] |= name == "encrypted"
        content[place : place and place + 9] = b"\xff" * 9 if place else content
        (tmp_path / f"{name}.zip").write_bytes(content)
    for name, message in (
        ("missing.mrg", "missing.mrg, but there is no such file"),
        ("empty", "no .mrg file in it"),
        ("bad.zip", "bad.zip cannot be read: File is not a zip file"),
        ("encrypted.zip", "wsj_0001.mrg.* cannot be read: .*encrypted"),
        ("torn.zip", "wsj_0001.mrg.* cannot be read: "),
        ("latin.mrg", "latin.mrg, line 2 is not UTF-8"),
    ):
        with pytest.raises(CorpusError, match=message):
            load_corpus(treebank(tmp_path / name))


def test_tags_may_stand_for_words(sections, tmp_path):
    plain, tagged = (load_corpus(treebank(sections, **changes)) for changes in ({}, {"leaves": "tags"}))
    assert {target for _, target in tagged.test} == {"(S (NP /NN )NP (VP /VBZ )VP )S"}
    assert tagged.train.trees == plain.train.trees  # which are scored
    assert {" /NN", " /VBZ"} == set(tagged.symbols) - set(plain.symbols)
    assert tagged.train.fingerprint() != plain.train.fingerprint()


def test_every_bracket_is_one_piece_of_the_tokenizer(sections, tmp_path):
    corpus = load_corpus(treebank(sections))
    path = tmp_path / "tokenizer.model"
    tokenizer: Tokenizer = prepare_tokenizer(TokenizerConfig(vocab_size=300), corpus.train.shards, path, corpus.symbols)
    line = "(S (NP XX )NP (VP XX )VP )S"
    assert len(tokenizer.encode(line)) == len(line.split())
    assert tokenizer.decode(tokenizer.encode(line)) == line
    assert drawn_by(tokenizer, [line], 1.0) == [tokenizer.encode(line)]  # BPE-dropout divides words alone


@pytest.mark.slow
@pytest.mark.skipif(TREEBANK is None, reason="needs the sample of the Penn Treebank")
def test_the_sample_of_the_penn_treebank():
    corpus = load_corpus(treebank(TREEBANK))
    sizes = [len(split.trees) for split in (corpus.train, corpus.validation, corpus.test)]
    assert sum(sizes) == 3_914 and sizes == [3_249, 239, 426]
    words = [
        word for split in (corpus.train, corpus.validation, corpus.test) for tree in split.trees for word in tree.words
    ]
    assert len(words) == 94_084 and "-NONE-" not in words
