"""Exponents: the slope of a line through points on logarithmic axes."""

import math
from collections.abc import Sequence
from typing import NamedTuple


class Exponent(NamedTuple):
    """y is proportional to x^value; `error` is the standard error of the least-squares slope."""

    value: float
    error: float
    points: int

    def __str__(self):
        error = f" ± {self.error:.2f}" if self.points > 2 else ""  # a line through two points has no error
        return f"{self.value:.2f}{error}"


def exponent(x: Sequence[float], y: Sequence[float]) -> Exponent:
    """Fit log y = value * log x + constant by least squares."""
    from scipy.stats import linregress

    line = linregress([math.log(value) for value in x], [math.log(value) for value in y])
    return Exponent(float(line.slope), float(line.stderr), len(x))
