"""The versions of a soak: whole ones that are links, and damaged ones."""

import os

from benchmarks.speed.soak import add_version

CONTENT = b"a graph of some bytes"


def test_a_version_has_the_files_of_the_first_and_a_damaged_one_half_of_the_graph(tmp_path):
    """A damaged version leaves the files of the others as they are, although they are links to the same ones."""
    version = tmp_path / "export" / "1"
    (version / "variables").mkdir(parents=True)
    (version / "saved_model.pb").write_bytes(CONTENT)
    (version / "variables" / "index").write_bytes(b"index")
    folder = tmp_path / "soak"
    folder.mkdir()
    add_version(version, folder, 1)
    add_version(version, folder, 3, is_bad=True)
    assert sorted(path.name for path in folder.iterdir()) == ["1", "3"]  # nothing that is half written
    assert os.path.samefile(folder / "1" / "saved_model.pb", version / "saved_model.pb")
    assert os.path.samefile(folder / "3" / "variables" / "index", version / "variables" / "index")
    assert (folder / "3" / "saved_model.pb").read_bytes() == CONTENT[: len(CONTENT) // 2]
    assert (version / "saved_model.pb").read_bytes() == CONTENT
