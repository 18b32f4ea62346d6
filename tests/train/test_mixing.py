"""Weighted and tagged training files: shares of an epoch, every pair equally often, batches that depend on the step."""

import numpy as np
import pytest

from train.config.sources.files import FilesData
from train.config.tokenizer import TokenizerConfig
from train.config.training import TrainingConfig
from train.data.batches import FIELDS
from train.data.corpus import CorpusError
from train.data.mixing import Mixture, stretch
from train.data.prepare import load_corpus, prepare_data
from train.data.vocabulary import prepare_tokenizer
from train.workers.tf_config import ONLY_WORKER, Worker

TRAINING = TrainingConfig(tokens_per_batch=16 * 8, row_length=16, seed=3)


@pytest.mark.parametrize(
    ("sizes", "weights", "counts"),
    [
        ([100, 300], [1, 3], [100, 300]),  # in proportion to the sizes: each pair once
        ([100, 300], [1, 1], [200, 200]),
        ([10, 30], [3, 1], [30, 10]),
        ([5, 995], [0.25, 0.75], [250, 750]),
        ([1000, 1, 1001], [1, 1e-6, 1], [1001, 1, 1001]),  # at least one, though that is one pair more
        ([7], [0.1], [7]),
    ],
)
def test_an_epoch_has_as_many_pairs_as_there_are_in_proportion_to_the_weights(sizes, weights, counts):
    assert Mixture(sizes, weights).counts() == counts


