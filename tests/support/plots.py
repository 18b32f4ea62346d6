"""What every plot must be like."""


def assert_marks_are_whole(panel):
    """The panel of a matplotlib figure begins at zero, and has room above the highest mark for the half of it."""
    assert panel.get_ylim()[0] == 0 and panel.get_lines()
    for line in panel.get_lines():
        highest = panel.transData.transform(line.get_xydata())[:, 1].max()
        assert panel.bbox.y1 - highest > line.get_markersize() / 2 * panel.figure.dpi / 72
