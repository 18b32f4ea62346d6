"""The recurrent decoder: attention by its formulas, and the five steps with numbers that can be checked in the head."""

import numpy as np
import pytest
from keras import ops

from keras_transformer.recurrent.attention import AdditiveAttention, DotAttention, GeneralAttention
from keras_transformer.recurrent.decoder import Memory, RecurrentDecoder, RecurrentState
from tests.support.models import as_numpy, assert_close, normal, randomise, softmax

LOG_3 = float(np.log(3.0))
KINDS = {"dot": DotAttention(), "general": GeneralAttention(), "additive": AdditiveAttention(7)}
QUERY, MEMORY = normal(2, 3, 4, seed=1), normal(2, 5, 4, seed=2)
MASK = np.array([[[1, 1, 1, 0, 0]] * 3, [[0, 1, 1, 1, 1], [0, 0, 0, 0, 0], [1, 0, 0, 0, 0]]], bool)


def built(kind):
    attention = KINDS[kind]
    if not attention.built:
        attention(QUERY, MEMORY, MASK)
    return randomise(attention, scale=0.5)


def test_a_position_three_times_as_likely_gets_three_quarters_of_the_context():
    memory = np.array([[[1.0, 0.0], [0.0, 1.0]]], "float32")
    context, distribution = DotAttention()(np.array([[[LOG_3, 0.0]]], "float32"), memory)
    assert_close(distribution, [[[0.75, 0.25]]])
    assert_close(context, [[[0.75, 0.25]]])


def test_general_is_the_dot_product_through_a_matrix():
    attention = built("general")
    expected = np.einsum("bqd,de,bse->bqs", QUERY, as_numpy(attention.w), MEMORY)
    assert_close(attention.scores(QUERY, attention.keys(MEMORY)), expected)


def test_additive_is_its_formula():
    attention = built("additive")
    w_1, w_2, v = (as_numpy(weight) for weight in (attention.w_1, attention.w_2, attention.v))
    found = as_numpy(attention.scores(QUERY, attention.keys(MEMORY)))
    for b, q, s in np.ndindex(found.shape):
        assert_close(found[b, q, s], (v.T @ np.tanh(w_1.T @ QUERY[b, q] + w_2.T @ MEMORY[b, s]))[0])


@pytest.mark.parametrize("kind", KINDS)
def test_rows_sum_to_1_over_what_the_mask_allows(kind):
    context, distribution = built(kind)(QUERY, MEMORY, MASK)
    assert_close(ops.sum(distribution, axis=-1), MASK.any(-1))
    assert (as_numpy(distribution)[~MASK] == 0).all()
    assert_close(context, as_numpy(distribution) @ MEMORY)


def decoder_of_two_units(attention, **changes):
    """A decoder whose weights are 0: each GRU step halves its state, since its update gate is 1/2."""
    decoder = RecurrentDecoder(2, attention=attention, **changes)
    decoder.build((None, None, 2))
    for weight in decoder.trainable_weights:
        weight.assign(np.zeros(weight.shape))
    return decoder


def memory_of(values, decoder):
    values = np.array(values, "float32")
    return Memory(decoder.keys(values), values, np.ones((len(values), 1, values.shape[1]), bool))


def state_of(hidden, read=(0.0, 0.0)):
    return RecurrentState([[np.array([hidden], "float32")]], np.array([read], "float32"), np.zeros((1, 2), "float32"))


def test_the_five_steps_of_luong_by_hand():
    """s = [log 3, 0]; scores [log 3, 0]; distribution [3/4, 1/4]; context [3/4, 1/4]; tanh of twice their sum."""
    decoder = decoder_of_two_units("dot")
    decoder.concatenated.kernel.assign([[2, 0], [0, 2], [2, 0], [0, 2]])  # 2 a + 2 s
    decoder.concatenated.bias.assign([0, 0.5])
    memory = memory_of([[[1, 0], [0, 1]]], decoder)
    after = decoder.step(state_of([2 * LOG_3, 0]), np.zeros((1, 6), "float32"), memory)
    assert_close(after.layers[0][0], [[LOG_3, 0]])
    assert_close(after.distribution, [[0.75, 0.25]])
    assert_close(after.read, [np.tanh([2 * 0.75 + 2 * LOG_3, 2 * 0.25 + 0.5])])


