"""A search of one sentence that remembers what it looked at: the beam as a tree."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import SPECIAL
from keras_transformer.search.beam import continued, decoded, initial_state, of_changing_shapes, settled
from keras_transformer.search.continuations import at_most_all, best_continuations
from keras_transformer.search.fallback import constrained_plan, lacks_phrases
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.required import Required
from keras_transformer.search.rules.table import is_cut_now
from keras_transformer.search.scores import NEVER
from keras_transformer.search.search import SearchStart, start_search
from keras_transformer.search.state import BeamState, Candidates, Decoder, Hypotheses, is_searching

DROPPED = -1  # in place of a slot
EXPLAINED_TOKENS = 64  # of a sentence and of its output, where they are shown: attention grows with their product


class Continuations(NamedTuple):
    """N hypotheses that a search looked at, in the order of the steps. All are (N,).

    Of each step, those that it kept come first, in the order of their slots. Then come others: of each live hypothesis
    the continuations that are most probable for the model, before any rule.
    """

    steps: Any  # int32: number of tokens before the last one
    parents: Any  # int32: the slot of the hypothesis that is continued
    slots: Any  # int32: the slot of this one from now on, or DROPPED
    tokens: Any  # int32: the last token
    log_probs: Any  # float32: natural log-probability of the whole hypothesis, with the repetition penalty if it was
    # kept; of the others, the last token is without it


def traced_search(decoder: Decoder, source_ids, plan: SearchPlan) -> tuple[Hypotheses, Continuations]:
    """Search as `search` does, for one sentence, and return its Hypotheses and the Continuations that it looked at.

    Shapes: source_ids int (1, S). The shapes of the search change, so it does not run under XLA.
    """

    def find(plan: SearchPlan) -> tuple[Hypotheses, Continuations]:
        start = start_search(decoder, source_ids, plan)
        hypotheses, seen = traced_from(start, plan.options)
        if start.vocabulary is not None:
            seen = seen._replace(tokens=start.vocabulary.in_pieces(seen.tokens))
        return start.in_pieces(hypotheses), seen

    plan = plan.replace(static_shapes=False)
    required = plan.rules.find(Required)
    if required is None:
        return find(plan)
    free, seen = find(plan.replace(rules=plan.rules.without(Required)))

    def with_phrases() -> tuple:
        found, seen = find(constrained_plan(plan, required, free))
        return *(leaf[:, : plan.options.beam_size] for leaf in found), *seen

    leaves = ops.cond(lacks_phrases(plan, required, free)[0], with_phrases, lambda: (*free, *seen))
    return Hypotheses(*leaves[:3]), Continuations(*leaves[3:])


def traced_from(start: SearchStart, options: SearchOptions) -> tuple[Hypotheses, Continuations]:
    """Return what a search of one sentence finds and looks at, over its own vocabulary."""
    all_rows, state = of_changing_shapes(initial_state(start.decoder, start.rules, options.beam_size))
    none = 0 * all_rows[:0]
    nothing = Continuations(none, none, none, none, ops.cast(none, "float32"))

    def is_left(seen, *state):
        return ops.any(is_searching(BeamState(*state)))

    def one_step(seen, *state):
        logits, before = decoded(start.step, BeamState(*state), has_room=False)
        candidates = best_continuations(before, logits)
        after = continued(before, candidates, is_cut_now(before, logits))
        new = looked_at(before, logits, candidates, after.log_probs[0] > NEVER / 2)
        seen = Continuations(*(ops.concatenate(pair) for pair in zip(seen, new, strict=True)))
        return seen, *settled(after, options)

    seen, *state = ops.while_loop(is_left, one_step, (nothing, *state))
    return BeamState(*state).finished, seen


def looked_at(state: BeamState, logits, candidates: Candidates, is_kept) -> Continuations:
    """Return the continuations of one step: logits (K, V), is_kept bool (K,) of the candidates."""
    slots = ops.arange(state.log_probs.shape[1])
    per_hypothesis = at_most_all(slots.shape[0] + 1, logits)
    log_probs, tokens = ops.top_k(ops.log_softmax(logits), per_hypothesis)  # (K, per_hypothesis)
    totals = ops.reshape(ops.expand_dims(state.log_probs[0], 1) + log_probs, (-1,))
    tokens = ops.reshape(ops.cast(tokens, "int32"), (-1,))
    parents = ops.repeat(slots, per_hypothesis)
    kept_parents, kept_tokens = (ops.where(is_kept, of[0], DROPPED) for of in candidates[1:])
    is_the_same = ops.logical_and(
        ops.expand_dims(parents, 1) == kept_parents, ops.expand_dims(tokens, 1) == kept_tokens
    )
    is_dropped = ops.logical_and(totals > NEVER / 2, ops.logical_not(ops.any(is_the_same, axis=1)))
    is_dropped = ops.logical_and(is_dropped, tokens > max(SPECIAL))
    everything = Continuations(
        ops.full_like(ops.concatenate([slots, parents]), state.position),
        ops.concatenate([candidates.parents[0], parents]),
        ops.concatenate([slots, ops.full_like(parents, DROPPED)]),
        ops.concatenate([candidates.tokens[0], tokens]),
        ops.concatenate([candidates.log_probs[0], totals]),
    )
    chosen = ops.nonzero(ops.concatenate([is_kept, is_dropped]))[0]
    return Continuations(*(ops.take(values, chosen, axis=0) for values in everything))
