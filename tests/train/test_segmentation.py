"""Laws of BPE-dropout: other pieces, the same text, and a function of (seed, epoch) alone."""

from concurrent.futures import CancelledError

import numpy as np
import pytest

from keras_transformer.ground.tokens import EOS, UNK
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from tests.support.segmentation import drawn_by
from train.config.training import RowLengths, TrainingConfig
from train.data.batches import FIELDS, PackedBatches
from train.data.cache import CorpusCache
from train.data.corpus import Corpus, Split
from train.data.encoding import EncodedPairs, Sentences, encode_corpus
from train.data.prepare import prepare_data
from train.data.segmentation import BpeDropout

ROWS = RowLengths(40, 48)
WORDS = "the old man and a young woman walk their dogs along many wooden bridges".split()


def corpus(count=200):
    rng = np.random.default_rng(3)
    sentences = [" ".join(rng.choice(WORDS, rng.integers(1, 7))) for _ in range(2 * count)]
    return list(zip(sentences[:count], sentences[count:], strict=True))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    path = tmp_path_factory.mktemp("segmentation") / "tokenizer.model"
    train_tokenizer([text for pair in corpus() for text in pair], path, 340)
    return Tokenizer(path)


@pytest.fixture(scope="module")
def pairs(tokenizer):
    return encode_corpus(Split("data.train", lambda: iter(corpus())), tokenizer, ROWS)


def lists_of(sentences):
    return [sentences[index].tolist() for index in range(len(sentences))]


def redrawn(pairs, tokenizer, rate, seed=1):
    return BpeDropout(tokenizer, rate, ROWS)(pairs, np.random.default_rng(seed))


def test_rate_0_is_the_plain_encoding(tokenizer, pairs):
    found = redrawn(pairs, tokenizer, 0.0)
    assert lists_of(found.source) == lists_of(pairs.source) and lists_of(found.target) == lists_of(pairs.target)
    assert found.source.ids.dtype == pairs.source.ids.dtype == np.uint16


def test_other_pieces_have_the_same_text_and_end(tokenizer, pairs):
    found = redrawn(pairs, tokenizer, 0.3)
    for side in ("source", "target"):
        plain, other = lists_of(getattr(pairs, side)), lists_of(getattr(found, side))
        assert [tokenizer.decode(ids) for ids in other] == [tokenizer.decode(ids) for ids in plain]
        assert all(ids[-1] == EOS and EOS not in ids[:-1] for ids in other)
        assert sum(one != another for one, another in zip(plain, other, strict=True)) > len(pairs) / 2
    assert found.skipped is pairs.skipped and found.keys is pairs.keys


def test_a_merge_is_left_out_as_often_as_the_rate_says(tmp_path):
    train_tokenizer(["ab"] * 20 + ["cd", "xy"], tmp_path / "tokenizer.model", 4 + 256 + 6 + 1)  # one merge: a b
    tokenizer, count, rate = Tokenizer(tmp_path / "tokenizer.model"), 10_000, 0.3
    assert len(tokenizer.encode("ab")) == 1 and len(tokenizer.encode("cd")) == 2
    split = sum(len(ids) == 2 for ids in drawn_by(tokenizer, ["ab"] * count, rate))
    assert abs(split - count * rate) < 5 * (count * rate * (1 - rate)) ** 0.5


def test_the_two_sides_and_equal_sentences_are_drawn_independently(tokenizer):
    line = tokenizer.encode("the young woman and the old man walk many dogs") + [EOS]
    same = Sentences.of([line] * 50, np.uint16)
    found = redrawn(EncodedPairs(same, same, {}), tokenizer, 0.3)
    assert len({tuple(ids) for ids in lists_of(found.source)}) > 10
    assert lists_of(found.source) != lists_of(found.target)


def test_the_same_generator_draws_the_same_and_chunks_are_drawn_independently(tokenizer, pairs, monkeypatch):
    assert lists_of(redrawn(pairs, tokenizer, 0.3).target) == lists_of(redrawn(pairs, tokenizer, 0.3).target)
    assert lists_of(redrawn(pairs, tokenizer, 0.3).target) != lists_of(redrawn(pairs, tokenizer, 0.3, seed=2).target)
    monkeypatch.setattr("train.data.segmentation.CHUNK", 20)
    line = Sentences.of([pairs.source[0].tolist()] * 40, np.uint16)
    found = lists_of(redrawn(EncodedPairs(line, line, {}), tokenizer, 0.5).source)
    assert len(found) == 40 and found[:20] != found[20:]


def test_a_sentence_that_would_not_fit_keeps_its_pieces(tokenizer, pairs):
    longest = RowLengths(int(pairs.source.lengths.max()), ROWS.target)
    found = BpeDropout(tokenizer, 0.5, longest)(pairs, np.random.default_rng(1))
    kept = pairs.source.lengths == longest.source
    assert kept.any() and found.source.lengths.max() <= longest.source
    plain, other = lists_of(pairs.source), lists_of(found.source)
    changed = [one != another for one, another in zip(plain, other, strict=True)]
    assert any(changed) and not all(changed)


def test_a_sentence_that_just_fits_is_drawn_as_if_there_were_more_room(tokenizer, pairs):
    roomy = BpeDropout(tokenizer, 1.0, RowLengths(1_000, 1_000))(pairs, np.random.default_rng(1))
    longest = RowLengths(int(roomy.source.lengths.max()), int(roomy.target.lengths.max()))
    tight = BpeDropout(tokenizer, 1.0, longest)(pairs, np.random.default_rng(1))
    assert lists_of(tight.source) == lists_of(roomy.source) != lists_of(pairs.source)
    assert lists_of(tight.target) == lists_of(roomy.target) != lists_of(pairs.target)


