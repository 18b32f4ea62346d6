"""The exercises of examples/lessons: solutions pass, holes and well-known mistakes do not."""

import importlib.util
import math
import types

import numpy as np
import pytest

from tests.support.places import ROOT

FOLDER = ROOT / "examples/lessons"
PAGE = (ROOT / "docs/lessons.md").read_text(encoding="utf-8")


def module(name):
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


check, exercises = module("check"), module("exercises")
LAWS = {law.__name__: law for laws in check.LESSONS.values() for law in laws}


class Solutions:
    def softmax(self, scores):
        exponentials = np.exp(scores - scores.max(-1, keepdims=True))
        return exponentials / exponentials.sum(-1, keepdims=True)

    def attention(self, query, key, value, mask):
        return self.softmax(np.where(mask, query @ key.T / math.sqrt(query.shape[-1]), -np.inf)) @ value

    def causal_mask(self, length):
        return np.tril(np.ones((length, length), bool))

    def positions(self, length, d_model):
        angles = np.arange(length)[:, None] / 10_000 ** (np.arange(0, d_model, 2) / d_model)
        return np.stack([np.sin(angles), np.cos(angles)], -1).reshape(length, d_model)

    def post_norm(self, states, sublayer):
        total = states + sublayer(states)
        return (total - total.mean(-1, keepdims=True)) / np.sqrt(total.var(-1, keepdims=True) + 1e-6)

    def shifted_right(self, target, bos, eos):
        return [bos, *target], [*target, eos]

    def smoothed_loss(self, log_probs, label, smoothing):
        return -(1 - smoothing) * log_probs[label] - smoothing * log_probs.mean()

    def learning_rate(self, step, d_model, warmup):
        return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)

    def greedy(self, next_log_probs, bos, eos, most):
        return self.beam(next_log_probs, bos, eos, most, 1)

    def beam(self, next_log_probs, bos, eos, most, size):
        alive, ended = [(0.0, [bos])], []
        for _ in range(most):
            longer = [(p + q, [*ids, v]) for p, ids in alive for v, q in enumerate(next_log_probs(ids))]
            best = sorted(longer, reverse=True)[:size]
            ended += [one for one in best if one[1][-1] == eos]
            alive = [one for one in best if one[1][-1] != eos]
        return [token for token in max([*ended, *([] if ended else alive)])[1][1:] if token != eos]


MISTAKES = {
    "softmax": lambda scores: np.exp(np.minimum(scores, 9)),
    "attention": lambda q, k, v, mask: Solutions().attention(q, k, v, ~mask),
    "causal_mask": lambda length: ~np.tril(np.ones((length, length), bool)),
    "positions": lambda length, d: np.zeros((length, d)),
    "post_norm": lambda states, sublayer: states + sublayer(states),
    "shifted_right": lambda target, bos, eos: ([bos, *target, eos], [bos, *target, eos]),
    "smoothed_loss": lambda log_probs, label, smoothing: -log_probs[label],
    "learning_rate": lambda step, d_model, warmup: d_model**-0.5 * step**-0.5,
    "greedy": lambda of, bos, eos, most: [2, eos],
    "beam": lambda of, bos, eos, most, size: Solutions().beam(of, bos, eos, most, 1),
}


@pytest.mark.parametrize("name", LAWS)
def test_a_solution_is_right_a_hole_is_not_done_and_a_mistake_is_found(name):
    assert check.verdict(LAWS[name], Solutions()) == "right"
    assert check.verdict(LAWS[name], exercises) == "not done yet"
    assert check.verdict(LAWS[name], types.SimpleNamespace(**{name: MISTAKES[name]})) != "right"


def test_a_line_is_printed_for_each_function_and_the_holes_are_counted(capsys):
    assert check.main(FOLDER / "exercises.py") == len(LAWS)
    assert capsys.readouterr().out.count("not done yet") == len(LAWS)


def test_the_page_names_every_exercise():
    assert [name for name in LAWS if f"`{name}`" not in PAGE] == []
