"""Clients that begin a request and do not end it, or do not read its answer, and a probe that asks beside them."""

import contextlib
import socket
import struct
import threading
import time

import requests

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RESET, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
FIRST_WINDOW, FRAME = 65_535, 16_384
METHOD = "/tensorflow.serving.PredictionService/Predict"


class Probe:
    """Within, somebody asks for the status all the time, as a readiness probe does; `slowest` is in seconds."""

    def __init__(self, url):
        self.url, self.is_over, self.seconds, self.statuses = url, threading.Event(), [], set()
        self.thread = threading.Thread(target=self.ask)

    @property
    def slowest(self):
        return max(self.seconds)

    def ask(self):
        with requests.Session() as session:
            session.trust_env = False
            while not self.is_over.is_set():
                begun = time.perf_counter()
                self.statuses.add(session.get(self.url, timeout=30).status_code)
                self.seconds.append(time.perf_counter() - begun)
                time.sleep(0.01)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *exception):
        self.is_over.set()
        self.thread.join()


@contextlib.contextmanager
def held_bodies(server, count, size):
    """Within, so many REST requests have sent their body without its last byte. Yields their sockets."""
    with contextlib.ExitStack() as stack:
        connections = []
        head = f"POST /v1/models/{server.name}:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n"
        for _ in range(count):
            connection = stack.enter_context(socket.create_connection((server.host, server.port), timeout=5))
            connections.append(connection)
            with contextlib.suppress(OSError):  # the server may refuse it
                connection.sendall(head.encode() + b" " * (size - 1))
        yield connections


class HeldStream:
    """A gRPC call whose message has not come to its end: HTTP/2 as it is written, since no client library does this."""

    def __init__(self, server, size):
        self.socket = socket.create_connection((server.host, server.grpc_port), timeout=0.2)
        self.size, self.sent, self.windows, self.status, self.received = size, 0, [FIRST_WINDOW] * 2, None, b""
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0, b"") + frame(HEADERS, 4, 1, headers_of(METHOD)))
        self.message = struct.pack(">BI", 0, size)

    def push(self, seconds):
        """Send as much as the server takes, for so many seconds at most, and never the last byte."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.status is None and self.sent < self.size + 4:
            length = min(*self.windows, FRAME, self.size + 4 - self.sent)
            if length > 0:
                part = self.message[self.sent : self.sent + length]
                with contextlib.suppress(TimeoutError):
                    self.socket.sendall(frame(DATA, 0, 1, part + b" " * (length - len(part))))
                self.sent += length
                self.windows = [window - length for window in self.windows]
            else:
                self.read()

    def read(self):
        """Read frames that have come; `status` is "ended" after the server has ended the stream or the connection."""
        try:
            content = self.socket.recv(1 << 16)
        except TimeoutError:
            return
        except OSError:
            content = b""
        if not content:
            self.status = "ended"
        self.received += content
        while len(self.received) >= 9 and len(self.received) >= 9 + (length := int.from_bytes(self.received[:3])):
            kind, flags, stream = self.received[3], self.received[4], int.from_bytes(self.received[5:9])
            payload, self.received = self.received[9 : 9 + length], self.received[9 + length :]
            self.handle(kind, flags, stream, payload)

    def read_until_the_end(self):
        while self.status is None:
            self.read()

    def handle(self, kind, flags, stream, payload):
        if kind == WINDOW_UPDATE:
            self.windows[min(stream, 1)] += int.from_bytes(payload)
        elif kind == SETTINGS and not flags & 1:
            for place in range(0, len(payload), 6):
                name, value = struct.unpack(">HI", payload[place : place + 6])
                if name == 4:
                    self.windows[1] += value - FIRST_WINDOW
            self.socket.sendall(frame(SETTINGS, 1, 0, b""))
        elif kind == PING and not flags & 1:
            self.socket.sendall(frame(PING, 1, 0, payload))
        elif kind in (RESET, GOAWAY) or (kind == HEADERS and flags & 1):
            self.status = "ended"


def headers_of(method):
    """The block of headers with which a call begins."""
    names = {
        ":method": "POST",
        ":scheme": "http",
        ":path": method,
        ":authority": "localhost",
        "content-type": "application/grpc",
        "te": "trailers",
    }
    return b"".join(
        b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
        for name, value in names.items()
    )


@contextlib.contextmanager
def held_calls(server, method, connections=2, count=550, message=None):
    """Within, so many calls of a method are open on each connection, whose client lets no answer come.

    message: its bytes, None if it does not come.
    """
    no_window = frame(SETTINGS, 0, 0, struct.pack(">HI", 4, 0))
    data = b"" if message is None else struct.pack(">BI", 0, len(message)) + message
    with contextlib.ExitStack() as stack:
        for _ in range(connections):
            connection = stack.enter_context(socket.create_connection((server.host, server.grpc_port), timeout=5))
            connection.sendall(PREFACE + no_window)
            for number in range(1, 2 * count, 2):
                call = frame(HEADERS, 4, number, headers_of(method))
                call += b"" if message is None else frame(DATA, 1, number, data)
                with contextlib.suppress(OSError):  # the server may end it
                    connection.sendall(call)
        time.sleep(0.5)
        yield


def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


@contextlib.contextmanager
def held_streams(server, count, size, seconds):
    """Within, so many gRPC calls have sent what the server takes of an unfinished message. Yields the HeldStreams."""
    streams = [HeldStream(server, size) for _ in range(count)]
    threads = [threading.Thread(target=stream.push, args=[seconds]) for stream in streams]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        yield streams
    finally:
        for stream in streams:
            stream.socket.close()


@contextlib.contextmanager
def unread_answers(server, count, body):
    """Within, so many REST requests have been sent, and nobody reads their answers. Yields their sockets."""
    request = b"POST /v1/models/%s:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    with contextlib.ExitStack() as stack:
        connections = []
        for _ in range(count):
            connection = stack.enter_context(socket.socket())
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.settimeout(30)
            connection.connect((server.host, server.port))
            connection.sendall(request % (server.name.encode(), len(body)) + body)
            connections.append(connection)
        yield connections


@contextlib.contextmanager
def unread_call(server, message, answers_pings):
    """Within, a gRPC call has sent its message, and the client does not let the answer come.

    With `answers_pings` it reads what the protocol needs, as a program that forgot the call does; without it nothing,
    as one that hangs.
    """
    call = HeldStream(server, len(message))
    thread = threading.Thread(target=call.read_until_the_end)
    try:
        call.socket.sendall(frame(DATA, 1, 1, call.message + message))
        if answers_pings:
            thread.start()
        yield
    finally:
        call.status = "ended"
        if answers_pings:
            thread.join()
        call.socket.close()
