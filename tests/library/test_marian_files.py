"""Which files of a folder are the model and its vocabularies; test_folder.py has whole folders."""

import re

import pytest

from keras_transformer.ground.errors import UserError
from keras_transformer.models.imported import marian_files
from keras_transformer.models.imported.marian_files import MarianFiles, Vocabularies, named_in, renumbered
from keras_transformer.models.imported.vocabulary import Vocabulary
from keras_transformer.pieces.pair_tokenizer import PairTokenizer
from keras_transformer.pieces.tokenizer import Tokenizer, model_proto
from tests.support.marian import MARIAN
from tests.support.runs import tokenizer_bytes


@pytest.fixture
def folder(tmp_path):
    """A function that writes empty files, or those with a content, and returns the folder."""

    def write(*names, **contents):
        for name in names:
            (tmp_path / name).touch()
        for name, content in contents.items():
            (tmp_path / name.replace("_", ".")).write_text(content, encoding="utf-8")
        return tmp_path

    return write


def test_the_decoder_of_a_model_is_the_one_of_its_name_or_else_the_one_beside_it(folder):
    path = folder("m.npz")
    assert MarianFiles.of(path / "m.npz") == MarianFiles.of(path) == (path / "m.npz", None)
    folder("decoder.yml")
    assert MarianFiles.of(path / "m.npz").decoder == path / "decoder.yml"
    folder("m.npz.decoder.yml")
    assert MarianFiles.of(path / "m.npz").decoder == path / "m.npz.decoder.yml"


def test_the_model_is_the_one_that_a_decoder_names_wherever_it_was(folder):
    path = folder("a.npz", "b.npz", decoder_yml="models:\n  - /home/marian/b.npz\n")
    assert MarianFiles.of(path).model == path / "b.npz"
    folder(decoder_yml="models: a.npz\n")
    assert MarianFiles.of(path).model == path / "a.npz" and named_in(path / "decoder.yml", "models") == ["a.npz"]


@pytest.mark.parametrize(
    "names, decoder, sentence",
    [
        (["a.npz", "b.npz"], "models: [a.npz, b.npz]\n", "decoder.yml names 2 models: import each alone"),
        (["a.npz"], "vocabs: []\n", "decoder.yml names 0 models: import each alone"),
        (["a.bin"], "models: [a.bin]\n", "a.bin is in Marian's binary format"),
        (["b.bin", "a.bin"], None, "a.bin is in Marian's binary format"),
        (["c.npz", "a.npz", "b.npz"], None, "has 3 models, such as a.npz and b.npz: name one by its path"),
        (["a.optimizer.npz"], None, "has no model: expected an .npz that Marian wrote"),
        (["a.npz"], "models: [gone.npz]\n", "has no model: expected an .npz"),
    ],
)
def test_a_folder_without_one_model_is_refused_with_what_it_has(folder, names, decoder, sentence):
    path = folder(*names, **({} if decoder is None else {"decoder_yml": decoder}))
    with pytest.raises(UserError, match=re.escape(sentence)):
        MarianFiles.of(path)


@pytest.mark.parametrize(
    "names, decoder, found",
    [
        (["a.src.vocab.yml", "a.trg.vocab.yml"], "", ("a.src.vocab.yml", "a.trg.vocab.yml")),
        (["vocab.yml"], "", ("vocab.yml", "vocab.yml")),
        (["vocab.spm"], "", ("vocab.spm", "vocab.spm")),
        (["s.yaml", "t.json"], "vocabs: [/x/s.yaml, t.json]\n", ("s.yaml", "t.json")),
    ],
)
def test_the_vocabularies_are_those_that_the_decoder_names_or_that_are_called_so(folder, names, decoder, found):
    path = folder("m.npz", *names, decoder_yml=f"models: [m.npz]\n{decoder}")
    assert MarianFiles.of(path).vocabulary_paths() == tuple(path / name for name in found)


@pytest.mark.parametrize(
    "names, decoder, sentence",
    [
        ([], "vocabs: [a.yml]\n", "decoder.yml names 1 vocabs, expected 2: source and target."),
        (["a.yml"], "vocabs: [a.yml, a.yml, a.yml]\n", "decoder.yml names 3 vocabs, expected 2"),
        (["a.fsv"], "vocabs: [a.fsv, a.fsv]\n", "a.fsv is a vocabulary of a kind that cannot be imported"),
        ([], "vocabs: [a.yml, a.yml]\n", "has no a.yml, which {folder}/decoder.yml names as its vocabulary."),
        (["a.vocab.yml", "b.vocab.yml"], "", "has no decoder.yml that names the vocabs, and not one vocab.yml."),
        ([], "", "has no decoder.yml that names the vocabs, and not one vocab.yml."),
    ],
)
def test_vocabularies_that_are_not_two_are_refused(folder, names, decoder, sentence):
    path = folder("m.npz", *names, decoder_yml=f"models: [m.npz]\n{decoder}")
    with pytest.raises(UserError, match=re.escape(sentence.format(folder=path))):
        MarianFiles.of(path).vocabulary_paths()


def test_models_of_byte_pair_encoding_with_moses_are_known_by_their_files(folder):
    path = folder("m.npz", "vocab.yml", "source.spm")
    with pytest.raises(UserError, match=r"has no target.spm. The SentencePiece models of both sides are needed"):
        MarianFiles.of(path).vocabularies()
    folder("b.bpe", "a.bpe")
    with pytest.raises(UserError, match=r"has no target.spm. It has a.bpe: a model of byte-pair encoding needs"):
        MarianFiles.of(path).vocabularies()


def test_a_damaged_sentencepiece_model_is_named(folder):
    with pytest.raises(UserError, match="source.spm is not a SentencePiece model, or is damaged"):
        marian_files.read_spm(folder(source_spm="x") / "source.spm")


def test_only_one_model_that_is_the_vocabulary_of_both_sides_is_one_tokenizer():
    model = tokenizer_bytes()
    proto = model_proto(model)
    proto.trainer_spec.vocab_size += 1  # other bytes, the same pieces
    pieces = Tokenizer.of_bytes(renumbered(model)[0]).pieces()
    vocabulary = Vocabulary.of_pieces(pieces, "v")
    one = Vocabularies(vocabulary, vocabulary, model, model, is_spm=True)
    assert type(one.tokenizer(pieces)) is Tokenizer and one.tokenizer(pieces).pieces() == pieces
    others = [
        (one._replace(is_spm=False), pieces),
        (one._replace(target_spm=proto.SerializeToString()), pieces),
        (one._replace(source_spm=proto.SerializeToString()), pieces),
        (one, [*pieces, "more"]),
    ]
    for vocabularies, their_pieces in others:
        pair = vocabularies.tokenizer(their_pieces)
        assert type(pair) is PairTokenizer and pair.pieces() == their_pieces
        assert (pair.source_spm, pair.target_spm) == vocabularies[2:4]


def test_the_models_of_the_sides_are_vocabularies_of_their_own_if_they_have_the_ids(folder):
    path = folder("m.npz", decoder_yml="vocabs: [s.spm, t.spm]\n")
    models = [(MARIAN / name).read_bytes() for name in ("source.spm", "target.spm")]
    for name, model in zip(("s.spm", "t.spm"), models, strict=True):
        (path / name).write_bytes(model)
    found = MarianFiles.of(path / "m.npz").vocabularies()
    assert found.is_spm and [found.source_spm, found.target_spm] == models
    assert [side.pieces for side in found[:2]] == [[piece.piece for piece in model_proto(m).pieces] for m in models]
    assert found.source.pieces != found.target.pieces
