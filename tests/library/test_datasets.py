"""From sentence pairs to batches: what a row holds, few shapes, every pair once per epoch, and clear refusals."""

import logging

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.pieces.datasets import dataset_from_pairs
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from tests.support.marian import pair_tokenizer

WORDS = "red green blue one two three".split()
PAIRS = [(" ".join(WORDS[: 1 + n % 5]), f"{n}" * (1 + n % 9)) for n in range(50)]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("datasets") / "tokenizer.model"
    train_tokenizer([sentence for pair in PAIRS for sentence in pair], path, 300)
    return Tokenizer(path)


def rows_of(dataset):
    """Every row that is not empty: (source ids, target ids, labels) without padding."""
    for inputs, labels in dataset.as_numpy_iterator():
        for row in zip(inputs["source_ids"], inputs["target_ids"], labels, strict=True):
            if row[0][0] != PAD:
                yield tuple([int(token) for token in ids if token != PAD] for ids in row)


def texts_of(dataset, tokenizer):
    return [(tokenizer.decode(source), tokenizer.decode(labels)) for source, _, labels in rows_of(dataset)]


def test_a_row_is_source_and_eos_bos_and_target_and_as_labels_target_and_eos(tokenizer):
    source, target = tokenizer.encode_batch(PAIRS[7])
    assert list(rows_of(dataset_from_pairs([PAIRS[7]], tokenizer))) == [
        ([*source, EOS], [BOS, *target], [*target, EOS])
    ]


def test_each_side_has_the_pieces_of_its_own_model():
    pair = pair_tokenizer()
    source, target = pair.encode("two hundred"), pair.encode_target("zweihundert")
    assert target != pair.encode("zweihundert")
    assert list(rows_of(dataset_from_pairs([("two hundred", "zweihundert")], pair))) == [
        ([*source, EOS], [BOS, *target], [*target, EOS])
    ]


def test_segments_are_1_at_tokens_and_0_at_padding(tokenizer):
    for inputs, labels in dataset_from_pairs(PAIRS, tokenizer, rows=4).as_numpy_iterator():
        for side in ("source", "target"):
            np.testing.assert_array_equal(inputs[f"{side}_segments"], inputs[f"{side}_ids"] != PAD)
        np.testing.assert_array_equal(inputs["target_segments"], labels != PAD)


def test_every_pair_occurs_once_per_epoch_with_its_text(tokenizer):
    dataset = dataset_from_pairs(PAIRS, tokenizer, rows=8)
    for _ in range(2):
        assert sorted(texts_of(dataset, tokenizer)) == sorted(PAIRS)


def test_there_is_one_shape_per_length_and_a_pair_is_in_the_first_that_holds_it(tokenizer):
    lengths = (6, 9, 12, 40)
    occurred = set()
    for inputs, labels in dataset_from_pairs(PAIRS, tokenizer, rows=8, lengths=lengths).as_numpy_iterator():
        assert {array.shape for array in (*inputs.values(), labels)} == {labels.shape}
        assert {array.dtype for array in (*inputs.values(), labels)} == {np.dtype("int32")}
        rows, length = labels.shape
        assert rows == 8 and length in lengths
        shorter = max((other for other in lengths if other < length), default=0)
        longest = np.maximum((inputs["source_ids"] != PAD).sum(-1), (labels != PAD).sum(-1))
        assert all(shorter < tokens <= length or tokens == 0 for tokens in longest)
        occurred.add(length)
    assert len(occurred) >= 3


def test_a_pair_of_exactly_the_longest_length_fits(tokenizer):
    longest = max(len(ids) + 1 for pair in PAIRS for ids in tokenizer.encode_batch(pair))
    assert sorted(texts_of(dataset_from_pairs(PAIRS, tokenizer, lengths=(longest,)), tokenizer)) == sorted(PAIRS)
    with pytest.raises(InputError, match=f"{longest - 1} tokens"):
        dataset_from_pairs(PAIRS, tokenizer, lengths=(longest - 1,))


def test_it_knows_how_many_batches_an_epoch_has(tokenizer):
    dataset = dataset_from_pairs(PAIRS, tokenizer, rows=8, lengths=(6, 9, 12, 40))
    assert int(dataset.cardinality()) == len(list(dataset)) > 4


@pytest.mark.nightly
def test_each_epoch_has_another_order_and_the_seed_decides_which(tokenizer):
    one, other = (dataset_from_pairs(PAIRS, tokenizer, seed=5) for _ in range(2))
    epochs = [texts_of(one, tokenizer) for _ in range(2)]
    assert epochs == [texts_of(other, tokenizer) for _ in range(2)]
    assert epochs[0] != epochs[1]
    assert epochs[0] != texts_of(dataset_from_pairs(PAIRS, tokenizer, seed=6), tokenizer)


