"""Tokenizers that make text lower case, and such as read a space before it: `lowercase` and `dummy_prefix`."""

import types

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import UNK
from keras_transformer.inspection.samples import Sample
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError, train_tokenizer
from tests.support.sentencepiece_models import OUR_IDS, trained_model
from tests.support.texts import SENTENCES, TEXTS, random_texts
from train.config.run import load_config
from train.data.corpus import WHOLE_TEXT, Split
from train.scoring.card import TimedTranslations
from train.scoring.scorecard import evaluator_of

LETTERS = ["Straße ÄÖÜ, ÆØ", "İstanbul ΣΊΣΥΦΟΣ", "ДОМ дом", "Ⅻ ＡＢＣ ﬁ Ǆ", "A" * 3_000]


@pytest.fixture(scope="module", params=[(True, False), (False, True), (True, True)])
def other(request, tmp_path_factory):
    """A tokenizer that makes text lower case, one that reads a space before it, and one that does both."""
    path = tmp_path_factory.mktemp("other") / "tokenizer.model"
    lowercase, dummy_prefix = request.param
    how = {"lowercase": lowercase, "dummy_prefix": dummy_prefix, "normalization": "identity"}
    train_tokenizer(SENTENCES, path, 400, **how)
    tokenizer = Tokenizer(path)
    assert tokenizer.is_lowercase == lowercase
    return tokenizer, lowercase, dummy_prefix


def test_decoding_restores_every_text_but_for_its_capitals(other):
    tokenizer, lowercase, _ = other
    texts = [*TEXTS, *LETTERS, *random_texts(1_000)]
    expected = ["".join(character.lower() if lowercase else character for character in text) for text in texts]
    assert list(map(tokenizer.decode, tokenizer.encode_batch(texts))) == expected
    assert tokenizer.restored(texts) == expected
    assert tokenizer.encode_batch(expected) == tokenizer.encode_batch(texts)


def test_a_tokenizer_that_does_not_know_a_capital_is_not_one_of_lower_case():
    """It has no pieces of bytes, and was trained on small letters: every capital is unknown to it."""
    how = {"model_type": "char", "vocab_size": 20, "hard_vocab_limit": False}
    tokenizer = Tokenizer.of_bytes(trained_model(["a man in a blue shirt"], **how, **OUR_IDS))
    assert tokenizer.encode("A")[-1] == UNK
    assert not tokenizer.is_lowercase and tokenizer.restored(["A Man"]) == ["A Man"]


def test_a_capital_changes_no_piece_of_a_tokenizer_in_lower_case(other):
    tokenizer, lowercase, _ = other
    texts = "A man in a Blue shirt", "a MAN in a blue shirt"
    assert (tokenizer.encode(texts[0]) == tokenizer.encode(texts[1])) == lowercase


def test_a_first_word_has_the_pieces_that_it_has_further_on_if_a_space_is_read_before_it(other):
    tokenizer, _, dummy_prefix = other
    for word in ("shirt", "blauen"):
        ids = tokenizer.encode(word)
        assert (tokenizer.encode(f"a {word}")[-len(ids) :] == ids) == dummy_prefix


def test_the_graph_lowers_and_reads_a_space_as_python_does(other):
    tensorflow = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    tokenizer, _, dummy_prefix = other
    in_graph, texts = graph_tokenizer(tokenizer.model_bytes), [*TEXTS, *LETTERS, *random_texts(200)]
    ids = in_graph.encode(tensorflow.constant(texts))
    assert ids.to_list() == tokenizer.encode_batch(texts)
    restored = [text.lstrip(" ") if dummy_prefix else text for text in map(tokenizer.decode, ids.to_list())]
    assert [text.decode() for text in in_graph.decode(ids).numpy()] == restored  # the graph leaves all first spaces out


