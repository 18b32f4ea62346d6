"""What a tokenizer is learned from."""

import logging

import pytest

from train.data.corpus import Split
from train.data.vocabulary import evenly_spaced, learn_tokenizer


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 16, 17, 1_000])
def test_what_is_kept_of_many_stands_at_equal_distances_from_beginning_to_end(count):
    kept, distance = evenly_spaced(iter(range(count)), limit=8)
    assert kept == list(range(0, count, distance))
    assert len(kept) == count if distance == 1 else 4 < len(kept) <= 8


@pytest.mark.parametrize(("limit", "said"), [(98, "it is trained on one pair in 2, 50 pairs"), (100, None)])
def test_a_sample_is_mentioned_where_one_is_taken(tmp_path, monkeypatch, caplog, limit, said):
    monkeypatch.setattr("train.data.vocabulary.TOKENIZER_PAIRS", limit)
    splits = [Split("data.train", lambda: ((f"one {number}", f"two {number} two") for number in range(50)))] * 2
    with caplog.at_level(logging.INFO, "train"):
        learn_tokenizer(280, splits, tmp_path / "tokenizer.model")
    assert caplog.messages[1:] == ([f"{said} from beginning to end"] if said else [])
    assert (tmp_path / "tokenizer.model").stat().st_size > 0
