"""Validation: the loss of every pair once, whatever the batches, and samples beside their references."""

import numpy as np
import pytest

import train.evaluation.validation
from keras_transformer.losses import token_sums
from keras_transformer.tokens import EOS
from tests.support.models import assert_close
from tests.support.training import PAIRS, tensors, training_model
from train.data.batches import lay_out
from train.data.packing import Packing
from train.evaluation.validation import ValidationLoss


@pytest.fixture(scope="module")
def model():
    return training_model(dropout=0.5)


@pytest.fixture(scope="module")
def sums(model):
    return ValidationLoss(model, PAIRS, 0.1, xla=False)()


def test_the_sums_are_those_of_all_pairs_with_dropout_off(model, sums):
    one_to_a_row = Packing(np.arange(len(PAIRS)), np.arange(len(PAIRS) + 1))
    batch = lay_out(PAIRS, one_to_a_row, 8, 8)
    logits = model({name: batch[name] for name in model.input}, training=False)
    assert_close(sums, token_sums(logits, *(tensors(batch)[name] for name in ("labels", "target_segments"))), rtol=1e-4)
    assert sums.tokens == PAIRS.target_tokens == (PAIRS.target.ids == EOS).sum() + (PAIRS.target.ids != EOS).sum()


def test_the_size_of_its_batches_changes_nothing(model, sums, monkeypatch):
    monkeypatch.setattr(train.evaluation.validation, "ROWS", 7)
    assert_close(ValidationLoss(model, PAIRS, 0.1, xla=False)(), sums, rtol=1e-4)


def test_asked_again_it_answers_the_same_and_follows_the_weights(model):
    validation_loss = ValidationLoss(model, PAIRS, 0.1, xla=False)
    first = validation_loss()
    assert validation_loss() == first
    weight = model.trainable_variables[0]
    before = weight.numpy()
    weight.assign(2 * before)
    assert validation_loss() != first
    weight.assign(before)
    assert validation_loss() == first
