"""A search with a shortlist is the search in which, for each sentence, every other piece is impossible."""

import functools

import keras
import numpy as np
import pytest
import tensorflow as tf
from keras import ops

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS, PAD
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import build_model, incremental_decoder
from keras_transformer.search import short_vocabulary as module
from keras_transformer.search.ensemble import EnsembleDecoder
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchLoop
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.scores import NEVER, UNFINISHED
from keras_transformer.search.short_vocabulary import (
    WIDTH,
    ShortlistTable,
    most_columns,
    numbers_in,
    over_columns,
    short_vocabulary,
)
from keras_transformer.search.state import Hypotheses, with_room
from keras_transformer.shortlist.lexicon import Lexicon
from keras_transformer.shortlist.shortlist import Shortlist, build
from keras_transformer.translation.compiled_search import table_for
from tests.support.models import LIVELY, as_numpy, assert_close, lively_transformer, sources
from tests.support.searches import search, traced_search
from tests.support.tables import assert_same_hypotheses, tokens_of
from tests.support.variants import VARIANTS

PIECES = 150
CONFIG = LIVELY.replace(vocab_size=PIECES)
SOURCES = sources(2, 3, 4, 5, 6, 7, 7, vocab_size=PIECES)
BEAM = SearchOptions(beam_size=4, n_best=4, extra_length=4)
DRAWING = {"temperature": 1.0, "seed": 3, "top_k": 9, "top_p": 0.9}
REPETITION = {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3, "min_length": 4}
SCORES = {"coverage_penalty": 0.5, "sibling_penalty": 1.0, "length_normalization": "tokens"}
RULES = {
    name: SearchOptions(4, n_best=4, extra_length=4, **rules)
    for name, rules in {"plain": {}, "drawing": DRAWING, "repetition": REPETITION, "scores": SCORES}.items()
}
every_option = pytest.mark.parametrize("options", RULES.values(), ids=RULES)


def random_shortlist(seed=0, most=6, always=5):
    """Six random translations of each piece, and five pieces for everybody."""
    generator = np.random.default_rng(seed)
    of_sources = np.repeat(np.arange(PIECES), most)
    targets = np.concatenate([generator.choice(PIECES, most, replace=False) for _ in range(PIECES)])
    lexicon = Lexicon(of_sources, targets, generator.uniform(size=len(targets)))
    return build(lexicon, generator.choice(PIECES, always, replace=False), most, PIECES, "")


def everything():
    """The shortlist of all pieces for all pieces."""
    numbers = np.arange(PIECES, dtype=np.int32)
    return Shortlist(np.zeros(PIECES + 1, np.int32), numbers[:0], numbers, "")


def table_of(shortlist, most=2.0):
    """By default columns are chosen, whatever their number."""
    return ShortlistTable(shortlist.table(), shortlist.always, most)


class Masked:
    """An oracle: a decoder over all pieces, whose logits are NEVER for all pieces but some of each sentence.

    It does not follow sentences that leave the batch, so its searches have static shapes.
    """

    def __init__(self, decoder, possible):
        self.decoder, self.config, self.possible = decoder, decoder.config, possible
        self.step_weights, self.start = decoder.step_weights, decoder.start

    def step(self, weights, state, tokens, position, has_room=False):
        logits, state = self.decoder.step(weights, state, tokens, position, has_room)
        return ops.where(ops.repeat(self.possible, tokens.shape[1], axis=0), logits, NEVER), state


def possible_in(shortlist, rows=SOURCES, more=()):
    """Which pieces each sentence may use, by Shortlist.of: bool (B, V)."""
    allowed = [shortlist.of(row[row != PAD].tolist()) | set(more) for row in rows]
    return np.array([[piece in pieces for piece in range(PIECES)] for pieces in allowed])


@functools.cache
def decoders():
    return tuple(incremental_decoder(lively_transformer(CONFIG, seed)) for seed in (19, 20))


@pytest.fixture(params=[False, True], ids=["growing", "static"])
def static_shapes(request):
    """Every law holds for both ways of searching."""
    return request.param


def found(decoder, rows=SOURCES, options=BEAM, static_shapes=False, shortlist=None, rules=None):
    """What a search finds, operation by operation."""
    table = None if shortlist is None else table_of(shortlist)
    return search(decoder, rows, options, static_shapes, rules, shortlist=table)


@functools.cache
def found_among_all(options=BEAM):
    """What a search without a shortlist finds."""
    return found(decoders()[0], options=options)


