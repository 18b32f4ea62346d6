"""Two SentencePiece models and a vocabulary: the pieces of Marian, in Python and in the graph, and of Hugging Face."""

import gzip
import io
import json
import pickle
import random
import zipfile

import pytest
import sentencepiece

from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.normalization import NFKC
from keras_transformer.pieces.pair_tokenizer import PairTokenizer, open_tokenizer, pair_model_bytes
from keras_transformer.pieces.sources import encoded_lines
from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError, model_proto, train_tokenizer
from tests.support.marian import MARIAN, TAGS, lines, pair_bytes, pair_tokenizer
from tests.support.places import MULTI30K
from tests.support.runs import tokenizer_bytes
from tests.support.texts import SENTENCES, TEXTS, random_texts

ODD = [
    ">>deu<< two",
    ">>nld<<two",
    ">>xyz<< two",
    "a >>deu<< b",
    " >>deu<< two",
    ">>deu<<>>nld<< two",
    ">> << x",
    ">><<",
    ">><<two",
    ">>a<b<<two",
    ">>\n<< two",
    ">>deu<<",
    ">>deu<< ",
    ">>deu",
    "<<>>",
    "\u2581 under",
    "\u2581",
    "\0",
    "a\0b",
    "Straße und Öl",
    "ﬁne ½ ①",
    "日本語",
    "\u0301",
    "\u200b",
    "\u2028two\u2029",
    "two hundred " * 3_000,
]


@pytest.fixture(scope="module")
def pair():
    return pair_tokenizer(TAGS)


@pytest.fixture(scope="module")
def texts():
    """Lines of both languages, every ninth since they are alike, and odd ones."""
    fixture = [line for name in ("test.en", "test.de", "train.en", "train.de") for line in lines(name)[::9]]
    return [*fixture, *ODD, *TEXTS, *random_texts(60)]


def written(pair, ids):
    return [pair.pieces()[number] for number in ids]


def test_the_pieces_of_both_sides_are_those_that_marian_translated():
    pair = pair_tokenizer()
    for name, encode in (("en", pair.encode_batch), ("de", pair.encode_target_batch)):
        pieces = [" ".join(written(pair, ids)) for ids in encode(lines(f"test.{name}"))]
        assert pieces == lines(f"test.spm.{name}")
    assert [pair.decode(pair.encode_target(line)) for line in lines("test.de")] == lines("test.de")


def test_its_parts_are_the_files_that_it_was_made_of(pair):
    names = ["source.spm", "target.spm"]
    models = [(MARIAN / name).read_bytes() for name in names]
    assert pair.sentencepiece_models == dict(zip(names, models, strict=True))
    assert [pair.source_spm, pair.target_spm] == models and models[0] != models[1]
    assert Tokenizer.of_bytes(tokenizer_bytes()).sentencepiece_models == {"tokenizer.model": tokenizer_bytes()}


def test_one_text_and_a_batch_have_the_same_ids(pair):
    texts = lines("test.en")[:9]
    assert pair.encode_batch(texts) == list(map(pair.encode, texts)) and pair.encode_batch([]) == []
    assert pair.encode_target_batch(iter(texts)) == list(map(pair.encode_target, texts))
    with pytest.raises(TypeError, match="not one string"):
        pair.encode_batch("two")


def test_a_tag_is_one_piece_where_a_text_begins_and_text_elsewhere(pair):
    (deu,), two = pair.encode(">>deu<<"), pair.encode("two")
    assert pair.pieces()[deu] == ">>deu<<"
    assert pair.encode(">>deu<< two") == pair.encode(">>deu<<two") == [deu, *two]
    processor = sentencepiece.SentencePieceProcessor(model_proto=pair.source_spm)
    for text in (">>xyz<< two", ">>five<< two", "two >>deu<<"):
        expected = [pair.ids.get(piece, UNK) for piece in processor.encode(text, out_type=str)]
        assert pair.encode(text) == expected and len(expected) > 3
    assert deu not in pair.encode("two >>deu<<")
    assert [pair.unknown_tag(text) for text in (">>xyz<< two", ">>deu<< two", "two", "")] == [">>xyz<<", "", "", ""]


def test_a_tag_that_the_vocabulary_lacks_is_named_with_its_line(pair, caplog):
    texts = ["two", ">>deu<< two", ">>xyz<< two", ""]
    assert list(encoded_lines(pair, texts, 9, first_line=40))[:3] == [[*pair.encode(text), EOS] for text in texts[:3]]
    assert caplog.messages == [
        "line 42 begins with the tag >>xyz<<, which is read as text: this model has >>deu<<, >>nld<<"
    ]
    caplog.clear()
    assert list(encoded_lines(pair_tokenizer(), [">> a << b"], 9)) and not caplog.messages  # a quotation
    targets = [">>xyz<< zwei"]
    assert list(encoded_lines(pair, targets, 9, are_targets=True)) == [[*pair.encode_target(targets[0]), EOS]]
    assert not caplog.messages


