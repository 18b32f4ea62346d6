"""Versions that load at once: what a folder of a model serves is told without TensorFlow's graphs."""

from export.server import model_folder
from export.versions import ExportError


class LightVersion:
    """A version whose file says whether it can be loaded: "good", or why not."""

    closed: list = []

    def __init__(self, path):
        content = (path / "saved_model.pb").read_text()
        if content != "good":
            raise ExportError(f"{path} cannot be loaded: {content}")
        self.path, self.number, self.users, self.model = path, int(path.name), 0, ""

    def warm_up(self):
        pass

    def close(self):
        self.closed.append((self.model, self.number))


def use_light_versions(monkeypatch):
    """Let folders load LightVersions. Returns the list of those that are closed: model and number."""
    monkeypatch.setattr(LightVersion, "closed", [])
    monkeypatch.setattr(model_folder, "Version", LightVersion)
    return LightVersion.closed


def write_light(folder, *numbers, content="good"):
    """Write versions into `folder`, in which another content cannot be loaded. Returns the folder."""
    for number in numbers:
        (folder / str(number)).mkdir(parents=True)
        (folder / str(number) / "saved_model.pb").write_text(content)
    return folder