@functools.cache
def expected_of(options=BEAM):
    """What `random_shortlist` leaves, by the oracle."""
    return found(Masked(decoders()[0], possible_in(random_shortlist())), options=options, static_shapes=True)


def test_a_graph_that_does_not_know_how_many_columns_there_are_finds_the_same():
    decoder = decoders()[0]  # made here: weights that are made while a graph is traced keep their first random values

    def of_batch(source_ids):
        return tuple(found(decoder, source_ids, SearchOptions(2, extra_length=2), shortlist=random_shortlist()))

    compiled = tf.function(of_batch, [tf.TensorSpec((None, None), tf.int32)], autograph=False)
    assert_same_hypotheses(Hypotheses(*compiled(SOURCES)), Hypotheses(*of_batch(SOURCES)))


@pytest.mark.slow
@every_option
def test_only_the_pieces_of_a_sentence_are_possible_and_probabilities_are_over_them(options, static_shapes):
    shortlist, expected = random_shortlist(), expected_of(options)
    hypotheses = found(decoders()[0], options=options, static_shapes=static_shapes, shortlist=shortlist)
    assert_same_hypotheses(hypotheses, expected)
    assert as_numpy(hypotheses.is_cut).tolist() == as_numpy(expected.is_cut).tolist()
    outputs = [tokens_of(ids[0]) for ids in as_numpy(hypotheses.ids)]
    assert len(set(outputs)) > 3 and outputs != [tokens_of(ids[0]) for ids in as_numpy(found_among_all().ids)]
    for ids, possible in zip(as_numpy(hypotheses.ids).astype(int), possible_in(shortlist), strict=True):
        assert possible[ids].all()


@pytest.mark.slow
@every_option
def test_a_shortlist_of_everything_changes_nothing(options, static_shapes):
    with_all = found(decoders()[0], options=options, static_shapes=static_shapes, shortlist=everything())
    assert_same_hypotheses(with_all, found_among_all(options))


@pytest.mark.nightly
@pytest.mark.parametrize("most", [0.0, 2.0], ids=["all pieces", "columns of each"])
@pytest.mark.parametrize("rules", [{}, {"prefixes": np.full((len(SOURCES), 1), 77, np.int32)}], ids=["free", "prefix"])
def test_a_bound_on_the_columns_changes_no_translation_that_has_enough(rules, most, monkeypatch):
    """Nor do loops of fewer sentences, which a search with columns of each does without."""
    shortlist, longest = random_shortlist(), SOURCES.shape[1] + BEAM.extra_length
    loops = [SearchLoop(longest, sentences) for sentences in (len(SOURCES), 2)]
    expected = found(decoders()[0], shortlist=shortlist, rules=rules)
    bounded = search(decoders()[0], SOURCES, BEAM, True, rules, loops, table_of(shortlist, most))
    assert_same_hypotheses(bounded, expected)
    monkeypatch.setattr(module, "WIDTH", 1)  # 37 columns, which are too few for long sentences
    bounded = search(decoders()[0], SOURCES, BEAM, True, rules, loops, table_of(shortlist, most))
    is_done = as_numpy(bounded.scores)[:, 0] != UNFINISHED
    assert 0 < is_done.sum() < len(SOURCES) or most == 0
    assert_close(as_numpy(bounded.scores)[is_done], as_numpy(expected.scores)[is_done], atol=1e-4)
    assert (as_numpy(bounded.scores)[~is_done] == UNFINISHED).all()


@pytest.mark.slow
def test_a_sentence_is_translated_as_if_alone(static_shapes):
    together = found(decoders()[0], static_shapes=static_shapes, shortlist=random_shortlist())
    for row, ids, scores in zip(SOURCES, as_numpy(together.ids), as_numpy(together.scores), strict=True):
        alone = found(
            decoders()[0], row[np.newaxis, row != PAD], static_shapes=static_shapes, shortlist=random_shortlist()
        )
        assert [tokens_of(row) for row in as_numpy(alone.ids)[0]] == [tokens_of(row) for row in ids]
        assert_close(as_numpy(alone.scores)[0], scores, atol=1e-4)


@pytest.mark.nightly
def test_the_mean_of_an_ensemble_is_over_the_shortlist(static_shapes):
    shortlist = random_shortlist()
    masked = EnsembleDecoder([Masked(decoder, possible_in(shortlist)) for decoder in decoders()])
    expected = found(masked, static_shapes=True)
    assert_same_hypotheses(
        found(EnsembleDecoder(list(decoders())), static_shapes=static_shapes, shortlist=shortlist), expected
    )


