"""What each sentence may ask of the search, over tables of probabilities that are small enough to list every output."""

import collections

import numpy as np
import pytest
from keras import ops

from keras_transformer.ground.tokens import BOS, EOS, SPECIAL
from keras_transformer.search.options import LONGEST_NGRAM, SearchOptions
from keras_transformer.search.rules.drawing import of_sources, uniform
from keras_transformer.search.scores import NEVER
from tests.support.models import as_numpy
from tests.support.searches import beam_search
from tests.support.tables import (
    LENGTH,
    OUTPUTS,
    PREFIXES,
    A,
    B,
    PrefixNumbers,
    assert_ranked,
    decoder_of,
    random_tables,
    ranked_outputs,
    tokens_of,
)

WIDE = len(OUTPUTS)  # a beam that holds every output
DTYPES = {
    "temperatures": "float32",
    "length_penalties": "float32",
    "repetition_penalties": "float32",
    "top_ps": "float32",
}
HOW = {}


@pytest.fixture(params=[False, True], ids=["growing", "static"], autouse=True)
def static_shapes(request, monkeypatch):
    """Every law holds for both ways of searching."""
    monkeypatch.setitem(HOW, "static_shapes", request.param)


def outputs(tables, beam_size, alpha=0.0, n_best=None, **rules):
    """Every sentence's outputs as a list of (score, tokens), best first. A rule is one value, or one per sentence."""

    def of_sentences(name, rule):
        rule = np.array(rule, DTYPES.get(name, "int32"))
        return rule if rule.ndim else np.full(len(tables), rule)

    rules = {name: of_sentences(name, rule) for name, rule in ({"limits": LENGTH} | rules).items()}
    step, state = decoder_of(tables, beam_size)
    options = SearchOptions(beam_size, alpha, n_best=n_best or beam_size)
    found = beam_search(step, state, rules, LENGTH, options, **HOW)
    pairs = zip(as_numpy(found.ids), as_numpy(found.scores), strict=True)
    return [[(s, tokens_of(row)) for s, row in zip(*pair[::-1], strict=True) if s > NEVER / 2] for pair in pairs]


def test_an_output_that_has_every_word_once_ends_though_it_is_short():
    """Nothing may come twice, and it should be longer than there are words."""
    for one in outputs(random_tables(4), WIDE, no_repeat_ngram_sizes=1, min_lengths=LENGTH):
        assert {tokens for _, tokens in one} == {(A, B, EOS), (B, A, EOS)}


@pytest.mark.slow
def test_a_beam_size_of_its_own_is_that_beam_size():
    tables = random_tables(12)
    sizes = np.arange(12) % 4 + 1
    found = outputs(tables, 4, beam_sizes=sizes)
    for table, size, one in zip(tables, sizes, found, strict=True):
        assert_ranked(one, outputs([table], int(size))[0])


def test_a_length_penalty_of_its_own_is_that_length_penalty():
    tables, alphas = random_tables(9), np.tile([0.0, 0.6, 2.0], 3)
    found = outputs(tables, WIDE, length_penalties=alphas)
    for table, alpha, one in zip(tables, alphas, found, strict=True):
        assert_ranked(one, ranked_outputs(table, alpha))


@pytest.mark.parametrize("changing", [{}, {"repetition_penalties": 1.0, "temperatures": [0.0] * 5 + [1.0]}])
def test_lengths_are_from_the_shortest_to_the_longest(changing):
    tables, shortest = random_tables(6), np.array([1, 2, 3, 4, 2, 1])
    longest = np.array([4, 3, 3, 4, 4, 2])
    rules = {"min_lengths": shortest, "limits": longest} | changing
    if changing:
        rules |= {"top_ks": 0, "top_ps": 1.0, "seeds": 1}
    found = outputs(tables, WIDE, **rules)
    for table, least, most, one in list(zip(tables, shortest, longest, found, strict=True))[:5]:
        assert_ranked(one, [pair for pair in ranked_outputs(table, 0.0) if least <= len(pair[1]) <= most])
    assert all(1 <= len(tokens) <= 2 for _, tokens in found[5])


def test_the_best_words_are_found_below_more_probable_tokens_that_may_not_come():
    """A beam of one finds the best word below the three special tokens and below EOS, which must not come yet."""
    tables, shortest = random_tables(8), np.arange(8) % LENGTH + 1
    tables[:, :, list(SPECIAL)] += 20.0
    tables[:, :, EOS] += 10.0
    for table, least, one in zip(tables, shortest, outputs(tables, 1, min_lengths=shortest), strict=True):
        words = ()
        while len(words) < least - 1:
            words += (max((A, B), key=lambda word: table[PREFIXES.index(words), word]),)
        assert [tokens for _, tokens in one] == [(*words, EOS)]


def test_an_output_begins_with_its_prefix_and_its_score_includes_it():
    tables, prefixes = random_tables(5), [[A, 0], [B, A], [0, 0], [A, A], [B, 0]]
    found = outputs(tables, WIDE, prefixes=prefixes)
    for table, prefix, one in zip(tables, prefixes, found, strict=True):
        forced = tuple(token for token in prefix if token)
        assert_ranked(one, [pair for pair in ranked_outputs(table, 0.0) if pair[1][: len(forced)] == forced])