def test_unshuffled_the_pairs_of_a_length_keep_their_order(tokenizer):
    dataset = dataset_from_pairs(PAIRS, tokenizer, lengths=(64,), shuffle=False)
    for _ in range(2):
        assert texts_of(dataset, tokenizer) == PAIRS


def test_a_strategy_divides_its_rows(tokenizer):
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    dataset = strategy.experimental_distribute_dataset(dataset_from_pairs(PAIRS, tokenizer, rows=8))
    assert {labels.shape[0] for _, labels in dataset} == {8}


def test_unusable_pairs_are_counted_and_raise(tokenizer):
    pairs = [*PAIRS, ("", "x"), ("y", " \u200b"), ("z " * 40, "z")]
    with pytest.raises(InputError, match=r"2 of 53 pairs .* blank .* 1 .* 64 tokens .*skip_unusable"):
        dataset_from_pairs(pairs, tokenizer, lengths=(16, 64))


def test_unusable_pairs_are_skipped_on_request_and_logged(tokenizer, caplog):
    pairs = [("", "x"), *PAIRS, ("z " * 40, "z")]
    with caplog.at_level(logging.WARNING, "keras_transformer"):
        dataset = dataset_from_pairs(pairs, tokenizer, lengths=(16, 64), skip_unusable=True)
    assert sorted(texts_of(dataset, tokenizer)) == sorted(PAIRS)
    assert "1 of 52" in caplog.text and "64 tokens" in caplog.text


@pytest.mark.parametrize(("pair", "named"), [(("a", "\ud800"), "Target 2"), (("\udc00", "b"), "Source 2")])
def test_text_that_utf_8_cannot_express_is_named(pair, named, tokenizer):
    with pytest.raises(InputError, match=f"{named} has a lone surrogate"):
        dataset_from_pairs([("one", "eins"), pair], tokenizer)


@pytest.mark.parametrize("pairs", [[], [("", "")]])
def test_without_a_usable_pair_there_is_no_dataset(pairs, tokenizer):
    with pytest.raises(InputError, match=f"{len(pairs)} pairs"):
        dataset_from_pairs(pairs, tokenizer, skip_unusable=True)


@pytest.mark.parametrize(
    ("pairs", "named"),
    [
        ("one two", "str"),
        ({"one": "two"}, "dict"),
        ([("one", "two"), "one two"], "pair 2"),
        ([("one",)], "pair 1"),
        ([("one", 2)], "pair 1"),
        ([("one", "two", "three")], "pair 1"),
    ],
)
def test_what_is_no_pair_of_strings_is_refused_with_its_number(pairs, named, tokenizer):
    with pytest.raises(TypeError, match=named):
        dataset_from_pairs(pairs, tokenizer)


def test_a_tokenizer_must_be_one():
    with pytest.raises(TypeError, match="tokenizer must be .* Received: 'runs/tokenizer.model'"):
        dataset_from_pairs(PAIRS, "runs/tokenizer.model")


@pytest.mark.parametrize("arguments", [{"rows": 0}, {"lengths": ()}, {"lengths": (32, 16)}, {"lengths": (1, 8)}])
def test_rows_and_lengths_that_make_no_sense_are_refused_by_name(arguments, tokenizer):
    ((name, _),) = arguments.items()
    with pytest.raises(ValueError, match=f"{name} must .* Received: {name}="):
        dataset_from_pairs(PAIRS, tokenizer, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [{"rows": 2.5}, {"rows": None}, {"seed": "1"}, {"lengths": 16}, {"lengths": (8, 16.5)}, {"lengths": "16"}],
)
def test_rows_seeds_and_lengths_are_whole_numbers(arguments, tokenizer):
    ((name, _),) = arguments.items()
    with pytest.raises(TypeError, match=f"{name}.* must be whole numbers, such as .* Received: "):
        dataset_from_pairs(PAIRS, tokenizer, **arguments)


def test_arrays_and_numbers_of_numpy_give_the_same_batches(tokenizer):
    expected = list(dataset_from_pairs(PAIRS, tokenizer, rows=4, lengths=(8, 40)).as_numpy_iterator())
    arrays = np.array(PAIRS), tokenizer, np.int64(4), np.array([8, 40]), True, np.int64(0)
    for given in (arrays, (np.array(PAIRS, object), *arrays[1:]), (map(list, PAIRS), *arrays[1:])):
        for batch, same in zip(dataset_from_pairs(*given).as_numpy_iterator(), expected, strict=True):
            tf.nest.map_structure(np.testing.assert_array_equal, batch, same)
