"""`python -m keras_transformer.export.probe URL`: whether a local server answers, for containers without curl.

Exits with 0 if GET URL is answered with 200, as `/v1/models/NAME` is while the model is served, and with 1 if not. It
needs nothing that pip installs.
"""

import argparse
import http.client
import socket
import ssl
import sys
import urllib.parse
from collections.abc import Sequence

from keras_transformer.ground.errors import first_line_of

SECONDS = 5.0  # for an answer, at most


class UnixConnection(http.client.HTTPConnection):
    """An HTTP connection to a Unix socket."""

    def __init__(self, path: str):
        super().__init__("localhost", timeout=SECONDS)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(SECONDS)
        self.sock.connect(self.path)


def connection_to(url: urllib.parse.SplitResult, unix_socket: str | None) -> http.client.HTTPConnection:
    """Return a connection that is not open yet.

    The certificate of https is not checked: a probe asks whether this machine's own server answers, and sends nothing.
    """
    if unix_socket is not None:
        return UnixConnection(unix_socket)
    host = url.hostname or "localhost"
    if url.scheme == "https":
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(host, url.port, timeout=SECONDS, context=context)
    return http.client.HTTPConnection(host, url.port, timeout=SECONDS)


def reason_against(url: str, unix_socket: str | None = None) -> str:
    """Return why the server is not well, in one line; "" if it is."""
    try:
        parts = urllib.parse.urlsplit(url)
        connection = connection_to(parts, unix_socket)
        connection.request("GET", parts.path or "/")
        status = connection.getresponse().status
        connection.close()
    except (OSError, ValueError, http.client.HTTPException) as error:
        return f"{url} does not answer: {first_line_of(error)}"
    return "" if status == 200 else f"{url} answers {status}."


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the reason if the server is not well. Returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m keras_transformer.export.probe", description=__doc__)
    parser.add_argument("url", metavar="URL", help="for example http://localhost:8501/v1/models/mine")
    parser.add_argument("--unix-socket", metavar="PATH", help="ask at this Unix socket in place of the URL's host")
    options = parser.parse_args(arguments)
    reason = reason_against(options.url, options.unix_socket)
    if reason:
        print(reason, file=sys.stderr)
    return 1 if reason else 0


if __name__ == "__main__":
    sys.exit(main())
