"""SentencePiece models with other special ids divide texts as before, and a Tokenizer opens them."""

import pytest
import sentencepiece

from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.models.imported.marian_files import NONE, renumbered, vocabulary_in
from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError, model_proto, train_tokenizer
from tests.support.sentencepiece_models import trained_model
from tests.support.texts import SENTENCES, TEXTS, random_texts

MARIAN = {"eos_id": 0, "unk_id": 1, "bos_id": -1, "pad_id": -1}  # of its vocab.spm
STOCK = {}  # <unk>, <s>, </s>
LAST = {"unk_id": 0, "eos_id": 1, "bos_id": -1, "pad_id": 2, "pad_piece": "[PAD]", "unk_piece": "[UNK]"}


def trained(kind="unigram", **more):
    return trained_model(SENTENCES, model_type=kind, vocab_size=90, **more)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize(("ids", "missing"), [(MARIAN, {PAD, BOS}), (STOCK, {PAD}), (LAST, {BOS})])
def test_the_ids_are_the_old_ones_in_another_order(kind, ids, missing):
    spm = trained(kind, **ids)
    old = sentencepiece.SentencePieceProcessor(model_proto=spm)
    model, order = renumbered(spm)
    tokenizer = Tokenizer.of_bytes(model)
    assert tokenizer.pieces()[:4] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert {new for new, number in enumerate(order) if number == NONE} == missing
    assert sorted(set(order) - {NONE}) == list(range(old.get_piece_size()))
    assert (order[UNK], order[EOS]) == (old.unk_id(), old.eos_id())
    spec = model_proto(model).trainer_spec
    assert spec.vocab_size == len(order) and (spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id) == (
        PAD,
        UNK,
        BOS,
        EOS,
    )
    assert (spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece) == ("<pad>", "<unk>", "<s>", "</s>")
    for text in [*SENTENCES, *TEXTS, *random_texts(100)]:
        assert [order[number] for number in tokenizer.encode(text)] == old.encode(text)
        assert tokenizer.decode(tokenizer.encode(text)) == old.decode(old.encode(text))


def test_our_own_models_stay_as_they_are(tmp_path):
    train_tokenizer(SENTENCES, tmp_path / "own.model", 400)
    own = (tmp_path / "own.model").read_bytes()
    assert renumbered(own) == (own, list(range(400)))


def test_a_model_that_no_translation_model_has_is_refused():
    with pytest.raises(TokenizerError, match="The vocabulary has no eos among its pieces"):
        renumbered(trained(eos_id=-1))
    with pytest.raises(TokenizerError, match="The vocabulary has <pad> as a piece that texts have"):
        renumbered(trained(user_defined_symbols=["<pad>"], **MARIAN))
    with pytest.raises(TokenizerError, match="The vocabulary is not a SentencePiece model, or is damaged"):
        renumbered(b"no model")


@pytest.mark.parametrize("ids", [MARIAN, STOCK, LAST], ids=["marian", "stock", "last"])
def test_a_model_that_is_the_vocabulary_says_itself_which_pieces_are_special(ids):
    vocabulary = vocabulary_in(trained(**ids), "vocab.spm")
    assert vocabulary.pieces[vocabulary.unk] == ids.get("unk_piece", "<unk>")
    assert vocabulary.pieces[vocabulary.eos] == "</s>" and len(vocabulary.pieces) == 90
