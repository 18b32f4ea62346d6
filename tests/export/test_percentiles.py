"""A percentile is one of the values, by nearest rank, wherever one is written."""

import pytest

from benchmarks import serve_table, translate_table
from export.certificate.percentiles import percentile


@pytest.mark.parametrize(
    ("times", "percent", "expected"),
    [([3.0, 1.0, 2.0, 4.0], 50, 2.0), (list(range(1, 101)), 95, 95), (list(range(1, 101)), 99, 99), ([7.0], 99, 7.0)],
)
def test_a_percentile_is_the_least_time_that_so_many_do_not_exceed(times, percent, expected):
    assert percentile(times, percent) == expected


@pytest.mark.parametrize("times", [[0.25], [1.0, 2.0], [3.0, 1.0, 8.0], [float(one) for one in range(24)]])
def test_every_percentile_of_the_benchmarks_is_one_of_the_values(times):
    assert set(serve_table.percentiles(times).values()) <= set(times)
    assert set(translate_table.percentiles(times).values()) <= set(times)
