"""What TensorBoard shows of a run beside its numbers: how charts are grouped, and the settings of the run."""

from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_TENSOR, Summary
from tensorboard.plugins.custom_scalar.layout_pb2 import Category, Chart, Layout, MultilineChartContent
from tensorboard.plugins.custom_scalar.metadata import CONFIG_SUMMARY_TAG, create_summary_metadata
from tensorboard.plugins.hparams.summary_v2 import hparams_pb
from tensorboard.util.tensor_util import make_tensor_proto

from keras_transformer.inspection.attention import MEASURES
from keras_transformer.runs.inference import TEXT, TREES

from ..config.run import RunConfig
from ..config.settings import effective_settings

KINDS = {"memory": "encoder-decoder", "encoder": "encoder", "decoder": "decoder"}  # of attention
CHARTS = {  # of the tab Custom Scalars: per group, from the title of a chart to the pattern of its tags
    "Quality": {
        "loss, nats per target token": "loss",
        "perplexity per target token": "perplexity",
        "share of target tokens predicted": "token_accuracy",
        "BLEU": "bleu",
        "chrF": "chrf",
        "exact translations, per cent": "exact",
    },
    "Optimisation": {
        "learning rate": "learning_rate",
        "norm of the gradient": "gradient_norm",
        "norm of the update / norm of the weights, per layer": "update_ratio/.+",
        "root mean square of the states after each block": "residual_rms/.+",
    },
    "Speed": {
        "target tokens per second": "tokens_per_second",
        "seconds per update": "seconds_(in_step|waiting)",
        "memory, bytes": "resident_bytes",
    },
    "Attention": {  # a chart per measure, with a curve per head
        f"{KINDS[kind]} attention, {measure}": f"attention/{kind}_.+/{measure}"
        for kind, measures in MEASURES.items()
        for measure in measures
    },
}

QUALITY_OF = {  # what a run writes: further charts of the group Quality
    TEXT: {},
    TREES: {"labelled brackets, per cent": "bracketing_(f1|precision|recall)"},
}


def layout_summary(outputs: str) -> Summary:
    """The layout of the tab Custom Scalars: a chart shows its tags of every writer of every run.

    outputs: what the run writes.
    `tensorboard.plugins.custom_scalar.summary.pb` makes the same, but imports TensorFlow.
    """
    groups = {**CHARTS, "Quality": CHARTS["Quality"] | QUALITY_OF[outputs]}
    layout = Layout(
        category=[
            Category(
                title=group,
                chart=[
                    Chart(title=title, multiline=MultilineChartContent(tag=[f"^{pattern}$"]))
                    for title, pattern in charts.items()
                ],
            )
            for group, charts in groups.items()
        ]
    )
    metadata = create_summary_metadata()
    metadata.data_class = DATA_CLASS_TENSOR
    tensor = make_tensor_proto(layout.SerializeToString())
    return Summary(value=[Summary.Value(tag=CONFIG_SUMMARY_TAG, metadata=metadata, tensor=tensor)])


def settings_summary(config: RunConfig, start: float) -> Summary:
    """The row of a run in the tab HParams. start: when the run began, in seconds since 1970.

    The tab shows as metrics all scalars of the writer that has this summary, so it belongs to the writer `final`. The
    empty id makes the run a row of its own; otherwise runs with the same settings would be averaged. There is no list
    of columns (`hparams_config_pb`), because TensorBoard takes that of one run for all of them; without one it finds
    the columns of all runs, and shows first those that differ.
    """
    return hparams_pb(effective_settings(config), trial_id="", start_time_secs=start)
