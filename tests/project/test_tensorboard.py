"""docs/tensorboard.md: every tab of TensorBoard has something to show of a run, in a browser."""

import re

import pytest
import tensorflow as tf
from PIL import Image

from tests.support.browser import chromium, visit
from tests.support.places import ROOT
from tests.support.tensorboard_pictures import PROFILE, TABS, WINDOW, Tab, empty_texts, open_tab, take, tensorboard
from train.loop.fit import ProfileSteps
from train.loop.progress import Progress

TEXT = (ROOT / "docs" / "tensorboard.md").read_text(encoding="utf-8")


@pytest.mark.release
def test_every_tab_shows_the_run(finished, tmp_path):
    _, folder, _ = finished
    take(folder, tmp_path)
    for name in TABS:
        assert Image.open(tmp_path / f"tensorboard_{name}.png").size == tuple(WINDOW.values())


@pytest.mark.release
def test_a_tab_without_data_is_noticed(tmp_path):
    """Each of these tabs says in its own way that there is nothing."""
    with tensorboard(tmp_path) as url, chromium() as browser, visit(browser, url, viewport=WINDOW) as page:
        for name in ("images", "graphs", "projector"):
            with pytest.raises(AssertionError, match="found"):
                open_tab(page, url, Tab(TABS[name].address, ("text=what no tab shows",)))
        page.errors.clear()  # of TensorBoard's own pages


@pytest.mark.release
def test_a_frame_that_changes_its_page_is_asked_until_it_answers():
    """As the frame of the profile does when its data have come; without a pause, so that no question is in time."""
    changing = 'data:text/html,<iframe id=f srcdoc="<p>0</p>"></iframe>' + (
        "<script>let n=0;f.onload=()=>{if(n<99)setTimeout(()=>f.srcdoc=++n<99?n:'No data were found',0)}</script>"
    )
    with chromium() as browser, visit(browser, changing) as page:
        assert empty_texts(page) == ["No data were found"]


@pytest.mark.release
def test_the_profile_of_a_step_is_shown(tmp_path):
    pytest.importorskip("tensorboard_plugin_profile", reason="needs tensorboard-plugin-profile: make peers")
    profile = ProfileSteps((1, 1), Progress(), tmp_path / "run")
    profile.on_train_batch_begin(0)
    loss = tf.reduce_sum(tf.random.normal((64, 64)) @ tf.random.normal((64, 64)))
    profile.on_train_batch_end(0, {"loss": loss})
    take(tmp_path, tmp_path, PROFILE)
    assert Image.open(tmp_path / "tensorboard_profile.png").size == tuple(WINDOW.values())


def test_the_document_has_the_picture_of_every_tab():
    shown = set(re.findall(r"\(pictures/(tensorboard_\w+\.png)\)", TEXT))
    assert {f"tensorboard_{name}.png" for name in TABS | PROFILE} == shown
    assert all((ROOT / "docs" / "pictures" / name).is_file() for name in shown)
