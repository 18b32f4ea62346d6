"""`keras-transformer export`: a comparison before each version is published, every option, one sentence per mistake."""

import hashlib
import json
import shutil
import signal

import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from export import __main__ as command
from export.certificate.certificate import summary
from export.graph.operations import OLDEST
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.versions import CERTIFICATE, WARM_UP_REQUESTS
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation import exported
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.exports import OPTIONS, write_version
from tests.support.processes import end, fork_python, python, start_fork, wait_until
from tests.support.runs import SENTENCES, random_run

SEARCH = ["--extra-length", str(OPTIONS.extra_length)]
ALONE = ["--signature", "serving_default"]  # the others take most of the time


def run_export(*arguments):
    return invoke(command.app, *arguments, *SEARCH)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def encoded(lines):
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def served(run, tmp_path_factory):
    """A folder with one version of `run`, and the Translator of the same run."""
    folder = tmp_path_factory.mktemp("served")
    return folder, write_version(run, folder / "1")


@pytest.mark.slow
@pytest.mark.usefixtures("brief_latencies")
def test_versions_are_numbered_and_compared_on_the_sentences_of_the_run(run, tmp_path):
    folder = tmp_path / "made" / "for it"
    first = run_export(run, "--to", folder, *ALONE)
    assert first.exit_code == 0
    certificate = json.loads((folder / "1" / CERTIFICATE).read_text())
    assert first.stdout == f"{summary(certificate)}\n{folder / '1'}\n"
    second = run_export(run, "--to", folder, "--no-check", *ALONE)
    assert second.stdout == f"{folder / '2'}\n"
    assert names_in(folder) == ["1", "2"]
    assert names_in(folder / "1") == sorted([*names_in(folder / "2"), CERTIFICATE])
    lines = len(SENTENCES)
    for one in certificate["equality"]:
        assert one["same"] == one["lines"] == lines and one["ties"] == one["different"] == 0
    runtimes = [one["runtime"] for one in certificate["equality"]]
    assert set(runtimes) == {"SavedModel in Python", "C API", "local server, REST", "local server, gRPC"}
    assert {one["order"] for one in certificate["equality"]} == {"given", "shuffled"}
    assert certificate["oldest_tensorflow"] == OLDEST
    assert certificate["search"] | {"max_source_tokens": 512} == UNTOLD | {"shortlist": "off", "keep_letterless": 1}
    weights = hashlib.sha256((run / "model.weights.h5").read_bytes()).hexdigest()
    assert certificate["sha256"]["model.weights.h5"] == weights
    latency = certificate["latency"]["by_source_tokens"]
    assert latency and all(0 < one["p50"] <= one["p95"] <= one["p99"] for one in latency)


def test_an_export_that_differs_is_not_published(run, served, tmp_path, monkeypatch):
    lines = SENTENCES[-2:]
    right = served[1].translate(lines)[0]
    answers = [Translation(right.text, right.score), Translation("something else", -0.5)]
    monkeypatch.setattr(exported.ExportedTranslator, "translate", lambda self, lines: answers)
    (tmp_path / "two.txt").write_bytes(encoded(lines))
    result = run_export(run, "--to", tmp_path / "exports", "--check", tmp_path / "two.txt", *ALONE)
    assert result.exit_code == 1
    assert result.stdout == "" and "SavedModel in Python" in result.stderr
    assert f"line 2, {lines[1]!r}: 'something else' with score -0.500000 from the export" in result.stderr
    assert names_in(tmp_path) == ["two.txt"]


def test_without_sentences_to_compare_on_nothing_is_exported(run, tmp_path):
    bare = shutil.copytree(run, tmp_path / "bare", ignore=lambda *_: ["validation.src.txt"])
    assert_one_sentence(run_export(bare, "--to", tmp_path / "exports"), "validation.src.txt", "--check", "--no-check")
    assert not (tmp_path / "exports").exists()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("content", "words"),
    [(b"one\ntwo\nth\xe4t\n", ["line 3", "0xe4"]), (b"\n \n", ["no sentence"]), (None, ["There is no file"])],
)
def test_the_sentences_to_compare_on_must_be_text(run, tmp_path, content, words):
    if content is not None:
        (tmp_path / "check.txt").write_bytes(content)
    result = run_export(run, "--to", tmp_path / "exports", "--check", tmp_path / "check.txt")
    assert_one_sentence(result, tmp_path / "check.txt", *words)
    assert not (tmp_path / "exports").exists()


