"""The scores of a finished run as the last record of metrics.jsonl, and so in TensorBoard's table of runs."""

import contextlib
import math

from keras_transformer.runs.run_folder import RunFolder

from ..config.run import RunConfig
from ..loop.metrics_log import MetricsLog
from ..scoring.card import OutputScores
from .curves import read_curves


def record_final_scores(
    folder: RunFolder, config: RunConfig | None, step: int, scores: OutputScores, loss: float
) -> None:
    """Record the scores of the report and the validation loss of the kept weights as "final/..." of the last step.

    Undefined BLEU is left out, because TensorBoard leaves a run with an empty cell out of parallel coordinates. If a
    finished run is started again, its values are the same and its record stays as it is. Records of later steps, which
    a process left that was killed, are discarded.
    """
    measured = {f"final/{name}": value for name, value in scores.plotted().items()} | {"final/loss": loss}
    values = {name: value for name, value in measured.items() if math.isfinite(value)}
    last = {name: tuple(points[-1]) for name, points in read_curves(folder.metrics).items()}
    recorded = {name: point for name, point in last.items() if name in measured}
    is_up_to_date = recorded == {name: (step, value) for name, value in values.items()}
    if is_up_to_date and all(last_step <= step for last_step, _ in last.values()):
        return
    with contextlib.closing(MetricsLog(folder, step, config, replaced=measured)) as metrics:
        metrics.write(step, values)
