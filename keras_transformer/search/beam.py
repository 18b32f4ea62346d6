"""Beam search with length and coverage penalty (Vaswani et al. 2017, section 6.1; Wu et al. 2016, section 7)."""

from collections.abc import Callable, Iterator, Sequence

import keras
from keras import ops

from keras_transformer.ground.tokens import BOS, EOS, PAD
from keras_transformer.layers.gather import at_columns, rows_at
from keras_transformer.search.continuations import best_continuations
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchLoop, SearchPlan
from keras_transformer.search.rules.drawing import Drawing
from keras_transformer.search.rules.table import LIMITS, Rules, is_cut_now
from keras_transformer.search.scores import NEVER, UNFINISHED, length_penalty
from keras_transformer.search.state import (
    BeamState,
    Candidates,
    DecoderState,
    Hypotheses,
    coverage_of,
    gather_hypotheses,
    gather_sentences,
    is_searching,
    with_room,
)

ROOM = 8  # positions that a search of static shapes makes room for at first
STRETCH = 4  # steps after which a search of other shapes looks for sentences that have ended
LONGER_THAN_ANY = 10**9  # more steps than any search takes


def beam_search(step: Callable, decoder: DecoderState, rules: Rules, max_length, plan: SearchPlan) -> Hypotheses:
    """Find the outputs y of each source x with the highest scores.

        score(x, y) = log P(y | x) / ((5 + |y|) / 6)^alpha + beta log_coverage(x, y)        |y| counts EOS

    or with |y|^alpha below log P, if that is the length normalization. Both grow with |y|, which the bound below needs.
    A finished hypothesis keeps its slot, so the beam of the live ones narrows by one. A beam of 1 is greedy search.

    The search of a sentence ends when all slots are taken, or when no live hypothesis can still enter the `n_best`.
    The log-probability of a live hypothesis can only fall, and its coverage be complete at best, so log P over the
    penalty of the longest allowed output bounds its score. A hypothesis that reaches its limit must end there, and pays
    the log-probability of EOS.

    The cost of a step depends on how long outputs are, not on how long they may become: the search makes room when it
    needs room. If shapes may change, a sentence leaves the batch when its search ends, and costs nothing from then on.

    Args:
        step: function of DecoderState, tokens int (B, K), position int () -> logits (B * K, V), DecoderState; row
            b * K + k of the logits belongs to hypothesis k of sentence b.
        decoder: the state before the first step, without room. It counts attention if beta is above 0.
        rules: in place of those of the plan. `limits` is always there, from 1 to max_length.
        max_length: L, an int; an int tensor if shapes may change.
        plan: K is the beam_size of its options. With static shapes, the search runs in loops whose room doubles from
            one to the next, and no sentence leaves. With `loops`, a sentence whose search has ended has what it would
            have without their bounds.

    Returns ids (B, K, L), scores (B, K) and is_cut (B, K).
    """

    def advance(*state):
        return one_step(step, BeamState(*state), plan)

    state = initial_state(decoder, rules, plan.options.beam_size)
    if plan.loops:
        return search_in_loops(advance, state, plan.loops)
    search = search_in_rooms if plan.static_shapes else search_while_any_is_left
    return search(advance, state, max_length)


def initial_state(decoder: DecoderState, rules: Rules, beam_size: int) -> BeamState:
    """Return the state before the first step, without room for tokens.

    One hypothesis per sentence is live; all are if they draw, since each then draws other tokens.
    """
    limits, drawing = ops.cast(rules.limits, "int32"), rules.find(Drawing)
    sentences = ops.shape(limits)[0]
    nothing = ops.full((sentences, beam_size, 0), PAD, dtype="int32")
    never = ops.full((sentences, beam_size), NEVER, dtype="float32")
    none = ops.full((sentences, beam_size), False, dtype="bool")
    free = rules.numbers.get("beam_sizes", ops.full((sentences,), beam_size, dtype="int32"))
    live = ops.where(drawing.is_drawing(), free, 1) if drawing else ops.ones_like(free)
    return BeamState(
        position=ops.convert_to_tensor(0, dtype="int32"),
        tokens=ops.full((sentences, beam_size), BOS, dtype="int32"),
        ids=nothing,
        log_probs=ops.where(ops.expand_dims(ops.arange(beam_size), 0) < ops.expand_dims(live, 1), 0.0, never),
        is_cut=none,
        free=free,
        rules=rules._replace(numbers={**rules.numbers, LIMITS: limits}),
        finished=Hypotheses(nothing, never, none),
        decoder=decoder,
    )


def search_in_rooms(advance: Callable, state: BeamState, max_length: int) -> Hypotheses:
    """Search in one loop per room of ROOM, 2 ROOM, 4 ROOM positions and so on: shapes are static within each."""
    for room in rooms(max_length):
        state = searched_in_room(advance, state, room)
    return state.finished


def searched_in_room(advance: Callable, state: BeamState, room: int, enough: int = 0) -> BeamState:
    """Return the state with room for `room` positions, after as many steps, or when at most `enough` searches go on."""
    positions = room - state.ids.shape[2]
    state = longer(state, positions)._replace(decoder=with_room(state.decoder, positions))

    def has_room(*state):
        state = BeamState(*state)
        return ops.logical_and(state.position < room, are_more_than(enough, is_searching(state)))

    return BeamState(*ops.while_loop(has_room, advance, state))


