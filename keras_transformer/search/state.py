"""What a search knows between two steps, and how hypotheses and sentences change places in it."""

from typing import Any, NamedTuple, Protocol

import keras
from keras import ops

from keras_transformer.layers.gather import at_columns, rows_at
from keras_transformer.search.scores import NEVER, log_coverage

# What a decoder remembers of K hypotheses per sentence: named tuples of tensors in any depth. A tensor is (B, K, ...),
# or (B, ...) inside of PerSentence.
DecoderState = Any


class PerSentence(NamedTuple):
    """What the hypotheses of a sentence share: they change places, and it stays."""

    shared: Any


class AttendedSource(NamedTuple):
    """What hypotheses have attended to so far; only a search with a coverage penalty needs it."""

    sums: Any  # float32 (B, K, S): see `log_coverage` of scores.py
    is_source: PerSentence  # of bool (B, 1, S)


class Decoder(Protocol):
    """A model as a search sees it: a function of (state, token)."""

    config: Any  # a BaseModelConfig

    def step_weights(self) -> Any:
        """Return what all steps of a search read, computed once."""

    def start(self, source_ids, hypotheses: int, counts_attention: bool = False) -> DecoderState:
        """Run the encoder: source_ids int (B, S). Return the state before the first step, of K hypotheses each."""

    def step(self, weights: Any, state: Any, tokens, position, has_room: bool = False) -> tuple[Any, Any]:
        """Feed tokens, int (B, K), at `position`, int (). Return logits (B * K, V) and the next state."""


class Hypotheses(NamedTuple):
    """The best outputs of each sentence, best first. A slot that no hypothesis filled has the score NEVER."""

    ids: Any  # int32 (B, K, L): tokens and EOS, then PAD
    scores: Any  # float32 (B, K), as in `beam_search`; natural logarithms
    is_cut: Any  # bool (B, K): its limit ended it, and the model would have continued it


class BeamState(NamedTuple):
    """The state between two steps: B sentences with K hypotheses each.

    T is `position`, or the room for tokens if shapes are static.
    """

    position: Any  # int32 (): number of tokens in each live hypothesis
    tokens: Any  # int32 (B, K): what the decoder reads next
    ids: Any  # int32 (B, K, T)
    log_probs: Any  # float32 (B, K): of live hypotheses; NEVER in an empty slot
    is_cut: Any  # bool (B, K): the last token is EOS, and the model would have continued
    free: Any  # int32 (B,): slots that no finished hypothesis has taken yet
    rules: Any  # Rules of search/rules/table.py
    finished: Hypotheses
    decoder: Any  # a DecoderState


class Candidates(NamedTuple):
    """The K best one-token continuations of each sentence's live hypotheses, best first. All are (B, K)."""

    log_probs: Any  # float32: of the whole hypothesis; below NEVER / 2 if there is no such continuation
    parents: Any  # int32: the hypothesis, 0 to K - 1, that is continued
    tokens: Any  # int32


def is_searching(state: BeamState):
    """Return which sentences have a live hypothesis: bool (B,)."""
    return ops.any(state.log_probs > NEVER / 2, axis=1)


def gather_hypotheses(state: DecoderState, parents) -> DecoderState:
    """Return the state in which hypothesis k continues hypothesis parents[:, k], int32 (B, K)."""

    def gathered(node):
        if keras.tree.is_nested(node):
            return node if isinstance(node, PerSentence) else None
        return at_columns(node, parents)

    return keras.tree.traverse(gathered, state)


def gather_sentences(state: DecoderState, rows) -> DecoderState:
    """Return the state of some sentences alone: rows int32 (any number,)."""

    def gathered(node):
        if keras.tree.is_nested(node):
            return node.of_sentences(rows) if hasattr(node, "of_sentences") else None
        return rows_at(node, rows)

    return keras.tree.traverse(gathered, state)


def with_room(state: DecoderState, positions: int) -> DecoderState:
    """Return the state with room for `positions` more positions, for a search of static shapes.

    Only what grows with every position needs room, and says so by a method `longer`.
    """
    return keras.tree.traverse(lambda node: node.longer(positions) if hasattr(node, "longer") else None, state)


def coverage_of(state) -> Any:
    """Return `log_coverage` of each hypothesis, float32 (B, K), of a state that counts attention.

    Of several decoders it is their mean.
    """
    coverages = []

    def collect(node):
        if isinstance(node, AttendedSource):
            coverages.append(log_coverage(node.sums, node.is_source.shared))

    keras.tree.traverse(collect, state)
    return sum(coverages) / len(coverages)
