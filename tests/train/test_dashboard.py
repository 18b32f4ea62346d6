"""The tabs Custom Scalars and HParams, as TensorBoard's own plugins read them."""

import contextlib
import json
import re

from tensorboard.backend.event_processing.data_provider import MultiplexerDataProvider
from tensorboard.backend.event_processing.plugin_event_multiplexer import EventMultiplexer
from tensorboard.context import RequestContext
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.custom_scalar.custom_scalars_plugin import CustomScalarsPlugin
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams.backend_context import Context
from tensorboard.plugins.hparams.list_session_groups import Handler as ListSessionGroups

from keras_transformer.runs.run_folder import RunFolder
from tests.support.events import read_added
from tests.support.runs import metrics_of, write_config
from tests.support.updates import Run
from train.config.run import load_config
from train.loop.dashboard import CHARTS
from train.loop.metrics_log import MetricsLog


def start(folder, name, *overrides):
    """The RunFolder of a run that has been configured and has not taken a step."""
    config = load_config(write_config(folder, name), overrides)
    run = RunFolder(folder / name)
    run.path.mkdir()
    run.config.write_text(config.to_toml(), encoding="utf-8")
    return run


def write(run, first_step, step, **values):
    config = load_config(run.config) if run.config.exists() else None
    with contextlib.closing(MetricsLog(run, first_step, config)) as metrics:
        metrics.write(step, {name.replace("__", "/"): value for name, value in values.items()})


def opened(folder):
    """TensorBoard's view of a folder of runs."""
    multiplexer = EventMultiplexer().AddRunsFromDirectory(str(folder))
    multiplexer.Reload()
    return TBContext(data_provider=MultiplexerDataProvider(multiplexer, str(folder)), logdir=str(folder))


def table(folder):
    """The tab HParams: the settings of the table, and from the name of each row its settings and metrics."""
    context, request = Context(opened(folder)), RequestContext()
    experiment = context.experiment_from_metadata(request, "", True, context.hparams_metadata(request, ""), [])
    query = api_pb2.ListSessionGroupsRequest(
        start_index=0, slice_size=100, allowed_statuses=[api_pb2.STATUS_UNKNOWN, api_pb2.STATUS_RUNNING]
    )
    response = ListSessionGroups(request, context, "", query).run()
    rows = {
        row.name: (
            {name: value.number_value or value.string_value for name, value in row.hparams.items()},
            {metric.name.tag: metric.value for metric in row.metric_values},
        )
        for row in response.session_groups
    }
    assert all(len(row.sessions) == 1 for row in response.session_groups)
    return {info.name: info.differs for info in experiment.hparam_infos}, rows


def test_each_run_is_a_row_with_its_settings_and_final_scores(tmp_path):
    one, other = start(tmp_path, "one"), start(tmp_path, "other", "training.dropout=0.2")
    for run, bleu in ((one, 30.0), (other, 31.5)):
        write(run, 0, 5, train__loss=2.0, validation__bleu=12.0, final__bleu=bleu, final__loss=1.5)
    differs, rows = table(tmp_path)
    assert [name for name, does in differs.items() if does] == ["training.dropout"] and len(differs) > 40
    assert set(rows) == {"one/tensorboard/final", "other/tensorboard/final"}
    settings, metrics = rows["other/tensorboard/final"]
    assert (settings["training.dropout"], settings["model.d_model"]) == (0.2, 16)
    assert metrics == {"bleu": 31.5, "loss": 1.5}  # of all scalars these alone
    assert rows["one/tensorboard/final"][1]["bleu"] == 30.0


def test_a_run_that_is_resumed_with_another_setting_is_one_row_with_the_new_one(tmp_path):
    write(start(tmp_path, "run"), 0, 1, train__loss=2.0)
    config = load_config(write_config(tmp_path, "run"), ["training.steps=9"])
    (tmp_path / "run" / "config.toml").write_text(config.to_toml(), encoding="utf-8")
    write(RunFolder(tmp_path / "run"), 1, 2, train__loss=1.0)
    (row,) = table(tmp_path)[1].values()
    assert row[0]["training.steps"] == 9


def test_the_charts_are_grouped_and_have_the_curves_of_training_and_validation(tmp_path):
    write(start(tmp_path, "run"), 0, 1, train__loss=2.0, validation__loss=3.0, validation__chrf=4.0)
    write(RunFolder(tmp_path / "run"), 1, 2, train__loss=1.0, train__loss_scale=2.0)
    layout = json.loads(CustomScalarsPlugin(opened(tmp_path)).layout_impl(RequestContext(), ""))
    found = {group["title"]: [chart["title"] for chart in group["chart"]] for group in layout["category"]}
    assert found == {group: list(charts) for group, charts in CHARTS.items()}
    ((pattern,),) = (chart["multiline"]["tag"] for chart in layout["category"][0]["chart"][:1])
    scalars = opened(tmp_path).data_provider.list_scalars(RequestContext(), experiment_id="", plugin_name="scalars")
    curves = [(run, tag) for run, tags in scalars.items() for tag in tags if re.match(pattern, tag)]
    assert sorted(curves) == [("run/tensorboard/train", "loss"), ("run/tensorboard/validation", "loss")]


def test_all_that_each_update_and_validation_write_is_on_a_chart():
    run = Run(validate_every=1)
    run.step()
    tags = {name.partition("/")[2] for _, values in run.written for name in values}
    patterns = [pattern for charts in CHARTS.values() for pattern in charts.values()]
    assert len(tags) > 10 and all(any(re.fullmatch(pattern, tag) for pattern in patterns) for tag in tags), tags


def test_every_chart_of_the_layout_shows_something_that_training_writes(finished):
    tags = {name.partition("/")[2] for line in metrics_of(finished[1]) for name in line}
    for group, charts in CHARTS.items():
        for title, pattern in charts.items():
            assert any(re.fullmatch(pattern, tag) for tag in tags), (group, title)
    assert [step for step, _ in read_added(finished[1] / "tensorboard")["custom_scalars__config__"]] == [0]
