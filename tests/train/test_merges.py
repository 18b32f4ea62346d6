"""Laws of merges that are left out: SentencePiece's own for rates 0 and 1, its distribution between, no process's."""

import collections
import json

import numpy as np
import pytest
import sentencepiece

from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError, train_tokenizer
from tests.support.marian import pair_tokenizer
from tests.support.processes import python
from tests.support.segmentation import drawn_by
from tests.support.sentencepiece_models import OUR_IDS, trained_model
from tests.support.texts import SENTENCES, TEXTS, random_texts
from train.data.merges import Merges

TAGS = ("<2de>", " (NP", "(A B")
KINDS = [(False, False), (True, False), (False, True)]  # lowercase, dummy_prefix


@pytest.fixture(scope="module", params=KINDS, ids=["plain", "lowercase", "dummy_prefix"])
def tokenizer(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("merges") / "tokenizer.model"
    symbols = TAGS[: 1 if request.param[0] else None]  # lower case cannot keep the capitals of the others
    train_tokenizer(SENTENCES, path, 400, symbols, *request.param)
    return Tokenizer(path)


def by_sentencepiece(tokenizer, texts, rate):
    """The same by SentencePiece, of which rates 0 and 1 leave nothing to chance."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.model_bytes)
    return processor.encode(texts, enable_sampling=True, alpha=rate, nbest_size=-1, num_threads=1)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rates_0_and_1_are_those_of_sentencepiece(tokenizer, rate):
    texts = [*TEXTS, *SENTENCES, *random_texts(200), "<2de>the fox (NP dog", " two  spaces "]
    found = drawn_by(tokenizer, texts, rate)
    assert found == by_sentencepiece(tokenizer, texts, rate)
    assert (found == tokenizer.encode_batch(texts)) is (rate == 0)


def test_a_word_begins_at_each_space_though_a_symbol_may_have_one_in_it(tokenizer):
    """Merges across the spaces of a sentence would be drawn for all of it at once."""
    merges, ids = Merges(tokenizer), np.array(tokenizer.encode(SENTENCES[0]), np.int32)
    assert len(merges.words_of(ids)) == len(SENTENCES[0].split()) < len(ids)


def test_words_of_which_nothing_is_left_out_have_their_own_pieces(tokenizer):
    """Put together again from their characters, in SentencePiece's order."""
    merges = Merges(tokenizer)
    for line in tokenizer.encode_batch([*TEXTS, *SENTENCES, *random_texts(200), "<2de>the fox (NP dog"]):
        ids = np.array(line, np.int32)
        words = merges.segmentations_of(ids, merges.words_of(ids)) if line else []
        assert [number for word in words for number in word.ids] == line


def test_what_is_kept_is_counted(tokenizer):
    merges = Merges(tokenizer)
    for line in tokenizer.encode_batch(TEXTS):
        merges.segmentations_of(np.array(line, np.int32), merges.words_of(np.array(line, np.int32)))
    assert merges.kept == len(merges.known) > 3
    some = next(word for word in merges.known.values() if word.rest)
    assert merges.further(some, 0) is merges.further(some, 0) and merges.kept == len(merges.known) + 1


def test_other_pieces_have_the_same_text(tokenizer):
    drawn = drawn_by(tokenizer, TEXTS, 0.5)
    assert drawn != tokenizer.encode_batch(TEXTS)
    assert list(map(tokenizer.decode, drawn)) == list(map(tokenizer.decode, tokenizer.encode_batch(TEXTS)))


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.1, 0.6])
def test_pieces_are_as_probable_as_those_of_sentencepiece(tokenizer, rate):
    """Every segmentation of a sentence, among 20,000 of each: within five standard errors of the difference."""
    text, count = SENTENCES[0][:24], 20_000
    found, expected = (
        collections.Counter(map(tuple, draw(tokenizer, [text] * count, rate))) for draw in (drawn_by, by_sentencepiece)
    )
    assert len(found) > 30
    for ids in found | expected:
        error = (found[ids] + expected[ids] + 1) ** 0.5
        assert abs(found[ids] - expected[ids]) < 5 * error


@pytest.mark.slow
def test_the_seed_decides_in_every_process(tokenizer, tmp_path):
    """SentencePiece's own seed does not: a run that is killed would go on with other text."""
    (tmp_path / "tokenizer.model").write_bytes(tokenizer.model_bytes)
    program = (
        "import json, sys; from keras_transformer.pieces.tokenizer import Tokenizer; "
        "from tests.support.texts import TEXTS; "
        "from tests.support.segmentation import drawn_by; tokenizer = Tokenizer(sys.argv[1]); "
        "print(json.dumps(drawn_by(tokenizer, TEXTS, 0.5)))"
    )
    elsewhere = python("-c", program, tmp_path / "tokenizer.model")
    assert json.loads(elsewhere.stdout) == drawn_by(tokenizer, TEXTS, 0.5) != drawn_by(tokenizer, TEXTS, 0.5, seed=2)


def given(kind, **options):
    """A tokenizer that was not trained here."""
    options |= OUR_IDS | {"byte_fallback": True, "hard_vocab_limit": False}
    return Tokenizer.of_bytes(trained_model(SENTENCES * 20, model_type=kind, **options))


def test_pieces_may_have_spaces_in_them():
    """Those of a tokenizer that was given: its words do not end at spaces."""
    tokenizer = given("bpe", vocab_size=400, split_by_whitespace=False)
    assert any("\u2581" in piece[1:] for piece in tokenizer.pieces())
    assert drawn_by(tokenizer, SENTENCES, 1.0) == by_sentencepiece(tokenizer, SENTENCES, 1.0)
    for line in tokenizer.encode_batch(SENTENCES):
        ids = np.array(line, np.int32)
        (sentence,) = Merges(tokenizer).segmentations_of(ids, Merges(tokenizer).words_of(ids))
        assert sentence.ids == tuple(line)


def test_a_tokenizer_without_merges_is_refused():
    with pytest.raises(TokenizerError, match="not one of byte-pair encoding.*leave bpe_dropout out"):
        Merges(given("unigram", vocab_size=330))


def test_a_tokenizer_of_two_models_is_refused():
    with pytest.raises(TokenizerError, match="has two models .*leave bpe_dropout out"):
        Merges(pair_tokenizer())
