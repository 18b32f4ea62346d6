"""Memory that was freed: kept by the process, or given back."""

import pytest

from tests.support.memory import PAGES, with_glibc
from tests.support.processes import python

SCRIPT = """
import sys
from keras_transformer.ground.memory import keep_freed_memory
from tests.support.memory import faults_in_a_new_thread

if sys.argv[1] == "kept":
    assert keep_freed_memory()
print(faults_in_a_new_thread(), faults_in_a_new_thread())
"""


@with_glibc
@pytest.mark.slow
@pytest.mark.parametrize(("memory", "is_given_anew"), [("kept", False), ("as glibc has it", True)])
def test_a_large_block_takes_the_pages_of_the_one_that_another_thread_freed_if_memory_is_kept(memory, is_given_anew):
    run = python("-c", SCRIPT, memory)
    assert run.returncode == 0, run.stderr
    first, second = map(int, run.stdout.split())
    assert first > 0.9 * PAGES  # pages that nobody had before
    assert second > 0.9 * PAGES if is_given_anew else second < 0.01 * PAGES