def has_repeated(tokens, size):
    grams = [tokens[n : n + size] for n in range(len(tokens) - size + 1)]
    return len(grams) != len(set(grams))


def test_no_ngram_comes_twice_and_scores_stay_the_models():
    tables, sizes = random_tables(8), np.arange(8) % 4
    found = outputs(tables, WIDE, no_repeat_ngram_sizes=sizes)
    for table, size, one in zip(tables, sizes, found, strict=True):
        allowed = [p for p in ranked_outputs(table, 0.0) if not size or not has_repeated(p[1], int(size))]
        assert_ranked(one, allowed)


LONG = 24  # tokens of an output in which n-grams of every size could come twice
WORDS = range(EOS + 1, 9)


def greedy_without_repetition(log_probs, size):
    """Follow the most probable word that repeats no `size` tokens, in plain Python; log_probs (last, next)."""
    output = ()
    while len(output) < LONG - 1:
        seen = {output[n : n + size] for n in range(len(output) - size + 1)}
        allowed = [word for word in WORDS if not size or (*output, word)[-size:] not in seen]
        output += (max(allowed, key=lambda word: log_probs[output[-1] if output else BOS, word]),)
    return (*output, EOS)


def test_a_long_output_repeats_shorter_sequences_and_none_of_the_size_that_may_not_come_twice():
    """The next word depends on the last one alone, so without a rule a greedy search goes in a circle."""
    sizes = np.array([0, *range(3, LONGEST_NGRAM + 1)], "int32")
    log_probs = np.random.default_rng(2).normal(size=(WORDS.stop, WORDS.stop))
    logits = ops.convert_to_tensor(log_probs, dtype="float32")

    def step(state, tokens, position):
        return ops.take(logits, ops.reshape(tokens, (-1,)), axis=0), state

    nothing = ops.zeros((len(sizes), 1), dtype="int32")
    rules = {
        "no_repeat_ngram_sizes": sizes,
        "min_lengths": np.full_like(sizes, LONG),
        "limits": np.full_like(sizes, LONG),
    }
    ids, *_ = beam_search(
        step, PrefixNumbers(nothing, nothing, ops.zeros(nothing.shape)), rules, LONG, SearchOptions(1), **HOW
    )
    found = [tokens_of(row[0]) for row in as_numpy(ids)]
    assert found == [greedy_without_repetition(log_probs, int(size)) for size in sizes]
    assert has_repeated(found[0], LONGEST_NGRAM)
    for size, output in list(zip(sizes, found, strict=True))[1:]:
        assert not has_repeated(output, int(size)) and has_repeated(output, int(size) - 1)


def penalised(log_probs, output, penalty):
    gained = (log_probs[PREFIXES.index(output[:n]), token] for n, token in enumerate(output))
    return sum(
        one * (penalty if token in output[:n] else 1) for n, (token, one) in enumerate(zip(output, gained, strict=True))
    )


def test_a_repetition_penalty_multiplies_log_probabilities_of_tokens_that_were_there():
    tables, penalties = random_tables(6), np.array([1.0, 1.5, 3.0, 1.0, 0.5, 2.0])
    found = outputs(tables, WIDE, repetition_penalties=penalties)
    for table, penalty, one in zip(tables, penalties, found, strict=True):
        expected = sorted(((penalised(table, output, penalty), output) for output in OUTPUTS), reverse=True)
        assert_ranked(one, expected)


def draw(tables, beam_size=1, temperatures=1.0, top_ks=0, top_ps=1.0, seeds=1, **rules):
    return outputs(tables, beam_size, temperatures=temperatures, top_ks=top_ks, top_ps=top_ps, seeds=seeds, **rules)


def distribution(log_probs, temperature=1.0, top_k=0, top_p=1.0):
    """P(output) under the rules of drawing: words and EOS alone, and EOS at the end of the longest output."""
    result = {}
    for output in OUTPUTS:
        result[output] = 1.0
        for n, token in enumerate(output):
            choices = {t: np.exp(log_probs[PREFIXES.index(output[:n]), t] / temperature) for t in (EOS, A, B)}
            if n + 1 == LENGTH:
                choices = {EOS: 1.0}
            total = sum(choices.values())
            best = sorted(choices, key=choices.get, reverse=True)[: top_k or None]
            reached = np.cumsum([choices[t] / total for t in best]) - [choices[t] / total for t in best]
            kept = [t for t, before in zip(best, reached, strict=True) if before < top_p or t == best[0]]
            result[output] *= choices[token] / sum(choices[t] for t in kept) if token in kept else 0.0
    return result


