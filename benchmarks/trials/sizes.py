"""Models that are compared at equal size."""

from benchmarks.errors import BenchmarkError

MOST_APART = 0.05  # by which numbers of parameters may differ


def check_same_size(parameters: dict[str, int], most_apart: float = MOST_APART) -> None:
    """Raises BenchmarkError unless all models, by name, have about equally many parameters."""
    if parameters and max(parameters.values()) > (1 + most_apart) * min(parameters.values()):
        counts = ", ".join(f"{name} {count:,}" for name, count in parameters.items())
        raise BenchmarkError(
            f"The models must have equally many parameters, {most_apart:.0%} apart at most; found {counts}."
        )
