"""The log of requests: a line of JSON per prediction, without text unless it is asked for, and never in the way."""

import asyncio
import json
import threading
import time
import types

import numpy as np
import pytest
import tensorflow as tf

from export.server import request_log
from export.server.dispatcher import Dispatcher
from export.server.models import Models
from export.server.options import ServerOptions
from export.server.request_log import Record, RequestLog
from export.server.signature import Signature, Tensor
from export.versions import ExportError
from tests.support.processes import wait_until


def record(*lines, **changes):
    """What is known of a request whose text is logged."""
    inputs = {"text": np.array([line.encode() for line in lines], object)} if lines else None
    return Record("REST", "Predict", "mine", 7, "translate", 2, inputs=inputs, arrived=1.5, **changes)


def logged(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_line_has_what_an_operator_asks_and_no_text(tmp_path):
    log = RequestLog(tmp_path / "log")
    log.write(record(), "OK", 0.25)
    log.write(Record("GRPC", "Predict", "mine"), "NOT_FOUND", 0.25)
    log.close()
    assert log._file.stream is None  # the file is closed
    found, other = logged(tmp_path / "log")
    assert found == {
        "time": "1970-01-01T00:00:01.500Z",
        "entrypoint": "REST",
        "method": "Predict",
        "model": "mine",
        "version": 7,
        "signature": "translate",
        "rows": 2,
        "seconds": 0.25,
        "status": "OK",
    }
    assert (other["version"], other["rows"], other["status"]) == (None, 0, "NOT_FOUND")
    assert not other["time"].startswith("1970")


def test_text_is_logged_as_it_was_sent_whatever_it_holds(tmp_path):
    log, lines = RequestLog(tmp_path / "log"), ["Mädchen", 'a "quote"\nand a line', ""]
    log.write(record(*lines), "OK", 0.25)
    log.close()
    assert [line["text"] for line in logged(tmp_path / "log")] == [lines]
    assert (tmp_path / "log").read_text(encoding="utf-8").count("\n") == 1


def test_probes_are_not_logged(tmp_path):
    log = RequestLog(tmp_path / "log")
    log.write(Record("GRPC", "GetModelStatus", "mine"), "OK", 0.1)
    log.close()
    assert logged(tmp_path / "log") == []


def test_a_server_that_starts_again_appends(tmp_path):
    for _ in range(2):
        log = RequestLog(tmp_path / "log")
        log.write(record(), "OK", 0.1)
        log.close()
    assert len(logged(tmp_path / "log")) == 2


@pytest.mark.parametrize("with_text", [False, True])
def test_a_server_logs_text_only_if_it_is_told(tmp_path, with_text):
    options = ServerOptions(log_requests=tmp_path / "log", log_text=with_text)
    signature = Signature("serving_default", {"text": Tensor("text:0", tf.string, (None,))}, {}, {})
    version = types.SimpleNamespace(number=7, signatures={"serving_default": signature})
    models = Models([types.SimpleNamespace(name="mine", version=lambda choice: version)])
    inputs = {"text": np.array([b"a", b"b"], object)}
    codec = types.SimpleNamespace(signature_name="", output_names=(), read=lambda signature: inputs)
    dispatcher = Dispatcher(models, options)

    async def ask():
        with dispatcher.request("REST") as until:
            await dispatcher.question(dispatcher.version("mine"), lambda body, most: codec, b"", 0, until)

    asyncio.run(ask())
    dispatcher.close()
    [line] = logged(tmp_path / "log")
    assert line.get("text") == (["a", "b"] if with_text else None)
    assert (line["model"], line["version"], line["signature"], line["rows"]) == ("mine", 7, "serving_default", 2)


def test_after_a_rename_the_next_line_begins_another_file(tmp_path):
    log = RequestLog(tmp_path / "log")
    log.write(record(), "OK", 0.1)
    wait_until(lambda: logged(tmp_path / "log"))
    (tmp_path / "log").rename(tmp_path / "log.1")
    log.write(record(), "CANCELLED", 0.1)
    log.close()
    assert [line["status"] for name in ("log.1", "log") for line in logged(tmp_path / name)] == ["OK", "CANCELLED"]


def test_while_the_folder_is_gone_one_sentence_is_logged_and_then_it_goes_on(tmp_path, caplog):
    (tmp_path / "logs").mkdir()
    log = RequestLog(tmp_path / "logs" / "log")
    for outages in (1, 2):
        (tmp_path / "logs").rename(tmp_path / "away")
        for _ in range(3):
            log.write(record(), "OK", 0.1)
        wait_until(lambda: log._waiting == 0)
        assert caplog.text.count("requests cannot be logged") == outages
        (tmp_path / "away").rename(tmp_path / "logs")
        log.write(record(), "ABORTED", 0.1)
        wait_until(lambda: log._waiting == 0)
        assert logged(tmp_path / "logs" / "log")[-1]["status"] == "ABORTED"
    log.close()


def test_a_slow_disk_delays_no_request_and_what_waits_has_a_bound(tmp_path, monkeypatch, caplog):
    log, is_over = RequestLog(tmp_path / "log"), threading.Event()
    monkeypatch.setattr(request_log, "MOST_BYTES", 4 * request_log.LINE_BYTES)
    monkeypatch.setattr(log._file, "handle", lambda line, write=log._file.handle: is_over.wait(30) and write(line))
    begun = time.monotonic()
    for _ in range(10):
        log.write(record(), "OK", 0.1)
    assert time.monotonic() - begun < 10 and caplog.text.count("some are left out") == 1
    is_over.set()
    wait_until(lambda: log._waiting == 0)
    log.write(record("x" * 5000), "OK", 0.1)  # its text alone is more than may wait
    log.write(record(), "OK", 0.1)
    log.close()
    assert len(logged(tmp_path / "log")) == 4 + 1


def test_a_file_that_cannot_be_opened_is_named(tmp_path):
    with pytest.raises(ExportError, match="none/log"):
        RequestLog(tmp_path / "none" / "log")
