"""The numbers and the claims of docs/questions.md, each computed again."""

import math
import re

import numpy as np
import pytest

import keras_transformer as kt
from keras_transformer.losses import token_sums
from tests.support.models import assert_close, batch_of
from tests.support.places import ROOT
from train.config.run import load_config

PAGE = (ROOT / "docs/questions.md").read_text(encoding="utf-8")
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| ")]
LOSSES = [row for row in ROWS if row[0][0].isdigit()]
QUESTIONS = [
    *("masks at inference", "may not", "teacher forcing", "shifted right", "interleaved or concatenated"),
    *(r"sqrt\(d_model\)", "Post-norm or pre", "What loss is normal", "begin with the same word"),
    *("translations are nonsense", "near 0", "How many updates", "how large a batch", "Which BLEU"),
]


def test_the_page_has_every_question_and_a_link_into_code_for_each():
    sections = PAGE.split("\n## ")[1:]
    titles = "\n".join(section.splitlines()[0] for section in sections)
    assert [words for words in QUESTIONS if not re.search(words, titles)] == []
    assert [section[:40] for section in sections if not re.search(r"Code: .*\.py\)", section, re.DOTALL)] == []


def lowest_loss(vocab_size, smoothing):
    """The entropy of the smoothed label."""
    label, other = 1 - smoothing + smoothing / vocab_size, smoothing / vocab_size
    return -label * math.log(label) - (vocab_size - 1) * other * math.log(other)


@pytest.mark.parametrize("row", LOSSES, ids=lambda row: row[0])
def test_the_table_of_losses_is_that_of_the_formula_and_of_the_configuration(row):
    pieces = int(row[0].replace(",", ""))
    config = load_config(ROOT / re.search(r"configs/[\w/]+\.toml", row[1])[0])
    model = config.transformer_config(config.tokenizer.vocab_size)
    assert model.vocab_size == pieces and (model.label_smoothing == 0.1) != ("e = 0" in row[1])
    assert [row[2], row[3]] == [f"{math.log(pieces):.2f}", f"{lowest_loss(pieces, 0.1):.2f}"]


@pytest.mark.parametrize("vocab_size", [400, 6_000])
def test_no_logits_have_a_lower_smoothed_loss_than_the_formula(vocab_size):
    best = np.full((1, 1, vocab_size), math.log(0.1 / vocab_size), "float32")
    best[0, 0, 7] = math.log(0.9 + 0.1 / vocab_size)
    labels = np.array([[7]])
    loss = float(token_sums(best, labels, labels, 0.1).loss)
    assert loss == pytest.approx(lowest_loss(vocab_size, 0.1), abs=1e-4)
    for change in (0.5, -0.5):
        assert token_sums(best + change * (np.arange(vocab_size) == 7), labels, labels, 0.1).loss > loss


def untrained_excess(shared_embeddings):
    """By how much an untrained model costs more than guessing, on targets that are drawn at random."""
    config = kt.TransformerConfig(
        **{"vocab_size": 2_000, "encoder_layers": 1, "decoder_layers": 1, "d_model": 256, "d_ff": 64},
        shared_embeddings=shared_embeddings,
    )
    ids, labels = np.random.default_rng(0).integers(4, 2_000, (2, 32, 12))
    batch = batch_of([[(row.tolist(), row.tolist())] for row in ids], 12, 12)
    sums = token_sums(kt.Transformer(config)(batch), labels, np.ones_like(labels), 0.0)
    return float(sums.loss / sums.tokens) - math.log(2_000)


def test_an_untrained_model_costs_half_a_nat_more_than_guessing_and_with_one_matrix_more():
    assert untrained_excess(shared_embeddings=False) == pytest.approx(0.5, abs=0.15)
    assert 0.7 < untrained_excess(shared_embeddings=True) < 4


def test_the_papers_perplexity_is_in_nats_as_the_page_says():
    assert f"ln 4.92 = {math.log(4.92):.2f}" in PAGE


def test_interleaved_sinusoids_are_the_concatenated_ones_in_another_order():
    angles = np.arange(9)[:, None] / 10_000 ** (np.arange(8) / 8)
    interleaved = np.stack([np.sin(angles), np.cos(angles)], -1).reshape(9, 16)
    assert_close(kt.sinusoidal_encoding(np.arange(9), 16), interleaved)


def test_true_means_may_attend_and_the_other_meaning_shows_the_future():
    mask = np.asarray(kt.causal_mask(4)[0])
    assert mask[3].all() and not mask[0, 1:].any()
    assert (~mask)[0, 1:].all()