def are_more_than(enough: int, is_true):
    """Return whether more than `enough` are True: bool (any number,) -> bool ()."""
    return ops.sum(ops.cast(is_true, "int32")) > enough if enough else ops.any(is_true)


def search_in_loops(advance: Callable, state: BeamState, loops: Sequence[SearchLoop]) -> Hypotheses:
    """Search in loops of fewer and fewer sentences: see SearchPlan.

    Before a loop of fewer sentences than there are, those whose search goes on take its places.
    """
    loop, *later = loops
    sentences = state.free.shape[0]
    if loop.sentences < sentences:
        _, order = ops.top_k(ops.cast(is_searching(state), "int32"), sentences)
        order = ops.cast(order, "int32")
        first, others = order[: loop.sentences], order[loop.sentences :]
        of_first = search_in_loops(advance, rows_of_state(state, first), loops)
        of_others = Hypotheses(*(rows_at(array, others) for array in finished_in(state)))
        return in_order(order, of_first, of_others)
    enough = max((each.sentences for each in later if each.sentences < sentences), default=0)
    state = searched_in_room(advance, state, loop.positions, enough)
    return search_in_loops(advance, state, later) if later else finished_in(state)


def in_order(order, of_first: Hypotheses, of_others: Hypotheses) -> Hypotheses:
    """Return the hypotheses of sentences order[0], order[1] and so on, int32 (B,), as those of sentences 0, 1, ..."""
    of_others = of_others._replace(ids=of_length(of_others.ids, of_first.ids.shape[2]))
    _, places = ops.top_k(-order, order.shape[0])
    places = ops.cast(places, "int32")
    parts = zip(of_first, of_others, strict=True)
    return Hypotheses(*(rows_at(ops.concatenate(part), places) for part in parts))


def finished_in(state: BeamState) -> Hypotheses:
    """Return what finished; the scores of a sentence whose search has not ended are UNFINISHED."""
    is_unfinished = ops.expand_dims(is_searching(state), 1)
    return state.finished._replace(scores=ops.where(is_unfinished, UNFINISHED, state.finished.scores))


def rooms(max_length: int) -> Iterator[int]:
    """Yield ROOM, 2 ROOM, 4 ROOM and so on below `max_length`, then `max_length`."""
    room = ROOM
    while room < max_length:
        yield room
        room *= 2
    yield max_length


def search_while_any_is_left(advance: Callable, state: BeamState, max_length) -> Hypotheses:
    """Search with shapes that change: a sentence leaves soon after its search has ended."""
    all_rows, state = of_changing_shapes(state)
    results = state.finished  # of all sentences, as long as the longest output so far
    stretch = ops.where(ops.shape(all_rows)[0] == 1, LONGER_THAN_ANY, STRETCH)  # of one sentence none leaves before it

    def is_any_left(rows, results, *state):
        return ops.any(is_searching(BeamState(*state)))

    def some_steps(rows, results, *state):
        state = BeamState(*state)
        last, enough = state.position + stretch, ops.shape(rows)[0] * 7 // 8

        def are_most_left(*state):
            state = BeamState(*state)
            left = ops.sum(ops.cast(is_searching(state), "int32"))
            return ops.logical_and(state.position < last, left > enough)

        state = BeamState(*ops.while_loop(are_most_left, advance, state))
        places = ops.expand_dims(rows, 1)
        results = Hypotheses(
            ops.scatter_update(of_length(results.ids, ops.shape(state.finished.ids)[2]), places, state.finished.ids),
            ops.scatter_update(results.scores, places, state.finished.scores),
            ops.scatter_update(results.is_cut, places, state.finished.is_cut),
        )
        left = ops.cast(ops.nonzero(is_searching(state))[0], "int32")
        return rows_at(rows, left), results, *of_sentences(state, left)

    _, results, *_ = ops.while_loop(is_any_left, some_steps, (all_rows, results, *state))
    return results._replace(ids=of_length(results.ids, max_length))


def of_changing_shapes(state: BeamState):
    """Return the numbers of all sentences, int32 (B,), and the same state with shapes that are not known.

    A loop of TensorFlow may change a shape only if it is not known when the graph is traced.
    """
    all_rows = ops.cast(ops.nonzero(state.rules.limits > 0)[0], "int32")
    return all_rows, longer(of_sentences(state, all_rows), 0 * ops.shape(all_rows)[0])


def longer(state: BeamState, positions: int) -> BeamState:
    """Return the state with room for `positions` more tokens."""
    room = ((0, 0), (0, 0), (0, positions))
    finished = state.finished._replace(ids=ops.pad(state.finished.ids, room, constant_values=PAD))
    return state._replace(ids=ops.pad(state.ids, room, constant_values=PAD), finished=finished)


def of_length(ids, length):
    """Cut or fill with PAD: (B, K, T) -> (B, K, length)."""
    sentences, beam_size, _ = ops.shape(ids)
    padding = ops.full((sentences, beam_size, length), PAD, dtype="int32")
    return ops.concatenate([ids, padding], axis=2)[:, :, :length]


