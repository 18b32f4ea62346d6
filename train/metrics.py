"""The run's numbers over time: `metrics.jsonl` and TensorBoard get the same."""

import json
import math

import tensorflow as tf

from train.checkpoints import write_whole


class MetricsLog:
    """Writes scalars and texts of one step to metrics.jsonl and to TensorBoard.

    Steps are updates, counted from 1 over the whole run: a resumed run goes on where it was, and lines of
    metrics.jsonl that come after the checkpoint it goes on from are dropped, because they will come again.
    """

    def __init__(self, folder, first_step):
        self.path = folder.metrics
        self._drop_after(first_step)
        self.file = open(self.path, "a", encoding="utf-8")
        self.writer = tf.summary.create_file_writer(str(folder.tensorboard))

    def _drop_after(self, step):
        if self.path.exists():
            lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
            kept = "".join(f"{line}\n" for line in lines if _step_of(line) <= step)
            write_whole(self.path, lambda file: file.write(kept.encode("utf-8")))

    def write(self, step, scalars):
        """scalars: dict from name ("train/loss") to float; NaN and infinity, which JSON lacks, become null there."""
        numbers = {name: value if math.isfinite(value) else None for name, value in scalars.items()}
        self.file.write(json.dumps({"step": step, **numbers}) + "\n")
        self.file.flush()
        with self.writer.as_default(step=step):
            for name, value in scalars.items():
                tf.summary.scalar(name, value)

    def write_text(self, step, name, markdown):
        with self.writer.as_default(step=step):
            tf.summary.text(name, markdown)

    def close(self):
        self.writer.close()
        self.file.close()


def _step_of(line):
    try:
        return json.loads(line)["step"]
    except (json.JSONDecodeError, TypeError, KeyError):  # the torn last line of a process that was killed
        return math.inf
