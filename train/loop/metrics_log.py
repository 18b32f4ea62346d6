"""The run's numbers over time: `metrics.jsonl` and TensorBoard get the same."""

import json
import math
import shutil

import tensorflow as tf

from keras_transformer.files import write_atomically


class MetricsLog:
    """Writes the numbers and texts of a step to metrics.jsonl and to TensorBoard.

    Steps are updates, counted from 1 over the whole run. What a run that goes on from `first_step` wrote after that
    step will come again: metrics.jsonl is cut there, and TensorBoard's files, which cannot be, are written anew from
    it, so that no step is in the curves twice and none is missing.
    """

    def __init__(self, folder, first_step):
        kept = kept_lines(folder.metrics, first_step)
        shutil.rmtree(folder.tensorboard, ignore_errors=True)
        self.file = open(folder.metrics, "a", encoding="utf-8")
        self.writer = tf.summary.create_file_writer(str(folder.tensorboard))
        for line in kept:
            self._show(line.pop("step"), line)

    def write(self, step, values):
        """values: dict from name ("train/loss") to float or Markdown; NaN and infinity become null in the file."""
        line = {
            name: value if isinstance(value, str) or math.isfinite(value) else None for name, value in values.items()
        }
        self.file.write(json.dumps({"step": step, **line}, ensure_ascii=False) + "\n")
        self.file.flush()
        self._show(step, line)

    def _show(self, step, values):
        with self.writer.as_default(step=step):
            for name, value in values.items():
                if isinstance(value, str):
                    tf.summary.text(name, value)
                else:
                    tf.summary.scalar(name, math.nan if value is None else value)

    def close(self):
        self.writer.close()
        self.file.close()


class NoMetrics:
    """What a worker other than the chief has in the place of a MetricsLog: nothing is written."""

    def write(self, step, values):
        pass

    def close(self):
        pass


def kept_lines(path, last_step):
    """Cut metrics.jsonl after `last_step`, and at a torn line of a process that was killed. Returns the lines left."""
    if not path.exists():
        return []
    lines = (parsed(line) for line in path.read_text(encoding="utf-8", errors="replace").split("\n"))
    kept = [line for line in lines if line["step"] <= last_step]
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in kept)
    write_atomically(path, lambda file: file.write(text.encode("utf-8")))
    return kept


def parsed(line):
    """A line as a dict with its step; what is no such line has a step past every other."""
    try:
        values = json.loads(line)
        return {**values, "step": int(values["step"])}
    except (json.JSONDecodeError, TypeError, KeyError, ValueError):
        return {"step": math.inf}
