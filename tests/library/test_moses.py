"""Words of Moses and byte-pair encoding by subword-nmt: the pieces of OPUS-MT's models of before 2020, and back."""

import random
import time

import pytest

import keras_transformer as kt
from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.ground.tokens import UNK
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.moses import Codes, MosesSide
from keras_transformer.pieces.pair_tokenizer import SPECIAL_PIECES, PairTokenizer, moses_model_bytes, open_tokenizer
from keras_transformer.pieces.tokenizer import TokenizerError
from keras_transformer.translation.scorer import Scorer
from tests.support.marian import lines, marian_folder

CODES = b"#version: 0.2\nl o\nlo w</w>\ne r</w>\nx x\nn e\nne w\n"
OLD = b"l o\nlo w\nlow </w>\ne r\nx x\ner </w>\n"  # without a version it is 0.1
LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.mark.parametrize(
    ("codes", "word", "pieces"),
    [
        (CODES, "low", "low"),
        (CODES, "lower", "lo@@ w@@ er"),  # w in its middle is another character than w at its end
        (CODES, "xxx", "xx@@ x"),
        (CODES, "xxxxa", "xx@@ xx@@ a"),
        (CODES, "new", "ne@@ w"),
        (CODES, "newer", "new@@ er"),
        (CODES, "a", "a"),
        (CODES, "ä☃", "ä@@ ☃"),
        (OLD, "low", "low"),
        (OLD, "lower", "low@@ er"),
        (OLD, "xxx", "xx@@ x"),
        (OLD, "xx", "xx"),
    ],
)
def test_merges_are_done_in_their_order_from_the_left(codes, word, pieces):
    assert " ".join(Codes(codes).pieces_of(word)) == pieces


@pytest.mark.parametrize(
    ("codes", "sentence"),
    [
        (b"#version: 0.3\na b\n", "its version is 0.3; it must be 0.1 or 0.2"),
        (b"a b\nc\n", "merge 2 is 'c'"),
        (b"", "merge 1 is ''"),
        (b"a b c\n", "merge 1 is 'a b c'"),
        (b"\xff\xfe a\n", "utf-8"),
    ],
)
def test_what_is_no_file_of_codes_is_one_sentence(codes, sentence):
    with pytest.raises(TokenizerError, match=rf"source.bpe is no file of codes by subword-nmt: .*{sentence}"):
        moses_model_bytes(codes, CODES, ("en", "de"), list(SPECIAL_PIECES.values()))


def test_pieces_are_those_of_subword_nmt():
    apply_bpe, learn_bpe = (pytest.importorskip(f"subword_nmt.{name}") for name in ("apply_bpe", "learn_bpe"))
    import io

    chance, learned = random.Random(3), io.StringIO()
    learn_bpe.learn_bpe(io.StringIO("\n".join(lines("test.de"))), learned, 60)
    for codes in (learned.getvalue(), learned.getvalue().partition("\n")[2]):  # of version 0.2 and 0.1
        theirs, ours = apply_bpe.BPE(io.StringIO(codes)), Codes(codes.encode())
        words = {word for line in lines("test.de") for word in line.split()}
        words |= {"".join(chance.choices("acdehinrstuz", k=chance.randint(1, 40))) for _ in range(2000)}
        for word in words:
            assert " ".join(ours.pieces_of(word)) == theirs.segment(word)


SENTENCES = [
    'A dog runs, and (it seems) barks: "loudly"!',
    "He doesn't know: it's a well-known, state-of-the-art fact.",
    "It costs $5.50 & 20% more [today] | tomorrow.",
    "Mr. Smith lives in the U.S.",
]


@pytest.fixture(scope="module")
def english():
    pytest.importorskip("sacremoses", reason="an extra has it")
    return MosesSide(CODES, "en")


@pytest.mark.parametrize("text", SENTENCES)
def test_a_sentence_comes_back(text, english):
    assert english.decode_pieces(english.encode([text])[0]) == text


def test_words_are_those_of_the_preprocessing(english):
    assert english.words("state-of-the-art & “x”") == "state @-@ of @-@ the @-@ art &amp; &quot; x &quot;".split()
    assert english.words("a\x07b\u200bc") == ["a", "b", "c"]
    assert english.words("（a）") == ["(", "a", ")"]  # replace-unicode-punctuation
    assert english.encode(["", " \t"]) == [[], []] and english.decode_pieces([]) == ""


def test_a_long_word_takes_linear_time(english):
    def seconds(length):
        text = "".join(random.Random(length).choices("lowernx", k=length))
        english.codes.pieces_of.cache_clear()
        began = time.process_time()
        english.encode([text])
        return time.process_time() - began

    assert any(seconds(40_000) < 4 * 3 * seconds(10_000) + 0.1 for _ in range(3))


