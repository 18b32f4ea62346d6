"""An export answers in the C++ runtime that TensorFlow Serving uses, without Python, as the Translator does."""

import importlib.util
import json
import pathlib

import pytest

from export.check import meta_graph
from export.saved_model import WARM_UP_ROWS, WARM_UP_TOKENS, warm_up_batches
from tests.support.exports import write_version
from tests.support.places import ROOT
from tests.support.processes import python
from tests.support.runs import SENTENCES, random_run

RUNTIME = ROOT / "tests" / "support" / "scripts" / "serving_runtime.py"


def package(name):
    return pathlib.Path(importlib.util.find_spec(name).submodule_search_locations[0])


def library():
    """The C API inside the pip package; None where that has no such file."""
    return next((str(path) for path in sorted(package("tensorflow").glob("libtensorflow_cc.*"))), None)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(library() is None, reason="this TensorFlow package does not ship libtensorflow_cc"),
]


def asked(version, requests):
    """What the runtime answers: for each request a list of (translation, score). Also the modules it imported."""
    signature = meta_graph(version).signature_def["serving_default"]
    question = {
        "library": library(),
        "operations": [str(path) for path in sorted((package("tensorflow_text") / "python/ops").glob("*.so"))],
        "folder": str(version),
        "input": signature.inputs["text"].name,
        "outputs": [signature.outputs["translation"].name, signature.outputs["score"].name],
        "requests": requests,
    }
    process = python(RUNTIME, stdin=json.dumps(question))
    assert process.returncode == 0, process.stderr
    answer = json.loads(process.stdout)
    return [list(zip(*response, strict=True)) for response in answer["responses"]], set(answer["modules"])


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A Translator, some requests, and what the runtime answered them."""
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
