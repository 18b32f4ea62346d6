"""Pictures with matplotlib: their files."""

import pytest
from PIL import Image

from train.scoring import figures


@pytest.mark.parametrize(("name", "beginning"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.PDF", b"%PDF")])
def test_the_content_of_a_picture_is_what_its_name_says(tmp_path, name, beginning):
    figure, _ = figures.new_figure(1, 2, 4.0, 2.0)
    figures.save(figure, tmp_path / name)
    assert (tmp_path / name).read_bytes().startswith(beginning)


@pytest.mark.parametrize("name", ["picture.png", "picture.PNG"])
def test_a_picture_has_150_points_per_inch_in_the_format_of_its_ending(tmp_path, name):
    figure, _ = figures.new_figure(1, 2, 4.0, 2.0)
    figures.save(figure, tmp_path / name)
    with Image.open(tmp_path / name) as picture:
        assert (picture.format, picture.size) == ("PNG", (600, 300))


def test_a_figure_has_axes_in_rows_and_columns_of_its_size():
    figure, axes = figures.new_figure(3, 2, 4.0, 2.0, sharex=True)
    assert axes.shape == (3, 2) and figure.get_size_inches().tolist() == [4.0, 2.0]
    assert axes[0, 0].get_shared_x_axes().joined(axes[0, 0], axes[2, 1])


def test_nothing_is_drawn_above_and_right_of_a_panel_and_its_grid_lies_behind():
    _, axes = figures.new_figure(2, 2, 4.0, 2.0)
    for axis in axes.flat:
        assert {side for side, spine in axis.spines.items() if spine.get_visible()} == {"left", "bottom"}
        assert axis.get_axisbelow() is True and axis.yaxis.get_gridlines()[0].get_visible()
        assert not axis.xaxis.get_gridlines()[0].get_visible()


def test_a_name_begins_no_formula():
    assert figures.literal("runs/$a_$b") == r"runs/\$a_\$b"