def test_every_pair_of_an_entry_is_taken_equally_often_and_none_twice_before_all_were_taken_once():
    mixture = Mixture([7, 50, 3], [1, 1, 1])  # 20 pairs of each per epoch
    epochs = [mixture.pairs_of_epoch([1, 0], epoch) for epoch in range(5)]
    counts = np.bincount(np.concatenate(epochs), minlength=60)
    for first, size in ((0, 7), (7, 50), (57, 3)):
        assert set(counts[first : first + size]) <= {100 // size, -(-100 // size)}
    first_pass = np.concatenate([pairs[(pairs >= 7) & (pairs < 57)] for pairs in epochs])[:50]
    assert sorted(first_pass) == list(range(7, 57))


def test_each_pass_over_an_entry_has_an_order_of_its_own():
    taken = Mixture([50, 50], [1, 1]).pairs_of_epoch([1, 0], 0), Mixture([50, 50], [1, 1]).pairs_of_epoch([1, 0], 1)
    orders = [pairs[:50].tolist() for pairs in taken] + [(pairs[50:] - 50).tolist() for pairs in taken]
    assert all(sorted(order) == list(range(50)) for order in orders)
    assert len(set(map(tuple, orders))) == 4


def test_the_order_of_a_pass_is_not_drawn_as_the_packing_of_an_epoch_is():
    """NumPy takes the seeds [1, 0] and [1] for the same."""
    orders = [np.random.default_rng([1, *rest]).permutation(50).tolist() for rest in ([], [0])]
    assert orders[0] == orders[1] != stretch(50, 0, 50, [1]).tolist()


def test_the_pairs_of_an_epoch_depend_on_seed_and_epoch_alone():
    def taken(epoch, seed=1):
        return Mixture([40, 60], [3, 1]).pairs_of_epoch([seed, 0], epoch).tolist()

    assert [taken(epoch) for epoch in (2, 0, 1)] == [taken(2), taken(0), taken(1)]
    assert taken(0) != taken(1) and taken(0) != taken(0, seed=2)


# from files to batches


@pytest.fixture
def prepare(tmp_path):
    """A function from options of two entries and a worker to PreparedData. Words of the second one begin with b."""
    rng, pairs = np.random.default_rng(0), []
    for letter, count in (("a", 300), ("b", 30)):
        paths = [str(tmp_path / f"{letter}.{side}") for side in ("en", "de")]
        for path in paths:
            lines = [" ".join(f"{letter}{n}" for n in rng.integers(10, 99, rng.integers(1, 3))) for _ in range(count)]
            with open(path, "w", encoding="utf-8") as file:
                file.write("".join(f"{line}\n" for line in lines))
        pairs.append(paths)

    def prepare(first=None, second=None, worker=ONLY_WORKER, bpe_dropout=0.0):
        options = zip(pairs, (first, second), strict=True)
        entries = [pair if given is None else {"files": pair} | given for pair, given in options]
        corpus = load_corpus(FilesData(source="files", train=entries, validation=pairs[:1]))
        path = tmp_path / f"{len(corpus.symbols)}.model"
        tokenizer = prepare_tokenizer(TokenizerConfig(vocab_size=300), corpus.train.shards, path, corpus.symbols)
        training = TRAINING.model_copy(update={"bpe_dropout": bpe_dropout})
        return prepare_data(corpus, tokenizer, training, tmp_path / "cache", worker)

    return prepare


WEIGHTS = {"weight": 1}, {"weight": 3}


def share_of_second(data, epochs=4):
    """The share of the second entry among the sentences of some epochs."""
    batches = [data.batches.batch(step)["source_ids"] for step in range(epochs * data.batches.steps_per_epoch)]
    text = "".join(data.tokenizer.decode(row.tolist()) + " " for batch in batches for row in batch)
    return text.count("b") / (text.count("a") + text.count("b"))


def test_batches_have_the_shares_of_the_weights(prepare):
    assert share_of_second(prepare()) == pytest.approx(1 / 11, abs=0.02)
    assert share_of_second(prepare(*WEIGHTS)) == pytest.approx(3 / 4, abs=0.05)
    assert share_of_second(prepare(*WEIGHTS, bpe_dropout=0.5)) == pytest.approx(3 / 4, abs=0.05)
    assert share_of_second(prepare(None, {"weight": 1})) == pytest.approx(1 / 2, abs=0.05)


@pytest.mark.parametrize("bpe_dropout", [0.0, 0.5])
def test_a_mixed_batch_depends_only_on_its_step_and_not_on_the_batches_before(prepare, bpe_dropout):
    walking = prepare(*WEIGHTS, bpe_dropout=bpe_dropout).batches
    walked = [walking.batch(step) for step in range(2 * walking.steps_per_epoch)]
    for step in (len(walked) - 1, 0, len(walked) // 2):
        jumped = prepare(*WEIGHTS, bpe_dropout=bpe_dropout).batches.batch(step)
        for field in FIELDS:
            np.testing.assert_array_equal(jumped[field], walked[step][field])


def test_the_rows_of_two_workers_in_order_are_the_mixed_batch_of_a_single_one(prepare):
    alone, parts = prepare(*WEIGHTS), [prepare(*WEIGHTS, worker=Worker(index, 2)) for index in (0, 1)]
    for step in (0, alone.batches.steps_per_epoch):
        for field in FIELDS:
            found = np.concatenate([part.batches.batch(step)[field] for part in parts])
            np.testing.assert_array_equal(found, alone.batches.batch(step)[field])


def test_counts_are_of_the_files_and_padding_is_of_what_an_epoch_takes(prepare):
    plain, mixed = prepare(), prepare(*WEIGHTS)
    assert (len(mixed.train), mixed.train.source_tokens) == (len(plain.train), plain.train.source_tokens)
    (stream,) = mixed.batches.shards
    tokens = sum((stream.batch(step)["labels"] > 0).sum() for step in range(stream.steps_per_epoch))
    assert tokens == pytest.approx(stream.target_tokens, abs=16 * 8)
    assert 0 < mixed.batches.padding.total < 0.3


def test_an_entry_that_has_a_weight_and_no_pair_is_named(prepare, tmp_path):
    (tmp_path / "b.en").write_text("\n" * 30, encoding="utf-8")
    with pytest.raises(CorpusError, match=r"data.train of \S+/b.en and \S+/b.de has no sentence pair left"):
        prepare(*WEIGHTS)


# tags


def test_a_tag_is_one_piece_before_every_source_sentence_of_its_entry(prepare):
    data = prepare(None, {"tag": "<b>"})
    (pairs,), tag = data.train.shards, data.tokenizer.encode("<b>")
    assert len(tag) == 1
    for row in range(len(pairs)):
        source, target = pairs.source[row].tolist(), pairs.target[row].tolist()
        text = data.tokenizer.decode(target[:-1])
        assert (source[:1] == tag) is text.startswith("b") and tag[0] not in target + source[1:]
    plain = prepare()
    assert plain.tokenizer.encode("<b>") != tag and pairs.source_tokens != plain.train.source_tokens


def test_entries_written_as_tables_without_options_are_plain_entries(prepare):
    plain, tables = prepare(), prepare({}, {"tag": ""})
    assert tables.corpus.train.fingerprint() == plain.corpus.train.fingerprint()
    for field in FIELDS:
        np.testing.assert_array_equal(tables.batches.batch(5)[field], plain.batches.batch(5)[field])
