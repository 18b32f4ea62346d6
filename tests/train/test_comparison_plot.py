"""The picture of several runs: which curve is whose, and which part of the training loss it shows."""

import numpy as np
import pytest

from train.report import comparison_plot
from train.report.comparison import Run
from train.report.comparison_plot import COLOURS, START, STYLES, draw_run, limit_start, plot_runs
from train.scoring.figures import new_figure

STEPS = np.arange(1.0, 101.0)


def run(number=0, losses=None, validated=(3.0, 2.0)):
    """A Run with a training curve, if there are losses, and with a validation at each of the first steps."""
    curves = {} if losses is None else {"train/loss": np.stack([STEPS[: len(losses)], losses], 1)}
    curves |= {"validation/loss": np.stack([STEPS[: len(validated)], validated], 1)}
    return Run(f"runs/{number}", {}, curves, None, None)


@pytest.fixture
def panels(monkeypatch):
    """A function that draws runs and returns the figure's axes."""
    drawn = []
    monkeypatch.setattr(comparison_plot, "save", lambda figure, path: drawn.append(figure))

    def panels(runs):
        plot_runs(runs, None)
        return drawn[-1].axes

    return panels


def test_no_two_runs_look_alike_until_every_colour_has_had_every_style(panels):
    most = len(COLOURS) * len(STYLES)
    for axis in panels([run(number, STEPS) for number in range(most + 1)])[:2]:
        looks = [(line.get_color(), line.get_linestyle()) for line in axis.get_lines()]
        assert len(set(looks)) == most and looks[most] == looks[0]
        assert {style for _, style in looks[: len(COLOURS)]} == {"-"}  # styles are told apart less easily


def test_every_panel_has_each_run_and_is_called_by_what_it_shows(panels):
    """A run without a curve has an empty one, so that the colours of the others stay theirs."""
    loss, validation, quality = panels([run(0, STEPS), run(1), run(2, STEPS, validated=())])
    assert [len(axis.get_lines()) for axis in (loss, validation, quality)] == [3, 3, 3]
    assert [len(line.get_xdata()) for line in loss.get_lines()] == [100, 0, 100]
    labels = [axis.get_ylabel() for axis in (loss, validation, quality)]
    assert labels == ["training loss, with dropout", "validation loss", "validation BLEU"]
    assert {line.get_marker() for line in loss.get_lines()} == {""}  # there are many steps and few validations
    assert {line.get_marker() for line in validation.get_lines()} == {"o"}


@pytest.mark.parametrize("others", [[], [run(1)], [run(1, np.linspace(2.0, 1.5, 100))]])
def test_the_losses_of_the_first_steps_may_lie_above_the_picture_and_no_others(others):
    losses = np.concatenate([[90.0, 50.0, 20.0], np.linspace(3.0, 1.0, 97)])
    _, axes = new_figure(1, 2, 4.0, 2.0)
    limit_start(axes[0], [run(0, losses), *others])
    low, high = axes[0].get_ylim()
    drawn = np.concatenate(
        [each.curves["train/loss"][:, 1] for each in (run(0, losses), *others) if "train/loss" in each.curves]
    )
    assert 0 < (drawn > high).mean() <= START and high < 4.0
    assert 0.9 < low < 1.0 and high - np.quantile(drawn, 1 - START) == pytest.approx(1.0 - low)  # room for the lines


@pytest.mark.parametrize("runs", [[], [run(1)], [run(1, np.ones(9))]])
def test_without_a_difference_of_losses_the_scale_is_that_of_the_curve(runs):
    _, axes = new_figure(1, 2, 4.0, 2.0)
    for axis in axes:
        for each in runs:
            draw_run(axis, each, "train/loss", COLOURS[0], "-")
    limit_start(axes[0], runs)
    assert axes[0].get_ylim() == axes[1].get_ylim()
