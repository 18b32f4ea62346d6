"""`POST /v1/translations` of the local server, at once and as a stream."""

import asyncio
import contextlib
import json

import pytest
import requests

from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.translations_api import Divided, Events
from tests.support.languages import many, pair, write_models
from tests.support.translations import ask, streamed

WRAPPED = " - This is a long line that a program has wrapped at\n   forty characters, or more; but not\nmany. The end."
LETTER = "A dog runs.  It is\nbrown.\r\n\r\n - The end. \n 12 \n\n<b>Two</b> cats, Mr. Fox!\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    written = {"en-de": pair("en", "de"), "de-fr": pair("de", "fr"), "nllb": many(["en", "fi"], ["en", "fi"])}
    options = ServerOptions(port=0, grpc_port=0, request_rows=40, log_requests=folder / "log", log_text=True)
    with local_server(write_models(folder, **written), options) as address:
        yield f"http://{address.host}:{address.port}"


def test_a_text_is_answered_with_the_model_and_the_languages(server):
    found = ask(server, input="A dog. Two cats.", source_language="en", target_language="deu").json()
    assert found.pop("id").startswith("trsl-") and found.pop("created") > 1e9
    assert found == {
        "object": "translation",
        "model": "en-de",
        "source_language": "en",
        "target_language": "de",
        "text": "To de: A dog. To de: Two cats.",
    }


def test_a_list_is_answered_with_a_list_and_a_third_language_is_named(server):
    found = ask(server, input=["A dog.", ""], source_language="en", target_language="fr").json()
    assert found["text"] == ["To fr: To de: A dog.", ""]
    assert (found["model"], found["intermediate_language"]) == ("en-de, de-fr", "de")


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"model": "en-de"}, "To de: A dog."),
        ({"model": "en-de", "source_language": "en", "target_language": "de"}, "To de: A dog."),
        ({"model": "nllb", "source_language": "fin", "target_language": "en"}, "To fi-en: A dog."),
        ({"target_language": "de", "source_language": "de"}, "A dog."),
    ],
)
def test_a_model_may_be_named_and_then_a_language_that_is_the_only_one_is_not_needed(server, asked, text):
    assert ask(server, input="A dog.", **asked).json()["text"] == text


def test_the_source_language_is_detected_if_there_are_several(server):
    pytest.importorskip("py3langid", reason="needs the extra clean")
    text = "A small dog runs across the green field."
    for asked in ({"model": "nllb"}, {"source_language": "auto"}, {}):
        found = ask(server, input=text, target_language="fi", **asked).json()
        assert found["text"] == f"To en-fi: {text}" and 0.5 < found["detected_confidence"] <= 1


@pytest.mark.parametrize("texts", [[LETTER], ["A dog. " * 35], [LETTER, "", "B c."], ["12", ""], [WRAPPED]], ids=len)
@pytest.mark.parametrize("target", ["de", "fr", "en"])
def test_the_pieces_of_a_stream_are_the_answer(server, texts, target):
    of_pair = {"source_language": "en", "target_language": target}
    whole = ask(server, input=texts, **of_pair).json()["text"]
    events = streamed(server, input=texts, **of_pair)
    pieces = [""] * len(texts)
    for event in events:
        assert event["object"] == "translation.chunk" and event["id"] == events[0]["id"]
        [choice] = event["choices"]
        pieces[choice["index"]] += choice["delta"].get("content", "")
    assert pieces == whole
    ends = [event["choices"][0] for event in events if event["choices"][0]["finish_reason"] == "stop"]
    assert [choice["index"] for choice in ends] == list(range(len(texts))) and events[-1]["choices"][0] in ends


