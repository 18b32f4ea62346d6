"""Files where Spark reads and writes them: on this machine, in HDFS, in an object store."""

from typing import Any, NamedTuple

from keras_transformer.ground.notations import json_of

from .errors import ClusterError


class StoredFile(NamedTuple):
    """A file of the input: its whole path, its bytes, and when it was changed, in milliseconds since 1970."""

    path: str
    size: int
    changed: int


class Storage:
    """The file systems that a SparkContext knows. A path without a scheme is one of Spark's default file system."""

    def __init__(self, context: Any):
        self._hadoop = context._jvm.org.apache.hadoop.fs
        self._jvm, self._settings = context._jvm, context._jsc.hadoopConfiguration()

    def _opened(self, path: str) -> tuple[Any, Any]:
        """Return the file system of a path and the path, as objects of Java."""
        where = self._hadoop.Path(path)
        return where.getFileSystem(self._settings), where

    def input_files(self, pattern: str) -> list[StoredFile]:
        """Return the files of the input, by name: of a file, a folder, or a pattern with * for several.

        Names that begin with _ or . are no input. Raises ClusterError if there is no file, or none with content.
        """
        system, where = self._opened(pattern)
        statuses = list(system.globStatus(where) or [])
        if not statuses:
            raise ClusterError(f"--from is {pattern}: there is no such file or folder.")
        for folder in [status for status in statuses if status.isDirectory()]:
            statuses += [status for status in system.listStatus(folder.getPath()) if not status.isDirectory()]
        files = [
            StoredFile(status.getPath().toString(), status.getLen(), status.getModificationTime())
            for status in statuses
            if not status.isDirectory() and not status.getPath().getName().startswith(("_", "."))
        ]
        if not any(file.size for file in files):
            raise ClusterError(f"--from is {pattern}, which holds no text.")
        return sorted(file for file in files if file.size)

    def exists(self, path: str) -> bool:
        system, where = self._opened(path)
        return system.exists(where)

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder in their order; none if there is no such folder."""
        system, where = self._opened(folder)
        return sorted(status.getPath().getName() for status in system.listStatus(where)) if system.exists(where) else []

    def is_folder(self, path: str) -> bool:
        system, where = self._opened(path)
        return system.exists(where) and system.getFileStatus(where).isDirectory()

    def read_json(self, path: str) -> Any:
        system, where = self._opened(path)
        stream = system.open(where)
        try:
            return json_of(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, path: str, text: str) -> None:
        """Write a file in one step: under another name, then renamed."""
        system, where = self._opened(path)
        part = self._hadoop.Path(f"{path}.part")
        stream = system.create(part, True)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()
        system.rename(part, where)

    def rename(self, path: str, new: str) -> None:
        """Rename a file. Raises ClusterError if the file system does not."""
        system, where = self._opened(path)
        if not system.rename(where, self._hadoop.Path(new)):
            raise ClusterError(f"{path} cannot be renamed to {new}.")

    def remove(self, path: str) -> None:
        """Remove a file or folder, if there is one."""
        system, where = self._opened(path)
        system.delete(where, True)
