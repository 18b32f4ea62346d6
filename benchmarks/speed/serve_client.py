"""Clients of `benchmarks/speed/serve.py`: one connection each, one sentence after the other, every answer checked."""

import contextlib
import http.client
import json
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from typing import NamedTuple

from export.certificate.agreement import TIES
from export.client.client import ServingClient
from export.client.transports import ClientError
from keras_transformer.ground.machine import processor_cores
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.signatures import as_texts

Expected = list[tuple[str, Translation]]
HEADERS = {"Content-Type": "application/json"}
MANY = 500  # lines of a request that shows what the engine does
PATIENCE = 120  # seconds for an answer: longer than the server's deadline


class Load(NamedTuple):
    """What clients found. latencies: seconds of each answered request. refusals: seconds until each Refused.

    ties: answers with the score of another translation. wrong: answers that are not those of their sentences. errors:
    anything else than an answer and a refusal, by name.
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
    position = number
    with asking_by_grpc(url) if url.startswith("grpc:") else asking_by_rest(url) as translated:
        while time.monotonic() < until:
            sentence, answer = expected[position % len(expected)]
            position += clients
            start = time.monotonic()
            try:
                outputs = translated(sentence)
            except Refused:
                load.refusals.append(time.monotonic() - start)
                time.sleep(0.1)
            except (ClientError, OSError, ValueError, http.client.HTTPException) as error:
                load.errors.append(f"status {error.code}" if isinstance(error, ClientError) else type(error).__name__)
            else:
                load.latencies.append(time.monotonic() - start)
                check(outputs, sentence, answer, load)


class Refused(Exception):
    """The queue is full: 503, or RESOURCE_EXHAUSTED."""


@contextlib.contextmanager
def asking_by_rest(url: str) -> Iterator[Callable[[str], dict]]:
    """Within, a function asks for a sentence over a connection of its own and returns the outputs.

    It takes less of the cores than the project's own client, whose library retries and follows proxies.
    """
    place = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)

    def translated(sentence: str) -> dict:
        try:
            connection.request("POST", f"{place.path}:predict", json.dumps({"inputs": {"text": [sentence]}}), HEADERS)
            response = connection.getresponse()
            content = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException):
            connection.close()  # the next request opens it again
            raise
        if response.status == 503:
            raise Refused
        if response.status != 200:
            raise ClientError(str(content), response.status)
        return content["outputs"]

    with contextlib.closing(connection):
        yield translated


@contextlib.contextmanager
def asking_by_grpc(url: str) -> Iterator[Callable[[str], dict]]:
    """Within, a function asks for a sentence over a connection of its own and returns the outputs."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis.predict_pb2 import PredictRequest
    from tensorflow_serving.apis.prediction_service_pb2_grpc import PredictionServiceStub

    place, busy = urllib.parse.urlsplit(url), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE)

    def translated(sentence: str) -> dict:
        request = PredictRequest()
        request.model_spec.name = place.path.strip("/")
        request.inputs["text"].CopyFrom(tf.make_tensor_proto([sentence]))
        try:
            response = stub.Predict(request, timeout=PATIENCE)
        except grpc.RpcError as error:
            if error.code() in busy:
                raise Refused from None
            raise ClientError(error.details() or "", error.code().name) from None
        return {name: as_texts(tf.make_ndarray(tensor).tolist()) for name, tensor in response.outputs.items()}

    own_connection = [("grpc.use_local_subchannel_pool", 1)]  # else all channels of a process share one
    with grpc.insecure_channel(place.netloc, own_connection) as channel:
        stub = PredictionServiceStub(channel)
        yield translated


def lines_per_second(url: str, expected: Expected, seconds: float) -> float:
    """What the engine does with many lines: requests of MANY lines, as many at once as the machine has cores."""
    client = ServingClient(url, rows_per_request=MANY, requests_at_once=processor_cores())
    lines, done = [sentence for sentence, _ in expected], 0
    client.translate(lines)  # the first batch of a size is slower
    start = time.monotonic()
    while time.monotonic() < start + seconds:
        done += len(client.translate(lines))
    return done / (time.monotonic() - start)


def check(outputs: dict, sentence: str, answer: Translation, load: Load) -> None:
    """Batches of other sizes round otherwise, so that a tie of scores may be another text."""
    [text], [score] = outputs["translation"], outputs["score"]
    if abs(score - answer.score) >= TIES["float32"]:
        load.wrong.append(sentence)
    elif text != answer.text:
        load.ties[0] += 1
