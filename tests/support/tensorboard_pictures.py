"""What TensorBoard shows of runs, tab by tab: `python -m tests.support.tensorboard_pictures RUNS` takes the pictures.

They go into docs/pictures. A tab that has no data, or that does not show what it should, is an error.
"""

import contextlib
import pathlib
import re
import sys
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from PIL import Image

from tests.support.browser import chromium, visit
from tests.support.pictures import FOLDER, with_palette
from tests.support.processes import end, free_ports, start_python, wait_until

WINDOW = {"width": 1600, "height": 900}
PATIENCE, PAUSE = 90_000, 500  # milliseconds
EMPTY = re.compile(r"\bno\b.{0,60}\b(was|were) found|no dashboards are active", re.IGNORECASE)
LEAVING = re.compile(r"context was destroyed|frame was detached|frame got detached", re.IGNORECASE)


class Tab(NamedTuple):
    """A tab of TensorBoard: its address, selectors of what it must show, and of what is clicked then."""

    address: str
    shows: tuple[str, ...]
    click: str | None = None


TABS = {
    "time_series": Tab("?tagFilter=%5E(loss|bleu|chrf)%24&smoothing=0#timeseries", ("scalar-card", "text=chrf")),
    "scalars": Tab("#scalars&tagFilter=attention%2Fmemory", ("tf-scalar-card", "tf-line-chart-data-loader")),
    "custom_scalars": Tab("#custom_scalars", ("text=Quality", "vz-line-chart2")),
    "images": Tab("#images", ("tf-image-loader img",), "text=Show actual image size"),
    "graphs": Tab("#graphs", ('svg text:has-text("encoder_block")',)),
    "distributions": Tab("#distributions", ("tf-distribution-loader",)),
    "histograms": Tab("#histograms", ("histogram-card, tf-histogram-loader",)),
    "text": Tab("#text", ("tf-text-loader >> text=source",)),
    "projector": Tab("#projector", ("text=Points",)),
    "hparams": Tab("#hparams", ("text=Trial ID", "text=chrf")),
}


PROFILE = {"profile": Tab("#profile", ("text=Performance Summary",))}  # if tensorboard-plugin-profile is installed


@contextlib.contextmanager
def tensorboard(folder: pathlib.Path) -> Iterator[str]:
    """Within, TensorBoard shows the runs in `folder` at the address that is yielded."""
    [port] = free_ports(1)
    arguments = "--logdir", folder, "--port", port, "--host", "127.0.0.1", "--load_fast", "false"
    with tempfile.TemporaryDirectory() as place:
        log = pathlib.Path(place) / "log"
        process = start_python("-m", "tensorboard.main", *arguments, log=log)
        try:
            wait_until(lambda: "http://" in log.read_text(encoding="utf-8"), [process], pause=0.1)
            yield f"http://127.0.0.1:{port}/"
        finally:
            process.terminate()
            end([process])


def open_tab(page, url: str, tab: Tab, pause: int = 0) -> None:
    """Show a tab and wait for what it should show, then for `pause` ms, since curves and pictures appear one by one.

    Raises AssertionError if it says that there is no data.
    """
    page.goto("about:blank")  # an address that differs after "#" alone would not load again
    page.goto(url + tab.address)
    for selector in tab.shows:
        wait_for(page, tab, selector)
    if tab.click:
        page.locator(tab.click).first.click()
    page.wait_for_timeout(max(pause, PAUSE))
    assert (said := empty_texts(page)) == [], f"{tab.address}: {said}"


def wait_for(page, tab: Tab, selector: str) -> None:
    """Wait until something in the page, or in a frame of it, is visible."""
    for _ in range(PATIENCE // PAUSE):
        if any(frame.locator(selector).locator("visible=true").count() for frame in page.frames):
            return
        assert (said := empty_texts(page)) == [], f"{tab.address}: {said}"
        page.wait_for_timeout(PAUSE)
    raise AssertionError(f"{tab.address} does not show {selector}: {page.inner_text('body')[:500]}")


def empty_texts(page) -> list[str]:
    """Return the visible texts by which TensorBoard says that there is nothing.

    A frame that is leaving for another page cannot be asked: the profile's does, once its data are there. All frames
    are asked again then, until each of them answers.
    """
    from playwright.sync_api import Error  # not installed everywhere: `chromium` skips the test then

    for _ in range(PATIENCE // PAUSE):
        try:
            found = [frame.get_by_text(EMPTY).locator("visible=true") for frame in page.frames]
            return [text for one in found for text in one.all_inner_texts()]
        except Error as error:
            if not LEAVING.search(error.message):
                raise
        page.wait_for_timeout(PAUSE)
    raise AssertionError(f"The frames of {page.url} do not come to rest.")


def take(folder: pathlib.Path, pictures: pathlib.Path, tabs: dict[str, Tab] = TABS, pause: int = 0) -> None:
    """Write a picture of each tab, `tensorboard_<name>.png`; `pause` as for `open_tab`."""
    with tensorboard(folder) as url, chromium() as browser, visit(browser, url, viewport=WINDOW) as page:
        for name, tab in tabs.items():
            open_tab(page, url, tab, pause)
            path = pictures / f"tensorboard_{name}.png"
            page.screenshot(path=path)
            with_palette(Image.open(path).convert("RGB")).save(path, optimize=True)
        page.errors.clear()  # of TensorBoard's own pages


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    take(pathlib.Path(sys.argv[1]), FOLDER, TABS | PROFILE, pause=2_000)
