"""The trace of a search: the same hypotheses, and a tree whose numbers are the model's."""

import types

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.tokens import EOS, PAD, SPECIAL
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER, length_penalty
from keras_transformer.search.short_vocabulary import ShortlistTable
from keras_transformer.search.state import Candidates
from keras_transformer.search.step import IncrementalDecoder
from keras_transformer.search.trace import DROPPED, looked_at
from keras_transformer.translation.forced import ForcedDecoder
from tests.support.models import LIVELY, lively_transformer
from tests.support.runs import SENTENCES
from tests.support.searches import search, traced_search

OPTIONS = SearchOptions(beam_size=3, extra_length=6, n_best=3)


NO_PHRASE = {"required": tf.constant([[[[PAD, PAD]]]]), "word_edges": tf.zeros((2, LIVELY.vocab_size), "bool")}
LISTS = np.array([[piece, 13] for piece in range(LIVELY.vocab_size)], np.int32)


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"rules": {"limits": tf.constant([3])}},
        {"rules": {"prefixes": tf.constant([[9, 8]])}},
        {"rules": {"limits": tf.constant([5]), **NO_PHRASE}},
        {"shortlist": ShortlistTable(tf.constant(LISTS), tf.constant([0, 1, 2, 3]))},
    ],
    ids=["free", "limited", "begun", "without a phrase", "listed"],
)
def test_a_trace_has_the_rules_and_the_shortlist_of_its_search(how):
    options = SearchOptions(beam_size=2, n_best=2, extra_length=2)
    decoder, source_ids = IncrementalDecoder(lively_transformer()), np.array([[6, 5, EOS]], np.int32)
    (ids, scores, _), seen = traced_search(decoder, source_ids, options, **how)
    expected = search(decoder, source_ids, options, False, **how)
    np.testing.assert_array_equal(ids, expected.ids[:, :, : ids.shape[2]])
    np.testing.assert_allclose(scores, expected.scores, rtol=1e-5)
    assert min(seen.log_probs.numpy()) > NEVER / 2
    seen = type(seen)(*(leaf.numpy() for leaf in seen))
    kept = dict.fromkeys(path for path in paths_in(seen))
    found = [tuple(token for token in row if token != PAD) for row in ids.numpy()[0].tolist()]
    assert set(found) <= set(kept)


def source_of(pair, sentence):
    return np.array([[*pair[1].encode(sentence), EOS]], np.int32)


def rules_of(**rules):
    return {name: tf.constant([value]) for name, value in rules.items()}


def paths_in(seen):
    """Return the tokens of each continuation from the first on, by following its parents."""
    paths, live = [], {0: ()}
    for step in range(max(seen.steps) + 1):
        here = [row for row in zip(*seen, strict=True) if row[0] == step]
        paths += [(*live[parent], token) for _, parent, _, token, _ in here]
        live = {slot: (*live[parent], token) for _, parent, slot, token, _ in here if slot != DROPPED}
    return paths


@pytest.fixture(scope="module")
def traces(pair):
    """What each sentence's search found and looked at, traced once in a graph of changing shapes."""
    decoder = IncrementalDecoder(pair[0])
    traced = tf.function(
        lambda ids: traced_search(decoder, ids, OPTIONS),
        input_signature=[tf.TensorSpec((1, None), tf.int32)],
        autograph=False,
    )
    found = [traced(source_of(pair, sentence)) for sentence in SENTENCES[:4]]
    return [(ids, scores, type(seen)(*(leaf.numpy() for leaf in seen))) for (ids, scores, _), seen in found]


@pytest.mark.nightly
def test_it_finds_what_the_search_finds(pair, traces):
    decoder = IncrementalDecoder(pair[0])
    for sentence, (ids, scores, _) in zip(SENTENCES, traces, strict=False):
        expected = search(decoder, source_of(pair, sentence), OPTIONS)
        length = ids.shape[2]
        np.testing.assert_array_equal(ids, expected.ids[:, :, :length])
        assert not np.any(expected.ids[:, :, length:])
        np.testing.assert_allclose(scores, expected.scores, rtol=1e-5)