def test_special_pieces_in_a_text_are_text(pair):
    for text in ("</s>", "<s>", "<pad>", "two </s>"):
        assert not {PAD, BOS, EOS} & {*pair.encode(text), *pair.encode_target(text)}


def test_special_ids_have_no_text(pair):
    assert pair.decode([BOS, *pair.encode_target("zwei"), UNK, EOS, PAD]) == "zwei"
    assert pair.decode([]) == pair.decode([PAD, BOS, EOS]) == ""


@pytest.mark.parametrize("number", [-1, -2, 10**6])
def test_an_id_that_no_piece_has_is_named(pair, number):
    with pytest.raises(IndexError, match=f"^{number} is no id .* whose ids are 0 to {pair.vocab_size - 1}"):
        pair.decode([9, number])


def test_it_says_what_it_makes_the_same(pair):
    assert pair.normalization == NFKC and not pair.is_lowercase and pair.restored(["Zwei"]) == ["Zwei"]


def test_what_one_model_alone_has_is_refused(pair):
    assert not pair.is_bpe
    for of_pieces in (pair.kinds, pair.scores):
        with pytest.raises(TokenizerError, match="two SentencePiece models has neither kinds nor scores"):
            of_pieces()


def test_a_pickled_one_encodes_as_before(pair):
    again = pickle.loads(pickle.dumps(pair))
    assert again.model_bytes == pair.model_bytes and again.encode("two hundred") == pair.encode("two hundred")


def test_the_graph_gives_the_same_ids_and_the_same_text(pair, texts):
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    in_graph, rng = graph_tokenizer(pair.model_bytes), random.Random(1)
    source, target = pair.encode_batch(texts), pair.encode_target_batch(texts)
    ids = in_graph.encode(tf.constant(texts))
    assert ids.dtype == tf.int32 and ids.to_list() == source
    assert in_graph.encode_target(tf.constant(texts)).to_list() == target
    assert in_graph.encode(tf.constant([], tf.string)).to_list() == []
    rows = [*source, *target, *([rng.randrange(pair.vocab_size) for _ in range(12)] for _ in range(300))]
    decoded = in_graph.decode(tf.ragged.constant(rows, dtype=tf.int32))
    assert [text.decode() for text in decoded.numpy()] == list(map(pair.decode, rows))
    every_id = range(pair.vocab_size)
    assert [piece.decode() for piece in in_graph.id_to_string(tf.constant(every_id)).numpy()] == pair.pieces()


def of_multi30k(folder):
    """A PairTokenizer of a unigram model and a BPE model, whose vocabulary lacks some pieces; and sentences."""
    corpus = {
        side: gzip.open(MULTI30K / f"val.{side}.gz", "rt", encoding="utf-8").read().splitlines()
        for side in ("en", "de")
    }
    for kind, (side, text) in zip(("unigram", "bpe"), corpus.items(), strict=True):
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(text),
            model_prefix=str(folder / side),
            vocab_size=1_500,
            model_type=kind,
            normalization_rule_name="nmt_nfkc",
            minloglevel=2,
            num_threads=1,
        )
    models = [(folder / f"{side}.model").read_bytes() for side in corpus]
    pieces = {piece.piece for model in models for piece in model_proto(model).pieces if not piece.piece.endswith("ing")}
    special = ["<pad>", "<unk>", "<s>", "</s>"]
    pair = PairTokenizer.of_bytes(pair_model_bytes(*models, [*special, *sorted(pieces - {*special}), *TAGS]))
    return pair, [*corpus["en"], *corpus["de"], *ODD, *TEXTS, *random_texts(300)]


