"""A contestant as a process: `python -m benchmarks.on_accelerator.contestant NAME [TASK]`, answers as lines of JSON.

    chip           one answer, a Chip, and out
    keras, torch   TASK is a Task as JSON; one answer when ready, then a Round for every number of steps on stdin

Each framework has a process of its own, since both want all of a GPU's memory. An answer {"failed": "one sentence"} is
the last one.
"""

import dataclasses
import json
import os
import sys


def main():
    name, *task = sys.argv[1:]
    answers = private_stdout()
    try:
        for answer in conversation(name, *task):
            print(json.dumps(dataclasses.asdict(answer)), file=answers, flush=True)
    except Exception as error:  # whatever goes wrong in a framework is a row of the table, not the end of the benchmark
        message = (str(error).strip() or type(error).__name__).splitlines()[0]
        print(json.dumps({"failed": f"{type(error).__name__}: {message}"}), file=answers, flush=True)
        sys.exit(1)


def private_stdout():
    """The process's stdout for answers alone; what libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def conversation(name, task=None):
    """Yields the answers."""
    if name == "chip":
        from benchmarks.on_accelerator.chip import measure_chip

        yield measure_chip()
        return
    from benchmarks.on_accelerator.pairs import packed_batches
    from benchmarks.on_accelerator.training import Task

    task = Task(**json.loads(task))
    contestant = contestant_class(name)(task, packed_batches(task.config.vocab_size, task.tokens, task.row_length))
    yield contestant.ready
    for line in sys.stdin:
        yield contestant.round(int(line))


def contestant_class(name):
    if name == "keras":
        from benchmarks.on_accelerator.keras_jax import KerasOnJax

        return KerasOnJax
    from benchmarks.on_accelerator.torch_compiled import TorchCompiled

    return TorchCompiled


if __name__ == "__main__":
    main()
