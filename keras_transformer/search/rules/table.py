"""The table of rules: what each sentence may ask of the search, and how likely each next token is under those rules.

Each option that names a rule (search/options.py) has one value per sentence, (B,), int32 or float32. Others read text,
and have more axes. A new rule is a file, and a row of KINDS.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

from keras import ops

from keras_transformer.ground.tokens import EOS, PAD, SPECIAL
from keras_transformer.layers.gather import rows_at
from keras_transformer.search.options import OPTIONS, SearchOptions
from keras_transformer.search.rules.drawing import Drawing
from keras_transformer.search.rules.endings import Endings
from keras_transformer.search.rules.forbidden import Forbidden
from keras_transformer.search.rules.lengths import MinLengths
from keras_transformer.search.rules.opening import Openings, prefixes_behind
from keras_transformer.search.rules.placeholders import Placeholders
from keras_transformer.search.rules.prefix import Prefixes
from keras_transformer.search.rules.repetition import NGramSizes, RepetitionPenalties
from keras_transformer.search.rules.required import Required
from keras_transformer.search.rules.rule import Rule, of_each
from keras_transformer.search.rules.siblings import SiblingPenalties
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState

KINDS: tuple[type[Rule], ...] = (  # in the order in which they are applied
    RepetitionPenalties,
    MinLengths,
    NGramSizes,
    Forbidden,
    Placeholders,
    Required,
    Endings,
    Prefixes,
    Openings,
    Drawing,
    SiblingPenalties,
)
LIMITS = "limits"  # tokens of the longest output, EOS included, int32 (B,)
OF_SEARCH = ("beam_sizes", "length_penalties", "n_best")  # if absent, `beam_search` reads its options
R = TypeVar("R", bound=Rule)


class Rules(NamedTuple):
    """What the sentences of a batch ask of their search. What none can ask for is absent, and costs nothing."""

    numbers: dict[str, Any] = {}  # LIMITS, which a search always has, and OF_SEARCH: int32 or float32 (B,), by name
    table: tuple[Rule, ...] = ()  # in the order of KINDS, each at most once

    @classmethod
    def of(cls, arrays: Mapping[str, Any]) -> "Rules":
        """Return rules from arrays by name: those of `numbers`, and of the fields of KINDS."""
        numbers = {name: arrays[name] for name in (LIMITS, *OF_SEARCH) if name in arrays}
        arrays = dict(arrays)
        if "openings" in arrays and "prefixes" in arrays:
            arrays["prefixes"] = prefixes_behind(arrays["openings"], arrays["prefixes"])
        return cls(numbers, tuple(kind.of(arrays) for kind in KINDS if kind.names()[0] in arrays))

    @property
    def limits(self):
        return self.numbers[LIMITS]

    def find(self, kind: type[R]) -> R | None:
        """Return the rule of a kind; None if it is absent."""
        return next((rule for rule in self.table if isinstance(rule, kind)), None)

    def without(self, kind: type[Rule]) -> "Rules":
        return self._replace(table=tuple(rule for rule in self.table if not isinstance(rule, kind)))

    def of_rows(self, rows) -> "Rules":
        """Return the rules of some sentences: rows int32 (any number,)."""
        numbers = {name: rows_at(number, rows) for name, number in self.numbers.items()}
        return Rules(numbers, tuple(rule.of_rows(rows) for rule in self.table))

    def over(self, others: "Rules") -> "Rules":
        """Return these rules, and of the others those of which these have none."""
        more = (rule for rule in others.table if self.find(type(rule)) is None)
        table = sorted((*self.table, *more), key=lambda rule: KINDS.index(type(rule)))
        return Rules(others.numbers | self.numbers, tuple(table))


def rules_of(options: SearchOptions, sentences) -> Rules:
    """Return a rule for each of these options that does not have its default: the same value for B `sentences`."""
    arrays = {}
    for option in OPTIONS.values():
        decisive = OPTIONS[option.needs or option.name]
        has_effect = getattr(options, decisive.name) != decisive.default
        if has_effect and option.rule and not option.reads_text and option.rule not in OF_SEARCH:
            dtype = "int32" if option.is_whole else "float32"
            arrays[option.rule] = ops.full((sentences,), getattr(options, option.name), dtype=dtype)
    return Rules.of(arrays)


def forced_tokens(state: BeamState):
    """Return the token that each sentence must take now, or PAD if it may choose: int32 (B,).

    At the limit it must take EOS, even inside a prefix: a prefix may be longer than the learned positions.
    """
    is_at_limit = state.rules.limits == state.position + 1
    forced = ops.where(is_at_limit, EOS, PAD)
    for rule in state.rules.table:
        if (now := rule.forced(state)) is not None:
            forced = ops.where(ops.logical_or(is_at_limit, now == PAD), forced, now)
    return forced


def priced(state: BeamState, log_probs):
    """Return log-probabilities of next tokens, float32 (B, K, N), with 0 for a token that has no price.

    What may not come has NEVER.
    """
    for rule in state.rules.table:
        if (is_free := rule.is_free(state)) is not None:
            log_probs = ops.where(ops.logical_and(of_each(is_free), log_probs > NEVER / 2), 0.0, log_probs)
    return log_probs


def is_cut_now(state: BeamState, logits):
    """Return which hypotheses end now at their limit although the model, or a rule, would continue them.

    The model would continue if EOS is not its most probable next token. Shapes: logits (B * K, V) -> bool (B, K).
    """
    is_at_limit = ops.expand_dims(state.rules.limits == state.position + 1, 1)
    nowhere = ops.zeros_like(state.log_probs, dtype="bool")

    def cut():
        highest = ops.max(logits[:, max(SPECIAL) + 1 :], axis=-1)  # of the tokens that may come
        goes_on = ops.reshape(logits[:, EOS] < highest, ops.shape(state.log_probs))
        for rule in state.rules.table:
            if (by_rule := rule.goes_on(state)) is not None:
                goes_on = ops.logical_or(goes_on, by_rule)
        return ops.logical_and(is_at_limit, goes_on)

    return ops.cond(ops.any(is_at_limit), cut, lambda: nowhere)


def log_probs_under(state: BeamState, logits):
    """Return the natural log-probability of each next token under all rules; NEVER if it is forbidden.

    What is forbidden does not make the rest more probable: a score is the sum of the model's own log-probabilities,
    times the repetition penalty.

    Shapes: logits (B * K, V) -> float32 (B, K, V).
    """
    vocab_size = ops.shape(logits)[-1]
    log_probs = ops.reshape(ops.log_softmax(logits, axis=-1), (*ops.shape(state.log_probs), vocab_size))
    tokens = ops.arange(vocab_size)
    is_allowed = ops.expand_dims(tokens > max(SPECIAL), (0, 1))  # one row, which a graph holds as a constant
    for rule in state.rules.table:
        log_probs, is_allowed = rule.changed(state, log_probs), rule.allowed(state, is_allowed)
    forced = of_each(forced_tokens(state))
    is_allowed = ops.where(forced == PAD, is_allowed, tokens == forced)
    return priced(state, ops.where(is_allowed, log_probs, NEVER))
