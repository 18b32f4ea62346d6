"""The sockets at which a server listens: ports, and paths of Unix sockets."""

import contextlib
import logging
import math
import os
import pathlib
import socket
import stat
from collections.abc import Iterator
from typing import Any

from ..versions import ExportError
from .options import REFUSED

BACKLOG = 2048
OTHER_FILES = 128  # that a server needs beside its connections: of models, sockets, threads
LAST_FILES = 64  # of these, for what is opened while it serves
MODE = 0o660  # whoever may write to a Unix socket may connect: its owner and its group

log = logging.getLogger("export.server")


def open_port(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises ExportError if the port cannot be opened."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        reason = str(getattr(error, "strerror", None) or error).partition(" (while")[0]
        raise ExportError(f"The port {port} of {host} cannot be opened: {reason}.") from None


def check_ports(host: str, *ports: int) -> None:
    """Raises ExportError if one of the ports cannot be opened now. None stays open: nothing answers there yet."""
    for port in ports:
        open_port(host, port).close()


def check_paths(*paths: pathlib.Path | None) -> None:
    """Raises ExportError if a Unix socket cannot be opened now at one of the paths. None stays there."""
    for path in filter(None, paths):
        open_path(path).close()
        path.unlink()


def files_of(connections: int) -> int:
    """Return how many files a server needs with so many connections of each protocol."""
    return 2 * connections + REFUSED + OTHER_FILES


def limit_of_files() -> float:
    """Return how many files this process may have open: those of Windows are not numbered so."""
    try:
        import resource
    except ImportError:
        return math.inf
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return math.inf if limit == resource.RLIM_INFINITY else limit


def connections_possible(wanted: int) -> int:
    """Return how many connections HTTP and gRPC may have each: `wanted`, or as many as there are descriptors for.

    The limit of descriptors is raised as far as this process may. Fewer connections than wanted are logged.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    needed, limits = files_of(wanted), resource.getrlimit(resource.RLIMIT_NOFILE)
    soft, hard = (math.inf if limit == resource.RLIM_INFINITY else limit for limit in limits)
    if soft < needed:
        soft = min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (int(soft), limits[1]))
    possible = int(max(1, min(wanted, (soft - REFUSED - OTHER_FILES) // 2)))
    if possible < wanted:
        log.warning(
            "%d connections of HTTP and as many of gRPC are taken, not %d: the limit is %d files (ulimit -n)",
            possible,
            wanted,
            int(soft),
        )
    return possible


class Listener(socket.socket):
    """A listening socket that closes what it accepts if all files but LAST_FILES are open.

    For a connection counts only from the end of its handshake on, and so many may begin one.
    """

    files: float  # how many may be open

    @classmethod
    def of(cls, listener: socket.socket, connections: int) -> "Listener":
        """Return a socket in place of another one, of a server of so many connections of each protocol."""
        result = cls(listener.family, listener.type, listener.proto, listener.detach())
        result.files = min(limit_of_files(), result.fileno() + files_of(connections))
        return result

    def accept(self) -> tuple[socket.socket, Any]:
        connection, address = super().accept()
        if (
            connection.fileno() >= self.files - LAST_FILES and os.name == "posix"
        ):  # the system gives the lowest number that is free
            connection.close()
            raise ConnectionAbortedError  # as if the client had left, after which asyncio goes on
        return connection, address


def open_path(path: pathlib.Path) -> socket.socket:
    """Return a Unix socket that listens at a path. Raises ExportError if it cannot be opened."""
    remove_stale(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(os.fspath(path))
        os.chmod(path, MODE)  # before it listens: until then nobody can connect
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise ExportError(f"The Unix socket {path} cannot be opened: {error.strerror or error}.") from None
    return listener


def remove_stale(path: pathlib.Path) -> None:
    """Remove the socket that an earlier server left at a path.

    Raises ExportError if a server listens there, or if there is something else than a socket.
    """
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise ExportError(f"The Unix socket {path} cannot be opened: {error.strerror}.") from None
    if not stat.S_ISSOCK(mode):
        raise ExportError(f"{path} is there and is no socket: choose another path for the Unix socket.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(os.fspath(path))
        except ConnectionRefusedError:
            path.unlink(missing_ok=True)
            return
        except OSError as error:
            raise ExportError(f"The Unix socket {path} cannot be opened: {error.strerror or error}.") from None
    raise ExportError(f"Another server listens at the Unix socket {path}: end it, or choose another path.")


@contextlib.contextmanager
def only_for_the_group() -> Iterator[None]:
    """Within, a Unix socket that this process makes has MODE."""
    before = os.umask(0o777 & ~MODE)
    try:
        yield
    finally:
        os.umask(before)


@contextlib.contextmanager
def removed_at_the_end(*paths: pathlib.Path | None) -> Iterator[None]:
    """At the end, remove the sockets at these paths unless somebody has put another file there."""
    sockets = [(path, path.lstat().st_ino) for path in paths if path is not None]
    try:
        yield
    finally:
        for path, inode in sockets:
            with contextlib.suppress(OSError):
                if path.lstat().st_ino == inode:
                    path.unlink()
