"""A version that is closed leaves nothing in memory, whether or not Python looks for garbage."""

import gc
import threading
import weakref

from export.server.version import Version
from tests.support.echo import write_echo


def test_the_graph_of_a_closed_version_is_freed(tmp_path):
    write_echo(tmp_path / "1")
    version = Version(tmp_path / "1")
    graph = weakref.ref(version._session.graph)
    gc.disable()
    try:
        version.close()
        for thread in threading.enumerate():
            if thread.name == "freed memory":
                thread.join()
        assert graph() is None
    finally:
        gc.enable()
