"""The bounds of the texts of a request: each field has one, and it is checked before any work."""

import re

import grpc
import numpy as np
import pytest
from tensorflow_serving.apis.predict_pb2 import PredictRequest

from export.graph.request import FORBIDDEN, PREFIX, REQUIRED
from export.server.bounds import BOUNDS, LINES_WITH_SPANS, WHOLE_TEXTS, check_bounds
from export.server.errors import LONGEST_MESSAGE, LONGEST_NAME, Code, RequestError, shown
from export.server.paragraphs import FORMAT, LANGUAGE, OUTPUT_LANGUAGE, PARAGRAPHS
from export.server.protection import INPUTS, Kept, protection_of, read_protection
from keras_transformer.text.forbidden import MOST_PHRASE_CHARACTERS
from keras_transformer.text.glossary import MOST_WRITTEN_OUT
from tests.support.places import ROOT
from tests.support.servers import serving


def inputs_of(name, *values, **others):
    return {name: np.array(values, object), "beam_size": np.array([4]), **others}


def test_every_text_that_a_line_may_ask_for_has_a_bound():
    assert set(BOUNDS) == {
        PREFIX.name,
        REQUIRED.name,
        FORBIDDEN.name,
        LANGUAGE,
        FORMAT,
        OUTPUT_LANGUAGE,
        *(each.name for each in INPUTS),
    }
    assert BOUNDS[FORBIDDEN.name].each > 4 * MOST_PHRASE_CHARACTERS


@pytest.mark.parametrize("name", BOUNDS)
def test_a_value_up_to_its_bound_is_taken_and_no_longer_one(name):
    bound = BOUNDS[name]
    check_bounds(inputs_of(name, b"", b"x" * bound.each))
    with pytest.raises(RequestError, match=f"A value of {name} has {bound.each + 1} bytes; it may have {bound.each}"):
        check_bounds(inputs_of(name, b"", b"x" * (bound.each + 1)))


@pytest.mark.parametrize("name", [name for name, bound in BOUNDS.items() if bound.together])
def test_different_values_count_together_and_equal_ones_once(name):
    bound = BOUNDS[name]
    check_bounds(inputs_of(name, *[b"x" * bound.each] * 100))
    values = [(b"%d" % number).ljust(bound.each, b"x") for number in range(bound.together // bound.each + 1)]
    with pytest.raises(RequestError, match=f"values of {name} have [0-9]+ bytes together; a request may have"):
        check_bounds(inputs_of(name, *values))


def test_a_text_has_the_bound_of_its_request_unless_it_has_many_sentences():
    text = b"x" * (WHOLE_TEXTS.each + 1)
    check_bounds(inputs_of("text", text, **{PARAGRAPHS: np.array([False])}))
    for is_text in ([True], [False, True]):
        with pytest.raises(RequestError, match="A value of text has"):
            check_bounds(inputs_of("text", text, text, **{PARAGRAPHS: np.array(is_text)}))


@pytest.mark.parametrize("name", [each.name for each in INPUTS])
def test_lines_have_a_bound_of_their_own_if_spans_or_terms_are_asked_for(name):
    most, asked = LINES_WITH_SPANS.each, {name: np.array([b"", b"urls"], object)}
    check_bounds(inputs_of("text", b"x" * most, **asked))
    check_bounds(inputs_of("text", b"x" * (most + 1), **{name: np.array([b""], object)}))
    with pytest.raises(RequestError, match="A value of text has"):
        check_bounds(inputs_of("text", b"a", b"x" * (most + 1), **asked))
    with pytest.raises(RequestError, match="The values of text have"):
        check_bounds(inputs_of("text", *[(b"%d" % number).ljust(most, b"x") for number in range(5)], **asked))


def test_the_documents_have_the_bounds():
    page = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")
    for name, bound in {**BOUNDS, "text": WHOLE_TEXTS}.items():
        size = f"{bound.each >> 10} KiB" if bound.each >= 1024 else f"{bound.each} bytes"
        assert re.search(rf"^\| `{name}`[^|]*\| {size}", page, re.MULTILINE), (name, size)


def test_of_what_was_asked_last_so_many_bytes_are_kept():
    read = []

    def reading(*texts):
        read.append(texts)
        return read_protection(*texts)

    kept = Kept(reading, most=3, most_bytes=100)

    def ask(word):
        return kept(b"", word, b"", b"")

    first = ask(b"a")
    assert ask(b"a") is first and len(read) == 1
    for word in (b"b", b"c", b"a", b"d"):  # "b" is the oldest
        ask(word)
    assert len(read) == 4 and kept.size == 3
    ask(b"a"), ask(b"c"), ask(b"b")
    assert len(read) == 5
    ask(b"x" * 99)  # leaves room for one byte
    assert kept.size == 100 and len(kept._of_texts) == 2
    ask(b"y" * 101)
    assert kept.size == 0 and len(kept._of_texts) == 0  # it alone has too many
    assert protection_of.most_bytes * 60 + protection_of.most * 280 * MOST_WRITTEN_OUT < 128 << 20


def test_an_error_is_short_whatever_a_request_names():
    for name in ("x" * (3 << 20), "\u732b" * 10_000, "\ud800" * 9999):
        error = RequestError(Code.NOT_FOUND, f"There is no {name}.")
        assert len(error.message.encode()) <= LONGEST_MESSAGE and str(error) == error.message
        assert len(shown(name)) == LONGEST_NAME and shown(name).startswith(name[:9])
    assert shown("mine") == "mine"


def test_a_name_of_megabytes_is_short_in_the_log_and_in_what_a_client_gets(echo_folder, tmp_path):
    """A line of the log counts as 1 KiB, and a client refuses trailers of more than 8."""
    name, log = "\u732b" * (1 << 20), tmp_path / "log"
    with serving(echo_folder, log_requests=log) as address:
        with grpc.insecure_channel(f"{address.host}:{address.grpc_port}") as channel:
            for spec in (
                {"name": name},
                {"name": "echo", "version_label": name},
                {"name": "echo", "signature_name": name},
            ):
                with pytest.raises(grpc.RpcError) as error:
                    call = channel.unary_unary("/tensorflow.serving.PredictionService/Predict")
                    call(PredictRequest(model_spec=spec).SerializeToString(), timeout=60)
                assert error.value.code().name != "RESOURCE_EXHAUSTED" and len(error.value.details()) < 300
    lines = log.read_text().splitlines()
    assert len(lines) == 3 and all(len(line.encode()) < 1 << 10 for line in lines)
