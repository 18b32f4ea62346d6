"""Laws of augmentation: shares, which side changes, rows, tags, and a function of (seed, epoch) alone."""

import os

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS, UNK
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from train.config.augmentation import AugmentationConfig
from train.config.run import load_config
from train.config.training import RowLengths, TrainingConfig
from train.data.augmentation import CHANGES, Augmentation, in_capitals, in_title_case
from train.data.batches import FIELDS
from train.data.corpus import Corpus, Split
from train.data.encoding import EncodedPairs, Sentences, encode_corpus
from train.data.prepare import prepare_data

ROWS = RowLengths(60, 60)
WORDS = "the old man and a young woman walk their dogs along many wooden bridges".split()
TAGS = ("<2de>", "<2fr>")


def corpus(count=200):
    rng = np.random.default_rng(3)
    sentences = [" ".join(rng.choice(WORDS, rng.integers(2, 7))) + "." for _ in range(2 * count)]
    return list(zip(sentences[:count], sentences[count:], strict=True))


def tagged_corpus():
    return [(TAGS[number % 2] + source, target) for number, (source, target) in enumerate(corpus())]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("augmentation") / "tokenizer.model"
    train_tokenizer([text for pair in corpus() for text in pair], path, 380, TAGS)
    return Tokenizer(path)


@pytest.fixture(scope="module")
def pairs(tokenizer):
    return encode_corpus(Split("data.train", lambda: iter(tagged_corpus())), tokenizer, ROWS)


def texts_of(pairs, tokenizer):
    sides = pairs.source, pairs.target
    return [tuple(tokenizer.decode(side[number]) for side in sides) for number in range(len(pairs))]


def changed(pairs, tokenizer, rows=ROWS, seed=1, **shares):
    config = AugmentationConfig(**shares)
    return Augmentation(tokenizer, config, rows, TAGS)(pairs, np.random.default_rng(seed))


def test_the_keys_are_the_changes():
    assert list(AugmentationConfig.model_fields) == list(CHANGES)


def test_without_shares_nothing_changes(tokenizer, pairs):
    result = changed(pairs, tokenizer)
    for side in ("source", "target"):
        np.testing.assert_array_equal(getattr(result, side).ids, getattr(pairs, side).ids)
        np.testing.assert_array_equal(getattr(result, side).offsets, getattr(pairs, side).offsets)


def test_case_changes_all_but_the_tag(tokenizer, pairs):
    plain = tagged_corpus()
    upper = [(source[:5] + in_capitals(source[5:]), in_capitals(target)) for source, target in plain]
    title = [(source[:5] + in_title_case(source[5:]), target) for source, target in plain]
    assert texts_of(changed(pairs, tokenizer, uppercase=1.0), tokenizer) == upper
    assert texts_of(changed(pairs, tokenizer, title_case=1.0), tokenizer) == title


@pytest.mark.parametrize("key", ["punctuation", "typing"])
def test_a_mistake_is_in_the_source_alone(tokenizer, pairs, key):
    result, plain = texts_of(changed(pairs, tokenizer, **{key: 1.0}), tokenizer), tagged_corpus()
    assert [target for _, target in result] == [target for _, target in plain]
    assert sum(one != other for one, other in zip(result, plain, strict=True)) > 150
    for (one, _), (other, _) in zip(result, plain, strict=True):
        alike = sum(len(os.path.commonprefix(texts)) for texts in ([one, other], [one[::-1], other[::-1]]))
        assert one[:5] == other[:5] and alike >= min(len(one), len(other)) - 2


def test_a_pair_is_followed_by_one_of_the_same_tag_on_both_sides(tokenizer, pairs):
    result, plain = texts_of(changed(pairs, tokenizer, joined=1.0), tokenizer), tagged_corpus()
    joined = [(one, other) for one, other in zip(plain, result, strict=True) if one != other]
    assert len(joined) > 60
    for (source, target), (longer_source, longer_target) in joined:
        assert longer_source.startswith(source + " ") and longer_target.startswith(target + " ")
        rest = source[:5] + longer_source[len(source) + 1 :], longer_target[len(target) + 1 :]
        assert rest in plain