@pytest.mark.nightly
def test_every_log_probability_is_the_models(pair, traces):
    forced = ForcedDecoder(pair[0])
    for sentence, (*_, seen) in zip(SENTENCES, traces, strict=False):
        paths = paths_in(seen)
        targets = np.full((len(paths), max(map(len, paths))), PAD, np.int32)
        for row, path in zip(targets, paths, strict=True):
            row[: len(path)] = path
        expected = forced(np.repeat(source_of(pair, sentence), len(paths), axis=0), targets).log_probs
        np.testing.assert_allclose(seen.log_probs, np.sum(expected, axis=1), atol=1e-4)


@pytest.mark.nightly
def test_every_finished_hypothesis_is_a_path_of_the_tree(traces):
    for ids, scores, seen in traces:
        totals = dict(zip(paths_in(seen), seen.log_probs, strict=True))
        for row, score in zip(ids[0].numpy(), scores[0].numpy(), strict=True):
            if score > NEVER / 2:
                path = tuple(token for token in row if token != PAD)
                penalty = float(length_penalty(len(path), OPTIONS.length_penalty))
                assert totals[path] / penalty == pytest.approx(score, abs=1e-5)


@pytest.mark.nightly
def test_what_is_kept_is_better_than_what_is_dropped(pair, traces):
    for sentence, (*_, seen) in zip(SENTENCES, traces, strict=False):
        limit = source_of(pair, sentence).size + OPTIONS.extra_length
        for step in range(min(max(seen.steps) + 1, limit - 1)):  # the last step keeps EOS, whatever is better
            here, dropped = seen.steps == step, seen.slots == DROPPED
            slots = seen.slots[here & ~dropped]
            assert slots.tolist() == list(range(len(slots))) and 1 <= len(slots) <= 3
            if any(here & dropped):
                assert min(seen.log_probs[here & ~dropped]) >= max(seen.log_probs[here & dropped])


@pytest.mark.nightly
def test_no_continuation_is_listed_twice(traces):
    for *_, seen in traces:
        rows = list(zip(seen.steps, seen.parents, seen.tokens, strict=True))
        assert len(rows) == len(set(rows))


@pytest.mark.nightly
def test_a_forced_beginning_is_kept_and_what_the_model_wanted_is_dropped(pair):
    decoder = IncrementalDecoder(pair[0])
    source = source_of(pair, SENTENCES[0])
    wanted = int(search(decoder, source, OPTIONS).ids[0, 0, 0])
    prefix = [token for token in range(270, 280) if token != wanted][:2]
    (ids, *_), seen = traced_search(decoder, source, OPTIONS, rules_of(prefixes=prefix))
    assert ids.numpy()[0, 0, :2].tolist() == prefix
    rows = zip(*(leaf.numpy() for leaf in seen), strict=True)
    first = [(slot, token) for step, _, slot, token, _ in rows if step == 0]
    assert [token for slot, token in first if slot != DROPPED] == prefix[:1]
    assert wanted in [token for slot, token in first if slot == DROPPED]


def test_a_token_that_no_output_has_is_never_shown_and_the_next_ones_are():
    state = types.SimpleNamespace(log_probs=tf.zeros((1, 4)), position=tf.constant(0))
    logits = tf.constant([[9.0, 8.0, 7.0, 6.0, 5.0, 4.0]] * 4)  # PAD, UNK, BOS, EOS, ...
    kept = Candidates(tf.zeros((1, 4)), tf.constant([[0, 1, 2, 3]]), tf.constant([[5, 5, 5, 5]]))
    seen = looked_at(state, logits, kept, tf.ones(4, bool))
    dropped = seen.tokens.numpy()[seen.slots.numpy() == DROPPED].tolist()
    assert dropped == [EOS, EOS + 1] * 4 and not set(dropped) & set(SPECIAL)


@pytest.mark.nightly
def test_a_narrow_beam_of_one_sentence_keeps_so_many(pair):
    decoder = IncrementalDecoder(pair[0])
    _, seen = traced_search(decoder, source_of(pair, SENTENCES[0]), OPTIONS, rules_of(beam_sizes=2, n_best=2))
    assert max(seen.slots.numpy()) == 1
