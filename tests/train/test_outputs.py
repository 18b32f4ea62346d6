"""Whatever a run can write, commands write it, the trainer scores it, and TensorBoard charts its quality."""

from keras_transformer.translation.outputs import KINDS
from train.config.run import SOURCES
from train.loop.best import CURVE_OF
from train.loop.dashboard import QUALITY_OF
from train.report.curves import QUALITIES
from train.scoring.outputs import SCORED


def test_every_kind_of_outputs_is_written_scored_and_charted():
    assert {section.outputs for section in SOURCES} == set(KINDS) == set(SCORED) == set(QUALITY_OF)


def test_the_quality_of_every_kind_has_a_curve():
    assert {kind.quality for kind in SCORED.values()} <= set(QUALITIES.values())
    assert {f"validation/{curve}" for curve in CURVE_OF.values()} <= set(QUALITIES)
