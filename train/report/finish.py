"""The end of a run: the weights that translation uses, the report, and the scores beside those of other runs."""

import contextlib
import logging
import math

import keras

from keras_transformer.inspection.projector import write_projector
from keras_transformer.runs.inference import TEXT
from keras_transformer.runs.run_folder import RunFolder

from ..config.run import RunConfig
from ..data.prepare import PreparedData
from ..loop.fit import report_is_missing
from ..loop.metrics_log import MetricsLog
from ..loop.progress import Progress
from ..loop.stopping import interrupted_by_signals
from ..scoring.card import OutputScores
from ..validation.selection import select_weights
from ..validation.validation import Validator
from .alignment import choose_alignment
from .curves import read_curves
from .report import write_report

log = logging.getLogger("train")


def finish(
    config: RunConfig,
    folder: RunFolder,
    data: PreparedData,
    transformer: keras.Model,
    validator: Validator,
    progress: Progress,
    devices: str,
) -> None:
    """Select the weights that translation uses, and write the report. A signal ends this at once: it is soon redone."""
    with interrupted_by_signals(report_is_missing(folder)):
        selection = select_weights(folder, config.training, transformer, validator)
        if config.data.outputs == TEXT:
            choose_alignment(folder, data, transformer, config.training.guided_alignment > 0)
        write_projector(folder.tensorboard, transformer, data.tokenizer.pieces())
        log.info("translating %s for the report", (data.corpus.test or data.corpus.validation).name)
        card = write_report(config, folder, data, progress, selection, devices)
        log.info("scores, with more of them in %s:", folder.report)
        for line in card.scores.lines():
            log.info("%s", line)
        record_final_scores(folder, config, progress.step, card.scores, selection.kept.validation.loss)


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
