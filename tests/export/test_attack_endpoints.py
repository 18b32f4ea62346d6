"""What fields of LibreTranslate's endpoints and of /v1/translations cost: twice as much takes twice as long at most.

With -s it prints the table of benchmarks/results/endpoint_prices.md. Models stand in, so that
the time is that of everything else.
"""

import time

import pytest
import requests

from export.server.options import ServerOptions
from export.server.process import local_server
from tests.support.languages import many, pair, write_models

pytestmark = pytest.mark.release

TEXT_BYTES, OTHER_BYTES = 1 << 15, 1 << 19
TRIES = 4  # a machine with other work is slow once
UNITS = ["a. ", "the fox ", "x", "\n", "<b>x</b> ", "<b>", "猫", "0 ", "http://x) ", "{", "&lt; ", "\u0301"]
LIBRE = {"q": "A fox.", "source": "en", "target": "de"}
OURS = {"input": "A fox.", "source_language": "en", "target_language": "de"}
TEXTS = {  # what is asked with a text, by the field that has it
    "/translate": ("q", LIBRE),
    "/translate of html": ("q", LIBRE | {"format": "html"}),
    "/translate of auto": ("q", LIBRE | {"source": "auto"}),
    "/detect": ("q", {"q": ""}),
    "/translate_file": ("file", LIBRE),
    "/v1/translations": ("input", OURS),
    "/v1/translations as a stream": ("input", OURS | {"stream": True}),
}
OTHERS = [("/translate", LIBRE, name) for name in ("source", "target", "format", "alternatives", "api_key", "other")]
OTHERS += [("/detect", {"q": "A fox."}, "api_key"), ("/languages", {}, "other")]
OTHERS += [("/translate_file", LIBRE, name) for name in ("source", "target", "name")]
OTHERS += [
    ("/v1/translations", OURS, name)
    for name in ("source_language", "target_language", "model", "stream", "beam_size", "other")
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    written = {"en-de": pair("en", "de"), "de-en": pair("de", "en"), "nllb": many(["en", "fi"], ["en", "fi"])}
    options = ServerOptions(port=0, grpc_port=0)
    with local_server(write_models(tmp_path_factory.mktemp("models"), **written), options) as address:
        url = f"http://{address.host}:{address.port}"
        for asked, (field, fields) in TEXTS.items():
            seconds_of(url, asked.partition(" ")[0], fields, field, "A fox. A hen.")
        yield url


def seconds_of(url, path, fields, field, value):
    """The seconds of the processor that a request takes with a value in a field; its answer has to be one."""
    begun = time.process_time()
    if path == "/languages":
        response = requests.get(url + path, headers={"x-other": value}, timeout=300)
    elif path == "/translate_file":
        name, content = ("a.txt", value) if field == "file" else ("a.txt", "A fox.")
        name = value + ".txt" if field == "name" else name
        files = {"file": (name, content.encode())}
        data = fields | ({field: value} if field not in ("file", "name") else {})
        response = requests.post(url + path, data=data, files=files, timeout=300)
    else:
        response = requests.post(url + path, json=fields | {field: value}, timeout=300)
    assert response.status_code < 500, response.text
    return time.process_time() - begun


def repeating(unit):
    """A text of a size in bytes."""
    return lambda size: unit * (size // len(unit.encode()))


def assert_linear(what, url, path, fields, field, value_of, most):
    over = []
    for _ in range(TRIES):
        half, whole = (seconds_of(url, path, fields, field, value_of(size)) for size in (most // 2, most))
        over.append(whole - 2.5 * half)
        if over[-1] <= 0.1:
            break
    print(f"\n| {what} | {most:,} | {half:.2f} s | {whole:.2f} s |")
    assert min(over) <= 0.1, f"{what}: {half:.2f} s, then {whole:.2f} s"


@pytest.mark.parametrize("asked", TEXTS)
@pytest.mark.parametrize("unit", UNITS, ids=ascii)
def test_a_text_costs_what_its_length_does(server, asked, unit):
    field, fields = TEXTS[asked]
    path = asked.partition(" ")[0]
    assert_linear(f"`{asked}`, `{field}` {unit!a}", server, path, fields, field, repeating(unit), TEXT_BYTES)


@pytest.mark.parametrize("path, field", [("/translate", "q"), ("/v1/translations", "input")])
@pytest.mark.parametrize("text", ["", "a", "a. b."])
def test_a_list_costs_what_its_texts_do(server, path, field, text):
    fields, repeated = (LIBRE if field == "q" else OURS), lambda count: [text] * count
    assert_linear(f"`{path}`, `{field}` of {text!r}", server, path, fields, field, repeated, 1000)


@pytest.mark.parametrize("path, fields, field", OTHERS)
@pytest.mark.parametrize("unit", ["x", "-", "0", "\u0301", "é"], ids=ascii)
def test_every_other_field_costs_what_its_length_does(server, path, fields, field, unit):
    most = 1 << 12 if path == "/languages" else OTHER_BYTES
    unit = unit if unit.isascii() or path != "/languages" else "y"
    assert_linear(f"`{path}`, `{field}` {unit!a}", server, path, fields, field, repeating(unit), most)
