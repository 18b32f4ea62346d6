"""`keras-transformer query`: it survives a server that hangs up, ends if its reader does, and hands every option on."""

import contextlib
import inspect
import json
import signal
import socket
import threading

import pytest

import export.__main__
import export.query
import export.serve
import export.translate
from export.client.client import LONGEST_DEADLINE, ServingClient
from tests.support.commands import invoke
from tests.support.engines import Table
from tests.support.places import ROOT
from tests.support.processes import python, start_python

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="Windows has no such signal")


@contextlib.contextmanager
def server(hang_ups):
    """A model that repeats its lines. It closes the first `hang_ups` connections while the request is being sent."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener, hang_ups), daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/models/any"


def serve(listener, hang_ups):
    with contextlib.suppress(OSError):  # the listener is closed
        while True:
            connection, _ = listener.accept()
            with connection, connection.makefile("rb") as request:
                length = 0
                while (line := request.readline()).strip():
                    name, _, value = line.decode().partition(":")
                    length = int(value) if name.lower() == "content-length" else length
                if hang_ups:
                    hang_ups -= 1
                    continue
                lines = json.loads(request.read(length))["inputs"]["text"]
                found = {"outputs": {"translation": lines, "score": [0.0] * len(lines)}}
                body = json.dumps(found).encode()
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))


LONG = "a" * 10_000_000  # more than a socket takes at once, so that the request is still being sent


@pytest.mark.slow
def test_a_request_that_the_server_hangs_up_on_is_sent_again():
    with server(hang_ups=2) as url:
        found = python("-m", "export.query", "--url", url, stdin=f"{LONG}\n")
    assert (found.returncode, found.stderr, found.stdout == f"{LONG}\n") == (0, "", True)


@pytest.mark.slow
def test_a_server_that_always_hangs_up_is_one_sentence():
    with server(hang_ups=1000) as url:
        found = python("-m", "export.query", "--url", url, "--deadline", "1", stdin=f"{LONG}\n")
    assert found.returncode == 1 and found.stdout == ""
    assert found.stderr.startswith("Error: ") and found.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_reader_that_closes_the_pipe_ends_it_without_a_word(tmp_path):
    (tmp_path / "lines").write_text("a dog runs\n" * 100_000, encoding="utf-8")
    with server(hang_ups=0) as url, open(tmp_path / "lines") as lines:
        process = start_python("-m", "export.query", "--url", url, stdin=lines)
        assert process.stdout.readline() == "a dog runs\n"
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (-signal.SIGPIPE, "")


@pytest.mark.parametrize(("options", "line"), [([], "a"), (["--scores"], "-1.5\ta"), (["--confidence"], "0.75\ta")])
def test_a_score_or_a_confidence_stands_before_the_line_if_it_is_asked_for(options, line, monkeypatch):
    answer = {"translation": ["a"], "score": [-1.5], "confidence": [0.75]}
    client = Table(serving_default=answer)
    monkeypatch.setattr("export.client.client.ServingClient", lambda *arguments, **named: client)
    [found] = invoke(export.query.app, "--url", "u", *options, stdin="a\n").stdout.splitlines()
    assert [*map(as_number, found.split("\t"))] == [*map(as_number, line.split("\t"))]


def as_number(text):
    return float(text) if text[-1:].isdigit() else text


def test_the_defaults_are_those_of_the_client_and_of_the_documents():
    options = {name: each.default for name, each in inspect.signature(export.query.query).parameters.items()}
    client = {name: each.default for name, each in inspect.signature(ServingClient).parameters.items()}
    shared = ("rows_per_request", "requests_at_once", "deadline")
    assert {name: options[name] for name in shared} == {name: client[name] for name in shared}
    serving = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    text = " ".join(serving.split())
    assert f"`--rows-per-request` ({client['rows_per_request']})" in text
    assert f"`--requests-at-once` ({client['requests_at_once']})" in text
    assert f"`--deadline` ({client['deadline']:g} s, at most a day, " in text and LONGEST_DEADLINE == 24 * 60 * 60
    assert f"for a request with up to {client['attempts']} attempts" in text
