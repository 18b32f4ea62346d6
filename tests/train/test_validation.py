"""Validation: the loss of every pair once, whatever the batches; translations of sentences of the whole split."""

import dataclasses
import math
import types

import numpy as np
import pytest

import train.validation.validation
from keras_transformer.ground.tokens import EOS
from keras_transformer.losses import token_sums
from keras_transformer.model import Transformer
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NotFiniteError
from tests.support.models import as_numpy, assert_close, randomise
from tests.support.training import PAIRS, TINY, tensors
from train.config.training import RowLengths
from train.config.translation import TranslationConfig
from train.data.batches import lay_out
from train.data.corpus import Split
from train.data.packing import Packing
from train.data.trees import Tree
from train.validation.validation import Sample, Validator, digest, perplexity_interval, row_sums

TEXTS = [("one", "eins"), ("two", "zwei"), ("three", "drei"), ("four", "vier")]
PLAIN = Split("validation", lambda: iter(TEXTS))
SMOOTHING = 0.3  # not the default


class Tokenizer:
    """Every line is its length in letters; every output is read as its ids."""

    vocab_size = TINY.vocab_size

    def encode_batch(self, lines):
        return [[4 + len(line)] for line in lines]

    encode_target_batch = encode_batch

    def unknown_tag(self, line):
        return ""

    def decode(self, ids):
        return " ".join(map(str, ids))

    def pieces(self):
        return []

    def restored(self, texts):
        return list(texts)


@pytest.fixture(scope="module")
def transformer():
    return randomise(Transformer(TINY.replace(dropout=0.5, label_smoothing=SMOOTHING)))


@pytest.fixture(scope="module")
def validator(transformer):
    """One for all tests: the graph of its search takes seconds."""
    return validator_of(transformer, validation_sentences=2)


def validator_of(transformer, split=PLAIN, outputs="text", most_positions=math.inf, **translation):
    corpus = types.SimpleNamespace(validation=split, target_language="zh", outputs=outputs)
    return Validator(transformer, data_of(corpus, PAIRS), TranslationConfig(**translation), False, most_positions)


def data_of(corpus, validation):
    settings = {"tokenizer": Tokenizer(), "languages": NO_LANGUAGES}
    return types.SimpleNamespace(corpus=corpus, validation=validation, **settings)


@pytest.mark.slow
def test_the_means_are_those_of_all_tokens_of_all_pairs_with_dropout_off(transformer, validator):
    one_to_a_row = Packing(np.arange(len(PAIRS)), np.arange(len(PAIRS) + 1))
    batch = tensors(lay_out(PAIRS, one_to_a_row, RowLengths(8, 8)))
    logits = transformer({name: batch[name] for name in transformer.input}, training=False)
    sums = token_sums(logits, batch["labels"], batch["target_segments"], SMOOTHING)
    tokens = PAIRS.target_tokens
    assert (PAIRS.target.ids == EOS).sum() == len(PAIRS) and tokens == PAIRS.target.lengths.sum() == float(sums.tokens)
    validation = validator()
    assert_close(validation.loss, as_numpy(sums.loss) / tokens, rtol=1e-4)
    assert_close(validation.perplexity, np.exp(as_numpy(sums.nll) / tokens), rtol=1e-4)
    assert_close(validation.token_accuracy, as_numpy(sums.correct) / tokens, rtol=1e-4)
    of_rows = token_sums(logits, batch["labels"], batch["target_segments"], SMOOTHING, by_row=True)
    expected = perplexity_interval(as_numpy(of_rows.nll), as_numpy(of_rows.tokens))
    assert validation.perplexity_interval == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e30])
def test_weights_that_have_exploded_are_named_before_they_are_searched(value):
    transformer = randomise(Transformer(TINY))
    validate = validator_of(transformer, validation_sentences=2)
    for weight in transformer.weights:
        weight.assign(np.full(weight.shape, value, "float32"))
    with pytest.raises(NotFiniteError, match=r"The loss of the validation text is (nan|inf)\."):
        validate()


@pytest.mark.slow
def test_the_size_of_its_batches_changes_nothing(transformer, validator, monkeypatch):
    expected = validator()
    monkeypatch.setattr(train.validation.validation, "ROWS", 7)
    other = validator_of(transformer)
    other.bleu.translator = validator.bleu.translator
    assert_close(other()[:3], expected[:3], rtol=1e-4)
    other.most_positions = 40
    assert_close(other()[:3], expected[:3], rtol=1e-4)


def test_the_sums_of_a_row_are_smoothed_and_without_dropout(transformer, eager):
    batch = tensors(lay_out(PAIRS, Packing(np.arange(3), np.arange(4)), RowLengths(8, 8)))
    logits = transformer({name: batch[name] for name in transformer.input}, training=False)
    expected = token_sums(logits, batch["labels"], batch["target_segments"], SMOOTHING, by_row=True)
    for found, sums in zip(row_sums(transformer, xla=False)(batch), expected, strict=True):
        assert found.shape == (3,)
        assert_close(found, sums)


def test_a_basis_is_what_a_checkpoint_of_an_earlier_version_has():
    """With another digest, no run could compare its validations with those before."""
    assert digest("text", 4, 0.6) == "5e9d4a4b1388a1f66a65ccf6c8640feb"


@pytest.mark.slow
def test_called_again_it_returns_the_same_and_follows_the_weights(transformer, validator):
    first = validator()
    assert validator() == first
    weight = transformer.trainable_variables[0]
    before = weight.numpy()
    weight.assign(2 * before)
    assert validator().loss != first.loss
    weight.assign(before)
    assert validator() == first


