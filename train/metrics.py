"""The run's numbers over time: `metrics.jsonl` and TensorBoard get the same."""

import json

import tensorflow as tf


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
            lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
            self.path.write_text("".join(line for line in lines if _step_of(line) <= step), encoding="utf-8")

    def write(self, step, scalars):
        """scalars: dict from name ("train/loss") to float."""
        self.file.write(json.dumps({"step": step, **scalars}) + "\n")
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
    except json.JSONDecodeError:  # the torn last line of a process that was killed
        return float("inf")
