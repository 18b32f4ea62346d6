"""A stream of `POST /v1/translations` shows a greedy search while it writes; joined, its pieces are the answer."""

import re
import shutil

import pytest
import requests

from export.server.options import ServerOptions
from export.server.process import local_server
from export.server.translations_api import Divided
from keras_transformer.search.options import SearchOptions
from tests.support.exports import write_version
from tests.support.languages import pair, tell, write_models
from tests.support.runs import SENTENCES
from tests.support.translations import ask, streamed

DOG = SENTENCES[0]
TEXTS = {
    "sentences": "\n\n".join(SENTENCES),
    "line breaks": f"{DOG}.  It is\nbrown.\r\n\r\n - The end. \n 12 \n\n",
    "wrapped": "the cat sat on the mat and the dog runs across the\ngreen field and kochen in der Küche. the end",
    "tags": "<b>Two</b> cats, <i>Mr. Fox</i>!",
    "signs": "日本 é 🙂. \ufeffa\u200d b.",
    "long": "the dog " * 40 + ".",
    "message": "I see {n, plural, one {# dog} other {# dogs}}. the cat",
    "placeholders": "\u27e61\u27e7 the dog",
    "nothing": " \n",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory, random_folder):
    """`greedy` and `beam` are the same model; `en-xx`, which is greedy, follows `en-de` or not."""
    folder = tmp_path_factory.mktemp("models")

    def write(to, **search):
        options = SearchOptions(extra_length=40, **search)
        write_version(random_folder, to, options, max_source_tokens=40, names=("serving_default", "translate"))
        return to

    def of_languages(to):
        tell(shutil.copytree(folder / "greedy" / "1", to), source={"de": ""}, target={"xx": ""})

    written = {
        "greedy": lambda to: write(to, beam_size=1),
        "beam": lambda to: write(to, beam_size=2),
        "de-xx": of_languages,
        "en-de": pair("en", "de"),
    }
    options = ServerOptions(port=0, grpc_port=0, request_rows=60)
    with local_server(write_models(folder, **written), options) as address:
        yield f"http://{address.host}:{address.port}"


def pieces_of(server, **body):
    """The pieces of each text."""
    events = streamed(server, **body)
    assert not any("error" in event for event in events), events
    choices = [event["choices"][0] for event in events]
    texts = max(choice["index"] for choice in choices) + 1
    deltas = [[c["delta"]["content"] for c in choices if c["index"] == n and c["delta"]] for n in range(texts)]
    return deltas


@pytest.mark.nightly
@pytest.mark.parametrize("asked", [{"model": "greedy"}, {"model": "beam", "beam_size": 1}], ids=str)
def test_the_pieces_of_what_is_shown_while_it_is_written_are_the_answer(server, asked):
    texts = list(TEXTS.values())
    whole, pieces = ask(server, input=texts, **asked).json()["text"], pieces_of(server, input=texts, **asked)
    assert list(map("".join, pieces)) == whole
    by_name = dict(zip(TEXTS, pieces, strict=True))
    assert len(by_name["sentences"]) > len(SENTENCES) + 2
    assert not any("\ufffd" in piece for of_text in pieces for piece in of_text[:-1])
    assert re.fullmatch(r"\{n, plural, one \{.*\} other \{.*\}\}", by_name["message"][0])  # not on its way


@pytest.mark.nightly
def test_a_beam_and_the_first_of_two_models_come_in_whole_sentences(server):
    text = TEXTS["sentences"]
    [pieces] = pieces_of(server, input=text, model="beam")
    assert "".join(pieces) == ask(server, input=text, model="beam").json()["text"] and len(pieces) <= len(SENTENCES)
    of_two = {"source_language": "en", "target_language": "xx", "input": TEXTS["sentences"]}
    [pieces] = pieces_of(server, **of_two)
    assert "".join(pieces) == ask(server, **of_two).json()["text"] and len(pieces) > len(SENTENCES) + 2


@pytest.mark.nightly
@pytest.mark.parametrize("stream", [False, True])
def test_a_beam_that_the_model_does_not_have_is_refused_before_anything_is_sent(server, stream):
    found = ask(server, input="a dog", model="beam", beam_size=3, stream=stream)
    assert found.status_code == 400 and "beam_size" in found.json()["error"]["message"]


@pytest.mark.nightly
def test_translations_that_the_server_itself_stops_do_not_count_as_cut(server):
    def cut():
        metrics = requests.get(f"{server}/monitoring/prometheus/metrics", timeout=60).text
        return sum(float(n) for n in re.findall(r'cut\w*\{model_name="greedy".*\} (\S+)', metrics))

    before, body = cut(), {"signature_name": "translate", "instances": [{"text": each} for each in SENTENCES]}
    assert requests.post(f"{server}/v1/models/greedy:predict", json=body, timeout=60).ok
    once = cut() - before
    pieces_of(server, input=SENTENCES, model="greedy")
    assert 0 < once < len(SENTENCES) and cut() - before == 2 * once


@pytest.mark.nightly
def test_a_stream_whose_client_leaves_ends_before_its_sentences_do(server):
    body = {"input": f"{DOG}. " * 50, "model": "greedy", "stream": True}
    with requests.post(f"{server}/v1/translations", json=body, stream=True, timeout=60) as found:
        next(found.iter_content(1))
    for _ in range(200):
        metrics = requests.get(f"{server}/monitoring/prometheus/metrics", timeout=60).text
        if "keras_transformer_requests_in_flight 0.0" in metrics:
            break
    assert "keras_transformer_requests_in_flight 0.0" in metrics and "keras_transformer_bytes_in_flight 0.0" in metrics


def test_a_paragraph_whose_lines_are_wrapped_is_one_part_and_every_other_sentence_is():
    lines = [
        "- This is a long line that a program has wrapped at",
        "forty characters or more. The end.",
        "",
        "It is. A b.",
    ]
    text = "\n".join(lines)
    assert Divided.of(text, "en").parts == ["\n".join(lines[:2]), "It is.", "A b."]
    divided = Divided.of(text, "en")
    assert "".join([*map(divided.next_piece, divided.parts), divided.rest()]) == text and divided.sentences == 4
