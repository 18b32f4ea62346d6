"""What each sentence may ask of the search, and how likely each next token is under those rules.

Rules are tensors by name. A rule that no sentence can ask for is absent, and costs nothing. Each option that names a
rule (search/options.py) has one value per sentence, (B,), int32 or float32. There are seven more:

    limits    int32 (B,)     tokens of the longest output, EOS included; always there
    prefixes  int32 (B, P)   how the output must begin, then PAD
    endings   int32 (B, N, M)   with which of N sequences it must go on then (search/rules/endings.py)
    forbidden  int32 (B, N, M)   sequences that it must not have (search/rules/forbidden.py)
    placeholders  int32 (B, N, 2)   tokens, and how often each must come (search/rules/placeholders.py)
    required  int32 (B, N, W, M)   phrases that it must have, each in W ways (search/rules/required.py)
    word_edges  bool (2, V)   of the vocabulary, for `required`; the same for all sentences

Sentences that draw do so from P^(1 / temperature), with 0.001 for a temperature below it. What is drawn is a function
of seed, hypothesis, position and probabilities; `search` makes the seed one of the source too (`of_sources`).
"""

from keras import ops

from keras_transformer.ground.bits import mixed, modulo_2_to_32
from keras_transformer.ground.tokens import EOS, PAD, SPECIAL
from keras_transformer.search.options import LONGEST_NGRAM, OPTIONS, SearchOptions
from keras_transformer.search.rules.endings import allowed_by_endings, is_inside_ending
from keras_transformer.search.rules.forbidden import allowed_by_forbidden
from keras_transformer.search.rules.placeholders import allowed_by_placeholders
from keras_transformer.search.rules.required import allowed_by_required, is_any_required
from keras_transformer.search.rules.tokens_among import tokens_among
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import BeamState, Candidates, Rules

OF_SEARCH = ("beam_sizes", "length_penalties", "n_best")  # if absent, `beam_search` reads its options
OF_ALL = ("word_edges",)  # the same for all sentences
CHANGING = ("no_repeat_ngram_sizes", "repetition_penalties", "temperatures")  # rules that need every probability


def rules_of(options: SearchOptions, sentences) -> Rules:
    """Return a rule for each of these options that does not have its default: the same value for B `sentences`."""
    rules = {}
    for option in OPTIONS.values():
        decisive = OPTIONS[option.needs or option.name]
        has_effect = getattr(options, decisive.name) != decisive.default
        if has_effect and option.rule and option.rule not in OF_SEARCH:
            dtype = "int32" if option.is_whole else "float32"
            rules[option.rule] = ops.full((sentences,), getattr(options, option.name), dtype=dtype)
    return rules


def forced_tokens(state: BeamState):
    """Return the token that each sentence must take now, or PAD if it may choose: int32 (B,).

    At the limit it must take EOS, even inside a prefix: a prefix may be longer than the learned positions.
    """
    is_at_limit = state.rules["limits"] == state.position + 1
    forced = ops.where(is_at_limit, EOS, PAD)
    if "prefixes" in state.rules:
        now = token_of_prefix(state)
        forced = ops.where(ops.logical_or(is_at_limit, now == PAD), forced, now)
    return forced


def token_of_prefix(state: BeamState):
    """Return the token of each sentence's prefix that comes now, or PAD after its end: int32 (B,)."""
    prefixes = state.rules["prefixes"]
    nothing = ops.full((ops.shape(prefixes)[0], 1), PAD, dtype="int32")
    prefixes = ops.concatenate([prefixes, nothing], axis=1)
    return ops.take(prefixes, ops.minimum(state.position, ops.shape(prefixes)[1] - 1), axis=1)


def is_cut_now(state: BeamState, logits):
    """Return which hypotheses end now at their limit although the model, or their prefix, would continue them.

    The model would continue if EOS is not its most probable next token. Shapes: logits (B * K, V) -> bool (B, K).
    """
    is_at_limit = ops.expand_dims(state.rules["limits"] == state.position + 1, 1)
    nowhere = ops.zeros_like(state.log_probs, dtype="bool")

    def cut():
        highest = ops.max(logits[:, max(SPECIAL) + 1 :], axis=-1)  # of the tokens that may come
        goes_on = ops.reshape(logits[:, EOS] < highest, ops.shape(state.log_probs))
        if "prefixes" in state.rules:
            goes_on = ops.logical_or(goes_on, ops.expand_dims(token_of_prefix(state) != PAD, 1))
        if "endings" in state.rules:
            goes_on = ops.logical_or(goes_on, is_inside_ending(state))
        return ops.logical_and(is_at_limit, goes_on)

    return ops.cond(ops.any(is_at_limit), cut, lambda: nowhere)