@pytest.mark.slow
def test_prefixes_and_endings_are_possible_whatever_is_listed(static_shapes):
    shortlist = random_shortlist()
    outside = np.flatnonzero(~possible_in(shortlist).any(axis=0))
    prefix, one, other = outside[outside > EOS][:3]
    rules = {
        "prefixes": np.full((len(SOURCES), 1), prefix, np.int32),
        "endings": np.tile(np.array([[[one, other], [other, PAD], [-1, -1]]], np.int32), (len(SOURCES), 1, 1)),
    }
    possible = possible_in(shortlist, more=(prefix, one, other))
    hypotheses = found(decoders()[0], static_shapes=static_shapes, shortlist=shortlist, rules=rules)
    assert_same_hypotheses(hypotheses, found(Masked(decoders()[0], possible), static_shapes=True, rules=rules))
    for ids in as_numpy(hypotheses.ids).astype(int)[:, 0]:
        assert ids[0] == prefix and (ids[1] == other or (ids[1], ids[2]) == (one, other))


@pytest.mark.slow
def test_required_phrases_are_possible_whatever_is_listed():
    shortlist, rows = random_shortlist(), SOURCES[:3]
    outside = np.flatnonzero(~possible_in(shortlist).any(axis=0))
    one, other, third = outside[outside > EOS][:3].tolist()
    word_edges = np.random.default_rng(5).uniform(size=(2, PIECES)) < 0.5
    word_edges[0, [one, third]], word_edges[1, other] = False, True  # a phrase begins with a word
    word_edges[:, : EOS + 1] = False
    rules = {
        "required": np.tile(np.array([[[[one, other]], [[third, PAD]]]], np.int32), (3, 1, 1, 1)),
        "word_edges": word_edges,
    }
    possible = possible_in(shortlist, rows, more=(one, other, third))
    hypotheses = found(decoders()[0], rows, shortlist=shortlist, rules=rules)
    assert_same_hypotheses(hypotheses, found(Masked(decoders()[0], possible), rows, static_shapes=True, rules=rules))
    for ids in as_numpy(hypotheses.ids).astype(int)[:, 0].tolist():
        assert third in ids and ids[ids.index(one) + 1] == other and not word_edges[0, ids[ids.index(other) + 1]]


KINDS = {
    "recurrent": RecurrentConfig(vocab_size=PIECES, d_model=16),
    "bias of logits": CONFIG.replace(logits_bias=True),
}
KINDS |= {variant: CONFIG.replace(**changes) for variant, changes in VARIANTS.items()}


@functools.cache
def decoder_of(kind):
    model = build_model(KINDS[kind]) if kind == "recurrent" else lively_transformer(KINDS[kind], 21)
    return incremental_decoder(model)


@functools.cache
def expected_of_kind(kind):
    decoder, rows = decoder_of(kind), SOURCES[::3]
    return found(Masked(decoder, possible_in(random_shortlist(1), rows)), rows, static_shapes=True)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_model_has_shortlists(kind, static_shapes):
    shortlisted = found(decoder_of(kind), SOURCES[::3], static_shapes=static_shapes, shortlist=random_shortlist(1))
    assert_same_hypotheses(shortlisted, expected_of_kind(kind))


@pytest.mark.slow
def test_a_traced_search_looks_at_pieces_of_the_shortlist():
    shortlist, row = random_shortlist(), SOURCES[5:6]
    hypotheses, seen = traced_search(decoders()[0], row, BEAM, shortlist=table_of(shortlist))
    alone = found(decoders()[0], row, shortlist=shortlist)
    assert_same_hypotheses(hypotheses, alone)
    assert set(as_numpy(seen.tokens).astype(int).tolist()) <= shortlist.of(row[0].tolist())
    _, expected = traced_search(Masked(decoders()[0], possible_in(shortlist, row)), row, BEAM)
    assert [as_numpy(leaf).tolist() for leaf in seen[:4]] == [as_numpy(leaf).tolist() for leaf in expected[:4]]


@pytest.mark.nightly
@pytest.mark.parametrize("rules", ["plain", "drawing"])
def test_a_graph_that_knows_no_sizes_finds_the_same(rules):
    options, table = RULES[rules], table_of(random_shortlist())

    @functools.partial(tf.function, input_signature=[tf.TensorSpec((None, None), tf.int32)], autograph=False)
    def searched(ids):
        return search(decoders()[0], ids, options, shortlist=table)

    for rows in (SOURCES, SOURCES[:1]):
        expected = found(decoders()[0], rows, options, shortlist=random_shortlist())
        assert_same_hypotheses(searched(tf.constant(rows)), expected)