@pytest.mark.release
@pytest.mark.parametrize("text", ["numbers", "multi30k"])
def test_ids_and_texts_are_those_of_hugging_face(text, pair, texts, tmp_path):
    """But for texts with a special piece in them, which it reads as that piece."""
    transformers = pytest.importorskip("transformers")
    if text == "multi30k":
        if not MULTI30K:
            pytest.skip("there is no Multi30k")
        pair, texts = of_multi30k(tmp_path)
    names = ["</s>", "<unk>", *pair.pieces()[EOS + 1 :], "<pad>"]
    for side, model in (("source", pair.source_spm), ("target", pair.target_spm)):
        (tmp_path / f"{side}.spm").write_bytes(model)
    (tmp_path / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (tmp_path / "tokenizer_config.json").write_text('{"source_lang": "en", "target_lang": "de"}')
    peer = transformers.MarianTokenizer.from_pretrained(tmp_path)
    texts = [text for text in texts if not any(special in text for special in ("</s>", "<unk>", "<pad>"))]
    for text, source, target in zip(texts, pair.encode_batch(texts), pair.encode_target_batch(texts), strict=True):
        assert [names[number] for number in peer(text)["input_ids"]] == [*written(pair, source), "</s>"]
        assert [names[number] for number in peer(text_target=text)["input_ids"]] == [*written(pair, target), "</s>"]
    rng = random.Random(1)
    rows = [[rng.randrange(EOS + 1, pair.vocab_size) for _ in range(12)] for _ in range(500)]
    for row in [*rows, *pair.encode_target_batch(texts)]:
        theirs = [names.index(piece) for piece in written(pair, row)]
        assert pair.decode(row) == peer.decode(theirs, skip_special_tokens=True)


def test_the_same_parts_are_the_same_file_and_it_is_opened_as_what_it_is(tmp_path):
    assert pair_bytes() == pair_bytes() != pair_bytes(TAGS)
    (tmp_path / "pair.model").write_bytes(pair_bytes())
    train_tokenizer(SENTENCES, tmp_path / "one.model", 400)
    assert type(open_tokenizer(tmp_path / "pair.model")) is PairTokenizer
    one = open_tokenizer(tmp_path / "one.model")
    assert type(one) is Tokenizer
    for text in TEXTS:  # one model divides both sides alike, and no text begins with a tag
        assert one.encode_target(text) == one.encode(text) and one.unknown_tag(f">>deu<< {text}") == ""
    assert one.encode_target_batch(TEXTS) == one.encode_batch(TEXTS)
    with pytest.raises(TokenizerError, match=r"pair\.model is a pair .* open it with open_tokenizer"):
        Tokenizer(tmp_path / "pair.model")
    with pytest.raises(TokenizerError, match=r"none\.model cannot be read: No such file"):
        open_tokenizer(tmp_path / "none.model")


@pytest.mark.parametrize(
    ("pieces", "why"),
    [
        ([], "does not begin with <pad>, <unk>, <s>, </s>"),
        (["</s>", "<unk>", "a"], "does not begin with <pad>"),
        (["<pad>", "<unk>", "<s>", "</s>", "a", "b", "a"], "has the piece 'a' twice"),
        (["<pad>", "<unk>", "<s>", "</s>", "\ud800"], r"has the piece '\\ud800', which is no text"),
        (["<pad>", "<unk>", "<s>", "</s>", "a\udfff"], r"has the piece 'a\\udfff', which is no text"),
    ],
)
def test_a_vocabulary_that_cannot_be_is_refused(pieces, why):
    spm = (MARIAN / "source.spm").read_bytes()
    with pytest.raises(TokenizerError, match=why):
        pair_model_bytes(spm, spm, pieces)


def test_a_model_that_is_none_is_named(tmp_path):
    spm, special = (MARIAN / "source.spm").read_bytes(), ["<pad>", "<unk>", "<s>", "</s>"]
    with pytest.raises(TokenizerError, match=r"target\.spm is not a SentencePiece model, or is damaged"):
        pair_model_bytes(spm, spm[:1_000], special)
    with zipfile.ZipFile(tmp_path / "other.model", "w") as archive:
        archive.writestr("source.spm", spm)
    with pytest.raises(TokenizerError, match=r"other\.model is not a pair .* no item named 'target\.spm'"):
        open_tokenizer(tmp_path / "other.model")


def test_a_file_with_damaged_bytes_is_refused_in_one_sentence():
    """The file is cut at each of 20 places, and one bit is flipped at each of 60, which may be nobody's."""
    intact = pair_bytes()
    parts = PairTokenizer.of_bytes(intact)
    packed, flipped = io.BytesIO(), [bytearray(intact) for _ in range(60)]
    for number, content in enumerate(flipped):
        content[4 + number * (len(intact) - 4) // 60] ^= 1 << number % 8
    with zipfile.ZipFile(io.BytesIO(intact)) as archive, zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as other:
        for name in archive.namelist():
            other.writestr(name, archive.read(name))
    cut = [intact[:length] for length in range(4, len(intact), len(intact) // 20)]
    for content in [*map(bytes, flipped), *cut, packed.getvalue()]:
        try:
            found = PairTokenizer.of_bytes(content)
        except TokenizerError as error:
            assert str(error).startswith("The tokenizer is not a pair of SentencePiece models") and "\n" not in str(
                error
            )
        else:
            assert content in flipped
            assert (found.source_spm, found.target_spm) == (parts.source_spm, parts.target_spm)
            assert found.pieces() == parts.pieces()


@pytest.mark.parametrize("vocabulary", [b'{"a": 0}', b"[1, 2]", b'["<pad>", "<unk>", "<s>", "</s>", 5]', b'"<pad>"'])
def test_a_vocabulary_that_is_no_list_of_strings_is_refused(vocabulary):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in ("source.spm", "target.spm"):
            archive.writestr(name, (MARIAN / name).read_bytes())
        archive.writestr("vocabulary.json", vocabulary)
    with pytest.raises(TokenizerError, match="^x is not a pair .* damaged: vocabulary.json is not a list of strings"):
        PairTokenizer.of_bytes(file.getvalue(), "x")
