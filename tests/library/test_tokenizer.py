"""Ids decode to the text they were encoded from, and the graph gives the same ids as Python.

The tokenizers here leave text as it is; test_normalization.py has the others.
"""

import math
import sys

import numpy as np
import pytest
import sentencepiece

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.tokenizer import (
    SPECIAL_IDS,
    TRAINING_CHARACTERS,
    Tokenizer,
    TokenizerError,
    train_tokenizer,
)
from tests.support.models import pieces_of
from tests.support.processes import python
from tests.support.sentencepiece_models import trained_model
from tests.support.texts import SENTENCES, TEXTS, random_texts


@pytest.fixture(scope="module")
def model_path(tmp_path_factory):
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    train_tokenizer(SENTENCES, path, 400, normalization="identity")
    return path


@pytest.fixture(scope="module")
def tokenizer(model_path):
    return Tokenizer(model_path)


@pytest.fixture(scope="module")
def in_graph(tokenizer):
    """The same tokenizer as a tf.Module."""
    pytest.importorskip("tensorflow_text")
    return graph_tokenizer(tokenizer.model_bytes)


@pytest.mark.parametrize("text", TEXTS)
def test_decoding_restores_every_text(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_decoding_restores_random_texts(tokenizer):
    for text in random_texts(1_000):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_only_the_sign_for_a_space_is_not_restored(tokenizer):
    assert tokenizer.decode(tokenizer.encode("a\u2581b")) == "a b"


def test_the_graph_gives_the_same_ids_and_the_same_text(tokenizer, in_graph):
    tensorflow = pytest.importorskip("tensorflow")
    texts = TEXTS + random_texts(1_000)
    ids = in_graph.encode(tensorflow.constant(texts))
    assert ids.dtype == tensorflow.int32
    assert ids.to_list() == tokenizer.encode_batch(texts)
    assert [text.decode() for text in in_graph.decode(ids).numpy()] == texts


def test_without_tensorflow_text_a_graph_has_no_tokenizer_and_a_sentence_says_so(tokenizer, monkeypatch):
    """Many systems have no wheel of it; nothing else needs it."""
    monkeypatch.setitem(sys.modules, "tensorflow_text", None)
    with pytest.raises(TokenizerError, match=r"pip install tensorflow-text==2\.\d+\.\*"):
        graph_tokenizer(tokenizer.model_bytes)


def test_special_ids_have_no_text_in_the_graph(tokenizer, in_graph):
    tensorflow = pytest.importorskip("tensorflow")
    ids = tokenizer.encode("A man")
    rows = tensorflow.constant([[BOS, *ids, EOS, PAD, PAD], [BOS, EOS] + [PAD] * (len(ids) + 2)])
    assert in_graph.decode(rows).numpy().tolist() == [b"A man", b""]


def test_a_symbol_is_one_piece_in_python_and_in_the_graph_and_leaves_the_rest_as_it_is(tmp_path):
    tensorflow = pytest.importorskip("tensorflow")
    train_tokenizer(SENTENCES, tmp_path / "tagged.model", 400, symbols=["<2de>", "a,b"], normalization="identity")
    tagged = Tokenizer(tmp_path / "tagged.model")
    assert tagged.vocab_size == 400 and {"<2de>", "a,b"} <= set(tagged.pieces())
    (symbol,) = tagged.encode("<2de>")
    for text in TEXTS:
        assert tagged.encode(f"<2de>{text}") == [symbol, *tagged.encode(text)]
        assert tagged.decode(tagged.encode(f"<2de>{text}")) == f"<2de>{text}"
    in_graph = graph_tokenizer(tagged.model_bytes)
    texts = [f"<2de>{text}" for text in TEXTS]
    assert in_graph.encode(tensorflow.constant(texts)).to_list() == tagged.encode_batch(texts)


@pytest.mark.slow
def test_a_saved_model_can_hold_the_graph_tokenizer(in_graph, tmp_path):
    tensorflow = pytest.importorskip("tensorflow")
    module = tensorflow.Module()
    module.tokenizer = in_graph
    module.echo = tensorflow.function(
        lambda texts: module.tokenizer.decode(module.tokenizer.encode(texts).to_tensor()),
        input_signature=[tensorflow.TensorSpec([None], tensorflow.string)],
    )
    tensorflow.saved_model.save(module, str(tmp_path / "model"))
    echo = tensorflow.saved_model.load(str(tmp_path / "model")).echo
    assert [text.decode() for text in echo(tensorflow.constant(TEXTS)).numpy()] == TEXTS


def test_one_string_is_not_a_list_of_sentences(tokenizer, tmp_path):
    with pytest.raises(TypeError, match="not one string"):
        tokenizer.encode_batch("two")
    with pytest.raises(TypeError, match="not one string"):
        train_tokenizer("corpus.txt", tmp_path / "tokenizer.model", 300)


@pytest.mark.parametrize("text, error", [(None, TypeError), (float("nan"), TypeError), ("a \ud800", InputError)])
def test_what_is_no_text_is_named_by_its_number(tokenizer, text, error):
    why = "must be a string" if error is TypeError else "has a lone surrogate"
    with pytest.raises(error, match=f"Text 1 {why}"):
        tokenizer.encode(text)
    with pytest.raises(error, match=f"Text 2 {why}"):
        tokenizer.encode_batch(["two", text])


def test_encode_batch_is_encode_of_each(tokenizer):
    assert tokenizer.encode_batch(TEXTS) == [tokenizer.encode(text) for text in TEXTS]
    assert tokenizer.encode_batch([]) == []


def test_kinds_and_scores_are_those_of_the_model_file(tokenizer):
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    kinds, ids = tokenizer.kinds(), range(tokenizer.vocab_size)
    assert tokenizer.scores() == [processor.get_score(number) for number in ids] and tokenizer.is_bpe
    for kind in ("unknown", "control", "byte", "unused"):
        assert [found == kind for found in kinds] == [getattr(processor, f"is_{kind}")(number) for number in ids]
    assert kinds.count("byte") == 256 and kinds.count("normal") == 400 - 256 - len(SPECIAL_IDS)


def test_special_ids_are_those_of_tokens_py(tokenizer):
    assert [pieces_of(tokenizer)[i] for i in (PAD, UNK, BOS, EOS)] == ["<pad>", "<unk>", "<s>", "</s>"]
    assert tokenizer.vocab_size == 400


def test_encode_gives_no_special_id(tokenizer):
    assert not {PAD, UNK, BOS, EOS} & {i for text in TEXTS for i in tokenizer.encode(text)}


def test_special_ids_have_no_text(tokenizer):
    assert tokenizer.decode([BOS, *tokenizer.encode("A man"), EOS, PAD]) == "A man"
    assert tokenizer.decode(np.array(tokenizer.encode("A man"), "float32")) == "A man"


@pytest.mark.parametrize("ids", ["a", b"a", ["5"], [5.5], [math.nan], [math.inf], [None], [[5]], None, 5], ids=repr)
def test_what_are_no_ids_has_no_text(tokenizer, ids):
    with pytest.raises(TypeError, match="ids must be a list of whole numbers. Received: "):
        tokenizer.decode(ids)


@pytest.mark.parametrize("ids", [[9, -1], [9, 4000, -1]])
def test_an_id_that_no_piece_has_is_named(tokenizer, ids):
    with pytest.raises(IndexError, match=f"^{ids[1]} is no id .* whose ids are 0 to {tokenizer.vocab_size - 1}"):
        tokenizer.decode(ids)


def test_the_same_sentences_give_the_same_file(model_path, tmp_path):
    train_tokenizer(iter(SENTENCES), tmp_path / "again.model", 400, normalization="identity")
    assert (tmp_path / "again.model").read_bytes() == model_path.read_bytes()


def test_the_trainer_learns_from_long_lines_up_to_their_ends(tmp_path):
    line = "Dampfschiff " * 15_000 + "Nordkap " * 15_000  # 300,000 characters, far beyond SentencePiece's default
    train_tokenizer([line], tmp_path / "long.model", 300)
    tokenizer = Tokenizer(tmp_path / "long.model")
    assert all(len(tokenizer.encode(word)) <= 2 for word in (" Dampfschiff", " Nordkap"))


def test_too_little_text_names_the_largest_vocabulary(tmp_path):
    with pytest.raises(TokenizerError, match="vocab_size is 8000.*largest possible size is ([0-9]+)") as error:
        train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 8000)
    largest = int(str(error.value).rstrip(".").split()[-1])
    train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", largest)
    assert Tokenizer(tmp_path / "tokenizer.model").vocab_size == largest