def test_an_unknown_piece_stays_and_the_words_around_it_are_drawn(tokenizer):
    first, last = tokenizer.encode("bridges"), tokenizer.encode("wooden")
    sentences = Sentences.of([[*first, UNK, *last, EOS]], np.uint16)
    found = lists_of(redrawn(EncodedPairs(sentences, sentences, {}), tokenizer, 0.9).source)[0]
    place = found.index(UNK)
    assert len(found) > len(first) + len(last) + 2
    assert (tokenizer.decode(found[:place]), tokenizer.decode(found[place + 1 :])) == ("bridges", "wooden")


def test_pieces_that_are_no_longer_needed_are_given_up_between_two_chunks(tokenizer, pairs, monkeypatch):
    monkeypatch.setattr("train.data.segmentation.CHUNK", 50)
    answers = iter([False, False, True])
    with pytest.raises(CancelledError):
        BpeDropout(tokenizer, 0.2, ROWS)(pairs, np.random.default_rng(1), lambda: next(answers))
    assert next(answers, None) is None


def batches_of(pairs, tokenizer, rate=0.2, seed=1):
    return PackedBatches(pairs, 4 * ROWS.target, ROWS, seed, redraw=BpeDropout(tokenizer, rate, ROWS))


def test_a_batch_depends_on_its_step_alone(tokenizer, pairs):
    walked = batches_of(pairs, tokenizer)
    steps = 2 * walked.steps_per_epoch + 2
    found = [walked.batch(step) for step in range(steps)]
    for step in (steps - 1, 0, walked.steps_per_epoch):
        again = batches_of(pairs, tokenizer).batch(step)  # as a process that resumes at this step
        for field in FIELDS:
            np.testing.assert_array_equal(again[field], found[step][field])


def test_every_epoch_has_the_same_text_in_other_pieces(tokenizer, pairs):
    batches = batches_of(pairs, tokenizer)
    first, second = (batches._epochs.epoch(number).pairs for number in (0, 1))
    texts = [[tokenizer.decode(ids) for ids in lists_of(epoch.target)] for epoch in (first, second)]
    assert texts[0] == texts[1] == [target for _, target in corpus()]
    assert lists_of(first.target) != lists_of(second.target)


def test_padding_and_steps_are_those_of_the_drawn_pieces(tokenizer, pairs):
    plain = PackedBatches(pairs, 4 * ROWS.target, ROWS, 1)
    drawn = batches_of(pairs, tokenizer, rate=0.5)
    tokens = drawn._epochs.epoch(0).pairs.target_tokens
    assert drawn.rows_per_epoch > plain.rows_per_epoch and tokens > plain.target_tokens
    assert drawn.padding.target == pytest.approx(1 - tokens / (drawn.rows_per_epoch * ROWS.target))


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_the_configured_rate_arrives_in_the_batches_and_not_in_validation(tokenizer, pairs, tmp_path, rate):
    split = Split("data.train", lambda: iter(corpus()), lambda: {"text": "corpus"})
    training = TrainingConfig(
        tokens_per_batch=4 * ROWS.target, source_row_length=ROWS.source, row_length=ROWS.target, bpe_dropout=rate
    )
    data = prepare_data(Corpus(split, split, None, "a", "b"), tokenizer, training, tmp_path)
    plain = PackedBatches(pairs, 4 * ROWS.target, ROWS, (training.seed, 0)).batch(0)
    assert (data.batches.batch(0)["labels"] == plain["labels"]).all() == (rate == 0)
    assert lists_of(data.validation.target) == lists_of(pairs.target)
    assert lists_of(CorpusCache(tmp_path).encoded(split, tokenizer, ROWS).target) == lists_of(pairs.target)


def sentences_of(stream):
    """The target sentences of an epoch, from its batches."""
    batches = [stream.batch(step) for step in range(stream.steps_per_epoch)]
    rows = [row for batch in batches for row in zip(batch["labels"], batch["target_segments"], strict=True)]
    return [ids[segments == number].tolist() for ids, segments in rows for number in range(1, segments.max() + 1)]


def test_the_configured_rate_arrives_in_the_batches_of_every_shard(tokenizer, tmp_path):
    parts = [corpus()[:80], corpus()[80:]]
    shards = [Split("data.train", lambda part=part: iter(part), lambda part=part: {"pairs": part}) for part in parts]
    whole = Corpus(Split.of_shards("data.train", shards), shards[0], None, "a", "b")
    rows = {"tokens_per_batch": 4 * ROWS.target, "source_row_length": ROWS.source, "row_length": ROWS.target}
    plain, drawn = (
        prepare_data(whole, tokenizer, TrainingConfig(bpe_dropout=rate, **rows), tmp_path).batches.shards
        for rate in (0.0, 0.5)
    )
    for one, other, part in zip(plain, drawn, parts, strict=True):
        found, redrawn = sentences_of(one), sentences_of(other)
        texts = {target for _, target in part}
        assert {tokenizer.decode(ids) for ids in found} == {tokenizer.decode(ids) for ids in redrawn} == texts
        assert len({tuple(ids) for ids in redrawn}) > len({tuple(ids) for ids in found}) == len(texts)
