"""The story of a command on a Spark of lists: lines in, as many lines out, and what is finished stays finished."""

import contextlib
import dataclasses
import json
import logging
import os
import re
import signal
import sys
import time
import types

import pytest

from cluster import job, part
from cluster.errors import ClusterError
from cluster.formats import TextLines
from cluster.job import Place, Request, described, run, stopped_by_signals
from cluster.part import Job
from cluster.works import Clean, Nearest, Score, Translate
from keras_transformer.ground.errors import ConfigError, Interrupted
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.runs.lite_folder import Description, Room
from keras_transformer.runs.versions import LANGUAGES
from keras_transformer.text.asks import NOTHING
from tests.support.local_spark import LocalSpark, Parts

PAIRS = ["a\tb", "same\tSame", "a\tb", "no tab", "c\td", "a\tb", "e\te"]
DROPPED = ["a\tb\t\t", "same\tSame\tidentical\t", "a\tb\trepeated\t", None, "c\td\t\t", "a\tb\trepeated\t"]
WORK = Clean((("identical", True), ("duplicates", True)))
REQUEST = Request(WORK, "tsv", ["1", "2"], 2)


@pytest.fixture
def context(monkeypatch):
    """A Spark of lists for every command, whose workers open no export."""
    context = LocalSpark(cores=2)
    monkeypatch.setattr(job, "spark", lambda *given: contextlib.nullcontext(context.asked.append(given) or context))
    task = types.SimpleNamespace(get=lambda: None)
    monkeypatch.setitem(sys.modules, "pyspark", types.SimpleNamespace(TaskContext=task))
    for module in (job, part):
        monkeypatch.setattr(module, "opened", lambda engine, threads: context.asked.append(("opened", engine)))
    return context