def opus_folder(path):
    """A folder of OPUS-MT of before 2020, whose pieces are letters, the results of CODES, and tags."""
    folder = marian_folder(path)
    pieces = [*LETTERS, *(f"{letter}@@" for letter in LETTERS), *"low lo@@ er xx@@ xx new@@ ne@@ >>deu<< , .".split()]
    pieces = ["</s>", "<unk>", *pieces, *(f"unused{number}" for number in range(151 - 2 - len(pieces)))]
    text = "".join(f'"{piece}": {number}\n' for number, piece in enumerate(pieces))
    (folder / "vocab.yml").write_text(text, encoding="utf-8")
    for side in ("source", "target"):
        (folder / f"{side}.spm").unlink()
        (folder / f"{side}.bpe").write_bytes(CODES)
    return folder


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    pytest.importorskip("sacremoses", reason="an extra has it")
    return import_folder(opus_folder(tmp_path_factory.mktemp("moses") / "opus-mt-en-de"))


def test_a_tokenizer_gives_the_ids_of_its_vocabulary_and_takes_tags_off(imported, tmp_path):
    tokenizer = imported.tokenizer
    pieces = tokenizer.pieces()
    ids = tokenizer.encode(">>deu<< lower, new.")
    assert [pieces[number] for number in ids] == ">>deu<< lo@@ w@@ er , ne@@ w .".split()
    assert tokenizer.decode(ids[1:]) == "lower, new."
    assert tokenizer.encode("☃") == [UNK] and tokenizer.encode("") == []
    assert tokenizer.encode_target_batch(["low", "newer"]) == [tokenizer.encode("low"), tokenizer.encode("newer")]
    assert tokenizer.tags == [">>deu<<"] and tokenizer.unknown_tag(">>fra<< low") == ">>fra<<"
    assert not tokenizer.is_lowercase and tokenizer.normalization == "identity"
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.model_bytes)
    again = open_tokenizer(tmp_path / "tokenizer.model")
    assert again.encode("newer lower") == tokenizer.encode("newer lower") and again.pieces() == pieces


def test_the_languages_are_those_that_the_folder_is_called_by(imported, tmp_path):
    assert "words by Moses' rules of en and de, as its folder is called" in imported.notes
    notes = import_folder(opus_folder(tmp_path / "model")).notes
    assert "words by Moses' rules of en and en, since its folder is not called like opus-mt-en-de" in notes


def test_a_damaged_file_is_one_sentence(imported):
    with pytest.raises(TokenizerError, match="damaged"):
        PairTokenizer.of_bytes(imported.tokenizer.model_bytes[:-30])


@pytest.mark.slow
def test_it_translates_and_refuses_what_reads_the_text_of_pieces(imported, eager):
    translator = kt.Translator(imported.transformer(), imported.tokenizer, kt.SearchOptions(beam_size=1, max_length=8))
    found = translator.translate(["lower low", "new"])
    assert [each.text for each in found] == [imported.tokenizer.decode(each.ids) for each in found]
    scorer = Scorer(imported.transformer(), imported.tokenizer)
    [pair] = scorer.score(["lower low"], ["new, low."])
    assert pair.log_probability < 0
    for asked in ({"prefixes": ["a"]}, {"required": [["a"]]}, {"protect": "urls"}):
        with pytest.raises(ConfigError, match="A model with words of Moses does not take"):
            translator.translate(["lower"], **asked)


def test_no_graph_has_it(imported):
    pytest.importorskip("tensorflow_text")
    for use in (graph_tokenizer, lambda _: imported.tokenizer.sentencepiece_models):
        with pytest.raises(UserError, match="words of Moses, and these by byte-pair encoding, which no graph"):
            use(imported.tokenizer.model_bytes)


@pytest.mark.release
def test_a_run_is_exported_for_litert_and_for_nothing_else(imported, tmp_path):
    from export import __main__ as command
    from keras_transformer.models.imported.folder import write_run
    from tests.support.commands import invoke

    write_run(imported, tmp_path / "run", ["lower low", "new"])
    expected = [each.text for each in kt.Translator.load(tmp_path / "run").translate(["lower low", "new"])]
    for name in ("saved_model", "ctranslate2", "huggingface"):
        refused = invoke(command.app, tmp_path / "run", "--to", tmp_path / name, "--format", name)
        assert refused.exit_code == 1 and "words of Moses" in refused.output, refused.output
    done = invoke(command.app, tmp_path / "run", "--to", tmp_path / "lite", "--format", "litert")
    assert done.exit_code == 0, done.output
    translate = kt.pipeline("translation", model=tmp_path / "lite")
    assert [each["translation_text"] for each in translate(["lower low", "new"])] == expected
