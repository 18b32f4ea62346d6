"""Requests of `POST /v1/translations`."""

import json

import requests


def ask(server, **body):
    return requests.post(f"{server}/v1/translations", json=body, timeout=60)


def streamed(server, **body):
    """The events of a stream, without its end."""
    found = ask(server, stream=True, **body)
    assert found.status_code == 200 and found.headers["content-type"].startswith("text/event-stream"), found.text
    *events, end, rest = found.content.decode().split("\n\n")
    assert (end, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]
