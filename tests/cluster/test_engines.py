"""Why a graph refuses a batch, without the names of its operations."""

import pytest

from cluster.engines import reason_in

AROUND = "Graph execution error:\n\nDetected at node a/Assert defined at (most recent call last):\n<stack traces ...>\n"


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (
            AROUND + "assertion failed: [top_k needs a\n temperature.] [3]\n\t [[{{node a/Assert}}]] [Op:b]",
            "top_k needs a temperature.",
        ),
        (AROUND + "OOM when allocating tensor\n\t [[{{node c}}]]", "OOM when allocating tensor"),
        ("Graph execution error:", "The graph failed."),
    ],
)
def test_the_reason_is_the_sentence_of_the_graph(message, reason):
    assert reason_in(message) == reason
