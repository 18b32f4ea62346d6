"""What the README tells its readers to write is accepted."""

import re

from tests.support.processes import ROOT
from train.config import load_config

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_configuration_for_ones_own_files_loads(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    path = tmp_path / "mine.toml"
    path.write_text(example, encoding="utf-8")
    config = load_config(path)
    assert config.data.train == [["train.en", "train.de"]]


def test_every_file_it_links_to_or_names_is_there():
    linked = re.findall(r"\]\((?!http)([^)#]+)\)", README)
    named = re.findall(r"`?(configs/\w+\.toml)", README)
    assert len(linked) >= 5 and named
    for path in linked + named:
        assert (ROOT / path).exists(), path


def test_every_command_it_names_is_a_module():
    modules = set(re.findall(r"python -m ([\w.]+)", README)) - {"pip", "venv"}
    assert {"train", "train.evaluate", "keras_transformer", "export"} <= modules
    for module in modules:
        path = ROOT / module.replace(".", "/")
        assert (path / "__main__.py").exists() or path.with_suffix(".py").exists(), module
