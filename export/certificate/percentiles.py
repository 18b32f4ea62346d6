"""The percentile of measured times, as the certificate of an export and the benchmarks have it."""


def percentile(times: list[float], percent: int) -> float:
    """Return the smallest of the times that so many per cent of them do not exceed. `times` must not be empty."""
    return sorted(times)[max(0, -(-len(times) * percent // 100) - 1)]
