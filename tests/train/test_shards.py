"""A corpus in shards: every worker reads, encodes and packs its own, and the batches do not depend on their number."""

import collections
import contextlib
import re

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError
from tests.support.models import pieces_of
from tests.support.training import copying_pairs
from train.config.sources.files import FilesData
from train.config.sources.numbers import NumbersData
from train.config.sources.tfds import TfdsData
from train.config.tokenizer import TokenizerConfig
from train.config.training import TrainingConfig
from train.data.batches import FIELDS, PackedBatches
from train.data.corpus import CorpusError, Split, own_shards
from train.data.encoding import EncodedShards, encode_corpus
from train.data.prepare import check_division, load_corpus, packed_batches, prepare_data
from train.data.vocabulary import prepare_tokenizer
from train.workers.tf_config import ONLY_WORKER, Worker

FILES = 4
TRAINING = TrainingConfig(tokens_per_batch=32 * 8, row_length=32, source_row_length=28, seed=3)


def sentence(rng, file):
    return " ".join(f"{'abcd'[file]}{number}" for number in rng.integers(0, 50, rng.integers(1, 6)))


@pytest.fixture
def entries(tmp_path):
    """Four entries of files; in each every word has a letter of its own, and one is larger than the others."""
    rng, found = np.random.default_rng(0), []
    for file in range(FILES):
        lines = [(sentence(rng, file), sentence(rng, file)) for _ in range(60 if file < 3 else 150)]
        paths = [tmp_path / f"{file}.{side}" for side in ("en", "de")]
        for side, path in enumerate(paths):
            path.write_text("".join(f"{pair[side]}\n" for pair in lines), encoding="utf-8")
        found.append([str(path) for path in paths])
    return found


@pytest.fixture
def prepare(tmp_path, entries):
    """From the number of shards and a worker to PreparedData; the first one in a folder learns its tokenizer."""
    validation = [[str(tmp_path / f"val.{side}") for side in ("en", "de")]]
    for path in validation[0]:
        with open(path, "w", encoding="utf-8") as file:
            file.write("a1\nb2\n")

    def prepare(shards, worker=ONLY_WORKER, folder="run"):
        (tmp_path / folder).mkdir(exist_ok=True)
        corpus = load_corpus(FilesData(source="files", train=entries, validation=validation, shards=shards))
        own = own_shards(corpus.train, worker)
        tokenizer = prepare_tokenizer(TokenizerConfig(vocab_size=300), own, tmp_path / folder / "tokenizer.model")
        return prepare_data(corpus, tokenizer, TRAINING, tmp_path / folder / "cache", worker)

    return prepare


def letters(data, row):
    """The letters in a row of source ids."""
    text = data.tokenizer.decode(row.tolist())
    return {word[0] for word in text.split()} & set("abcd")