def is_drawing(rules: dict):
    """Return which sentences draw their tokens: bool (B,)."""
    return rules["temperatures"] > 0


def is_changing(rules: dict):
    """Return whether any sentence has one of the rules CHANGING: bool ()."""
    defaults = {option.rule: option.default for option in OPTIONS.values()}
    return ops.any(ops.stack([ops.any(rules[name] != defaults[name]) for name in CHANGING if name in rules]))


def changed_log_probs(state: BeamState, logits):
    """Return the natural log-probability of each next token under all rules; NEVER if it is forbidden.

    What is forbidden does not make the rest more probable: a score is the sum of the model's own log-probabilities,
    times the repetition penalty.

    Shapes: logits (B * K, V) -> float32 (B, K, V).
    """
    sentences, hypotheses, length = ops.shape(state.ids)
    vocab_size, rules = ops.shape(logits)[-1], state.rules
    log_probs = ops.reshape(ops.log_softmax(logits, axis=-1), (sentences, hypotheses, vocab_size))
    is_output = ops.arange(length) < state.position  # (T,)

    if "repetition_penalties" in rules:
        is_repeated = tokens_among(state.ids, ops.broadcast_to(is_output, ops.shape(state.ids)), vocab_size)
        log_probs = ops.where(is_repeated, log_probs * of_each(rules["repetition_penalties"]), log_probs)
    tokens = ops.arange(vocab_size)
    is_allowed = ops.expand_dims(tokens > max(SPECIAL), 0)  # (1, V)
    if "min_lengths" in rules:
        is_too_early = ops.expand_dims(state.position + 1 < rules["min_lengths"], 1)
        is_allowed = ops.logical_and(is_allowed, ops.logical_not(ops.logical_and(is_too_early, tokens == EOS)))
    is_allowed = ops.expand_dims(is_allowed, 1)  # (B or 1, 1, V)
    if "no_repeat_ngram_sizes" in rules:
        would_repeat = tokens_among(state.ids, completes_ngram(state, is_output), vocab_size)
        is_allowed = ops.logical_and(is_allowed, ops.logical_not(would_repeat))
        is_stuck = ops.logical_not(ops.any(is_allowed, axis=-1, keepdims=True))  # no token is left: the output ends
        is_allowed = ops.logical_or(is_allowed, ops.logical_and(is_stuck, tokens == EOS))
    if "forbidden" in rules:
        is_allowed = allowed_by_forbidden(state, ops.broadcast_to(is_allowed, ops.shape(log_probs)))
    if "placeholders" in rules:
        is_allowed = allowed_by_placeholders(state, ops.broadcast_to(is_allowed, ops.shape(log_probs)))
    if "required" in rules:
        may_come = ops.broadcast_to(is_allowed, ops.shape(log_probs))
        is_allowed = ops.cond(is_any_required(rules), lambda: allowed_by_required(state, may_come), lambda: may_come)
    if "endings" in rules:
        is_allowed = allowed_by_endings(state, ops.broadcast_to(is_allowed, ops.shape(log_probs)))
    forced = of_each(forced_tokens(state))
    is_allowed = ops.where(forced == PAD, is_allowed, tokens == forced)
    return ops.where(is_allowed, log_probs, NEVER)