def test_each_piece_is_a_sentence(server):
    events = streamed(server, input="A dog. Two cats.\nThree.", source_language="en", target_language="de")
    pieces = [event["choices"][0]["delta"].get("content") for event in events]
    assert pieces == ["To de: A dog.", " To de: Two cats.", "\nTo de: Three.", None]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"input": None}, 400, "input must be a text, or a list of texts"),
        ({"input": []}, 400, "input must be"),
        ({"input": ["a", 1]}, 400, "input must be"),
        ({"input": "\ud800"}, 400, "half of a surrogate pair"),
        ({"model": 1}, 400, "model must be a text"),
        ({"model": "no"}, 404, "Servable not found for request: Latest(no)"),
        ({"model": "en-de", "target_language": "fr"}, 400, "this model writes de"),
        ({"target_language": ""}, 400, "Name a model, or a target_language"),
        ({"target_language": "sv"}, 400, "sv is not supported; this server has en, de"),
        ({"source_language": ["en"]}, 400, "source_language must be a text"),
        ({"source_language": []}, 400, "source_language must be a text"),
        ({"target_language": 0}, 400, "target_language must be a text"),
        ({"model": False}, 400, "model must be a text"),
        ({"temperature": 1}, 400, "no field 'temperature'; there are model, input, "),
        ({"beam_size": 0}, 400, "beam_size must be a whole number from 1 to 10000"),
        ({"beam_size": True}, 400, "beam_size must be a whole number"),
        ({"target_language": "fi", "beam_size": 1}, 400, "The model nllb does not take beam_size"),
        ({"input": "A dog. " * 41}, 400, "41 sentences"),
        ({"input": "x" * ((1 << 18) + 1)}, 400, "it may have 262144"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_answered_is_refused_before_anything_is_sent(server, change, status, words, stream):
    body = json.dumps({"input": "A dog.", "source_language": "en", "target_language": "de", "stream": stream} | change)
    found = requests.post(f"{server}/v1/translations", body, timeout=60)
    error = found.json()["error"]
    assert found.status_code == error["code"] == status and words in error["message"]
    assert error["type"] == "invalid_request_error"


@pytest.mark.parametrize(("body", "words"), [(b"[]", "JSON object"), (b'{"stream": 1, "input": "a"}', "true or false")])
def test_a_body_that_is_none_is_refused(server, body, words):
    assert words in requests.post(f"{server}/v1/translations", body, timeout=60).json()["error"]["message"]


def test_a_stream_whose_client_leaves_ends(server):
    """The server then answers others, and nothing of the stream is in flight."""
    body = {"input": "A dog. " * 40, "source_language": "en", "target_language": "fr", "stream": True}
    for _ in range(5):
        with requests.post(f"{server}/v1/translations", json=body, stream=True, timeout=60) as found:
            next(found.iter_content(1))
    metrics = "in_flight 1.0"
    for _ in range(100):
        metrics = requests.get(f"{server}/monitoring/prometheus/metrics", timeout=60).text
        if "keras_transformer_requests_in_flight 0.0" in metrics:
            break
    assert "keras_transformer_requests_in_flight 0.0" in metrics and "keras_transformer_bytes_in_flight 0.0" in metrics


@pytest.mark.parametrize("text", [LETTER, "", " ", "One", "a\n\n\nb", "\ufeffA. B"])
def test_a_divided_text_whose_sentences_stay_is_itself(text):
    divided = Divided.of(text, "en")
    assert "".join([*map(divided.next_piece, divided.parts), divided.rest()]) == text


def test_a_stream_that_is_read_too_slowly_ends_late_and_not_by_a_fault_of_the_server(caplog):
    sent = []

    async def send(message):
        sent.append(message)
        if message.get("body") == b"data: 1\n\n":
            await asyncio.Event().wait()  # the client reads nothing

    async def events():
        yield b"data: 1\n\n"

    answer = Events(events(), contextlib.ExitStack(), seconds=0.01)
    asyncio.run(answer({"type": "http"}, asyncio.Event().wait, send))
    error = json.loads(sent[-1]["body"].partition(b"\n")[0].removeprefix(b"data: "))["error"]
    assert (error["code"], error["message"]) == (504, "The answer was not read within the deadline.")
    assert not caplog.records and not sent[-1]["more_body"]