def test_the_attentional_state_is_fed_back_if_it_should_be():
    """What is new is tanh of the fed state times 1; half of it is kept."""
    for input_feeding, expected in ((True, [np.tanh(1) / 2, np.tanh(-2) / 2]), (False, [0, 0])):
        decoder = decoder_of_two_units("dot", input_feeding=input_feeding)
        assert (decoder.feed is not None) == input_feeding
        if input_feeding:
            decoder.feed.kernel.assign(np.hstack([np.zeros((2, 4)), np.eye(2)]))
        state = state_of([0, 0], read=[1.0, -2.0])
        after = decoder.step(state, np.zeros((1, 6), "float32"), memory_of([[[1, 0], [0, 1]]], decoder))
        assert_close(after.layers[0][0], [expected])


def test_bahdanau_scores_with_the_state_before_and_feeds_the_context():
    """v, W_1 and W_2 such that scores are [atanh(x), 0] with tanh(x) = log 3 / 2, twice: 3/4 and 1/4."""
    decoder = decoder_of_two_units("additive")
    x = np.arctanh(LOG_3 / 2)
    decoder.attention.w_1.assign(np.eye(2) * x)
    decoder.attention.v.assign([[1.0], [1.0]])
    decoder.attention.w_2.assign([[0, 0], [-x, -x]])  # the second position cancels the state
    decoder.feed.kernel.assign(np.hstack([np.zeros((2, 4)), np.eye(2)]))
    state = state_of([1, 1], read=[5.0, 3.0])  # what is read out takes no part
    after = decoder.step(state, np.zeros((1, 6), "float32"), memory_of([[[1, 0], [0, 1]]], decoder))
    assert_close(after.distribution, [[0.75, 0.25]])
    assert_close(after.layers[0][0], [[0.5 + np.tanh(0.75) / 2, 0.5 + np.tanh(0.25) / 2]])


def test_without_attention_the_output_is_the_state():
    decoder = decoder_of_two_units("none")
    after = decoder.step(state_of([4, -2]), np.zeros((1, 6), "float32"), memory_of([[[1, 0], [0, 1]]], decoder))
    assert_close(after.read, [[2, -1]])
    assert_close(after.distribution, [[0, 0]])


def test_a_hypothesis_reads_the_memory_of_its_own_sentence_with_its_own_state():
    """Row b * K + k is hypothesis k of sentence b: two sentences with three hypotheses each."""
    decoder, values, hidden = decoder_of_two_units("dot"), normal(2, 4, 2, seed=3), normal(6, 2, seed=4)
    decoder.concatenated.kernel.assign([[1, 0], [0, 1], [0, 0], [0, 0]])  # the context alone
    state = RecurrentState([[hidden]], np.zeros((6, 2), "float32"), None)
    after = decoder.step(state, np.zeros((6, 6), "float32"), memory_of(values, decoder))
    for row, of_row in enumerate(hidden / 2):
        memory = values[row // 3]
        assert_close(after.read[row], np.tanh(softmax(memory @ of_row) @ memory))


def test_the_distribution_is_the_softmax_of_the_scores():
    scores = built("dot").scores(QUERY, MEMORY)
    assert_close(built("dot")(QUERY, MEMORY)[1], softmax(as_numpy(scores)))


@pytest.mark.parametrize("arguments", [{"attention": "multi"}, {"cell": "rnn"}])
def test_an_unknown_attention_or_cell_is_refused(arguments):
    [value] = arguments.values()
    with pytest.raises(ValueError, match=value):
        RecurrentDecoder(2, **arguments)
