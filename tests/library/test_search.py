"""Searching with a Transformer: the translation of a sentence depends on that sentence alone."""

import functools

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.model import Transformer, with_attention
from keras_transformer.search.options import LONGEST_OUTPUT, OPTIONS, SearchOptions
from keras_transformer.search.plan import SearchLoop, SearchPlan
from keras_transformer.search.rules.drawing import Drawing
from keras_transformer.search.scores import LEAST_COVERED, NEVER, UNFINISHED
from keras_transformer.search.search import start_search
from keras_transformer.search.step import IncrementalDecoder
from tests.support.models import LIVELY, as_numpy, assert_close, lively_transformer, sources
from tests.support.searches import search
from tests.support.tables import assert_same_hypotheses, tokens_of

pytestmark = pytest.mark.slow

SOURCES = sources(2, 3, 4, 5, 6, 7, 7, 7)
BEAM = SearchOptions(beam_size=4, n_best=4, extra_length=6)
GREEDY = SearchOptions(beam_size=1, extra_length=6)
COVERING = SearchOptions(beam_size=4, n_best=4, extra_length=6, coverage_penalty=0.7)


def compiled(options, **how):
    decoder = IncrementalDecoder(lively_transformer())
    return tf.function(lambda ids: search(decoder, ids, options, static_shapes=how.get("jit_compile", False)), **how)


@pytest.fixture(scope="module", params=[BEAM, GREEDY, COVERING], ids=["beam", "greedy", "covering"])
def options(request):
    return request.param


@functools.cache
def found_with(options):
    """Hypotheses of all SOURCES in one batch, under XLA, so with static shapes."""
    return compiled(options, jit_compile=True)(tf.constant(SOURCES))


@pytest.fixture(scope="module")
def found(options):
    return found_with(options)


@pytest.fixture(scope="module")
def search_any_shape(options):
    """The search without XLA and with shapes that change, as in a Translator and in a served graph."""
    return compiled(options, input_signature=[tf.TensorSpec((None, None), tf.int32)])


def rows_of(hypotheses, rows):
    return type(hypotheses)(*(as_numpy(part)[rows] for part in hypotheses))