@pytest.mark.nightly
@pytest.mark.parametrize("shards", [1, 4])
@pytest.mark.parametrize("workers", [2, 4])
def test_the_rows_of_all_workers_in_order_are_the_batch_of_a_single_worker(prepare, shards, workers):
    alone = prepare(shards).batches
    parts = [prepare(shards, Worker(index, workers)).batches for index in range(workers)]
    assert alone.local_rows == alone.rows_per_batch == 8
    assert all((part.rows_per_batch, part.local_rows) == (8, 8 // workers) for part in parts)
    for step in (0, 1, 7, 100):
        expected, found = alone.batch(step), [part.batch(step) for part in parts]
        assert expected["source_ids"].shape == (8, 28) and expected["labels"].shape == (8, 32)
        for field in FIELDS:
            np.testing.assert_array_equal(np.concatenate([part[field] for part in found]), expected[field])


def test_every_shard_contributes_equally_many_rows_in_the_order_of_the_shards(prepare):
    for shards, expected in ((4, ["a", "a", "b", "b", "c", "c", "d", "d"]), (2, ["ac"] * 4 + ["bd"] * 4)):
        data = prepare(shards)
        for step in (0, 50):
            rows = data.batches.batch(step)["source_ids"]
            assert all(letters(data, row) <= set(of) for row, of in zip(rows, expected, strict=True))


def test_every_shard_has_epochs_of_its_own_with_all_its_pairs(prepare):
    data = prepare(4)
    for stream, pairs in zip(data.batches.shards, data.train.shards, strict=True):
        found = sum((stream.batch(step)["labels"] > 0).sum() for step in range(stream.steps_per_epoch))
        assert pairs.target_tokens <= found <= pairs.target_tokens + 2 * 32  # its last batch may repeat a row
    short, long = (data.batches.shards[shard].steps_per_epoch for shard in (0, 3))
    assert long > 2 * short and data.batches.steps_per_epoch == long


@pytest.mark.nightly
def test_a_batch_depends_only_on_its_step_and_not_on_the_batches_before(prepare):
    walking, steps = prepare(4).batches, 3 * prepare(4).batches.steps_per_epoch
    walked = [walking.batch(step) for step in range(steps)]
    for step in (steps - 1, 0, steps // 2):
        jumped = prepare(4).batches.batch(step)
        for field in FIELDS:
            np.testing.assert_array_equal(jumped[field], walked[step][field])


def test_counts_and_padding_are_of_all_shards_together(prepare):
    one, four = prepare(1), prepare(4)
    assert len(one.train) == len(four.train) == 330 and one.train.skipped == four.train.skipped
    assert one.train.source_tokens == four.train.source_tokens and one.train.target_tokens == four.train.target_tokens
    positions = sum(stream.rows_per_epoch for stream in four.batches.shards) * (28 + 32)
    assert four.batches.padding.total == 1 - (one.train.source_tokens + one.train.target_tokens) / positions


# what a worker opens


@pytest.mark.nightly
def test_a_worker_opens_no_file_of_the_shards_of_another(prepare, tmp_path):
    expected = [prepare(4, Worker(index, 2)).batches.batch(5) for index in range(2)]
    for index, (own, others) in enumerate((((0, 1), (2, 3)), ((2, 3), (0, 1)))):
        hidden = [tmp_path / f"{file}.{side}" for file in others for side in ("en", "de")]
        for path in hidden:
            path.rename(path.with_suffix(".hidden" + path.suffix))
        (tmp_path / f"new{index}").mkdir()
        (tmp_path / f"new{index}" / "tokenizer.model").write_bytes((tmp_path / "run" / "tokenizer.model").read_bytes())
        found = prepare(4, Worker(index, 2), folder=f"new{index}")
        assert found.train.shards[0].source_tokens > 0 and len(found.train.shards) == len(own)
        for field in FIELDS:
            np.testing.assert_array_equal(found.batches.batch(5)[field], expected[index][field])
        with pytest.raises(CorpusError, match=rf"data.train names .*{others[0]}.en, but there is no such file"):
            prepare(4, Worker(1 - index, 2))
        for path in hidden:
            path.with_suffix(".hidden" + path.suffix).rename(path)


def test_missing_files_of_a_workers_own_shards_are_named_before_anything_is_read(entries, tmp_path):
    train = load_corpus(FilesData(source="files", train=entries, validation=entries[:1], shards=4)).train
    (tmp_path / "3.de").unlink()
    assert len(own_shards(train, Worker(0, 2))) == 2
    with pytest.raises(CorpusError, match="data.train names .*3.de, but there is no such file"):
        own_shards(train, Worker(1, 2))


def test_the_chief_learns_the_tokenizer_from_its_own_shards(prepare, tmp_path):
    for file in (2, 3):
        (tmp_path / f"{file}.en").unlink()
    pieces = pieces_of(prepare(4, Worker(0, 2)).tokenizer)
    assert {"a", "b"} & set(pieces) and not any("d" in piece for piece in pieces if not piece.startswith("<"))


# what cannot be divided


@pytest.mark.parametrize(
    ("shards", "worker", "replicas", "micro_batches", "parts"),
    [
        (4, Worker(0, 3), 3, 1, ["data.shards is 4", "3 workers", "multiple of 3,"]),
        (1, Worker(0, 3), 3, 1, ["8 rows of 32", "3 devices times 1 micro-batches; make", "multiple of 96"]),
        (3, ONLY_WORKER, 1, 1, ["8 rows of 32", "1 micro-batches and among 3 shards; make", "multiple of 96"]),
        (1, ONLY_WORKER, 2, 3, ["8 rows of 32", "2 devices times 3 micro-batches; make", "multiple of 192"]),
    ],
)
def test_rows_and_shards_that_cannot_be_divided_are_refused(shards, worker, replicas, micro_batches, parts):
    with pytest.raises(ConfigError) as error:
        check_division(TRAINING.model_copy(update={"micro_batches": micro_batches}), shards, replicas, worker)
    assert all(part in str(error.value) for part in parts)


def test_micro_batches_are_found_by_a_single_worker_only():
    asked = TRAINING.model_copy(update={"find_micro_batches": True})
    check_division(asked, 1, 1, ONLY_WORKER)
    with pytest.raises(ConfigError, match="training.find_micro_batches .* 2: set training.micro_batches"):
        check_division(asked, 1, 2, Worker(0, 2))


def test_more_shards_than_entries_are_refused(prepare):
    with pytest.raises(CorpusError, match="data.shards is 5, .*data.train has 4 .*split -n r/5"):
        prepare(5)


# a batch and an epoch


def test_a_batch_larger_than_an_epoch_is_refused_with_the_largest_that_fits():
    corpus = copying_pairs(40)
    training = TRAINING.model_copy(update={"tokens_per_batch": 32 * 1000})
    with pytest.raises(ConfigError) as error:
        packed_batches(EncodedShards([corpus]), training, 1, ONLY_WORKER)
    assert "training.tokens_per_batch 32000 takes 1000 rows per batch, but the training text fills" in str(error.value)
    largest = int(re.search(r"at most (\d+)", str(error.value))[1])
    for tokens, fits in ((largest, True), (largest + 32, False)):
        training = TRAINING.model_copy(update={"tokens_per_batch": tokens})
        with contextlib.nullcontext() if fits else pytest.raises(ConfigError, match=f"at most {largest}"):
            batches = packed_batches(EncodedShards([corpus]), training, 1, ONLY_WORKER)
    assert batches.steps_per_epoch == 1 and batches.epochs(7) == 7.0


def test_shards_of_the_same_text_are_shuffled_differently():
    pairs = copying_pairs(200)
    labels = packed_batches(EncodedShards([pairs, pairs]), TRAINING, 2, ONLY_WORKER).batch(0)["labels"]
    assert labels.shape == (8, 32) and (labels[:4] != labels[4:]).any()


def test_epochs_are_counted_by_rows_taken(prepare):
    for shards in (1, 2, 4):
        batches = prepare(shards).batches
        rows = sum(stream.rows_per_epoch for stream in batches.shards)
        assert batches.epochs(100) == pytest.approx(100 * 8 / rows)
    for index in (0, 1):  # two workers share one shard, and so its epochs
        assert prepare(1, Worker(index, 2)).batches.epochs(100) == prepare(1).batches.epochs(100)


# sources


def test_files_are_assigned_to_shards_in_turn(entries):
    train = load_corpus(FilesData(source="files", train=entries, validation=entries, shards=2)).train
    found = [{word[0] for source, _ in shard for word in source.split()} for shard in train.shards]
    assert found == [{"a", "c"}, {"b", "d"}]


def assert_shards_divide(load, count):
    """`load(shards)` -> Split: the shards hold every pair of the whole once, and alike many."""
    whole, train = list(load(1)), load(count)
    parts = [list(shard) for shard in train.shards]
    assert collections.Counter(pair for part in parts for pair in part) == collections.Counter(whole)
    assert collections.Counter(train) == collections.Counter(whole)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert len({str(shard.fingerprint()) for shard in train.shards}) == count


def test_numbers_are_assigned_to_shards_in_turn():
    def load(shards):
        sizes = {"maximum": 99, "train_pairs": 50, "validation_pairs": 5, "test_pairs": 5}
        return load_corpus(NumbersData(source="numbers", shards=shards, **sizes)).train

    assert_shards_divide(load, 3)
    with pytest.raises(CorpusError, match="data.shards is 51, but there are only 50 train_pairs"):
        load(51)


@pytest.mark.nightly
def test_a_prepared_tfds_set_is_divided_into_even_parts(tmp_path):
    tfds = pytest.importorskip("tensorflow_datasets")

    class ThirtyPairs(tfds.core.GeneratorBasedBuilder):
        VERSION = tfds.core.Version("1.0.0")

        def _info(self):
            features = tfds.features.Translation(languages=("en", "de"))
            return tfds.core.DatasetInfo(builder=self, features=features)

        def _split_generators(self, dl_manager):
            return {name: self._generate_examples(name) for name in ("train", "validation", "test")}

        def _generate_examples(self, name):
            for number in range(31):
                yield number, {"en": f"{name} {number}", "de": f"{number} {name}"}

    ThirtyPairs(data_dir=tmp_path).download_and_prepare()

    def load(shards):
        languages = {"source_language": "en", "target_language": "de"}
        data = TfdsData(source="tfds", name="thirty_pairs", data_dir=str(tmp_path), shards=shards, **languages)
        return load_corpus(data).train

    assert_shards_divide(load, 4)


@pytest.mark.parametrize("shards", [1, 4])
def test_several_shards_are_divided_among_the_workers_and_a_single_one_is_read_by_all(shards):
    splits = [Split(f"shard {number}", lambda: iter([("a", "b")]), dict) for number in range(shards)]
    of_workers = [own_shards(Split.of_shards("train", splits), Worker(index, 2)) for index in range(2)]
    assert of_workers == ([tuple(splits)] * 2 if shards == 1 else [tuple(splits[:2]), tuple(splits[2:])])


def test_one_shard_has_the_batches_of_the_whole_corpus(prepare, entries):
    data = prepare(1)
    split = load_corpus(FilesData(source="files", train=entries, validation=entries)).train
    pairs = encode_corpus(split, data.tokenizer, TRAINING.row_lengths)
    whole = PackedBatches(pairs, TRAINING.tokens_per_batch, TRAINING.row_lengths, (TRAINING.seed, 0))
    for field in FIELDS:
        np.testing.assert_array_equal(data.batches.batch(9)[field], whole.batch(9)[field])
