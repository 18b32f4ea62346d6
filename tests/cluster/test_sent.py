"""What is sent to the workers is all that they import, and needs neither Keras nor the packages of commands."""

import json
import zipfile

import pytest

from cluster.sent import zip_export, zip_project
from tests.support.places import ROOT
from tests.support.processes import python


def test_an_export_arrives_as_it_was(tmp_path):
    files = {"saved_model.pb": b"10", "variables/index": b"a"}
    (tmp_path / "10" / "variables").mkdir(parents=True)
    for name, content in files.items():
        (tmp_path / "10" / name).write_bytes(content)
    with zipfile.ZipFile(zip_export(tmp_path / "10", tmp_path / "export.zip")) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == files


IMPORTS = """
import json, sys
sys.path.insert(0, sys.argv[1])
import cluster.part, keras_transformer.lite.translator
modules = {name: getattr(module, "__file__", None) or "" for name, module in sys.modules.items()}
own = {name: path for name, path in modules.items() if name.partition(".")[0] in ("cluster", "keras_transformer")}
print(json.dumps([[name for name, path in own.items() if not path.startswith(sys.argv[1])], list(modules)]))
"""


@pytest.mark.slow
def test_the_modules_that_are_sent_are_all_that_a_worker_imports_before_it_opens_an_export(tmp_path):
    process = python("-c", IMPORTS, zip_project(tmp_path / "project.zip"))
    assert process.returncode == 0, process.stderr
    from_elsewhere, modules = json.loads(process.stdout)
    assert from_elsewhere == []
    assert not {"keras", "tensorflow", "typer", "pydantic", "regex", "sacrebleu"} & set(modules)


def test_every_module_of_both_packages_is_sent_packed_under_the_name_it_is_imported_by(tmp_path):
    with zipfile.ZipFile(zip_project(tmp_path / "project.zip")) as archive:
        infos = archive.infolist()
    expected = {
        str(path.relative_to(ROOT)) for name in ("keras_transformer", "cluster") for path in (ROOT / name).rglob("*.py")
    }
    assert {info.filename for info in infos} == expected
    assert sum(info.compress_size for info in infos) < 0.5 * sum(info.file_size for info in infos)
