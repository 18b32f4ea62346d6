"""`keras-transformer serve` answers, drains at SIGTERM, and prints one sentence per mistake."""

import re
import signal
import socket
import threading
import time

import numpy as np
import pytest
import requests

from export.client.client import ServingClient
from export.client.transports import ClientError
from export.serve import announce, app
from export.server.process import Address
from tests.support.commands import assert_one_sentence, invoke
from tests.support.echo import write_echo
from tests.support.exports import write_version
from tests.support.processes import start_python
from tests.support.runs import SENTENCES, random_run

SLOW = 1.0  # seconds of work
NAMES = ("serving_default", "translate")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signals")
def test_at_sigterm_what_is_in_flight_is_answered_and_what_is_new_refused(echo_folder, tmp_path):
    log = tmp_path / "log"
    process = start_python("-m", "export.serve", echo_folder, "--port", 0, "--grpc-port", 0, "--workers", 2, log=log)
    with process:
        while not (found := re.findall(r"(http\S+):predict|(grpc:\S+)\n", log.read_text())) or len(found) < 2:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        urls = [found[0][0], found[1][1]]
        answers = []

        def ask(url):
            client = ServingClient(url, attempts=1)
            answers.append(client.predict({"text": ["a"] * 2, "spin": [SLOW] * 2}, "repeat")["repeated"])

        threads = [threading.Thread(target=ask, args=[urls[number % 2]]) for number in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        assert requests.get(urls[0]).status_code == 503  # a probe: no longer ready
        for url, code in zip(urls, (503, "UNAVAILABLE"), strict=True):
            with pytest.raises(ClientError) as error:
                ServingClient(url, attempts=1).translate(["new"])
            assert error.value.code == code
        for thread in threads:
            thread.join()
        assert process.wait(timeout=60) == 0, log.read_text()
    assert answers == [["aa"] * 2] * 6
    assert "Traceback" not in log.read_text()


@pytest.mark.slow
def test_a_new_version_that_cannot_be_loaded_is_logged_while_the_old_one_is_served(tmp_path):
    write_echo(tmp_path / "echo/1")
    (tmp_path / "echo/2").mkdir()
    (tmp_path / "echo/2/saved_model.pb").write_bytes(b"x")
    log = tmp_path / "log"
    with start_python("-m", "export.serve", tmp_path / "echo", "--port", 0, "--grpc-port", 0, log=log) as process:
        while "gRPC" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        process.terminate()
    assert "echo/2 cannot be loaded" in log.read_text()


@pytest.mark.release
def test_a_process_answers_texts_of_sentences_alike_by_grpc_and_by_http(tmp_path):
    write_version(random_run(tmp_path / "run"), tmp_path / "model" / "1", max_source_tokens=60, names=NAMES)
    log, text = tmp_path / "log", f"{SENTENCES[0]}.  {SENTENCES[1]}: {{x}}.\r\n\r\n - {SENTENCES[2]}."
    with start_python("-m", "export.serve", tmp_path / "model", "--port", 0, "--grpc-port", 0, log=log) as process:
        while not (found := re.findall(r"(http\S+):predict|(grpc:\S+)\n", log.read_text())) or len(found) < 2:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        asked = {
            "text": [text, text],
            "paragraphs": [True, False],
            "protect": ["placeholders"] * 2,
            "forbidden": ["the"] * 2,
        }
        by_http, by_grpc = (ServingClient(url).predict(asked, "translate", {}) for url in (found[0][0], found[1][1]))
        process.terminate()
    assert by_grpc.keys() == by_http.keys() >= {"translations", "spans", "unplaced", "remaining"}
    for name, values in by_http.items():
        assert np.array_equal(np.array(by_grpc[name]), np.array(values)), name
    assert "\r\n\r\n - " in by_grpc["translations"][0][0] and "{x}" in by_grpc["translations"][0][0]
    assert by_grpc["spans"][0] and not by_grpc["spans"][1]


MODELS = """model_config_list {{
  config {{ name: "one" base_path: "{0}/echo" model_platform: "tensorflow" }}
  config {{ name: "{1}" base_path: "{0}/echo" model_platform: "tensorflow" }}
}}"""


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signals")
def test_a_file_of_models_is_served_and_read_again_until_the_end(echo_folder, tmp_path):
    file, log = tmp_path / "models.config", tmp_path / "log"
    file.write_text(MODELS.format(echo_folder.parent, "two"))
    options = ["--port", 0, "--grpc-port", 0, "--models-poll-seconds", 0.1]
    with start_python("-m", "keras_transformer", "serve", "--models", file, *options, log=log) as process:
        while log.read_text().count("gRPC") < 2:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        home = re.search(r"page  (\S+)/\n", log.read_text())[1]

        def ask(name):
            return requests.post(f"{home}/v1/models/{name}:predict", json={"inputs": ["a"]}, timeout=60)

        assert [ask(name).json()["outputs"]["translation"] for name in ("one", "two")] == [["a"]] * 2
        new = tmp_path / "new"
        new.write_text(MODELS.format(echo_folder.parent, "three"))
        new.replace(file)
        while ask("three").status_code == 404:
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        assert ask("one").ok and ask("three").ok and ask("two").status_code == 404
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0, log.read_text()
    assert "the model two is no longer served" in log.read_text() and "Traceback" not in log.read_text()


@pytest.mark.nightly
def test_a_second_signal_ends_the_server_at_once(echo_folder, tmp_path):
    log = tmp_path / "log"
    with start_python("-m", "export.serve", echo_folder, "--port", 0, "--grpc-port", 0, log=log) as process:
        while "gRPC" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        url = re.search(r"(http\S+):predict", log.read_text())[1]
        threading.Thread(target=lambda: requests.post(f"{url}:predict", json={"inputs": ["a"]}), daemon=True).start()
        body = {"signature_name": "repeat", "inputs": {"text": ["a"], "spin": [20 * SLOW]}}
        with pytest.raises(requests.exceptions.Timeout):
            requests.post(f"{url}:predict", json=body, timeout=0.3)
        keep = threading.Thread(target=ignore(lambda: requests.post(f"{url}:predict", json=body)), daemon=True)
        keep.start()
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 143


@pytest.mark.nightly
def test_a_batch_that_outlives_the_drain_does_not_keep_the_process(echo_folder, tmp_path):
    log, options = tmp_path / "log", ["--port", 0, "--grpc-port", 0, "--drain-seconds", 0.2]
    with start_python("-m", "export.serve", echo_folder, *options, log=log) as process:
        while "gRPC" not in log.read_text():
            assert process.poll() is None, log.read_text()
            time.sleep(0.05)
        url = re.search(r"(http\S+):predict", log.read_text())[1]
        assert requests.post(f"{url}:predict", json={"inputs": ["a"]}).status_code == 200
        body = {"signature_name": "repeat", "inputs": {"text": ["a"], "spin": [60 * SLOW]}}
        threading.Thread(target=ignore(lambda: requests.post(f"{url}:predict", json=body)), daemon=True).start()
        time.sleep(3)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 1
    assert log.read_text().count("--drain-seconds 0.2") == 1
    assert "Traceback" not in log.read_text()


def ignore(function):
    def call():
        try:
            function()
        except requests.exceptions.RequestException:
            pass

    return call


def test_mistakes_are_one_sentence(echo_folder, tmp_path):
    free = ["--port", 0, "--grpc-port", 0]
    assert_one_sentence(invoke(app, tmp_path / "none", *free), tmp_path / "none")
    assert_one_sentence(invoke(app, tmp_path, *free), "no exported version")
    assert_one_sentence(invoke(app, echo_folder, "--workers", 0), "workers")
    assert_one_sentence(invoke(app, echo_folder, "--deadline", 0), "deadline")
    assert_one_sentence(invoke(app, echo_folder, "--port", 70000), "port")
    assert_one_sentence(invoke(app, echo_folder, "--models-poll-seconds", 0), "models_poll_seconds")
    assert_one_sentence(invoke(app, echo_folder, "--log-text"), "log_requests")
    assert_one_sentence(invoke(app, echo_folder, "--log-requests", tmp_path / "none" / "log", *free), "none/log")
    assert_one_sentence(invoke(app, echo_folder, "--models", tmp_path), "--models")
    assert_one_sentence(invoke(app, *free), "--models")
    assert_one_sentence(invoke(app, "--models", tmp_path / "none", *free), "cannot be read")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert_one_sentence(invoke(app, echo_folder, "--port", port, "--grpc-port", 0), port)
        assert_one_sentence(invoke(app, echo_folder, "--port", 0, "--grpc-port", port), port)


@pytest.mark.parametrize(
    ("host", "is_warned"),
    [("0.0.0.0", True), ("::", True), ("10.0.0.1", True), ("example.org", True), ("127.0.0.1", False), ("::1", False)],
)
def test_whoever_lets_others_ask_is_warned(host, is_warned, caplog):
    announce(Address("mine", host, 8501, 8500))
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert len(warnings) == is_warned and all(host in warning for warning in warnings)


@pytest.mark.parametrize("is_tls", [False, True])
@pytest.mark.parametrize("needs_key", [False, True])
def test_the_warning_names_what_is_missing(is_tls, needs_key, caplog):
    announce(Address("mine", "0.0.0.0", 8501, 8500, is_tls), needs_key=needs_key)
    warnings = " ".join(record.getMessage() for record in caplog.records if record.levelname == "WARNING")
    assert (("--tls-certificate" in warnings), ("--api-key-file" in warnings)) == (not is_tls, not needs_key)
    assert ("0.0.0.0" in warnings) == (not is_tls or not needs_key)


def test_each_model_of_a_server_has_its_addresses(capsys):
    announce(Address("one", "127.0.0.1", 8501, 8500), ["one", "two"])
    assert capsys.readouterr().out.splitlines() == [
        "page  http://127.0.0.1:8501/",
        "REST  http://127.0.0.1:8501/v1/models/one:predict",
        "gRPC  grpc://127.0.0.1:8500/one",
        "REST  http://127.0.0.1:8501/v1/models/two:predict",
        "gRPC  grpc://127.0.0.1:8500/two",
    ]


@pytest.mark.parametrize("mistake", ["port", "grpc-port", "host", "log-requests"])
def test_what_cannot_be_opened_is_one_sentence_before_the_model_is_loaded(mistake, echo_folder, tmp_path, monkeypatch):
    monkeypatch.setattr("export.server.models.Models.in_folder", lambda path: pytest.fail("it is loaded"))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        number = taken.getsockname()[1]
        in_use = number, f"The port {number} of 127.0.0.1 cannot be opened: Address already in use."
        wrong, sentence = {
            "host": ("no.invalid", "The port 0 of no.invalid cannot be opened: "),
            "log-requests": (tmp_path, f"Requests cannot be logged to {tmp_path}: Is a directory."),
        }.get(mistake, in_use)
        ports = [part for name in ("port", "grpc-port") if name != mistake for part in (f"--{name}", 0)]
        assert_one_sentence(invoke(app, echo_folder, *ports, f"--{mistake}", wrong), sentence)