@pytest.mark.parametrize("sentences", [(), (len(SOURCES) // 2, 1)], ids=["all", "fewer and fewer"])
def test_a_search_within_a_bound_finds_what_ends_within_it_and_nothing_else(sentences):
    positions, rows = 8, len(SOURCES)
    loops = (SearchLoop(5, rows), SearchLoop(positions, rows), *(SearchLoop(positions, each) for each in sentences))
    whole = tuple(map(as_numpy, found_with(BEAM)))
    decoder = IncrementalDecoder(lively_transformer())
    within = tf.function(lambda ids: search(decoder, ids, BEAM, True, loops=loops), jit_compile=True)
    ids, scores, is_cut = map(as_numpy, within(tf.constant(SOURCES)))
    is_done = scores[:, 0] != UNFINISHED
    assert ids.shape[2] == positions and set(is_done.tolist()) == {True, False}
    assert_close(scores[is_done], whole[1][is_done])
    assert (ids[is_done] == whole[0][is_done, :, :positions]).all() and not whole[0][is_done, :, positions:].any()
    assert (is_cut[is_done] == whole[2][is_done]).all() and (scores[~is_done] == UNFINISHED).all()
    assert (np.max(np.sum(whole[0] != PAD, axis=2), axis=1) > positions)[~is_done].any()


def test_the_examples_differ(found):
    outputs = {tokens_of(row[0]) for row in as_numpy(found.ids)}
    assert len(outputs) >= 6 and len({len(output) for output in outputs}) >= 5


def test_xla_and_dynamic_shapes_change_nothing(found, search_any_shape):
    assert_same_hypotheses(search_any_shape(SOURCES), found)


def test_the_other_sentences_of_a_batch_change_nothing(found, search_any_shape):
    for row, ids in enumerate(SOURCES):
        alone = ids[ids != PAD][np.newaxis]
        assert_same_hypotheses(search_any_shape(alone), rows_of(found, [row]))


def test_order_and_padding_change_nothing(found, search_any_shape):
    order = np.random.default_rng(0).permutation(len(SOURCES))
    padded = np.pad(SOURCES[order], ((0, 3), (0, 5)))  # three empty rows, five empty columns
    shuffled = search_any_shape(padded)
    assert_same_hypotheses(rows_of(shuffled, slice(len(SOURCES))), rows_of(found, order))
    for row in as_numpy(shuffled.ids)[len(SOURCES) :]:
        assert tokens_of(row[0]) == (EOS,)


def assert_teacher_forced(transformer, source_ids, found, alpha, beta=0.0):
    """Every score is the log-probability, by the whole Transformer at once, of the output over its penalty.

    With beta, it has the coverage penalty of Wu et al. (2016, eq. 14), by the last block's attention.
    """
    ids, scores = as_numpy(found.ids).astype("int32"), as_numpy(found.scores)
    source_ids, ids = np.repeat(source_ids, ids.shape[1], axis=0), ids.reshape(-1, ids.shape[-1])
    shifted = np.pad(ids[:, :-1], ((0, 0), (1, 0)), constant_values=BOS)
    batch = {"source_ids": source_ids, "source_segments": (source_ids != PAD).astype("int32")}
    batch |= {"target_ids": shifted, "target_segments": (shifted != PAD).astype("int32")}
    made = with_attention(transformer)(batch)
    log_probs = as_numpy(tf.nn.log_softmax(made["logits"]))
    gained = np.take_along_axis(log_probs, ids[..., np.newaxis], axis=-1)[..., 0]
    lengths = (ids != PAD).sum(-1)
    expected = (gained * (ids != PAD)).sum(-1) / ((5 + lengths) / 6) ** alpha
    last = as_numpy(made[f"decoder_block_{transformer.transformer_config.decoder_layers}/memory"])  # (B * K, h, L, S)
    attended = np.where((ids != PAD)[:, :, np.newaxis], last.mean(1), 0.0).sum(1)
    expected += beta * np.where(source_ids != PAD, np.log(np.clip(attended, LEAST_COVERED, 1.0)), 0.0).sum(-1)
    assert_close(scores.reshape(-1), expected, atol=1e-4, rtol=1e-4)


def test_scores_are_teacher_forced_log_probabilities_over_the_penalty(found, options):
    assert_teacher_forced(lively_transformer(), SOURCES, found, options.length_penalty, options.coverage_penalty)


def test_a_coverage_penalty_prefers_other_outputs_and_none_when_there_is_one():
    plain, covering = (as_numpy(found_with(options).ids)[:, 0] for options in (BEAM, COVERING))
    assert any(tokens_of(one) != tokens_of(other) for one, other in zip(plain, covering, strict=True))
    greedy = SearchOptions(beam_size=1, extra_length=6, coverage_penalty=3.0)
    np.testing.assert_array_equal(found_with(greedy).ids, found_with(GREEDY).ids)


def test_an_output_is_at_most_extra_length_longer_than_its_source(found, options):
    lengths = (as_numpy(found.ids) != PAD).sum(-1)
    limits = (SOURCES != PAD).sum(-1, keepdims=True) + options.extra_length
    assert (lengths <= limits).all() and (lengths == limits).any()


def test_outputs_are_distinct_and_are_words_then_one_eos(found):
    for hypotheses, scores in zip(as_numpy(found.ids), as_numpy(found.scores), strict=True):
        outputs = [tokens_of(ids) for ids, score in zip(hypotheses, scores, strict=True) if score > NEVER / 2]
        assert len(set(outputs)) == len(outputs)
        assert all(output[-1] == EOS and min(output[:-1], default=9) > EOS for output in outputs)


def test_a_beam_of_one_is_greedy():
    """The reference chooses one token at a time, for one sentence at a time, with the whole Transformer."""
    transformer = tf.function(lively_transformer(), reduce_retracing=True)
    ids, scores, _ = found_with(GREEDY)
    for source_ids, output, score in zip(SOURCES, as_numpy(ids)[:, 0], as_numpy(scores)[:, 0], strict=True):
        source_ids = source_ids[source_ids != PAD][np.newaxis]
        expected, log_prob = [BOS], 0.0
        while expected[-1] != EOS:
            target_ids = np.array([expected], "int32")
            batch = {"source_ids": source_ids, "source_segments": np.ones_like(source_ids)}
            batch |= {"target_ids": target_ids, "target_segments": np.ones_like(target_ids)}
            log_probs = as_numpy(tf.nn.log_softmax(transformer(batch)))[0, -1]
            is_last = len(expected) == source_ids.shape[1] + GREEDY.extra_length
            expected.append(EOS if is_last else EOS + int(np.argmax(log_probs[EOS:])))  # words come after EOS
            log_prob += log_probs[expected[-1]]
        assert list(tokens_of(output)) == expected[1:]
        assert_close(score, log_prob / ((4 + len(expected)) / 6) ** GREEDY.length_penalty, atol=1e-4)


TALKATIVE = LIVELY.replace(encoder_layers=1, decoder_layers=1)


@functools.cache
def talkative_transformer():
    """A Transformer for which EOS is so improbable that every output is as long as it may be."""
    transformer = Transformer(TALKATIVE)
    for weight, value in zip(transformer.weights, lively_transformer(TALKATIVE).weights, strict=True):
        weight.assign(value)
    last = transformer.get_layer(f"decoder_block_{TALKATIVE.decoder_layers}").feed_forward_residual.norm
    last.beta.assign(np.full(TALKATIVE.d_model, 2.0))
    matrix = as_numpy(transformer.get_layer("logits").matrix)
    matrix -= matrix.mean(axis=1, keepdims=True)  # beta changes the logit of EOS alone
    matrix[EOS] = -1.0
    transformer.get_layer("logits").matrix.assign(matrix)
    return transformer


@pytest.mark.nightly
@pytest.mark.parametrize("static_shapes", [False, True], ids=["growing", "static"])
@pytest.mark.parametrize("options", [SearchOptions(3, extra_length=500, n_best=3), SearchOptions(1, extra_length=500)])
def test_outputs_of_500_tokens_have_their_teacher_forced_log_probability(options, static_shapes):
    transformer, source_ids = talkative_transformer(), SOURCES[:2]
    decoder = IncrementalDecoder(transformer)
    found = tf.function(lambda ids: search(decoder, ids, options, static_shapes))(source_ids)
    lengths, limits = (as_numpy(found.ids)[:, 0] != PAD).sum(-1), (source_ids != PAD).sum(-1) + 500
    assert (lengths == limits).all()
    assert_teacher_forced(transformer, source_ids, found, options.length_penalty)


def test_learned_positions_bound_the_output():
    decoder = IncrementalDecoder(lively_transformer(LIVELY.replace(positions="learned", max_positions=9)))
    ids, *_ = search(decoder, SOURCES, BEAM)
    assert (as_numpy(ids) != PAD).sum(-1).max() <= 9


def test_a_prefix_as_long_as_all_learned_positions_ends():
    transformer = Transformer(LIVELY.replace(positions="learned", max_positions=6))
    rules = {"prefixes": np.array([[4, 5, 6, 7, 4, 5], [4, 5, 0, 0, 0, 0]], "int32")}
    found = search(IncrementalDecoder(transformer), SOURCES[2:4], GREEDY, rules=rules)
    rows = [tokens_of(row) for row in as_numpy(found.ids)[:, 0]]
    assert rows[0] == (4, 5, 6, 7, 4, EOS) and rows[1][:2] == (4, 5) and EOS in rows[1]


def test_a_row_of_padding_ends_at_once():
    found = search(IncrementalDecoder(talkative_transformer()), np.array([[5, 3], [PAD, PAD]], "int32"), GREEDY)
    assert (as_numpy(found.ids)[0, 0] != PAD).sum() > 5
    assert tokens_of(as_numpy(found.ids)[1, 0]) == (EOS,)


@pytest.mark.parametrize("static_shapes", [False, True])
def test_a_prefix_longer_than_the_longest_output_comes_whole_and_then_the_output_ends(static_shapes):
    prefix = [4, 5, 6, 7, 4, 5, 6, 7, 4]
    options = SearchOptions(beam_size=2, max_length=3)
    rules = {"prefixes": np.array([prefix], "int32")}
    found = search(IncrementalDecoder(lively_transformer()), SOURCES[2:3], options, static_shapes, rules)
    assert tokens_of(as_numpy(found.ids)[0, 0]) == (*prefix, EOS)


def test_how_long_outputs_may_become_changes_nothing():
    long = SearchOptions(beam_size=4, n_best=4, extra_length=LONGEST_OUTPUT, max_length=5)
    short = SearchOptions(beam_size=4, n_best=4, extra_length=5, max_length=5)
    found, expected = (compiled(options)(tf.constant(SOURCES)) for options in (long, short))
    assert_close(found.scores, expected.scores, atol=1e-5)
    assert (as_numpy(found.ids)[:, :, :5] == as_numpy(expected.ids)[:, :, :5]).all()


def test_sentences_with_one_seed_draw_independently():
    drawing = SearchOptions(temperature=1.0, seed=7)
    rules = start_search(IncrementalDecoder(lively_transformer()), SOURCES[:5], SearchPlan(drawing)).rules
    assert len(set(as_numpy(rules.find(Drawing).seeds))) == 5


def test_a_served_graph_has_no_xla_operation(search_any_shape):
    graph = search_any_shape.get_concrete_function().graph.as_graph_def()
    nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
    assert len(nodes) > 100 and not [node.op for node in nodes if "Xla" in node.op]


@pytest.mark.parametrize(
    "field, value",
    [
        ("beam_size", 0),
        ("length_penalty", -0.1),
        ("length_penalty", float("nan")),
        ("extra_length", 0),
        ("n_best", 0),
        ("min_length", 0),
        ("max_length", 0),
        ("no_repeat_ngram_size", 9),
        ("repetition_penalty", 0.0),
        ("temperature", -1.0),
        ("top_k", -1),
        ("top_p", 1.5),
        ("seed", 2**31),
        ("beam_size", 4.0),
        ("beam_size", True),
        ("min_length", 3.5),
        ("temperature", "1"),
        ("seed", None),
        ("length_normalization", "words"),
        ("length_normalization", 0),
        ("length_normalization", None),
        *((option.name, option.highest + 1) for option in OPTIONS.values() if not option.choices),
    ],
)
def test_invalid_options_are_named(field, value):
    with pytest.raises(ConfigError, match=f"{field} is '?{value}'?; it must be"):
        SearchOptions(**{field: value})


def test_numbers_of_numpy_are_numbers():
    given = {"beam_size": np.int64(3), "top_k": np.int32(5), "temperature": np.float32(0.5), "length_penalty": 1}
    options = SearchOptions(**given)
    assert options == SearchOptions(beam_size=3, top_k=5, temperature=0.5, length_penalty=1.0)
    assert {type(getattr(options, name)) for name in given} == {int, float}
