"""The clients of a soak: those who ask as they should, over both protocols, slow ones, and ones that die."""

import http.client
import json
import random
import socket
import struct
import threading
import time
import urllib.parse
from collections.abc import Callable
from typing import Any, NamedTuple

from benchmarks.speed.soak_questions import HEADERS, PATIENCE, Question, verdict

PIECES = 20  # parts in which a slow client sends its body
PAUSE = 0.1  # seconds between them, between two reads of an answer, and after a refusal


class Place(NamedTuple):
    """The URLs of a model over both protocols."""

    rest: str
    grpc: str


Behaviour = Callable[[Place, list[Question], int, threading.Event, float, "Found"], None]


class Found:
    """What the clients have found; used from all their threads, each of which only appends."""

    def __init__(self):
        self.answers: list[tuple[str, float, float]] = []  # kind, when, seconds
        self.ties: list[str] = []
        self.wrong: list[str] = []
        self.refused: list[str] = []  # 503 with a sentence: the server says that it has no room
        self.unannounced: list[str] = []  # any other 5xx
        self.errors: list[str] = []
        self.died = [0]

    def as_dictionary(self) -> dict[str, Any]:
        return vars(self)

    def answer(self, kind: str, question: Question, status: int, content: Any, start: float, begun: float) -> None:
        """Count an answer that began at `begun`, which the soak did at `start`."""
        if status == 200:
            self.answers.append((kind, time.monotonic() - start, time.monotonic() - begun))
            judgement = verdict(content["outputs"], question.expected)
            if judgement != "right":
                (self.ties if judgement == "tie" else self.wrong).append(f"{kind}: {question.body.decode()[:200]}")
        elif status == 503 and content.get("error"):
            self.refused.append(content["error"])
            time.sleep(PAUSE)
        elif status >= 500:
            self.unannounced.append(f"{kind}: {status} {content.get('error')}")
        else:
            self.errors.append(f"{kind}: {status} {content.get('error')}")


def behaviours(clients: int) -> list[Behaviour]:
    """Return how each client behaves: a quarter over gRPC, a sixteenth each slow and dying, at least one of each."""
    special = max(1, clients // 16)
    odd: list[Behaviour] = [ask_slowly, die] * special + [ask_over_grpc] * max(1, clients // 4)
    return [*odd, *[ask] * (clients - len(odd))]


def opened(url: str) -> tuple[http.client.HTTPConnection, str]:
    place = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE), f"{place.path}:predict"


def ask(
    place: Place, questions: list[Question], number: int, is_over: threading.Event, start: float, found: Found
) -> None:
    """Ask one question after the other over one connection."""
    connection, path = opened(place.rest)
    chance = random.Random(number)
    while not is_over.is_set():
        question, begun = chance.choice(questions), time.monotonic()
        try:
            connection.request("POST", path, question.body, HEADERS)
            response = connection.getresponse()
            content = json.loads(response.read())
        except (OSError, ValueError, http.client.HTTPException) as error:
            found.errors.append(f"{question.kind}: {type(error).__name__} {error}")
            connection.close()
            continue
        found.answer(question.kind, question, response.status, content, start, begun)
    connection.close()


def ask_over_grpc(
    place: Place, questions: list[Question], number: int, is_over: threading.Event, start: float, found: Found
) -> None:
    """Ask the plain questions over gRPC, one after the other."""
    from export.client.client import ServingClient
    from export.client.transports import ClientError

    chance, plain = random.Random(number), [question for question in questions if question.kind == "plain"]
    client = ServingClient(place.grpc, attempts=1)
    while not is_over.is_set():
        question, begun = chance.choice(plain), time.monotonic()
        try:
            outputs = client.predict(json.loads(question.body)["inputs"], "serving_default")
        except ClientError as error:
            if error.code == "RESOURCE_EXHAUSTED":
                found.refused.append(str(error))
                time.sleep(PAUSE)
            else:
                found.unannounced.append(f"gRPC: {error}")
            continue
        found.answer("gRPC", question, 200, {"outputs": outputs}, start, begun)


def ask_slowly(
    place: Place, questions: list[Question], number: int, is_over: threading.Event, start: float, found: Found
) -> None:
    """Send each body in PIECES with pauses, and read the answer in small parts with pauses."""
    chance = random.Random(number)
    while not is_over.is_set():
        question, begun = chance.choice(questions), time.monotonic()
        connection, path = opened(place.rest)
        try:
            connection.putrequest("POST", path)
            connection.putheader("Content-Length", str(len(question.body)))
            connection.endheaders()
            size = max(1, len(question.body) // PIECES)
            for begin in range(0, len(question.body), size):
                connection.send(question.body[begin : begin + size])
                time.sleep(PAUSE)
            response, parts = connection.getresponse(), []
            while part := response.read(1 << 14):
                parts.append(part)
                time.sleep(PAUSE)
            content = json.loads(b"".join(parts))
        except (OSError, ValueError, http.client.HTTPException) as error:
            found.errors.append(f"slow: {type(error).__name__} {error}")
            continue
        finally:
            connection.close()
        found.answer("slow", question, response.status, content, start, begun)


def die(
    place: Place, questions: list[Question], number: int, is_over: threading.Event, start: float, found: Found
) -> None:
    """Leave in the middle of headers, of a body or of an answer, with and without a reset."""
    parts, chance = urllib.parse.urlsplit(place.rest), random.Random(number)
    while not is_over.wait(PAUSE):
        question = chance.choice(questions)
        head = f"POST {parts.path}:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(question.body)}\r\n\r\n"
        whole = head.encode() + question.body
        try:
            with socket.create_connection((parts.hostname, parts.port), timeout=PATIENCE) as connection:
                connection.sendall(whole[: chance.choice([10, len(head) + 5, len(whole)])])
                is_over.wait(chance.choice([0.0, 0.05, 0.5]))
                if chance.random() < 0.5:  # closing then sends a reset
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        except OSError as error:
            found.errors.append(f"dying: {type(error).__name__} {error}")
        found.died[0] += 1


def states_of(url: str) -> dict[int, str]:
    """Return the state of each version, as the server tells it."""
    connection, path = opened(url)
    connection.request("GET", path.removesuffix(":predict"))
    content = json.loads(connection.getresponse().read())
    connection.close()
    return {int(each["version"]): each["state"] for each in content["model_version_status"]}
