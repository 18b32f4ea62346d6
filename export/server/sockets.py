"""The sockets at which a server listens: ports, and paths of Unix sockets."""

import contextlib
import os
import pathlib
import socket
import stat
from collections.abc import Iterator

from ..versions import ExportError

BACKLOG = 2048
MODE = 0o660  # whoever may write to a Unix socket may connect: its owner and its group


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
