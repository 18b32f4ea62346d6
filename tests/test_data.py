"""What a tokenizer is learned from."""

import logging

import pytest

from train.data import learn_tokenizer
from train.sources.split import Split


@pytest.mark.parametrize(("limit", "is_said"), [(199, True), (200, False)])
def test_of_more_text_than_the_trainer_takes_it_says_how_much_is_drawn(tmp_path, monkeypatch, caplog, limit, is_said):
    for module in ("train.data", "keras_transformer.tokenizer"):
        monkeypatch.setattr(f"{module}.TRAINING_SENTENCES", limit)
    pairs = [(f"one {number}", f"two {number} two") for number in range(50)]
    split = Split("data.train", lambda: iter(pairs))
    with caplog.at_level(logging.INFO, "train"):
        learn_tokenizer(280, [split, split], tmp_path / "tokenizer.model")
    said = f"the tokenizer was trained on {limit} sentences, drawn at random from 200"
    assert (said in caplog.messages) == is_said
    assert (tmp_path / "tokenizer.model").stat().st_size > 0
