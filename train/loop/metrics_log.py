"""The run's numbers over time: `metrics.jsonl` and TensorBoard get the same."""

import json
import math
import time
from collections.abc import Collection, Mapping

from tensorboard.compat.proto.summary_pb2 import Summary

from keras_transformer.ground.errors import UserError, first_line_of
from keras_transformer.inspection.retrying_file import RetryingFile
from keras_transformer.runs.inference import TEXT
from keras_transformer.runs.run_folder import RunFolder

from ..config.run import RunConfig
from .dashboard import layout_summary, settings_summary
from .event_folder import EventFolder
from .metrics_file import keep_records

WRITERS = ("train", "validation")  # of TensorBoard: each is a run there


class MetricsLog:
    """Writes numbers and texts of each step to metrics.jsonl and to TensorBoard, other summaries to TensorBoard alone.

    Steps are updates, counted from 1 over the whole run. Those after `first_step` will run again, so their records are
    discarded: metrics.jsonl is truncated there, and the TensorBoard files, which cannot be truncated, are rewritten
    from it, each step with the wall time at which it ran. The other summaries are copied: see EventFolder.

    config: that of the run, whose settings TensorBoard shows; None for a log without them. replaced: names whose
    records of `first_step` are discarded too, because the caller writes them again.

    A disk that fills up later stops neither training nor, once there is room again, these records; see RetryingFile.
    """

    def __init__(
        self, folder: RunFolder, first_step: int, config: RunConfig | None = None, replaced: Collection[str] = ()
    ):
        try:
            records = keep_records(folder.metrics, first_step, replaced)
            start = next((record["time"] for record in records if "time" in record), time.time())
            self.file = RetryingFile(folder.metrics)
            self.events = EventFolder(folder.tensorboard, first_step, WRITERS)
            self.events.add("", 0, start, layout_summary(config.data.outputs if config else TEXT))
            if config:
                self.events.add("final", 0, start, settings_summary(config, start))
        except OSError as error:
            raise UserError(
                f"The metrics in {folder.path} cannot be written: {first_line_of(error)} Make room, or make it "
                "writable; then run the same command again."
            ) from None
        for record in records:
            self.events.write(record.pop("step"), record.pop("time", time.time()), record)

    def write(self, step: int, values: Mapping[str, float | str]) -> None:
        """values: by name; a str is Markdown; NaN and infinity become null in the file.

        In TensorBoard "train/loss" is the tag `loss` of the writer `train`, so that it lies on one chart with
        "validation/loss".
        """
        now = time.time()
        written = {
            name: value if isinstance(value, str) or math.isfinite(value) else None for name, value in values.items()
        }
        record = json.dumps({"step": step, "time": now, **written}, ensure_ascii=False)
        self.file.write(record.encode("utf-8") + b"\n")
        self.events.write(step, now, written)

    def add(self, writer: str, step: int, summary: Summary) -> None:
        """Write a picture, a histogram or another summary to TensorBoard alone, for one of its writers."""
        self.events.add(writer, step, time.time(), summary)

    def close(self) -> None:
        self.events.close()
        self.file.close()