def test_too_small_a_vocabulary_names_the_smallest_one(tmp_path):
    with pytest.raises(TokenizerError, match="vocab_size is 261.*need [0-9]+"):
        train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 261)


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ("a \ud800", TokenizerError, r"Sentence 3 has a lone surrogate.*'a \\ud800'"),
        (b"bytes", TypeError, "Sentence 3 .*b'bytes'"),
        (3, TypeError, "Sentence 3 .*3"),
    ],
)
def test_a_sentence_that_is_no_text_is_named(tmp_path, wrong, error, message):
    with pytest.raises(error, match=message):
        train_tokenizer([*SENTENCES[:2], wrong, *SENTENCES], tmp_path / "tokenizer.model", 300)


def test_what_keeps_sentences_from_being_read_is_what_is_raised(tmp_path):
    def sentences():
        yield "a dog"
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="the disk is gone"):
        train_tokenizer(sentences(), tmp_path / "tokenizer.model", 300)


@pytest.mark.parametrize("symbols", [["<s>"], ["<0x0A>"], [""], ["<2de>", "<2fr>", "<2de>"]])
def test_what_cannot_be_a_symbol_is_refused(tmp_path, symbols):
    with pytest.raises(TokenizerError, match=f"{symbols[-1]!r} cannot be a symbol"):
        train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 400, symbols)