def of_sentences(state: BeamState, rows) -> BeamState:
    """Return the state of the sentences in `rows` alone, int (any number,)."""

    chosen = gather_sentences(state._replace(position=(), rules=()), rows)
    return chosen._replace(position=state.position, rules=state.rules.of_rows(rows))


def rows_of_state(state: BeamState, rows) -> BeamState:
    """Return the state of the sentences in `rows` alone, int (N,), as `of_sentences`, but with all room that it has."""
    chosen = keras.tree.map_structure(lambda array: rows_at(array, rows), state._replace(position=(), rules=()))
    return chosen._replace(position=state.position, rules=state.rules.of_rows(rows))


def one_step(step: Callable, state: BeamState, plan: SearchPlan) -> BeamState:
    """Return the state one token later."""
    logits, state = decoded(step, state, plan.static_shapes)
    return settled(continued(state, best_continuations(state, logits), is_cut_now(state, logits)), plan.options)


def decoded(step: Callable, state: BeamState, has_room: bool):
    """Feed the last tokens to the decoder. Returns the logits of the next ones (B * K, V), and a state with room."""
    logits, decoder = step(state.decoder, state.tokens, state.position)
    if not has_room:
        state = longer(state, 1)
    return logits, state._replace(decoder=decoder)


def settled(state: BeamState, options: SearchOptions) -> BeamState:
    """Return the state without live hypotheses that have ended, or that can no longer win."""
    alpha = state.rules.numbers.get("length_penalties", options.length_penalty)
    state = without_ended(state, alpha, options)
    longest = length_penalty(state.rules.limits, alpha, options.length_normalization)
    bounds = ops.max(state.log_probs, axis=1) / longest  # (B,)
    can_win = bounds > worst_wanted(state, options.n_best)
    if drawing := state.rules.find(Drawing):
        can_win = ops.logical_or(can_win, drawing.is_drawing())
    return state._replace(log_probs=ops.where(ops.expand_dims(can_win, 1), state.log_probs, NEVER))


def worst_wanted(state: BeamState, n_best: int):
    """Return the score of the last finished hypothesis that a sentence would return: float32 (B,)."""
    wanted = state.rules.numbers.get("n_best")
    if wanted is None:
        return state.finished.scores[:, n_best - 1]
    return at_columns(state.finished.scores, ops.expand_dims(wanted - 1, 1))[:, 0]


def continued(state: BeamState, candidates: Candidates, is_cut) -> BeamState:
    """Return the state one token later: as many candidates become its hypotheses as there are free slots.

    `is_cut`: which hypotheses their limit ends now, bool (B, K), of `is_cut_now`.
    """
    beam_size, length = state.log_probs.shape[1], ops.shape(state.ids)[2]
    ids = at_columns(state.ids, candidates.parents)
    is_here = ops.arange(length) == state.position  # (T,)
    has_slot = ops.expand_dims(ops.arange(beam_size), 0) < ops.expand_dims(state.free, 1)
    if drawing := state.rules.find(Drawing):  # a hypothesis that draws continues in its own slot
        has_slot = ops.logical_or(has_slot, ops.expand_dims(drawing.is_drawing(), 1))
    is_live = ops.logical_and(has_slot, candidates.log_probs > NEVER / 2)
    return state._replace(
        position=state.position + 1,
        tokens=candidates.tokens,
        ids=ops.where(is_here, ops.expand_dims(candidates.tokens, 2), ids),
        log_probs=ops.where(is_live, candidates.log_probs, NEVER),
        is_cut=at_columns(is_cut, candidates.parents),
        decoder=gather_hypotheses(state.decoder, candidates.parents),
    )


def without_ended(state: BeamState, alpha, options: SearchOptions) -> BeamState:
    """Move hypotheses that end in EOS to `finished`, which keeps the best K. Each of them takes a slot for good.

    `alpha` is a number, or one per sentence (B,).
    """
    beam_size = state.log_probs.shape[1]
    is_end = ops.logical_and(state.tokens == EOS, state.log_probs > NEVER / 2)
    penalty = length_penalty(state.position, alpha, options.length_normalization)
    scores = state.log_probs / ops.reshape(penalty, (-1, 1))
    if options.coverage_penalty:
        scores += options.coverage_penalty * coverage_of(state.decoder)
    ended = ops.where(is_end, scores, NEVER)
    scores, chosen = ops.top_k(ops.concatenate([state.finished.scores, ended], axis=1), beam_size)
    chosen = ops.cast(chosen, "int32")
    is_cut = ops.concatenate([state.finished.is_cut, state.is_cut], axis=1)  # (B, 2 K)
    ids = ops.concatenate([state.finished.ids, state.ids], axis=1)  # (B, 2 K, T)
    return state._replace(
        log_probs=ops.where(is_end, NEVER, state.log_probs),
        free=state.free - ops.sum(ops.cast(is_end, "int32"), axis=1),
        finished=Hypotheses(at_columns(ids, chosen), scores, at_columns(is_cut, chosen)),
    )
