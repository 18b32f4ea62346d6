"""Laws of batches: nothing lost, nothing twice, and a batch is a function of its step."""

import collections

import numpy as np
import pytest

from keras_transformer.ground.tokens import BOS, EOS, PAD
from tests.support.marian import pair_tokenizer
from tests.support.processes import python
from train.config.training import RowLengths
from train.data import encoding
from train.data.batches import FIELDS, PackedBatches, padded_batches, padding_of, training_dataset
from train.data.corpus import CorpusError, Split
from train.data.encoding import encode_corpus, encoded_chunks, row_holding, too_long_for
from train.workers.tf_config import Worker


class Words:
    """A tokenizer whose pieces are words that are numbers: "7 8" -> [7, 8]."""

    vocab_size = 10_000

    def encode_batch(self, texts):
        return [[int(word) for word in text.split()] for text in texts]

    encode_target_batch = encode_batch


def sentences_of(pairs):
    return [(list(pairs.source[i]), list(pairs.target[i])) for i in range(len(pairs))]


def pairs_of(batch):
    """The pairs in a batch, read back through its segments as ([source..., EOS], [target..., EOS])."""
    found = []
    for row in range(len(batch["labels"])):
        for segment in range(1, batch["source_segments"][row].max(initial=0) + 1):
            source = batch["source_ids"][row][batch["source_segments"][row] == segment]
            target = batch["labels"][row][batch["target_segments"][row] == segment]
            found.append((source.tolist(), target.tolist()))
    return found


def counted(pairs):
    return collections.Counter((tuple(source), tuple(target)) for source, target in pairs)


def assert_same_batch(one, other):
    assert list(one) == list(other) == list(FIELDS)
    for field in FIELDS:
        np.testing.assert_array_equal(one[field], other[field])


def random_corpus(count, longest=30):
    """Pairs of 1 to `longest` random words a side."""
    rng = np.random.default_rng(0)

    def sentence():
        return " ".join(map(str, rng.integers(4, Words.vocab_size, rng.integers(1, longest + 1))))

    return [(sentence(), sentence()) for _ in range(count)]


def encode(pairs, row_length):
    row_lengths = row_length if isinstance(row_length, RowLengths) else RowLengths(row_length, row_length)
    return encode_corpus(Split("data.train", lambda: iter(pairs)), Words(), row_lengths)


@pytest.fixture(scope="module")
def pairs():
    return encode(random_corpus(500), row_length=40)


@pytest.fixture(scope="module")
def batches(pairs):
    return PackedBatches(pairs, 40 * 16, RowLengths(40, 40), seed=1)


# encoding


def test_a_sentence_is_encoded_as_its_pieces_and_eos():
    assert sentences_of(encode([("7 8", "9")], row_length=8)) == [([7, 8, EOS], [9, EOS])]


def test_pairs_that_are_too_long_or_empty_are_left_out_and_counted():
    pairs = encode([("5 5 5", "6"), ("5 5 5 5", "6"), ("5", "6 6 6 6"), ("", "6"), ("5", " ")], row_length=4)
    assert sentences_of(pairs) == [([5, 5, 5, EOS], [6, EOS])]
    assert pairs.skipped == {"longer than 4 tokens": 2, "empty source": 1, "empty target": 1}
    assert (len(pairs), pairs.source_tokens, pairs.target_tokens) == (1, 4, 2)


def test_a_corpus_without_a_usable_pair_is_an_error():
    with pytest.raises(
        CorpusError, match="data.train has no sentence pair left.*1 longer than 4 tokens.*row_length: 5 "
    ):
        encode([("5 5 5 5", "6")], row_length=4)


