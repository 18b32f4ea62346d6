"""Hadoop's file systems as `cluster.storage` calls them, over the disk of this machine: no Java, no Spark."""

import pathlib
import types

SCHEME = "file:"


class Path:
    """org.apache.hadoop.fs.Path."""

    def __init__(self, text):
        self.path = pathlib.Path(str(text).removeprefix(SCHEME))

    def getFileSystem(self, settings):
        return FileSystem(settings)

    def getName(self):
        return self.path.name

    def toString(self):
        return f"{SCHEME}{self.path}"


class Status:
    """org.apache.hadoop.fs.FileStatus."""

    def __init__(self, path):
        self.path = path

    def getPath(self):
        return Path(self.path)

    def getLen(self):
        return self.path.stat().st_size

    def getModificationTime(self):
        return int(self.path.stat().st_mtime * 1000)

    def isDirectory(self):
        return self.path.is_dir()


class Stream:
    """A stream of bytes of a file; it says whether it was closed."""

    def __init__(self, path, mode):
        self.file, self.closed = path.open(mode), False

    def write(self, content):
        self.file.write(bytes(content))

    def close(self):
        self.file.close()
        self.closed = True


class FileSystem:
    """org.apache.hadoop.fs.FileSystem: `settings`, a dict, has the streams that were opened, and `done`."""

    def __init__(self, settings):
        self.settings = settings

    def globStatus(self, where):
        anchor = pathlib.Path(where.path.anchor)
        found = sorted(anchor.glob(str(where.path.relative_to(anchor))), reverse=True)
        return [Status(path) for path in found] or None

    def listStatus(self, where):
        paths = where.path.iterdir() if where.path.is_dir() else [where.path]
        return [Status(path) for path in sorted(paths, reverse=True)]

    def exists(self, where):
        return where.path.exists()

    def getFileStatus(self, where):
        return Status(where.path)

    def open(self, where):
        return self._kept(Stream(where.path, "rb"))

    def create(self, where, overwrites):
        where.path.parent.mkdir(parents=True, exist_ok=True)
        return self._kept(Stream(where.path, "wb" if overwrites else "xb"))

    def rename(self, where, new):
        self.settings.setdefault("renamed", []).append((where.path.name, new.path.name))
        if not where.path.exists():
            return False
        where.path.rename(new.path)
        return True

    def delete(self, where, is_recursive):
        if not where.path.exists():
            return False
        for child in sorted(where.path.rglob("*"), reverse=True) if is_recursive else []:
            child.rmdir() if child.is_dir() else child.unlink()
        where.path.rmdir() if where.path.is_dir() else where.path.unlink()
        return True

    def _kept(self, stream):
        self.settings.setdefault("streams", []).append(stream)
        return stream


def read(stream, encoding):
    """org.apache.commons.io.IOUtils.toString."""
    return stream.file.read().decode(encoding)


def local_context():
    """What `Storage` asks of a SparkContext; `settings` is the dict of FileSystem."""
    names = types.SimpleNamespace
    apache = names(hadoop=names(fs=names(Path=Path)), commons=names(io=names(IOUtils=names(toString=read))))
    settings = {}
    return names(
        _jvm=names(org=names(apache=apache)), _jsc=names(hadoopConfiguration=lambda: settings), settings=settings
    )