@pytest.mark.nightly
@pytest.mark.parametrize("how", [{}, {"temperature": 2.0}, {"top_k": 2}, {"top_p": 0.7}, {"top_k": 2, "top_p": 0.6}])
def test_outputs_are_drawn_as_often_as_they_are_probable(how):
    log_probs, count = random_tables(1, seed=3)[0], 4000
    rules = {f"{name}s": value for name, value in how.items()}
    found = draw(np.repeat([log_probs], count, axis=0), seeds=np.arange(count), **rules)
    counts = collections.Counter(one[0][1] for one in found)
    for output, probability in distribution(log_probs, **how).items():
        deviation = (probability * (1 - probability) / count) ** 0.5
        assert abs(counts[output] / count - probability) <= 4.5 * deviation, output


def test_a_drawn_output_has_the_score_of_the_model():
    tables = random_tables(20)
    for table, one in zip(tables, draw(tables, 3, temperatures=1.5, seeds=np.arange(20)), strict=True):
        scores = {output: score for score, output in ranked_outputs(table, 0.0)}
        assert len(one) == 3 and [score for score, _ in one] == sorted((score for score, _ in one), reverse=True)
        np.testing.assert_allclose([score for score, _ in one], [scores[tokens] for _, tokens in one], atol=1e-4)


def test_the_hypotheses_of_a_sentence_draw_different_numbers():
    found = draw(random_tables(1, seed=3), 8)[0]
    assert len({tokens for _, tokens in found}) > 1


@pytest.mark.slow
def test_a_sentence_draws_as_many_outputs_as_its_own_beam_size():
    tables, sizes = random_tables(8), np.arange(8) % 4 + 1
    found = draw(tables, 4, seeds=np.arange(8), beam_sizes=sizes)
    for number, size in enumerate(sizes):
        assert_ranked(found[number], draw(tables[number : number + 1], int(size), seeds=number)[0])
        assert len(found[number]) == size


@pytest.mark.slow
def test_drawing_from_the_most_probable_token_alone_is_greedy_search():
    tables = random_tables(10)
    for one, greedy in zip(draw(tables, top_ks=1), outputs(tables, 1), strict=True):
        assert_ranked(one, greedy)
    for one, greedy in zip(draw(tables, top_ps=1e-6), outputs(tables, 1), strict=True):
        assert_ranked(one, greedy)


@pytest.mark.slow
def test_what_is_drawn_depends_on_the_seed_and_not_on_the_batch():
    tables, seeds = random_tables(12), np.arange(12) // 2
    together = draw(tables, 2, seeds=seeds)
    for n, one in enumerate(together):
        assert_ranked(draw(tables[n : n + 1], 2, seeds=seeds[n : n + 1])[0], one)
    others = draw(tables, 2, seeds=seeds + 100)
    assert [[tokens for _, tokens in one] for one in others] != [[tokens for _, tokens in one] for one in together]


@pytest.mark.slow
def test_top_k_and_top_p_of_all_tokens_draw_what_neither_of_them_draws():
    tables, seeds = random_tables(12), np.arange(12)
    free = draw(tables, 2, seeds=seeds)
    for rules in ({"top_ks": 6}, {"top_ps": 0.9999999}, {"top_ks": [0, 1] * 6}):
        for one, expected in list(zip(draw(tables, 2, seeds=seeds, **rules), free, strict=True))[::2]:
            assert_ranked(one, expected)


@pytest.mark.slow
def test_sentences_that_search_are_not_touched_by_those_that_draw():
    tables = random_tables(6)
    found = draw(tables, 3, temperatures=[0.0, 1.0] * 3)
    for n in (0, 2, 4):
        assert_ranked(found[n], outputs(tables[n : n + 1], 3)[0])


def test_each_source_has_a_seed_of_its_own_whatever_its_padding():
    sources = np.array([[5, 6, 7, 0], [6, 5, 7, 0], [5, 6, 0, 0], [5, 6, 7, 8], [7, 6, 5, 0]], "int32")
    seeds = as_numpy(of_sources(np.ones(5, "int32"), sources))
    assert len(set(seeds)) == 5
    wider = np.pad(sources, ((0, 0), (0, 3)))
    np.testing.assert_array_equal(as_numpy(of_sources(np.ones(5, "int32"), wider)), seeds)
    assert not set(seeds) & set(as_numpy(of_sources(np.full(5, 2, "int32"), sources)))


def test_sources_with_one_seed_draw_uniform_numbers():
    sources = np.arange(4, 4004, dtype="int32").reshape(2000, 2)
    numbers = as_numpy(uniform(of_sources(np.ones(2000, "int32"), sources), 0, 0))
    assert np.histogram(numbers, 10, (0, 1))[0] == pytest.approx(200, abs=65)


def test_uniform_numbers_are_uniform_and_do_not_follow_each_other():
    numbers = as_numpy(uniform(np.arange(100)[:, np.newaxis], np.arange(4)[np.newaxis], 7)).ravel()
    numbers = np.concatenate([numbers, as_numpy(uniform(np.zeros(1, "int32"), np.zeros(1, "int32"), np.arange(2000)))])
    assert numbers.min() >= 0 and numbers.max() < 1 and len(set(numbers)) > 2390
    assert np.histogram(numbers, 10, (0, 1))[0] == pytest.approx(240, abs=70)
    assert abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1]) < 0.1
