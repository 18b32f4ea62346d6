"""The recurrent model: packed equals unpacked, step by step equals all at once, and search knows no difference."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.inspection.residual_stream import ResidualStream
from keras_transformer.losses import token_sums
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.recurrent.decoder import RecurrentDecoder
from keras_transformer.recurrent.model import RecurrentModel, parts_of_decoder
from keras_transformer.recurrent.step import RecurrentIncrementalDecoder
from keras_transformer.runs.kinds import build_model, incremental_decoder, with_attention
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import LEAST_COVERED
from keras_transformer.search.state import coverage_of, gather_sentences
from keras_transformer.translation.forced import ForcedDecoder
from keras_transformer.translation.precision import in_precision
from tests.support.models import as_numpy, assert_close, batch_of, normal, randomise, softmax, sources
from tests.support.searches import search
from tests.support.tables import LENGTH, OUTPUTS, PREFIXES, VOCABULARY, ranked_outputs, tokens_of

SMALL = RecurrentConfig(vocab_size=14, d_model=6)
CONFIGS = {
    "dot": SMALL,
    "general_lstm_deep": SMALL.replace(attention="general", cell="lstm", encoder_layers=2, decoder_layers=2),
    "not_fed": SMALL.replace(input_feeding=False, encoder_layers=2),
    "additive": SMALL.replace(attention="additive", shared_embeddings=False),
    "none_reversed": SMALL.replace(attention="none", bidirectional=False, reverse_source=True, decoder_layers=2),
}
PAIRS = [([5, 6, 7, EOS], [BOS, 8, 9]), ([9, 5, EOS], [BOS, 4, 6, 7]), ([7, EOS], [BOS, 5])]
PACKED = batch_of([PAIRS[:2], PAIRS[2:]], 8, 9)
UNPACKED = batch_of([[pair] for pair in PAIRS], 5, 4)


@functools.cache
def model_of(name):
    return randomise(build_model(CONFIGS[name]), scale=0.6)


def of_tokens(values, batch):
    """The values at target tokens, row after row."""
    return as_numpy(values)[batch["target_segments"] > 0]


@pytest.mark.nightly
@pytest.mark.parametrize("name", CONFIGS)
def test_packed_pairs_have_the_logits_that_they_have_alone(name):
    found = of_tokens(model_of(name)(PACKED), PACKED)
    assert found.std() > 0.1
    assert_close(found, of_tokens(model_of(name)(UNPACKED), UNPACKED))


def loss_and_gradients(model, batch):
    """What the training step sums: the loss of all tokens and its gradients."""
    with tf.GradientTape() as tape:
        logits = model(batch, training=True)
        loss = token_sums(logits, tf.constant(batch["target_ids"]), tf.constant(batch["target_segments"]), 0.1).loss
    return loss, tape.gradient(loss, [weight.value for weight in model.trainable_weights])


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["general_lstm_deep", "additive"])
def test_packed_pairs_have_the_gradients_that_they_have_alone(name):
    model = randomise(build_model(CONFIGS[name].replace(dropout=0.0)), scale=0.6)
    (loss, packed), (other, unpacked) = (loss_and_gradients(model, batch) for batch in (PACKED, UNPACKED))
    assert_close(loss, other, rtol=1e-5)
    for found, expected in zip(packed, unpacked, strict=True):
        assert_close(tf.convert_to_tensor(found), tf.convert_to_tensor(expected), atol=2e-5, rtol=1e-4)


@pytest.mark.nightly
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_dropout_of_the_decoder_is_between_its_recurrent_layers_and_in_training_alone(layers):
    decoder, without = (RecurrentDecoder(6, layers=layers, dropout=rate) for rate in (0.5, 0.0))
    segments = np.ones((2, 5), "int32")
    inputs = normal(2, 5, 6), segments, normal(2, 3, 6, seed=1), segments[:, :3], [normal(2, 5, 6, seed=2)] * layers
    for one in (decoder, without):
        one(*inputs)
        randomise(one, scale=0.6)
    expected = without(*inputs, training=True)[0]
    assert_close(decoder(*inputs)[0], expected)
    first, second = (as_numpy(decoder(*inputs, training=True)[0]) for _ in range(2))
    for one, other in ((first, expected), (second, expected), (first, second)):
        assert (np.abs(one - as_numpy(other)).max() > 0.01) == (layers > 1)


def test_attention_sees_no_padding_and_no_other_segment():
    weights = as_numpy(with_attention(model_of("dot"))(PACKED)["decoder_block_1/memory"])[:, 0]
    target, source = PACKED["target_segments"][:, :, None], PACKED["source_segments"][:, None]
    is_same_segment = (target == source) & (target > 0)
    assert (weights[~is_same_segment] == 0).all() and (weights[is_same_segment] > 0).all()
    assert_close(weights.sum(-1), PACKED["target_segments"] > 0)


def test_without_attention_there_are_no_weights():
    assert list(with_attention(model_of("none_reversed"))(PACKED)) == ["logits"]


def test_a_later_target_token_changes_no_earlier_logits():
    changed = {**PACKED, "target_ids": PACKED["target_ids"].copy()}
    changed["target_ids"][0, 2] = 13  # the last token of the first segment
    before, after = (as_numpy(model_of("dot")(batch)) for batch in (PACKED, changed))
    is_changed = np.abs(before - after).max(-1) > 1e-6
    assert is_changed[0].tolist() == [False, False, True, *[False] * 6] and not is_changed[1].any()


def test_reversing_reads_the_source_from_its_end():
    """A model that reads backwards finds in the reversed source what another finds in the source."""
    backwards = model_of("none_reversed")
    forwards = build_model(backwards.model_config.replace(reverse_source=False))
    for weight, other in zip(forwards.weights, backwards.weights, strict=True):
        weight.assign(other)
    reversed_pairs = [(source[::-1], target) for source, target in PAIRS]
    assert_close(forwards(batch_of([reversed_pairs], 9, 9)), backwards(batch_of([PAIRS], 9, 9)))


@pytest.mark.parametrize(
    ("encoder_layers", "decoder_layers", "expected"),
    [(1, 1, ["h1", "m1"]), (2, 1, ["h2", "m2"]), (3, 2, ["h2", "m2", "h3", "m3"]), (1, 2, ["h1", "m1"] * 2)],
)
def test_the_last_layers_of_the_decoder_begin_where_the_last_ones_of_the_encoder_end(
    encoder_layers, decoder_layers, expected
):
    config = SMALL.replace(cell="lstm", encoder_layers=encoder_layers, decoder_layers=decoder_layers)
    states = [[f"h{number}", f"m{number}"] for number in range(1, encoder_layers + 1)]
    assert parts_of_decoder(states, config) == expected


def step_by_step(model, source_ids, ids):
    """Logits (B, T, V) of one hypothesis per sentence."""
    decoder = incremental_decoder(model)
    weights, state = decoder.step_weights(), decoder.start(source_ids, 1)
    found = []
    for position, tokens in enumerate(ids.T):
        logits, state = decoder.step(weights, state, ops.convert_to_tensor(tokens[:, None]), position)
        found.append(as_numpy(logits))
    return np.stack(found, axis=1)


@pytest.mark.parametrize("name", CONFIGS)
def test_step_by_step_equals_all_at_once(name):
    source_ids, ids = UNPACKED["source_ids"], np.full((3, 4), 5, "int32") + np.arange(12).reshape(3, 4) % 9
    batch = {**UNPACKED, "target_ids": ids, "target_segments": np.ones_like(ids)}
    assert_close(step_by_step(model_of(name), source_ids, ids), model_of(name)(batch))


def test_the_state_of_some_sentences_has_their_coverage_and_all_else_of_them():
    decoder = incremental_decoder(model_of("dot"))
    state, rows = decoder.start(UNPACKED["source_ids"], 2, counts_attention=True), np.array([2, 0], "int32")
    _, state = decoder.step(decoder.step_weights(), state, np.array([[5, 6], [7, 8], [9, 5]]), 0)
    some = gather_sentences(state, rows)
    assert_close(coverage_of(some), as_numpy(coverage_of(state))[rows])
    for found, leaf in zip(tf.nest.flatten(some), tf.nest.flatten(state), strict=True):
        assert (as_numpy(found) == as_numpy(leaf)[rows]).all()


@pytest.mark.nightly
@pytest.mark.parametrize(("alpha", "static_shapes"), [(0.0, False), (1.0, True)], ids=["growing", "static"])
def test_a_beam_as_wide_as_the_language_ranks_all_its_outputs(alpha, static_shapes):
    """The oracle of tests/library/test_beam.py, with the probabilities of a recurrent model of its vocabulary."""
    model = randomise(build_model(SMALL.replace(vocab_size=VOCABULARY)), scale=1.5)
    source_ids = np.array([[5, 4, EOS], [4, EOS, PAD]], "int32")
    options = SearchOptions(len(OUTPUTS), alpha, LENGTH - 2, n_best=len(OUTPUTS))
    limits = {"limits": ops.full((len(source_ids),), LENGTH, dtype="int32")}
    found = search(RecurrentIncrementalDecoder(model), source_ids, options, static_shapes, limits)
    for row, source in enumerate(source_ids):
        expected = ranked_outputs(table_of(model, source[source != PAD]), alpha)
        assert [tokens_of(ids) for ids in as_numpy(found.ids)[row]] == [output for _, output in expected]
        assert_close(as_numpy(found.scores)[row], [score for score, _ in expected], atol=1e-4)


def table_of(model, source):
    """log P(next | prefix) of every prefix of tests/support/tables.py, as a search sees it."""
    rows = [[(list(source), [BOS, *prefix])] for prefix in PREFIXES]
    logits = as_numpy(model(batch_of(rows, len(source), LENGTH)))
    last = np.array([logits[row, len(prefix)] for row, prefix in enumerate(PREFIXES)])
    return np.log(softmax(last))


@pytest.mark.nightly
def test_a_beam_of_one_is_greedy():
    """Each token is the most probable one after those before it; words and EOS can be chosen."""
    model, source_ids = model_of("general_lstm_deep"), sources(3, 6, vocab_size=SMALL.vocab_size)
    ids, *_ = search(incremental_decoder(model), source_ids, SearchOptions(beam_size=1, extra_length=4))
    for source, output in zip(source_ids, as_numpy(ids)[:, 0], strict=True):
        source, tokens = list(source[source != PAD]), list(tokens_of(output))
        logits = as_numpy(model(batch_of([[(source, [BOS, *tokens[:-1]])]], len(source), len(tokens))))[0]
        best = EOS + np.argmax(logits[:, EOS:], axis=1)
        if len(tokens) == len(source) + 4:
            best[-1] = EOS
        assert tokens == best.tolist()


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["dot", "general_lstm_deep", "not_fed", "additive"])
@pytest.mark.parametrize("static_shapes", [False, True], ids=["growing", "static"])
def test_a_coverage_penalty_counts_the_attention_of_the_whole_output(name, static_shapes):
    """Wu et al. 2016, eq. 14, for whose recurrent model it was made."""
    model, source_ids = model_of(name), sources(4, 5, 6, vocab_size=SMALL.vocab_size)
    options = SearchOptions(beam_size=3, n_best=3, max_length=3, coverage_penalty=0.7)
    ids, scores, _ = search(incremental_decoder(model), source_ids, options, static_shapes)
    for source, outputs, found in zip(source_ids, as_numpy(ids).astype("int32"), as_numpy(scores), strict=True):
        made = ForcedDecoder(model)(np.repeat(source[np.newaxis], 3, axis=0), outputs)
        weights = as_numpy(made.attention["decoder_block_1/memory"])[:, 0]  # (K, L, S)
        attended = np.where(outputs[..., np.newaxis] == PAD, 0.0, weights).sum(1)[:, source != PAD]
        log_probs, lengths = as_numpy(made.log_probs).sum(1), (outputs != PAD).sum(1)
        coverage = np.log(np.clip(attended, LEAST_COVERED, 1.0)).sum(1)
        assert (coverage < -0.1).all()
        assert_close(found, log_probs / ((5 + lengths) / 6) ** 0.6 + 0.7 * coverage, atol=1e-4, rtol=1e-4)


def test_a_coverage_penalty_of_a_model_without_attention_is_refused():
    options = SearchOptions(beam_size=2, coverage_penalty=0.5)
    with pytest.raises(ConfigError, match="coverage_penalty is 0.5, but this model does not attend"):
        search(incremental_decoder(model_of("none_reversed")), sources(2, vocab_size=SMALL.vocab_size), options)


def test_an_empty_source_ends_at_once():
    ids, *_ = search(incremental_decoder(model_of("dot")), np.zeros((2, 0), "int32"), SearchOptions(2, extra_length=3))
    assert [tokens_of(row[0]) for row in as_numpy(ids)] == [(EOS,), (EOS,)]


def test_there_is_no_residual_stream_to_measure():
    with pytest.raises(ConfigError, match="no blocks"):
        ResidualStream(model_of("dot"), PACKED, None)


@pytest.mark.nightly
def test_a_saved_model_is_the_same_model(tmp_path):
    model = model_of("additive")
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(loaded) is RecurrentModel and loaded.model_config == model.model_config
    assert_close(loaded(PACKED), model(PACKED))


@pytest.mark.nightly
def test_in_bfloat16_states_are_bfloat16_and_logits_are_close():
    half = build_model(CONFIGS["general_lstm_deep"], dtype="mixed_bfloat16")
    for weight, other in zip(half.weights, model_of("general_lstm_deep").weights, strict=True):
        weight.assign(other)
    logits = half(PACKED)
    assert keras.backend.standardize_dtype(logits.dtype) == "bfloat16"
    exact = as_numpy(model_of("general_lstm_deep")(PACKED))
    assert np.abs(as_numpy(ops.cast(logits, "float32")) - exact).max() < 0.1 * exact.std() + 0.05
    state = incremental_decoder(half).start(UNPACKED["source_ids"], 2)
    assert {keras.backend.standardize_dtype(part.dtype) for part in state.parts} == {"bfloat16"}


@pytest.mark.nightly
@pytest.mark.parametrize("name", ["general_lstm_deep", "additive"])
def test_all_of_a_model_can_be_bfloat16_as_for_translating_in_that_precision(name):
    half = in_precision(model_of(name), "bfloat16")
    assert {weight.dtype for weight in half.weights} == {"bfloat16"}
    exact = as_numpy(model_of(name)(PACKED))
    assert np.abs(as_numpy(ops.cast(half(PACKED), "float32")) - exact).max() < 0.1 * exact.std() + 0.05
    ids, scores, _ = search(incremental_decoder(half), UNPACKED["source_ids"], SearchOptions(2, extra_length=3))
    assert keras.backend.standardize_dtype(scores.dtype) == "float32" and (as_numpy(ids)[:, 0] != PAD).any()


@pytest.mark.parametrize("attention", ["dot", "general", "additive", "none"])
def test_the_attentional_state_is_fed_back_unless_it_is_switched_off_or_there_is_none(attention):
    has_one = attention in ("dot", "general")
    assert RecurrentConfig(attention=attention).feeds_input == has_one
    if has_one:
        assert not RecurrentConfig(attention=attention, input_feeding=False).feeds_input