@pytest.mark.slow
def test_samples_are_sentences_of_the_whole_split_with_their_references_and_translations(validator):
    validation = validator()
    texts = [translation.text for translation in validator.bleu.translator.translate(["one", "three"])]
    assert validation.samples == [Sample(*pair, text) for pair, text in zip(TEXTS[::2], texts, strict=True)]
    assert validation.scores.sentences == 2 and validation.scores.exact == 0.0
    assert "tok:zh" in validation.scores.first("BLEU").signature  # as the target language asks


def test_it_translates_with_the_options_of_the_configuration(transformer):
    given = {"beam_size": 5, "validation_beam_size": 3, "length_penalty": 0.25, "batch_size": 7}
    translator = validator_of(transformer, **given).bleu.translator
    assert (translator.options, translator.batch_size) == (SearchOptions(beam_size=3, length_penalty=0.25), 7)


def test_the_basis_of_a_score_is_the_text_and_the_search(transformer):
    """By it, early stopping and the best checkpoint know which validations they may compare."""
    first, again = (validator_of(transformer) for _ in range(2))
    assert (first.loss_basis, first.scores_basis) == (again.loss_basis, again.scores_basis)
    others = [
        validator_of(transformer, Split("validation", lambda: iter([*TEXTS[:3], ("four", "fier")]))),
        validator_of(transformer, validation_sentences=3),
        validator_of(transformer, validation_beam_size=2),
        validator_of(transformer, length_penalty=0.7),
        validator_of(transformer, length_normalization="tokens"),
        validator_of(transformer, extra_length=7),
        validator_of(transformer, coverage_penalty=0.7),
    ]
    assert len({validator.scores_basis for validator in [first, *others]}) == 8
    assert first.scores_basis == digest(TEXTS, (1, 0.6, 50), "zh")  # as runs of before the coverage penalty have it
    corpus = types.SimpleNamespace(validation=PLAIN, target_language="zh", outputs="text")
    smoothed = Transformer(TINY.replace(label_smoothing=0.2))
    target = dataclasses.replace(PAIRS.target, ids=np.where(PAIRS.target.ids == EOS, EOS, 7))
    for model, pairs in ((smoothed, PAIRS), (transformer, dataclasses.replace(PAIRS, target=target))):
        other = Validator(model, data_of(corpus, pairs), TranslationConfig(), xla=False)
        assert other.loss_basis != first.loss_basis and other.scores_basis == first.scores_basis


def test_references_are_in_lower_case_if_the_tokenizer_makes_all_text_so(transformer, monkeypatch):
    monkeypatch.setattr(Tokenizer, "restored", lambda self, texts: [text.lower() for text in texts])
    split = Split("validation", lambda: iter([("One", "Eins"), ("Two", "Zwei")]))
    assert validator_of(transformer, split).bleu.pairs == [("One", "eins"), ("Two", "zwei")]


def test_translations_are_compared_with_the_trees_of_their_own_sentences(transformer):
    """Tree 7 has the label L7, and the translations of a few sentences are their trees."""
    trees = [Tree((f"w{n}", "b"), ("NN", "VB"), ("(S", f"(L{n}", "XX", f")L{n}", "XX", ")S")) for n in range(20)]
    split = Split("validation", lambda: (tree.pair for tree in trees))
    split.trees = trees
    validator = validator_of(transformer, split, "trees", validation_sentences=3)
    tree_of = {tree.pair[0]: types.SimpleNamespace(text=tree.pair[1]) for tree in trees}
    translate = types.SimpleNamespace(translate=lambda lines: [tree_of[line] for line in lines], languages=NO_LANGUAGES)
    validator.bleu.translator = translate
    text_scores = validator.bleu.inspect()
    brackets = validator.output_scores(text_scores, validator.bleu.samples).brackets
    assert len({sample.translation for sample in validator.bleu.samples}) == brackets.sentences == 3
    assert brackets.f1.value == brackets.exact == 100


# the interval of perplexity


def test_the_interval_of_two_sentences_by_hand():
    """r = 6 / 4; the residuals 4 - 1.5 * 2 and 2 - 1.5 * 2 are 1 and -1; the error is sqrt(2 / 1 * 2) / 4 = 1 / 2."""
    low, high = perplexity_interval(np.array([4.0, 2.0]), np.array([2.0, 2.0]))
    assert (low, high) == pytest.approx((math.exp(1.5 - 0.979982), math.exp(1.5 + 0.979982)))


def test_sentences_that_are_alike_per_token_have_no_width_and_one_sentence_has_no_interval():
    assert perplexity_interval(np.array([2.0, 4.0, 6.0]), np.array([1.0, 2.0, 3.0])) == pytest.approx((math.e**2,) * 2)
    assert perplexity_interval(np.array([2.0]), np.array([1.0])) is None


def test_the_interval_is_that_of_the_bootstrap():
    generator = np.random.default_rng(1)
    tokens = generator.integers(3, 40, 500).astype(float)
    nll = tokens * generator.gamma(8.0, 0.25, 500)
    drawn = generator.integers(0, 500, (4_000, 500))
    expected = np.exp(np.percentile(nll[drawn].sum(1) / tokens[drawn].sum(1), [2.5, 97.5]))
    assert perplexity_interval(nll, tokens) == pytest.approx(expected, rel=0.01)
    assert expected[1] > 1.05 * expected[0]
