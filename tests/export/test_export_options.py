"""`keras-transformer export` hands the run, its search and its sentences to the format, without a run."""

import types

import pytest

from export import __main__ as command
from export.__main__ import app
from export.formats import FormatArguments
from export.job import ExportJob
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.inference import Inference
from keras_transformer.run_folder import RunFolder
from tests.support.commands import invoke


@pytest.fixture
def asked(tmp_path, monkeypatch):
    """A function that returns the job that a command asks for, of a run whose own beam is 7."""
    (tmp_path / "run").mkdir()
    Inference(search={"beam_size": 7}).save(tmp_path / "run" / "inference.json")
    jobs = []
    monkeypatch.setattr(command, "opened", lambda name: tmp_path / name)
    chosen = types.SimpleNamespace(export=lambda job: jobs.append(job) or "the path")
    monkeypatch.setattr(FormatArguments, "chosen", lambda arguments: chosen)

    def ask(*options):
        result = invoke(app, "run", "--to", tmp_path / "to", *options)
        assert (result.exit_code, result.stdout) == (0, "the path\n"), result.output
        return jobs[-1]

    return ask


def test_sentences_are_those_of_the_run_or_of_a_file_or_none(asked, tmp_path):
    run = RunFolder(tmp_path / "run")
    assert asked() == ExportJob(run.path, tmp_path / "to", SearchOptions(beam_size=7), 512, run.check_lines)
    assert asked("--check", tmp_path / "mine").sentences == tmp_path / "mine"
    assert asked("--no-check").sentences is None


def test_what_is_typed_stands_above_what_the_run_has(asked):
    assert asked("--beam-size", 2).options == SearchOptions(beam_size=2)
    job = asked("--length-penalty", 0, "--max-source-tokens", 9)
    assert (job.options, job.max_source_tokens) == (SearchOptions(beam_size=7, length_penalty=0.0), 9)