def test_shares_are_kept(tokenizer):
    line = [("the old man.", "a dog.")] * 10_000
    pairs = encode_corpus(Split("data.train", lambda: iter(line)), tokenizer, ROWS)
    result = texts_of(changed(pairs, tokenizer, uppercase=0.2, joined=0.3), tokenizer)
    counts = [result.count(pair) for pair in (line[0], ("THE OLD MAN.", "A DOG."))]
    counts.append(result.count(("the old man. the old man.", "a dog. a dog.")))
    for count, share in zip(counts, (0.5, 0.2, 0.3), strict=True):
        assert abs(count - 10_000 * share) < 5 * (10_000 * share * (1 - share)) ** 0.5


def test_a_pair_that_would_not_fit_stays(tokenizer, pairs):
    tight = RowLengths(int(pairs.source.lengths.max()), int(pairs.target.lengths.max()))
    result = changed(pairs, tokenizer, tight, joined=1.0)
    assert result.source.lengths.max() <= tight.source and result.target.lengths.max() <= tight.target
    assert all(result.source[number][-1] == EOS for number in range(len(result)))


@pytest.mark.parametrize("unknown", [{"source"}, {"target"}, {"source", "target"}])
def test_a_pair_with_an_unknown_piece_stays(tokenizer, unknown):
    ids = {side: [*tokenizer.encode("old man"), *[UNK] * (side in unknown), EOS] for side in ("source", "target")}
    result = changed(
        EncodedPairs(*(Sentences.of([side], np.uint16) for side in ids.values()), {}), tokenizer, uppercase=1.0
    )
    assert {"source": result.source.ids.tolist(), "target": result.target.ids.tolist()} == ids


def test_a_pair_is_never_followed_by_one_with_an_unknown_piece(tokenizer):
    known, unknown = [*tokenizer.encode("old man"), EOS], [UNK, EOS]
    side = Sentences.of([known, unknown] * 20, np.uint16)
    result = changed(EncodedPairs(side, side, {}), tokenizer, joined=1.0)
    assert UNK not in np.concatenate([result.source[number] for number in range(0, 40, 2)])
    assert [result.source[number].tolist() for number in range(1, 40, 2)] == [unknown] * 20
    assert max(result.source.lengths) > len(known)


def test_a_batch_is_a_function_of_seed_and_step_with_bpe_dropout_too(tokenizer, pairs, tmp_path, caplog):
    split = Split("data.train", lambda: iter(tagged_corpus()), lambda: {"text": "corpus"})

    def batches(**keys):
        training = TrainingConfig(tokens_per_batch=4 * 60, row_length=60, bpe_dropout=0.1, **keys)
        return prepare_data(Corpus(split, split, None, "a", "b", TAGS), tokenizer, training, tmp_path).batches

    caplog.set_level("INFO")
    augment = AugmentationConfig(uppercase=0.3, typing=0.3, joined=0.3)
    walked, resumed, plain = batches(augment=augment), batches(augment=augment), batches()
    last = walked.steps_per_epoch + 1
    batch = [walked.batch(step) for step in range(last + 1)][-1]
    for field in FIELDS:
        np.testing.assert_array_equal(resumed.batch(last)[field], batch[field])
    assert (plain.batch(0)["labels"] != walked.batch(0)["labels"]).any()
    tokens = f"{pairs.source_tokens:,} source and {pairs.target_tokens:,} target tokens"
    assert (
        f"packed rows of 60 source and 60 target positions: {100 * walked.padding.total:.2f}% padding; "
        f"4 rows per batch, {walked.steps_per_epoch} steps per epoch, "
        f"{walked.epochs(100_000):.1f} epochs in 100000 steps"
    ) in caplog.messages
    assert (
        f"training: 200 pairs, {tokens}; skipped: none" in caplog.messages
        and pairs.source_tokens != pairs.target_tokens
    )


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["training.augment.typing=0.6", "training.augment.joined=0.6"], "more than all pairs together"),
        (["training.augment.typo=0.6"], "there is no key training.augment.typo"),
        (["training.augment.uppercase=0.1", "tokenizer.lowercase=true"], "uppercase has no effect"),
    ],
)
def test_what_cannot_be_is_one_sentence(overrides, sentence):
    with pytest.raises(ConfigError, match=sentence):
        load_config("configs/numbers.toml", overrides)


def test_trees_are_not_changed():
    with pytest.raises(ConfigError, match='data.source is "treebank": leave it out'):
        load_config("configs/parsing_sample.toml", ["training.augment.typing=0.1"])