@pytest.mark.parametrize("members", [1, 2])
def test_a_step_that_has_room_changes_no_shape(members):
    """Otherwise a graph of static shapes, as LiteRT's, has no loop of such steps."""
    decoder = decoders()[0] if members == 1 else EnsembleDecoder(list(decoders()))
    short = over_columns(decoder, short_vocabulary(table_of(random_shortlist()), SOURCES[:2], Rules(), 8, True))
    state = with_room(short.start(SOURCES[:2], 3), 4)
    _, after = short.step(short.step_weights(), state, ops.zeros((2, 3), "int32"), 1, has_room=True)
    shapes = [[tuple(leaf.shape) for leaf in keras.tree.flatten(each)] for each in (state, after)]
    assert shapes[0] == shapes[1]


# the columns


@pytest.mark.parametrize("count", [1, 3, 7])
def test_the_columns_are_the_union_of_the_sentences_and_no_more(count, static_shapes):
    shortlist, rows = random_shortlist(), SOURCES[:count]
    vocabulary = short_vocabulary(table_of(shortlist), rows, Rules(), 8, static_shapes)
    pieces, is_listed = as_numpy(vocabulary.pieces).astype(int), as_numpy(vocabulary.bias) == 0
    union = sorted(set().union(*(shortlist.of(row[row != PAD].tolist()) for row in rows)))
    assert pieces[: len(union)].tolist() == union and not pieces[len(union) :].any()
    assert not len(pieces) % WIDTH and (static_shapes or len(pieces) - len(union) < WIDTH)
    for row, listed in zip(rows, is_listed, strict=True):
        assert pieces[listed].tolist() == sorted(shortlist.of(row[row != PAD].tolist()))
    assert as_numpy(vocabulary.columns).astype(int)[union].tolist() == list(range(len(union)))


def test_there_are_columns_for_the_whole_beam():
    assert len(short_vocabulary(table_of(random_shortlist()), SOURCES[:1], Rules(), 500, False).pieces) >= 500


def test_a_table_for_all_sentences_or_for_each_gives_what_stands_at_places():
    places = np.array([[[0, 2], [1, 1]], [[2, 2], [0, 1]]], "int32")
    of_all, of_each = np.array([7, 8, 9], "int32"), np.array([[7, 8, 9], [10, 11, 12]], "int32")
    assert as_numpy(numbers_in(of_all, places)).tolist() == [[[7, 9], [8, 8]], [[9, 9], [7, 8]]]
    assert as_numpy(numbers_in(tf.constant(of_each), places)).tolist() == [[[7, 9], [8, 8]], [[12, 12], [10, 11]]]


def test_if_too_many_columns_are_needed_every_piece_has_one_and_the_others_are_impossible():
    shortlist, rules = random_shortlist(), Rules.of({"prefixes": np.array([[5]], "int32")})
    vocabulary = short_vocabulary(table_of(shortlist, most=0.1), SOURCES, Rules(), 8, True)
    assert vocabulary.pieces is vocabulary.columns is vocabulary.fits is None
    np.testing.assert_array_equal(as_numpy(vocabulary.bias), np.where(possible_in(shortlist), 0, np.float32(NEVER)))
    assert vocabulary.in_columns(rules) is rules and vocabulary.in_pieces(3) == 3
    table = table_of(shortlist)
    always = len(shortlist.always)
    assert most_columns(table, (None, 9)) == most_columns(table, (1000, always + 4)) == PIECES
    assert most_columns(table, (2, always + 4)) == 8 + always


def test_a_search_has_a_shortlist_if_it_asks_for_one(monkeypatch):
    shortlist, checked = random_shortlist(), []
    monkeypatch.setattr(Shortlist, "check_tokenizer", lambda self, tokenizer: checked.append(tokenizer))
    assert table_for(SearchOptions(), shortlist, "tokenizer") is None and not checked
    table = table_for(SearchOptions(shortlist="on"), shortlist, "tokenizer")
    np.testing.assert_array_equal(table.lists, shortlist.table())
    assert table.always is shortlist.always and checked == ["tokenizer"]
    with pytest.raises(ConfigError, match="shortlist is 'on', but no shortlist was given"):
        table_for(SearchOptions(shortlist="on"), None, "tokenizer")