def test_a_failed_training_leaves_no_file(tmp_path):
    with pytest.raises(TokenizerError):
        train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 8000)
    assert not list(tmp_path.iterdir())


def test_a_model_with_other_special_ids_is_refused(tmp_path):
    (tmp_path / "stock.model").write_bytes(trained_model(SENTENCES, vocab_size=100))
    with pytest.raises(TokenizerError, match="stock.model has the special ids pad -1, unk 0.*needs pad 0, unk 1"):
        Tokenizer(tmp_path / "stock.model")


def test_a_missing_file_and_another_file_are_named(tmp_path):
    with pytest.raises(TokenizerError, match="none.model cannot be read: No such file"):
        Tokenizer(tmp_path / "none.model")
    for text in ("not a model", ""):
        (tmp_path / "text.model").write_text(text)
        with pytest.raises(TokenizerError, match="text.model is not a SentencePiece model, or is damaged"):
            Tokenizer(tmp_path / "text.model")


@pytest.mark.slow
def test_a_model_with_damaged_bytes_is_refused_or_decodes_every_id(model_path, tmp_path):
    """One bit is flipped at each of 400 places; some flips make a piece that is not UTF-8."""
    intact, refused = model_path.read_bytes(), 0
    damaged_path = tmp_path / "damaged.model"
    for place in range(0, len(intact), len(intact) // 400):
        damaged = bytearray(intact)
        damaged[place] ^= 1 << place % 8
        damaged_path.write_bytes(damaged)
        try:
            tokenizer = Tokenizer(damaged_path)
        except TokenizerError:
            refused += 1
        else:
            tokenizer.decode(range(EOS + 1, tokenizer.vocab_size))
    assert refused > 100


def test_a_piece_that_is_not_utf_8_is_refused(model_path, tmp_path):
    intact = model_path.read_bytes()
    start = intact.index("ß".encode())
    (tmp_path / "damaged.model").write_bytes(intact[:start] + b"\xc3\x41" + intact[start + 2 :])
    with pytest.raises(TokenizerError, match="damaged.model is not a SentencePiece model, or is damaged"):
        Tokenizer(tmp_path / "damaged.model")


@pytest.mark.slow
def test_encoding_needs_no_tensorflow():
    program = "import sys, keras_transformer.pieces.tokenizer; sys.exit('tensorflow' in sys.modules)"
    assert python("-c", program).returncode == 0


def test_the_longest_text_of_the_trainer_is_counted_in_characters(tmp_path):
    """SentencePiece counts bytes, and drops a longer one without a word."""
    train_tokenizer(["\u4e00\u4e01" * (TRAINING_CHARACTERS // 2)], tmp_path / "tokenizer.model", 264)
    assert {"\u4e00", "\u4e01"} <= set(Tokenizer(tmp_path / "tokenizer.model").pieces())
