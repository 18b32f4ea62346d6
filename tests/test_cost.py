"""Training cost from shapes: hand counts, two operations a parameter and token, and Table 2 of the paper."""

import math

import pytest

from keras_transformer.config import TransformerConfig, base, big
from keras_transformer.model import Transformer
from tests.support.models import SMALL
from train.evaluation.cost import forward_flops, training_flops

ONES = TransformerConfig(
    vocab_size=1, encoder_layers=1, decoder_layers=1, d_model=1, d_ff=1, num_heads=1, positions="learned"
)


def test_a_model_of_width_1_counted_by_hand():
    encoder = 2 * (4 + 2 + 2)  # multiply and add: 4 projections, 2 matrices of the network, query-key and weight-value
    decoder = 2 * (8 + 2 + 2 * 2)  # twice the projections, and two attentions
    assert forward_flops(ONES, 1, 1) == encoder + decoder + 2  # and one logit


def test_of_two_source_words_only_the_attention_grows_more_than_twice():
    encoder = 2 * 2 * (4 + 2) + 2 * (2 * 2) * 2  # four pairs of query and key
    decoder = 2 * (6 + 2 + 2) + 2 * 2 * 2 + 2 * (2 * 2)  # keys and values of two words; a query that attends to two
    assert forward_flops(ONES, 2, 1) == encoder + decoder + 2


@pytest.mark.parametrize("config", [SMALL, SMALL.replace(key_dim=5, value_dim=3), SMALL.replace(encoder_layers=3)])
def test_without_attention_between_words_it_is_two_operations_a_parameter_and_word(config):
    matrices = [math.prod(weight.shape) for weight in Transformer(config).weights if len(weight.shape) == 2]
    without_squares = 2 * forward_flops(config, 1, 1) - forward_flops(config, 2, 2) / 2  # of an + bn^2, this leaves a
    assert without_squares == 2 * sum(matrices)


def test_longer_sentences_cost_more_than_their_words():
    assert forward_flops(base, 200, 200) > 2 * forward_flops(base, 100, 100)


def test_the_backward_pass_multiplies_twice_as_much():
    assert training_flops(SMALL, 7, 9) == 3 * forward_flops(SMALL, 7, 9)


@pytest.mark.parametrize(("config", "steps", "table_2"), [(base, 100_000, 3.3e18), (big, 300_000, 2.3e19)])
def test_the_papers_cost_is_its_gpus_time_of_which_the_shapes_explain_a_third(config, steps, table_2):
    length = 28  # tokens of a sentence of WMT14 en-de, on average
    counted = training_flops(config, length, length) / length * 25_000 * steps
    # Table 2 multiplies hours, GPUs and the 9.5 TFLOPS of one: what could have been computed, not what was
    assert 0.25 < counted / table_2 < 0.45
