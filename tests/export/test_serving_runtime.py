"""An export answers in the C++ runtime that TensorFlow Serving uses, without Python, as the Translator does."""

import pytest

from export.certificate.runtimes import CRuntime, c_library, package, strings
from export.graph.version_folder import WARM_UP_ROWS, WARM_UP_TOKENS, warm_up_batches
from tests.support.exports import write_version
from tests.support.runs import SENTENCES, random_run

pytestmark = [
    pytest.mark.release,
    pytest.mark.skipif(
        c_library(package("tensorflow")) is None, reason="this TensorFlow package does not ship libtensorflow_cc"
    ),
]


def asked(version, requests):
    """Return the answers of the runtime, for each request a list of (translation, score), and its imported modules."""
    answer = CRuntime(version).ask([{"text": strings(request)} for request in requests])
    responses = [response["outputs"] for response in answer["responses"]]
    return [list(zip(*outputs, strict=True)) for outputs in responses], set(answer["modules"])


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A Translator, some requests, and the answers of the runtime."""
    folder = tmp_path_factory.mktemp("served")
    translator = write_version(random_run(folder / "run"), folder / "1", max_source_tokens=60)
    requests = {
        "mixed": [SENTENCES[0], "", "x" * 10_000, " \u3000", "🙂 한국어", SENTENCES[2]],
        "one": [SENTENCES[1]],
        "empty batch": [],
        "blank": ["", "\t"],
        "not UTF-8": ["\udcff\udcfe", SENTENCES[1]],
        **{f"warm-up {n}": batch for n, batch in enumerate(warm_up_batches(translator.tokenizer, 60))},
    }
    responses, modules = asked(folder / "1", list(requests.values()))
    return translator, requests, dict(zip(requests, responses, strict=True)), modules


def test_no_python_layer_of_tensorflow_takes_part(served):
    *_, modules = served
    assert not modules & {"tensorflow", "tensorflow_text", "keras", "keras_transformer", "export", "numpy"}


@pytest.mark.parametrize("name", ["mixed", "one", "blank", "empty batch"])
def test_the_runtime_translates_as_the_translator_does(served, name):
    translator, requests, responses, _ = served
    expected = translator.translate(requests[name])
    assert [text for text, _ in responses[name]] == [translation.text for translation in expected]
    assert [score for _, score in responses[name]] == pytest.approx([t.score for t in expected], abs=1e-4)


def test_bytes_that_are_not_utf_8_harm_nobody_else_in_their_batch(served):
    _, _, responses, _ = served
    text, score = responses["not UTF-8"][1]
    assert text == responses["one"][0][0] and score == pytest.approx(responses["one"][0][1], abs=1e-4)


def test_the_warm_up_requests_are_answered(served):
    _, requests, responses, _ = served
    answered = [
        name for name in responses if name.startswith("warm-up") and all(score < 0 for _, score in responses[name])
    ]
    assert len(answered) == len(WARM_UP_TOKENS) + 2
    assert (
        [len(responses[name]) for name in answered]
        == [len(requests[name]) for name in answered]
        == [1, 1, 1, 3, WARM_UP_ROWS]
    )