def test_a_folder_that_is_no_run_folder_is_refused(run, tmp_path):
    assert_one_sentence(run_export(tmp_path / "none", "--to", tmp_path / "exports"), tmp_path / "none")
    unfinished = shutil.copytree(run, tmp_path / "unfinished", ignore=lambda *_: ["model.weights.h5"])
    assert_one_sentence(run_export(unfinished, "--to", tmp_path / "exports"), "model.weights.h5")
    assert names_in(tmp_path) == ["unfinished"]


def test_versions_are_not_written_into_a_file(run, tmp_path):
    (tmp_path / "file").write_text("mine")
    assert_one_sentence(run_export(run, "--to", tmp_path / "file"), tmp_path / "file", "not a folder")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--beam-size", "0"], "beam_size"),
        (["--length-penalty", "-1"], "length_penalty"),
        (["--coverage-penalty", "-1"], "coverage_penalty"),
        (["--format", "ctranslate2", "--coverage-penalty", "0.5"], "--coverage-penalty 0, or --format saved"),
        (["--max-source-tokens", "1"], "max_source_tokens"),
        (["--check", "x", "--no-check"], "contradict"),
        (["--format", "ctranslate2", "--signature", "serving_default"], "--signature"),
        (["--signature", "translat"], "translat: --signature can be serving_default, translate, score"),
        (["--signature", "score", "--signature", "explain"], "add --signature serving_default"),
    ],
)
def test_invalid_options_are_named(run, tmp_path, options, word):
    assert_one_sentence(run_export(run, "--to", tmp_path / "exports", *options), word)
    assert names_in(tmp_path) == []


@pytest.mark.slow
def test_the_signatures_that_are_named_are_written_with_their_warm_up_requests(run, tmp_path):
    named = [*ALONE, "--signature", "tokenize"]
    assert run_export(run, "--to", tmp_path, "--no-check", *named).exit_code == 0
    assert set(tf.saved_model.load(tmp_path / "1").signatures) == {"serving_default", "tokenize"}
    requests = tf.data.TFRecordDataset(str(tmp_path / "1" / WARM_UP_REQUESTS)).as_numpy_iterator()
    asked = {PredictionLog.FromString(one).predict_log.request.model_spec.signature_name for one in requests}
    assert asked == {"serving_default", "tokenize"}


@pytest.mark.release
def test_a_run_folder_may_have_the_name_of_a_command(run, tmp_path):
    shutil.copytree(run, tmp_path / "translate")
    script = f"import os; from export.__main__ import main; os.chdir({str(tmp_path)!r}); main()"
    process = fork_python("-c", script, "translate", "--to", "exports", "--no-check", *ALONE)
    assert (process.returncode, process.stdout) == (0, "exports/1\n"), process.stderr


NAMES = ("beam_size", "length_penalty", "coverage_penalty", "length_normalization", "no_repeat_ngram_size")
NAMES += ("repetition_penalty", "extra_length", "max_source_tokens")
TOLD = dict(zip(NAMES, (1, 1.5, 0.5, "tokens", 2, 1.5, 2, 3), strict=True))
UNTOLD = dict(zip(NAMES, (4, 0.6, 0.0, "gnmt", 0, 1.0, 12, 512), strict=True))


def translations_of(run, settings):
    """Return the texts and scores of SENTENCES by a Translator with these settings."""
    *options, limit = settings.items()
    found = Translator.load(run, SearchOptions(**dict(options)), **dict([limit])).translate(SENTENCES)
    return [translation.text for translation in found], scores_of(found)


