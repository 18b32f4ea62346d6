"""What reports and benchmarks tell of the machine."""

import os
import platform

from train.evaluation.machine import processor, processor_and_cores, versions


def test_a_missing_package_is_left_out_and_python_is_there():
    found = versions(["numpy", "a-package-that-nobody-has"])
    assert list(found) == ["python", "numpy"]
    assert found["python"] == platform.python_version()


def test_the_processor_has_a_name_and_a_number_of_cores():
    assert processor()
    assert processor_and_cores() == f"{processor()}, {os.cpu_count()} cores"
