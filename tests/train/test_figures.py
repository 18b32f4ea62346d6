"""Pictures with matplotlib: their files."""

import pytest
from PIL import Image

from train.scoring import figures


@pytest.mark.parametrize("name", ["picture.png", "picture.PNG"])
def test_a_picture_has_150_points_per_inch_in_the_format_of_its_ending(tmp_path, name):
    figure, _ = figures.new_figure(1, 2, 4.0, 2.0)
    figures.save(figure, tmp_path / name)
    with Image.open(tmp_path / name) as picture:
        assert (picture.format, picture.size) == ("PNG", (600, 300))
