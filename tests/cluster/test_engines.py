"""Why a graph refuses a batch, without the names of its operations."""

import gc
import sys
import types

import pytest

from cluster.engines import ENGINES, EXPORT, opened, reason_in

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


def test_a_process_opens_the_export_that_spark_sent_once_whatever_parts_it_computes(monkeypatch, caplog):
    folders = []
    caplog.set_level("INFO", "keras_transformer")  # so that the level that it sets ends with this test
    files = types.SimpleNamespace(get=lambda name: f"/files/{name}")
    monkeypatch.setitem(sys.modules, "pyspark", types.SimpleNamespace(SparkFiles=files))
    monkeypatch.setitem(ENGINES, "graph", lambda folder, threads: folders.append((folder, threads)))
    for _ in range(3):
        opened("graph", 2)
    opened.cache_clear()
    assert gc.get_freeze_count() > 1000  # what Spark need not look at after each part
    gc.unfreeze()
    assert folders == [(f"/files/{EXPORT}", 2)]
    assert opened("", 2) is None
    gc.unfreeze()
