"""The table of the models that Marian trained: all its lines are translated as by Marian."""

import re

import pytest

from benchmarks.marian import app
from tests.support.commands import invoke


@pytest.mark.release
def test_every_line_of_both_models_is_translated_as_by_marian():
    result = invoke(app)
    rows = re.findall(r"^\| ([\w-]+) \| (\S+) \| (\d+) of 60 \| (\d+) of 60 \|$", result.stdout, re.MULTILINE)
    assert [row[0] for row in rows] == ["self-attention", "SSRU"]
    assert all(float(difference) < 1e-4 and beam == greedy == "60" for _, difference, beam, greedy in rows)
