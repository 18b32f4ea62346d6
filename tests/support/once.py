"""What several processes of one test run share: the first that asks makes it, the others wait."""

import fcntl
import os


def made_once(tmp_path_factory, name, make):
    """Return a folder that `make(folder)` has filled, in one process of this run of pytest. Do not change it."""
    root = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent  # of all workers
    folder, done = root / name, root / f"{name}.done"
    with open(root / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder.mkdir(exist_ok=True)
            make(folder)
            done.touch()
    return folder
