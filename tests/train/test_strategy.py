"""Where training runs: a GPU that TensorFlow does not see is not passed over in silence."""

import pytest

from train.workers.strategy import warn_of_unused_gpu


@pytest.mark.parametrize(
    ("has_driver", "visible", "is_warned"),
    [(True, None, True), (True, "0,1", True), (True, "-1", False), (True, "", False), (False, None, False)],
)
def test_a_gpu_that_is_neither_used_nor_hidden_is_named(tmp_path, monkeypatch, caplog, has_driver, visible, is_warned):
    """TensorFlow without CUDA's libraries sees no GPU, and says nothing at the commands' level of logging."""
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda kind: [])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    if has_driver:
        (tmp_path / "version").touch()
    warn_of_unused_gpu(tmp_path / "version")
    assert ('pip install "tensorflow[and-cuda]==' in caplog.text) == is_warned


def test_a_gpu_that_is_seen_is_no_cause_for_a_warning(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tensorflow.config.list_physical_devices", lambda kind: ["GPU:0"])
    (tmp_path / "version").touch()
    warn_of_unused_gpu(tmp_path / "version")
    assert caplog.text == ""
