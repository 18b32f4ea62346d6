"""What the clients of a soak ask, with the answer that each question has on an idle server."""

import http.client
import json
import urllib.parse
from typing import Any, NamedTuple

from benchmarks.errors import BenchmarkError
from export.certificate.agreement import TIES

PATIENCE = 120  # seconds for an answer: longer than the server's deadline
HEADERS = {"Content-Type": "application/json"}
OPTIONS = [  # of the signature `translate`
    {"n_best": [3]},
    {"beam_size": [2], "n_best": [2]},
    {"length_penalty": [1.0]},
    {"target_prefix": ["Ein"]},
    {"alignments": [True]},
]
SCORES, TEXTS = ("score", "scores"), ("translation", "translations", "is_cut", "counts")
ROWS = 5  # lines of a request with options
EACH = 40  # questions of a kind, at most


class Question(NamedTuple):
    """A request, what it is, and its answer. kind: "plain", "options", "explain" or "paragraphs"."""

    kind: str
    body: bytes
    expected: dict[str, Any]


def known_answers(url: str, sentences: list[str]) -> list[Question]:
    """Ask each question once, alone. Raises BenchmarkError if a plain one has no answer.

    A kind that the export does not have, such as `explain` or an option of newer exports, is left out.
    """
    place = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=PATIENCE)
    questions, refused = [], set()
    for kind, group, content in contents(sentences):
        if group in refused:
            continue
        body = json.dumps(content).encode()
        connection.request("POST", f"{place.path}:predict", body, HEADERS)
        response = connection.getresponse()
        answer = json.loads(response.read())
        if response.status == 200:
            questions.append(Question(kind, body, answer["outputs"]))
        elif kind == "plain":
            raise BenchmarkError(f"The server answers {response.status}: {answer.get('error')}")
        else:
            refused.add(group)
    connection.close()
    return questions


def contents(sentences: list[str]) -> list[tuple[str, str, dict[str, Any]]]:
    """Return kind, group and JSON of each question; if one of a group is refused, the others need not be asked."""
    several = [sentences[start : start + ROWS] for start in range(0, len(sentences), ROWS)][:EACH]
    texts = [" ".join(lines) + "\n\n" + lines[0] for lines in several[: EACH // 4]]
    found: list[tuple[str, str, dict[str, Any]]] = []
    found += [("plain", "plain", {"inputs": {"text": [sentence]}}) for sentence in sentences]
    for number, lines in enumerate(several):
        option = OPTIONS[number % len(OPTIONS)]
        inputs = {"text": lines} | option
        found.append(("options", str([*option]), {"signature_name": "translate", "inputs": inputs}))
    found += [
        ("explain", "explain", {"signature_name": "explain", "inputs": {"text": [sentence]}})
        for sentence in sentences[:EACH]
    ]
    found += [
        ("paragraphs", "paragraphs", {"signature_name": "translate", "inputs": {"text": [text], "paragraphs": [True]}})
        for text in texts
    ]
    return found


def verdict(outputs: dict[str, Any], expected: dict[str, Any]) -> str:
    """Return "right", "tie" or "wrong": an answer is right if its texts are equal and its scores nearly so.

    It must have all outputs of the known one. Batches of other sizes round otherwise: another text whose score is equal
    to 1e-4 is a tie. The beam of `explain` is not compared: the order of what it drops is full of ties.
    """
    if outputs.keys() != expected.keys():
        return "wrong"
    scores, known = (flat([answer[name] for name in SCORES if name in answer]) for answer in (outputs, expected))
    if len(scores) != len(known) or any(abs(a - b) >= TIES["float32"] for a, b in zip(scores, known, strict=True)):
        return "wrong"
    are_equal = all(outputs[name] == expected[name] for name in TEXTS if name in expected)
    return "right" if are_equal else "tie"


def flat(values: Any) -> list[float]:
    """Return the numbers in lists of lists."""
    return [number for value in values for number in flat(value)] if isinstance(values, list) else [values]
