"""What a search knows between two steps."""

from typing import Any, NamedTuple, Protocol

from keras import ops

from keras_transformer.layers.gather import rows_at
from keras_transformer.search.scores import NEVER


class DecoderState(Protocol):
    """What a decoder remembers of K hypotheses per sentence: a named tuple whose leaves begin with B."""

    def of_parents(self, parents) -> "DecoderState":
        """Return the state in which hypothesis k continues hypothesis parents[:, k], int32 (B, K)."""

    def of_sentences(self, rows) -> "DecoderState":
        """Return the state of some sentences alone: rows int (any number,)."""

    def longer(self, positions: int) -> "DecoderState":
        """Return the state with room for `positions` more positions, for a search of static shapes."""

    def log_coverage(self) -> Any:
        """Return `log_coverage` of each hypothesis, float32 (B, K), if attention is counted."""


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


def select_hypotheses(items, chosen):
    """Select hypotheses of each sentence by number: items (B, M, L), chosen int32 (B, K) -> (B, K, L)."""
    sentences, available, length = ops.shape(items)
    first_rows = ops.expand_dims(ops.arange(sentences) * available, 1)
    selected = rows_at(ops.reshape(items, (-1, length)), ops.reshape(chosen + first_rows, (-1,)))
    return ops.reshape(selected, (sentences, chosen.shape[1], length))