def completes_ngram(state: BeamState, is_output):
    """Return which tokens of an output would repeat a sequence of n tokens if they came again now: bool (B, K, T).

    Such a token follows an earlier occurrence of the last n - 1 tokens.
    """
    sentences, hypotheses, length = ops.shape(state.ids)
    size = of_each(state.rules["no_repeat_ngram_sizes"])
    before = ops.full((sentences, hypotheses, LONGEST_NGRAM), -1, dtype="int32")
    ids = ops.concatenate([before, state.ids], axis=2)
    would_repeat = ops.logical_and(size > 0, is_output)
    for distance in range(1, LONGEST_NGRAM):
        last = ops.expand_dims(ops.take(ids, LONGEST_NGRAM + state.position - distance, axis=2), 2)
        earlier = ids[:, :, LONGEST_NGRAM - distance : LONGEST_NGRAM - distance + length]
        would_repeat = ops.logical_and(would_repeat, ops.logical_or(earlier == last, distance >= size))
    return would_repeat


def drawn(state: BeamState, log_probs) -> Candidates:
    """Let each hypothesis draw its next token: log_probs (B, K, V) of `changed_log_probs`.

    Candidates keep these log-probabilities, which are not those of the distribution that is drawn from.
    """
    rules = state.rules
    _, hypotheses, vocab_size = ops.shape(log_probs)
    scaled = ops.where(log_probs > NEVER / 2, log_probs / ops.maximum(of_each(rules["temperatures"]), 1e-3), NEVER)
    scaled, order = ops.top_k(scaled, vocab_size)
    probabilities = ops.softmax(scaled, axis=-1)
    reached = ops.cumsum(probabilities, axis=-1) - probabilities  # by the more probable ones
    ranks = ops.arange(vocab_size)
    is_kept = ops.logical_and(
        ops.logical_or(of_each(rules["top_ks"]) == 0, ranks < of_each(rules["top_ks"])),
        ops.logical_or(ranks == 0, reached < of_each(rules["top_ps"])),
    )
    sums = ops.cumsum(ops.where(is_kept, probabilities, 0.0), axis=-1)  # (B, K, V)
    numbers = ops.expand_dims(ops.arange(hypotheses), 0)
    height = uniform(ops.expand_dims(rules["seeds"], 1), numbers, state.position)  # (B, K)
    is_below = ops.logical_and(is_kept, sums <= ops.expand_dims(height, 2) * sums[:, :, -1:])
    is_kept_and_possible = ops.logical_and(is_kept, scaled > NEVER / 2)
    last = ops.maximum(ops.sum(ops.cast(is_kept_and_possible, "int32"), axis=2) - 1, 0)
    place = ops.expand_dims(ops.minimum(ops.sum(ops.cast(is_below, "int32"), axis=2), last), 2)
    tokens = ops.take_along_axis(ops.cast(order, "int32"), place, axis=2)
    gained = ops.take_along_axis(log_probs, tokens, axis=2)[..., 0]
    parents = ops.broadcast_to(numbers, ops.shape(state.log_probs))
    return Candidates(state.log_probs + gained, ops.cast(parents, "int32"), tokens[..., 0])


def of_each(rule):
    """(B,) -> (B, 1, 1)"""
    return ops.expand_dims(rule, (1, 2))


def of_sources(seeds, source_ids):
    """Return seeds that differ from source to source, so that sentences with one seed draw different numbers.

    Shapes: seeds int32 (B,), source_ids int (B, S), in which PAD counts nothing -> int32 (B,).
    """
    positions = ops.expand_dims(ops.arange(ops.shape(source_ids)[1]), 0)
    of_tokens = ops.cast(ops.right_shift(bits_of(source_ids, positions), ops.cast(16, "uint32")), "int32")
    sums = ops.sum(ops.where(source_ids == PAD, 0, of_tokens), axis=1)  # below 2^31 for 32,768 tokens
    return ops.cast(ops.right_shift(bits_of(seeds, sums), ops.cast(1, "uint32")), "int32")


def uniform(*numbers):
    """Return a number from 0 to 1, without 1, that is a function of integers, whatever else is in the batch.

    Shapes: int32, broadcast against each other -> float32.
    """
    return ops.cast(ops.right_shift(bits_of(*numbers), ops.cast(8, "uint32")), "float32") / 2.0**24


def bits_of(*numbers):
    """Return 32 bits that look random and are a function of integers. Shapes: int32, broadcast -> uint32."""
    bits = ops.cast(0, "uint32")
    for number in numbers:
        bits = mixed(ops.bitwise_xor(bits, modulo_2_to_32(ops.cast(number, "uint32"))) + ops.cast(0x9E3779B9, "uint32"))
    return bits
