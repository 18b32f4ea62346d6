"""A contestant's process: `python -m benchmarks.on_accelerator.contestant NAME [TASK]` answers with lines of JSON.

    chip           one answer: a Chip
    keras, torch   TASK is a Task as JSON. First answer: a Ready. Then one Round per number of steps on stdin

Each framework has a process of its own, since each wants all of a GPU's memory. After a failure the last answer is
{"failed": "one sentence"}.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Iterator
from typing import Any, TextIO


def main() -> None:
    name, *task = sys.argv[1:]
    answers = private_stdout()
    try:
        for answer in conversation(name, *task):
            print(json.dumps(dataclasses.asdict(answer)), file=answers, flush=True)
    except Exception as error:  # any failure of a framework becomes a row of the table; the benchmark goes on
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(json.dumps({"failed": f"{type(error).__name__}: {message}"}), file=answers, flush=True)
        sys.exit(1)


def private_stdout() -> TextIO:
    """The process's stdout, for answers only; from now on, what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def conversation(name: str, task: str | None = None) -> Iterator[Any]:
    """Yield the answers; `task` is a Task as JSON."""
    if name == "chip":
        from benchmarks.on_accelerator.chip import measure_chip

        yield measure_chip()
        return
    from benchmarks.on_accelerator.pairs import packed_batches
    from benchmarks.on_accelerator.training import Task

    given = Task(**json.loads(task))
    batches = packed_batches(given.config.vocab_size, given.tokens, given.row_length)
    contestant = contestant_class(name)(given, batches)
    yield contestant.ready
    for line in sys.stdin:
        yield contestant.round(int(line))


def contestant_class(name: str) -> type:
    """The class is imported here, since each needs another framework."""
    if name == "keras":
        from benchmarks.on_accelerator.keras_jax import KerasOnJax

        return KerasOnJax
    from benchmarks.on_accelerator.torch_compiled import TorchCompiled

    return TorchCompiled


if __name__ == "__main__":
    main()