@pytest.fixture
def corpus(tmp_path):
    """Two files; the last line of each has no end."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.tsv").write_text("\n".join(PAIRS[:3]), encoding="utf-8")
    (tmp_path / "in" / "2.tsv").write_text("\n".join(PAIRS[3:]), encoding="utf-8")
    return tmp_path / "in"


def lines_in(folder):
    return "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("part-*"))).split("\n")[:-1]


def place(corpus, part_bytes=8, master=None):
    return Place(str(corpus), f"{corpus.parent}/out/", master, ["spark.a=b"], part_bytes)


@pytest.mark.parametrize("lite", [False, True])
@pytest.mark.parametrize("work", [Translate, Nearest, Score])
@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"target_language": "fr"}, "The target language is 'fr'; this model writes de, en."),
        ({"source_language": "xx"}, "The source language is 'xx'; this model reads de, en."),
        ({"target_language": "de"}, None),
        ({}, None),
    ],
)
def test_a_language_that_the_export_lacks_is_refused_before_spark_starts(context, corpus, lite, work, asked, sentence):
    export, told = corpus.parent / "export", dict.fromkeys(("de", "en"), "")
    languages = Languages(told, {"de": "<2de>", "en": "<2en>"}, source_first="target")
    (export / "assets.extra").mkdir(parents=True)
    if lite:
        Description({"beam_size": 2}, (Room(1, 8),), languages=languages).save(export / "litert.json")
    else:
        (export / "saved_model.pb").touch()
        (export / LANGUAGES).write_text(json.dumps(languages.as_json()))
    request = Request(work(ask=NOTHING._replace(**asked)), "tsv", ["1"], 2)
    if sentence:
        with pytest.raises(ConfigError, match=re.escape(sentence)):
            run(export, request, place(corpus))
        assert not context.asked and not (corpus.parent / "out").exists()
    else:
        with pytest.raises(Exception, match="no attribute"):  # the Spark of lists opens no export
            run(export, request, place(corpus))
        assert context.asked


def test_each_line_has_its_reason_in_its_place_and_the_folder_is_published(context, corpus, capsys, caplog):
    caplog.set_level("INFO")
    run(None, REQUEST, place(corpus, master="local[2]"))
    out = corpus.parent / "out"
    found = lines_in(out)
    assert len(found) == len(PAIRS) and [line for line in found if line.startswith("no tab")] == [found[3]]
    assert [line for number, line in enumerate(found[:6]) if number != 3] == [each for each in DROPPED if each]
    assert "The line has 1 columns" in found[3]
    assert sorted(path.name for path in out.iterdir() if not path.name.startswith("part-")) == ["_SUCCESS"]
    assert capsys.readouterr().out == f"{out}\n"
    assert "7 lines, 1 of them with an error" in caplog.text and "0 of them finished" in caplog.text
    assert context.asked[0][:3] == ("local[2]", ["spark.a=b"], None) and ("setLogLevel", "ERROR") in context.asked
    assert all(each[1] == "" for each in context.asked if each[0] == "opened")
    with pytest.raises(ClusterError, match="exists already"):
        run(None, REQUEST, place(corpus))


def stopped_after(parts, *arguments):
    """Run a command that is stopped after so many parts."""
    Parts.stops_after, Parts.stop = parts, Interrupted
    try:
        with pytest.raises(Interrupted):
            run(*arguments)
    finally:
        Parts.stops_after = None


def test_what_was_finished_stays_and_the_parts_that_are_missing_are_made(context, corpus, caplog):
    caplog.set_level("INFO")
    stopped_after(2, None, REQUEST, place(corpus))
    unfinished = corpus.parent / "out" / "_unfinished"
    files = sorted(corpus.iterdir())
    plan = json.loads((unfinished / "plan.json").read_text(encoding="utf-8"))
    assert plan == {
        "input": [[f"file:{path}", len(path.read_bytes()), int(path.stat().st_mtime * 1000)] for path in files],
        "parts": plan["parts"],
        "export": None,
        "work": repr(WORK),
        "batch_size": "2",
        "format": "MarkedRows(format=TabLines(columns=(1, 2)))",
    }
    first = {path.name: path.stat().st_ino for path in (unfinished / "1").glob("part-*")}
    run(None, REQUEST, place(corpus, part_bytes=1))  # the parts are those that were begun
    out = corpus.parent / "out"
    assert [line for number, line in enumerate(lines_in(out)[:6]) if number != 3] == [each for each in DROPPED if each]
    assert len(list(out.glob("part-*"))) == plan["parts"]
    assert {name: (out / name).stat().st_ino for name in first} == first and len(first) == 2
    assert "2 of them finished" in caplog.text


def test_a_command_that_was_stopped_before_it_published_computes_nothing_again(context, corpus, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(job.Output, "publish", lambda output: (_ for _ in ()).throw(Interrupted))
        with pytest.raises(Interrupted):
            run(None, REQUEST, place(corpus))
    monkeypatch.setattr(Parts, "saveAsTextFile", None)
    run(None, REQUEST, place(corpus))
    assert len(lines_in(corpus.parent / "out")) == len(PAIRS)


@pytest.mark.parametrize(
    ("change", "differs"),
    [
        ({"work": Clean((("identical", True),))}, "work, format"),
        ({"batch_size": 3}, "batch_size"),
        ({"format": "jsonl", "columns": ["a", "b"]}, "format"),
        ({}, "input"),
        ({"export": "changed"}, "export"),
    ],
)
def test_what_another_command_began_is_not_gone_on_with(change, differs, context, corpus, tmp_path, monkeypatch):
    export = tmp_path / "export"
    export.mkdir()
    (export / "saved_model.pb").write_text("graph")
    for file in list(corpus.iterdir()):
        file.rename(file.with_suffix(""))  # a name that says no format
    stopped_after(1, export, REQUEST, place(corpus))
    if "export" in change:
        (export / "saved_model.pb").write_text(change.pop("export"))
    elif not change:
        (corpus / "1").write_text("other\ttext")
    with pytest.raises(ClusterError, match=f"another command began: it differs in {differs}. Name a new folder"):
        run(export, REQUEST._replace(**change), place(corpus))
    assert context.asked[-1] != ("cancelAllJobs",) and ("opened", "graph") in context.asked


def test_the_output_depends_on_the_work_the_format_and_the_batch_but_not_on_the_engine():
    one = Job(Translate(), TextLines(), 8, "graph")
    others = [one._replace(work=dataclasses.replace(one.work, tag="x")), one._replace(batch_size=9)]
    others.append(one._replace(format=None))
    assert described(one) == described(one._replace(engine="lite")) and set(described(one)) == set(Job._fields[:3])
    assert all(described(one) != described(other) for other in others)


@pytest.fixture
def heeded_signals():
    """Ctrl-C is heeded also if these tests run in the background of a shell, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
    logging.disable(logging.NOTSET)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_after_a_signal_whatever_ends_the_work_is_an_interruption_that_says_how_to_go_on(number, heeded_signals):
    handlers = [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)]
    with pytest.raises(
        Interrupted, match="^Stopped. out keeps the parts that are finished: run the same command again"
    ):
        with stopped_by_signals("out") as stopped:
            try:
                os.kill(os.getpid(), number)
                time.sleep(5)
            except Interrupted:
                assert stopped.is_set() and logging.getLogger("py4j").disabled is False
                raise ValueError("as py4j makes of it") from None
    assert logging.root.manager.disable >= logging.CRITICAL
    assert [signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)] == handlers


def test_without_a_signal_an_error_is_what_it_is():
    with pytest.raises(ValueError, match="^mine$"), stopped_by_signals("out") as stopped:
        raise ValueError("mine")
    assert not stopped.is_set()