@pytest.mark.parametrize("left_out", [0, 1, 7, 40])
@pytest.mark.parametrize("lengths", [RowLengths(12, 12), RowLengths(8, 12), RowLengths(12, 9)])
def test_the_row_length_that_is_named_holds_all_but_so_many_pairs_and_no_shorter_one_does(lengths, left_out):
    corpus = random_corpus(100)
    named = row_holding(encode(corpus, lengths).too_long, left_out)

    def too_long(target):
        return encode(corpus, RowLengths(-(-target * lengths.source // lengths.target), target)).too_long.total()

    assert too_long(named) <= left_out < too_long(named - 1)


def test_encoding_in_chunks_gives_the_same_corpus(monkeypatch):
    corpus = random_corpus(25)
    whole = encode(corpus, 20)
    monkeypatch.setattr("train.data.encoding.CHUNK", 10)
    in_chunks = encode(corpus, 20)
    assert sentences_of(in_chunks) == sentences_of(whole) and in_chunks.too_long == whole.too_long


# training batches


def test_two_pairs_in_one_row_have_these_ids_segments_and_labels():
    batches = PackedBatches(encode([("7 8", "5 6"), ("7 8", "5 6")], row_length=8), 8, RowLengths(8, 8), seed=1)
    batch = batches.batch(0)
    assert batch["source_ids"].tolist() == [[7, 8, EOS, 7, 8, EOS, PAD, PAD]]
    assert batch["source_segments"].tolist() == [[1, 1, 1, 2, 2, 2, 0, 0]]
    assert batch["target_ids"].tolist() == [[BOS, 5, 6, BOS, 5, 6, PAD, PAD]]
    assert batch["target_segments"].tolist() == [[1, 1, 1, 2, 2, 2, 0, 0]]
    assert batch["labels"].tolist() == [[5, 6, EOS, 5, 6, EOS, PAD, PAD]]
    assert batches.padding == (0.25, 0.25, 0.25)


def test_an_epoch_has_every_pair_once_and_its_last_batch_is_filled_from_its_beginning(pairs, batches):
    for epoch in (0, 1):
        first = epoch * batches.steps_per_epoch
        found = [pair for step in range(batches.steps_per_epoch) for pair in pairs_of(batches.batch(first + step))]
        extra = counted(found) - counted(sentences_of(pairs))
        assert not counted(sentences_of(pairs)) - counted(found)
        assert not extra - counted(pairs_of(batches.batch(first)))


def test_the_order_of_pairs_differs_by_epoch_and_by_seed(pairs, batches):
    other = PackedBatches(pairs, 40 * 16, RowLengths(40, 40), seed=2)
    first = batches.batch(0)["labels"]
    assert (first != batches.batch(batches.steps_per_epoch)["labels"]).any()
    assert (first != other.batch(0)["labels"]).any()


def test_a_batch_depends_only_on_its_step_and_not_on_the_batches_before(pairs, batches):
    walked = [batches.batch(step) for step in range(2 * batches.steps_per_epoch + 3)]
    for step in (len(walked) - 1, 0, batches.steps_per_epoch):
        assert_same_batch(PackedBatches(pairs, 40 * 16, RowLengths(40, 40), seed=1).batch(step), walked[step])


def test_the_rows_of_several_workers_in_order_are_the_batch_of_one(pairs, batches):
    parts = [PackedBatches(pairs, 40 * 16, RowLengths(40, 40), 1, Worker(index, 4)).batch(3) for index in range(4)]
    assert_same_batch({field: np.concatenate([part[field] for part in parts]) for field in FIELDS}, batches.batch(3))


def test_each_side_has_rows_of_its_own_length(pairs):
    batches = PackedBatches(pairs, 48 * 4, RowLengths(36, 48), seed=1)
    shapes = {field: (4, 36 if field.startswith("source") else 48) for field in FIELDS}
    assert {field: ids.shape for field, ids in batches.batch(0).items()} == shapes
    specs = training_dataset(batches, 0, 1).element_spec
    assert {field: (tuple(spec.shape), spec.dtype.name) for field, spec in specs.items()} == {
        field: (shape, "int32") for field, shape in shapes.items()
    }


def test_all_batches_have_the_same_shape_and_type(batches):
    for step in range(batches.steps_per_epoch):
        for values in batches.batch(step).values():
            assert values.shape == (16, 40) and values.dtype == np.int32


def test_segments_follow_each_other_without_gaps_and_are_numbered_from_1(batches):
    batch = batches.batch(0)
    for side in ("source_segments", "target_segments"):
        for row in batch[side]:
            used = row[row > 0]
            assert (row[: len(used)] > 0).all()
            assert set(np.diff(used)) <= {0, 1} and used[0] == 1
    np.testing.assert_array_equal(batch["source_segments"].max(axis=1), batch["target_segments"].max(axis=1))


def test_decoder_inputs_are_the_labels_shifted_right_after_bos(batches):
    batch = batches.batch(0)
    for inputs, labels, segments in zip(batch["target_ids"], batch["labels"], batch["target_segments"], strict=True):
        for segment in range(1, segments.max() + 1):
            here = segments == segment
            assert inputs[here].tolist() == [BOS, *labels[here][:-1]]
            assert labels[here][-1] == EOS
        assert (inputs[segments == 0] == PAD).all() and (labels[segments == 0] == PAD).all()


def test_padding_is_counted_by_the_rows_of_each_side():
    assert padding_of(30, 10, 2, RowLengths(20, 10)) == pytest.approx((1 / 4, 1 / 2, 1 / 3))


def test_padding_is_the_share_of_positions_in_segment_0():
    pairs = encode(random_corpus(500), row_length=40)
    one_row_a_step = PackedBatches(pairs, 40, RowLengths(40, 40), seed=1)
    steps = [one_row_a_step.batch(step) for step in range(one_row_a_step.steps_per_epoch)]
    for side in ("source", "target"):
        empty = np.mean([step[f"{side}_segments"] == 0 for step in steps])
        assert getattr(one_row_a_step.padding, side) == pytest.approx(empty)
    assert one_row_a_step.padding.total == pytest.approx(sum(one_row_a_step.padding[:2]) / 2)


def test_a_corpus_smaller_than_a_batch_is_repeated_to_fill_it():
    batches = PackedBatches(encode([("7", "5"), ("8", "6")], row_length=8), 64, RowLengths(8, 8), seed=1)
    assert batches.steps_per_epoch == 1
    assert counted(pairs_of(batches.batch(5))) == {((7, EOS), (5, EOS)): 8, ((8, EOS), (6, EOS)): 8}


def test_the_dataset_yields_the_batches_of_its_steps_in_one_static_shape(batches):
    dataset = training_dataset(batches, 3, 7)
    assert {tuple(spec.shape) for spec in dataset.element_spec.values()} == {(16, 40)}
    found = list(dataset.as_numpy_iterator())
    assert len(found) == 4
    for step, batch in enumerate(found, start=3):
        assert_same_batch(batch, batches.batch(step))


@pytest.mark.slow
def test_data_is_read_and_packed_without_tensorflow():
    program = "import sys, train.data.prepare; sys.exit('tensorflow' in sys.modules)"
    assert python("-c", program).returncode == 0


# evaluation batches


def test_padded_batches_have_every_pair_once_in_order_of_length(pairs):
    found = [pair for _, batch in padded_batches(pairs, most_rows=16) for pair in pairs_of(batch)]
    assert counted(found) == counted(sentences_of(pairs))
    lengths = [max(map(len, pair)) for pair in found]
    assert lengths == sorted(lengths)


def test_the_indices_of_a_padded_batch_name_the_pair_of_each_row(pairs):
    for indices, batch in padded_batches(pairs, most_rows=16):
        assert pairs_of(batch) == [(list(pairs.source[i]), list(pairs.target[i])) for i in indices]


@pytest.mark.parametrize("most_positions", [1, 24, 50])
def test_long_padded_batches_have_fewer_rows(pairs, most_positions):
    found = list(padded_batches(pairs, most_rows=16, length_step=8, most_positions=most_positions))
    for _, batch in found:
        rows, length = batch["target_ids"].shape
        assert rows == max(1, min(16, most_positions // length))
    assert sorted(pair for indices, _ in found for pair in indices) == list(range(len(pairs)))


def test_padded_batches_have_few_shapes_and_one_pair_per_row(pairs):
    found = [batch for _, batch in padded_batches(pairs, most_rows=16, length_step=8)]
    assert {batch["labels"].shape for batch in found} == {(16, 8), (16, 16), (16, 24), (16, 32)}
    assert all(batch[field].shape == batch["labels"].shape for batch in found for field in FIELDS)
    assert all(batch["source_segments"].max() == batch["target_segments"].max() == 1 for batch in found)


def test_rows_without_a_pair_are_all_padding():
    ((indices, batch),) = padded_batches(encode([("7", "5 6")], row_length=8), most_rows=3, length_step=4)
    assert indices.tolist() == [0]
    assert batch["target_ids"].tolist() == [[BOS, 5, 6, PAD], [PAD] * 4, [PAD] * 4]
    assert batch["target_segments"].tolist() == [[1, 1, 1, 0], [0] * 4, [0] * 4]
    assert batch["source_ids"].tolist() == [[7, EOS, PAD, PAD], [PAD] * 4, [PAD] * 4]


def test_text_is_read_no_further_than_its_chunks_are_encoded(monkeypatch):
    """A corpus of any size is encoded in the memory of a few chunks."""
    monkeypatch.setattr(encoding, "CHUNK", 2)
    monkeypatch.setattr(encoding, "THREADS", 3)
    read = []
    split = Split("data.train", lambda: (read.append(n) or ("two hundred", "zweihundert") for n in range(40)))
    for number, chunk in enumerate(encoded_chunks(split, pair_tokenizer(), RowLengths(64, 64))):
        assert len(chunk) == 2 and len(read) == min(40, 2 * (number + 1 + 3))  # as many as there are threads
    assert len(read) == 40


def test_what_is_too_long_is_counted_by_the_lengths_of_the_rows():
    assert too_long_for(RowLengths(5, 7)) == "longer than 5 source or 7 target tokens"
    assert too_long_for(RowLengths(7, 7)) == "longer than 7 tokens"
