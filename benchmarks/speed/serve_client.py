"""Clients of `benchmarks/speed/serve.py`: one connection each, one sentence after the other, every answer checked."""

import http.client
import json
import threading
import time
import urllib.parse
from typing import NamedTuple

from export.certificate.agreement import TIES
from export.client.client import ServingClient
from keras_transformer.pieces.translation import Translation

Expected = list[tuple[str, Translation]]
HEADERS = {"Content-Type": "application/json"}
PATIENCE = 120  # seconds for an answer: longer than the server's deadline


class Load(NamedTuple):
    """What clients found. latencies: seconds of each answered request. refusals: seconds until each 503.

    ties: answers with the score of another translation. wrong: answers that are not those of their sentences. errors:
    anything else than an answer and a 503, by name.
    """

    clients: int
    seconds: float
    latencies: list[float]
    refusals: list[float]
    ties: int
    wrong: list[str]
    errors: list[str]


def expected_answers(url: str, sentences: list[str]) -> Expected:
    """Ask for each sentence alone."""
    client = ServingClient(url, rows_per_request=1, requests_at_once=2)
    return list(zip(sentences, client.translate(sentences), strict=True))


def ask_for(url: str, expected: Expected, clients: int, seconds: float) -> Load:
    """Let `clients` threads ask until `seconds` are over; requests that have begun are finished."""
    load = Load(clients, 0.0, [], [], [0], [], [])
    start = time.monotonic()
    threads = [
        threading.Thread(target=ask, args=[url, expected, number, clients, start + seconds, load])
        for number in range(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return load._replace(seconds=time.monotonic() - start, ties=load.ties[0])


def ask(url: str, expected: Expected, number: int, clients: int, until: float, load: Load) -> None:
    """Ask for every `clients`-th sentence, from `number` on, again and again."""
    place = urllib.parse.urlsplit(url)
    connection, position = http.client.HTTPConnection(place.hostname, place.port, timeout=PATIENCE), number
    while time.monotonic() < until:
        sentence, answer = expected[position % len(expected)]
        position += clients
        body, start = json.dumps({"inputs": {"text": [sentence]}}), time.monotonic()
        try:
            connection.request("POST", f"{place.path}:predict", body, HEADERS)
            response = connection.getresponse()
            content = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            load.errors.append(type(error).__name__)
            connection.close()
            continue
        if response.status == 200:
            load.latencies.append(time.monotonic() - start)
            check(content["outputs"], sentence, answer, load)
        elif response.status == 503:
            load.refusals.append(time.monotonic() - start)
            time.sleep(0.1)
        else:
            load.errors.append(f"status {response.status}")
    connection.close()


def check(outputs: dict, sentence: str, answer: Translation, load: Load) -> None:
    """Batches of other sizes round otherwise, so that a tie of scores may be another text."""
    [text], [score] = outputs["translation"], outputs["score"]
    if abs(score - answer.score) >= TIES["float32"]:
        load.wrong.append(sentence)
    elif text != answer.text:
        load.ties[0] += 1
