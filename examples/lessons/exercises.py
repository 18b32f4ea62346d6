"""Four lessons on the Transformer: functions to fill in.

`python examples/lessons/check.py` says whose laws hold. docs/lessons.md has what to read for each. NumPy is enough;
replace each `raise NotImplementedError`.
"""

import numpy as np  # noqa: F401

# Lesson 1: the equation


def softmax(scores):
    """exp(scores) divided by their sum over the last axis, for scores of 1,000 too."""
    raise NotImplementedError


def attention(query, key, value, mask):
    """softmax(query key^T / sqrt(d_k)) value, where a mask of False gives weight 0.

    Shapes: query (Q, d_k), key (K, d_k), value (K, d_v), mask bool (Q, K), True means "may attend" -> (Q, d_v).
    """
    raise NotImplementedError


# Lesson 2: the block


def causal_mask(length):
    """bool (length, length): position q may attend to positions 0 to q."""
    raise NotImplementedError


def positions(length, d_model):
    """Sinusoids of section 3.5, sine and cosine in turn: (length, d_model)."""
    raise NotImplementedError


def post_norm(states, sublayer):
    """LayerNorm(states + sublayer(states)) without gain and bias; add 1e-6 to the variance. (L, d) -> (L, d)."""
    raise NotImplementedError


# Lesson 3: training


def shifted_right(target, bos, eos):
    """The decoder's inputs and labels for one target, as lists: [7, 8] -> [bos, 7, 8], [7, 8, eos]."""
    raise NotImplementedError


def smoothed_loss(log_probs, label, smoothing):
    """-sum_v q_v log_probs_v with q = (1 - smoothing) onehot(label) + smoothing / V: a number."""
    raise NotImplementedError


def learning_rate(step, d_model, warmup):
    """Equation 3; the first step is 1."""
    raise NotImplementedError


# Lesson 4: search


def greedy(next_log_probs, bos, eos, most):
    """The ids after bos, each the most probable one, up to eos (left out) or `most` ids.

    next_log_probs: from a list of ids, bos first, to the log-probabilities of the next one, an array (V,).
    """
    raise NotImplementedError


def beam(next_log_probs, bos, eos, most, size):
    """The ids of the most probable hypothesis that a beam of `size` finds, without bos and eos; no length penalty."""
    raise NotImplementedError