def test_the_same_sentences_give_the_same_file_which_names_no_other(other, tmp_path):
    tokenizer, lowercase, dummy_prefix = other
    how = {"lowercase": lowercase, "dummy_prefix": dummy_prefix, "normalization": "identity"}
    train_tokenizer(SENTENCES, tmp_path / "again.model", 400, **how)
    again = (tmp_path / "again.model").read_bytes()
    assert again == tokenizer.model_bytes and b".tsv" not in again


def test_a_symbol_keeps_its_capitals(tmp_path):
    train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 400, ["<2DE>"], lowercase=True, dummy_prefix=True)
    tokenizer = Tokenizer(tmp_path / "tokenizer.model")
    with pytest.raises(TokenizerError, match=r"symbol ' \(NP' has a space, so the tokenizer reads its 'N' as 'n'"):
        train_tokenizer(SENTENCES, tmp_path / "lost.model", 400, ["<2DE>", " (np", " (NP"], lowercase=True)
    assert not (tmp_path / "lost.model").exists()
    pieces = [tokenizer.pieces()[piece] for piece in tokenizer.encode("<2DE>A man")]
    assert pieces[:2] == ["\u2581", "<2DE>"] and tokenizer.decode(tokenizer.encode("<2DE>A")) == "<2DE>a"


def test_the_training_text_of_a_tokenizer_is_in_lower_case_before_pieces_are_counted(tmp_path):
    for name, sentences in (("mixed", ["ABAB abab"] * 9), ("lower", ["abab abab"] * 9)):
        train_tokenizer(sentences, tmp_path / name, 4 + 256 + 6, lowercase=True)
    assert Tokenizer(tmp_path / "mixed").pieces() == Tokenizer(tmp_path / "lower").pieces()


def test_words_are_counted_and_found_in_the_case_of_the_tokenizer(other):
    tokenizer, lowercase, _ = other
    samples = [Sample("A man here", "Ein Mann ist hier", tokenizer.restored(["Ein Mann ist hier"])[0])]
    training = Split("train", lambda: iter([("a man", "Ein Mann"), ("man", "Mann")]))
    counted = "de", lambda: [training], samples, WHOLE_TEXT
    card = evaluator_of([tokenizer], *counted).scorecard(TimedTranslations(samples, 1.0))
    assert card.is_lowercase == lowercase and card.as_json()["is_lowercase"] == lowercase
    (length,) = card.breakdown.lengths
    assert length.bleu.value == pytest.approx(100) == length.chrf.value
    assert length.bleu.form == length.chrf.form == ("raw text, lower-cased" if lowercase else "raw text")
    found = [(one.occurrences, one.words, one.found) for one in card.breakdown.frequencies]
    assert found == [("0", 2, 100), ("1", 1, 100), ("2 to 4", 1, 100)]
    cased = types.SimpleNamespace(is_lowercase=False, restored=list)
    for both in ([tokenizer, cased], [cased, tokenizer]):  # of two models that are compared, one decides
        compared = evaluator_of(both, *counted).scorecard(TimedTranslations(samples, 1.0))
        assert compared.is_lowercase == lowercase and compared.breakdown == card.breakdown


@pytest.mark.parametrize(
    ("data", "key", "reason"),
    [
        ('source = "treebank"\nfiles = ["a.zip"]', "lowercase", "labels have capitals"),
        ('source = "treebank"\nfiles = ["a.zip"]', "dummy_prefix", "trees begin without a space"),
        (
            'source = "files"\ntrain = [{files = "a.tsv", tag = "<2de>"}]\nvalidation = ["b.tsv"]',
            "dummy_prefix",
            "data.train has tags",
        ),
    ],
)
def test_a_tokenizer_that_would_change_symbols_is_refused(tmp_path, data, key, reason):
    path = tmp_path / "config.toml"
    path.write_text(f'run_folder = "run"\n[data]\n{data}\n[model]\npreset = "tiny"\n', encoding="utf-8")
    load_config(path)
    with pytest.raises(ConfigError, match=f"tokenizer.{key} is true, but .*{reason}.*: leave it out"):
        load_config(path, [f"tokenizer.{key}=true"])
