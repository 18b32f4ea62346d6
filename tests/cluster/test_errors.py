"""A failure of Spark as one sentence: its cause, and what a user can do about it."""

import sys

import pytest

from cluster.errors import cause_of, sentence_of_worker

JAVA = """An error occurred.
: org.apache.spark.SparkException: Job aborted
\tat a.b(C.java:1)
Caused by: java.io.IOException: No space left on device
\tat d.e(F.java:2)
"""
PROGRAM = """An error occurred.
: org.apache.spark.SparkException: Job aborted: java.io.IOException: Cannot run program "python9": error=2
\tat a.b(C.java:1)
Caused by: java.io.IOException: error=2, No such file or directory
"""
PYTHON = """An error occurred.
Traceback (most recent call last):
  File "a.py", line 1
cluster.errors.ClusterError: It has no signature.

\tat org.apache.Spark(X.scala)
Caused by: java.lang.Error: x
"""


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (JAVA, "IOException: No space left on device."),
        (PYTHON, "cluster.errors.ClusterError: It has no signature."),
        (PROGRAM, 'IOException: Cannot run program "python9".'),
        ("", "ValueError."),
        (PYTHON.replace("\n\n\tat", "\nOtherError: of it\n\n\tat"), "OtherError: of it."),
        (JAVA + "Caused by: java.lang.OutOfMemoryError: Java heap space\n", "OutOfMemoryError: Java heap space."),
    ],
)
def test_the_cause_is_that_of_python_or_else_the_last_one_of_java(text, cause):
    assert cause_of(ValueError(text)) == cause


@pytest.mark.parametrize(
    ("cause", "part"),
    [
        ("cluster.errors.ClusterError: The export has no signature.", "The export has no signature."),
        ("keras_transformer.model_config.ConfigError: A file: it is damaged.", "A file: it is damaged."),
        ("ModuleNotFoundError: No module named 'tensorflow_text'.", "no module tensorflow_text: install it"),
        ("PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has ...", "let PYSPARK_PYTHON name one"),
        (
            "ChecksumException: Checksum error: file:/a/part-1 at 0.",
            "part-1 at 0. If it is a part of the output",
        ),
        ("EOFException: Unexpected end of input stream.", "(Unexpected end of input stream): `gzip -t` finds it"),
        ("ZipException: it has no end.", "(it has no end): `gzip -t` finds it"),
        (
            "PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] x",
            f"is not Python {sys.version_info[0]}.{sys.version_info[1]}, as here",
        ),
        ("IOException: not a gzip file.", "A compressed file of the input is damaged"),
        ("IOException: invalid block type.", "is damaged or has no end (invalid block type): `gzip -t` finds it"),
        ('IOException: Cannot run program "python9": error=2', "no program python9: let PYSPARK_PYTHON"),
    ],
)
def test_what_a_user_can_do_about_a_worker_is_said(cause, part):
    assert part in sentence_of_worker(cause)


def test_other_causes_are_left_to_spark():
    assert sentence_of_worker("IOException: No space left on device.") is None