@pytest.mark.nightly
def test_every_option_arrives_in_the_served_graph(run, tmp_path, request):
    """The version translates as a Translator with these options, and not as one without one of them."""
    arguments = [word for name, value in TOLD.items() for word in (f"--{name.replace('_', '-')}", value)]
    result = invoke(command.app, run, "--to", tmp_path, "--no-check", *ALONE, *arguments)
    assert result.exit_code == 0, result.stderr
    found = exported.ExportedTranslator(tmp_path).translate(SENTENCES)
    request.getfixturevalue("eager")  # each of the searches that follow is made once, and is of a few tokens
    texts, scores = translations_of(run, TOLD)
    assert [translation.text for translation in found] == texts
    assert scores_of(found) == pytest.approx(scores, abs=1e-4)
    for name in TOLD:
        _, without = translations_of(run, TOLD | {name: UNTOLD[name]})
        assert scores_of(found) != pytest.approx(without, abs=1e-3), name


@pytest.mark.nightly
def test_the_precision_is_that_of_the_variables_that_are_written(run, tmp_path):
    assert run_export(run, "--to", tmp_path, "--no-check", "--precision", "bfloat16", *ALONE).exit_code == 0
    saved = tf.train.load_checkpoint(str(tmp_path / "1" / "variables" / "variables"))
    dtypes = saved.get_variable_to_dtype_map()
    del dtypes["_CHECKPOINTABLE_OBJECT_GRAPH"]
    assert len(dtypes) > 10 and set(dtypes.values()) == {tf.bfloat16}


@pytest.mark.nightly
def test_the_bound_of_learned_positions_arrives_in_the_served_graph(tmp_path):
    run = random_run(tmp_path / "run", positions="learned", max_positions=9)
    assert run_export(run, "--to", tmp_path / "exports", "--no-check", *ALONE).exit_code == 0
    exported_translator = exported.ExportedTranslator(tmp_path / "exports")
    long = SENTENCES[1]
    assert len(Translator.load(run, OPTIONS).tokenizer.encode(long)) > 9
    [found] = exported_translator.translate([long])
    [expected] = Translator.load(run, OPTIONS).translate([long])  # truncated to 9 tokens
    assert found.text == expected.text and found.score == pytest.approx(expected.score, abs=1e-4)


def scores_of(translations):
    return [translation.score for translation in translations]


@pytest.mark.release
def test_an_export_prints_the_comparison_and_the_version_but_no_notice_of_a_library(run, tmp_path):
    process = python("-m", "export", run, "--to", tmp_path, *SEARCH, *ALONE)
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[-1] == str(tmp_path / "1")
    assert "LOG(INFO)" not in process.stderr and "INFO: written; comparing" in process.stderr


@pytest.mark.nightly
def test_a_mistake_ends_the_process_with_exit_code_1():
    process = fork_python("-m", "export", "no such run", "--to", "no such folder", "--no-check")
    assert (process.returncode, process.stdout) == (1, "")
    assert "Error: There is no run folder no such run." in process.stderr and "Traceback" not in process.stderr


# signals

SLOW_EXPORT = """
import sys, time
from export.graph import version_folder

def write_saved_model(served, tokenizer, folder, names):
    (folder / "half").touch()
    print("writing", flush=True)
    time.sleep(60)

version_folder.write_saved_model = write_saved_model
from export.__main__ import main
main()
"""


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="Windows has no such signals")
@pytest.mark.parametrize("number, code", [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_an_export_and_leaves_nothing(run, tmp_path, number, code):
    begin = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a background job ignores it
    arguments = run, "--to", tmp_path / "exports", "--no-check"
    process = start_fork("-c", begin + SLOW_EXPORT, *arguments, log=(log := tmp_path / "log"))
    wait_until(lambda: "writing\n" in log.read_text(encoding="utf-8"), [process])
    process.send_signal(number)
    assert end([process]) == [code] and "Traceback" not in log.read_text(encoding="utf-8")
    assert not (tmp_path / "exports").exists()
