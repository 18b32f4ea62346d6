"""Checks examples/lessons/exercises.py: one law for each function, and what is found if it does not hold."""

import importlib.util
import math
import pathlib
import sys
from collections.abc import Callable
from types import ModuleType

import numpy as np

RNG = np.random.default_rng(0)


def softmax(of) -> bool:
    scores = np.array([[0.0, math.log(3)], [1000.0, 1000.0]])
    return np.allclose(of.softmax(scores), [[0.25, 0.75], [0.5, 0.5]])


def attention(of) -> bool:
    query, key, value = np.array([[2 * math.log(3), 0, 0, 0]]), np.eye(4)[[1, 0, 0]], np.array([[0.0], [8.0], [99.0]])
    return np.allclose(of.attention(query, key, value, np.array([[True, True, False]])), [[6.0]])


def causal_mask(of) -> bool:
    return np.array_equal(of.causal_mask(3), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])


def positions(of) -> bool:
    encodings = np.asarray(of.positions(5, 8))
    products = encodings @ encodings.T  # they depend on the distance alone
    return np.allclose(encodings[0], [0, 1] * 4) and np.allclose(np.diag(products, 1), products[0, 1])


def post_norm(of) -> bool:
    states = RNG.normal(size=(3, 64))
    normed = of.post_norm(states, lambda x: 3 * x)
    moments = np.allclose(normed.mean(-1), 0, atol=1e-6) and np.allclose(normed.std(-1), 1, atol=1e-3)
    return moments and np.allclose(normed, of.post_norm(4 * states, lambda x: 0 * x), atol=1e-6)


def shifted_right(of) -> bool:
    return tuple(map(list, of.shifted_right([7, 8], 2, 3))) == ([2, 7, 8], [7, 8, 3])


def smoothed_loss(of) -> bool:
    guessing = np.full(10, -math.log(10))
    certain = np.log(np.array([0.91] + [0.01] * 9))  # the lowest one with smoothing 0.1
    lowest = -(0.91 * math.log(0.91) + 0.09 * math.log(0.01))
    return np.allclose([of.smoothed_loss(guessing, 3, 0.1), of.smoothed_loss(certain, 0, 0.1)], [math.log(10), lowest])


def learning_rate(of) -> bool:
    rates = [of.learning_rate(step, 512, 4000) for step in (2000, 4000, 16000)]
    return np.allclose(rates, [6.99e-4 / 2, 6.99e-4, 6.99e-4 / 2], rtol=1e-3)


TREE = {
    (): [0, 0, 0.6, 0.4, 0],
    (2,): [0, 0.5, 0.25, 0.25, 0],
    (3,): [0, 0.9, 0.1, 0, 0],
}  # greedy is led astray: 1 ends


def next_log_probs(ids):
    return np.log(np.array(TREE.get(tuple(ids[1:]), [0, 1, 0, 0, 0])) + 1e-12)


def greedy(of) -> bool:
    return list(of.greedy(next_log_probs, 0, 1, 5)) == [2] and len(of.greedy(lambda ids: np.eye(5)[2], 0, 1, 4)) == 4


def beam(of) -> bool:
    found = [list(of.beam(next_log_probs, 0, 1, 5, size)) for size in (1, 2)]
    return found == [[2], [3]]


LESSONS: dict[str, tuple[Callable[[ModuleType], bool], ...]] = {
    "1, the equation": (softmax, attention),
    "2, the block": (causal_mask, positions, post_norm),
    "3, training": (shifted_right, smoothed_loss, learning_rate),
    "4, search": (greedy, beam),
}


def verdict(law: Callable[[ModuleType], bool], exercises: ModuleType) -> str:
    """Return "right", "not done yet", or what is wrong."""
    try:
        return "right" if law(exercises) else f"its law does not hold: read {law.__name__} in check.py"
    except NotImplementedError:
        return "not done yet"
    except Exception as error:  # of a reader's code, whatever it is
        return f"{type(error).__name__}: {error}"


def main(path: pathlib.Path) -> int:
    """Print a line for each function; return how many are not right."""
    spec = importlib.util.spec_from_file_location("exercises", path)
    exercises = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(exercises)
    wrong = 0
    for lesson, laws in LESSONS.items():
        print(f"Lesson {lesson}")
        for law in laws:
            found = verdict(law, exercises)
            wrong += found != "right"
            print(f"  {law.__name__}: {found}")
    return wrong


if __name__ == "__main__":
    sys.exit(min(1, main(pathlib.Path(__file__).with_name("exercises.py"))))
