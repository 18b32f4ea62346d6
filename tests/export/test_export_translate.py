"""`keras-transformer translate-export`: each line of input gives a line of output, from an export alone."""

import json
import shutil
import signal
import subprocess

import pytest
import tensorflow as tf

from export import translate as translate_command
from keras_transformer.commands import translate_input
from keras_transformer.commands.console import BATCHES_AT_ONCE
from keras_transformer.ground.errors import UserError
from keras_transformer.text.road import Candidates
from keras_transformer.translation import exported
from tests.support.commands import assert_one_sentence, invoke
from tests.support.engines import Writer
from tests.support.exports import write_version
from tests.support.places import ROOT
from tests.support.processes import python, start_python
from tests.support.runs import SENTENCES, random_run


def run_translate(folder, *options, text=b""):
    return invoke(translate_command.app, folder, *options, stdin=text)


def encoded(lines):
    return "".join(f"{line}\n" for line in lines).encode()


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A folder with one version of a run, and the Translator of the same run."""
    folder = tmp_path_factory.mktemp("served")
    return folder / "versions", write_version(random_run(folder / "run"), folder / "versions" / "1")


@pytest.mark.nightly
def test_each_line_of_input_gives_a_line_of_output(served):
    folder, translator = served
    expected = translator.translate(SENTENCES)
    text = encoded([*SENTENCES, ""])
    assert run_translate(folder, text=text).stdout_bytes == encoded([*(t.text for t in expected), ""])
    with_scores = run_translate(folder / "1", "--scores", "--batch-size", "2", text=text).stdout
    assert [line.split("\t")[1] for line in with_scores.splitlines()] == [*(t.text for t in expected), ""]
    scores = [float(line.split("\t")[0]) for line in with_scores.splitlines()]
    assert scores == pytest.approx([*(t.score for t in expected), 0.0], abs=2e-4)


@pytest.mark.nightly
def test_line_endings_and_byte_order_marks_are_not_text(served):
    plain = run_translate(served[0], text=b"der K\xc3\xbcche\nkochen\n").stdout
    assert run_translate(served[0], text=b"\xef\xbb\xbfder K\xc3\xbcche\r\nkochen").stdout == plain
    assert run_translate(served[0], text=b"").stdout == ""


@pytest.mark.nightly
def test_lines_before_an_invalid_byte_are_translated_and_the_byte_is_named(served):
    result = run_translate(served[0], text=b"der K\xc3\xbcche\nK\xfcche\na\n")
    [expected] = served[1].translate(["der Küche"])
    assert (result.exit_code, result.stdout) == (1, f"{expected.text}\n")
    assert all(part in result.stderr for part in ("line 2", "byte 2", "0xfc")) and result.stderr.count("\n") == 1


@pytest.mark.nightly
def test_texts_and_files_are_translated_sentence_by_sentence(served, tmp_path):
    folder, translator = served
    first, second = (translation.text for translation in translator.translate(["der Küche.", "kochen."]))
    text = "der Küche.  kochen.\r\n\r\n".encode()
    assert run_translate(folder, "--paragraphs", text=text).stdout_bytes.decode() == f"{first}  {second}\r\n\r\n"
    lines, output = encoded(["der Küche.", "kochen."]), tmp_path / "out.txt"
    assert run_translate(folder, "--output", output, text=lines).exit_code == 0
    assert output.read_text() == f"{first}\n{second}\n"


def test_every_option_that_changes_the_output_is_recorded(tmp_path, monkeypatch):
    """So that no file is joined from the outputs of two of them."""
    works = []
    monkeypatch.setattr(translate_command, "translator_of", lambda folder, size: Shouting())
    monkeypatch.setattr(translate_input, "translate_files", lambda road, files, size, work: works.append(work()))
    fields = [["--format", "tsv", "--field", name] for name in ("1", "2")]
    texts = [["--format", "text"], ["--format", "text", "--language", "de"], *fields]
    changes = [*texts, ["--scores"], ["--confidence"], [], ["--batch-size", 2]]
    (tmp_path / "export" / "1").mkdir(parents=True)
    (tmp_path / "export" / "1" / "saved_model.pb").write_bytes(b"graph")
    for change in changes:
        assert run_translate(tmp_path / "export", "--output", tmp_path / "out.txt", *change).exit_code == 0
    (tmp_path / "export" / "2").mkdir()
    (tmp_path / "export" / "2" / "saved_model.pb").write_bytes(b"another")  # published after a kill
    assert run_translate(tmp_path / "export", "--output", tmp_path / "out.txt").exit_code == 0
    shutil.move(tmp_path / "export" / "1", tmp_path / "moved")
    assert run_translate(tmp_path / "moved", "--output", tmp_path / "out.txt").exit_code == 0
    assert works[-1] == works[-3] == works[-4] and len({json.dumps(work) for work in works}) == len(changes)


class Shouting(Writer):
    """Translates into capitals; every translation is cut."""

    def __init__(self):
        super().__init__(str.upper)

    def search(self, lines, asks, first_line):
        found = super().search(lines, asks, first_line)
        return [Candidates([best._replace(is_cut=True)]) for [best], *_ in found]


@pytest.mark.parametrize("option", ["--scores", "--confidence"])
def test_of_text_there_are_no_scores(option, tmp_path):
    result = run_translate(tmp_path, "--paragraphs", option, text=b"a\n")
    assert_one_sentence(result, "--scores, --confidence, --target-prefixes, --require and --required are for lines")


@pytest.mark.parametrize("name", ["1/saved_model.pb", "1/out.txt"])
def test_an_export_is_not_written_into(tmp_path, name):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"graph")
    result = run_translate(tmp_path, "--output", tmp_path / name, text=b"a\n")
    assert_one_sentence(
        result, f"--output {tmp_path / name} is inside the export {tmp_path / '1'}: name a file elsewhere"
    )
    assert (tmp_path / "1" / "saved_model.pb").read_bytes() == b"graph"


@pytest.mark.nightly
def test_a_batch_size_of_0_is_refused(served):
    for export in (served[0], ROOT / "presets" / "multi30k_en_de" / "litert"):
        assert_one_sentence(run_translate(export, "--batch-size", 0, text=b"a\n"), "--batch-size is 0")
    with pytest.raises(UserError, match="batch_size is 0"):
        exported.ExportedTranslator(served[0], 0)


@pytest.mark.nightly
def test_one_string_is_not_a_list_of_lines(served):
    with pytest.raises(TypeError, match="Received: 'two'"):
        exported.ExportedTranslator(served[0]).translate("two")


@pytest.mark.parametrize("knows", [True, False], ids=["of today", "of the first versions"])
def test_a_line_that_is_longer_than_the_export_reads_is_named(tmp_path, caplog, knows):
    """By an export that tells it."""

    class Graph(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
        def serve(self, text):
            too_long = tf.strings.length(text) > 3
            outputs = {"translation": tf.strings.upper(text), "score": tf.zeros(tf.shape(text)), "truncated": too_long}
            return outputs if knows else {name: outputs[name] for name in ("translation", "score")}

    graph = Graph()
    tf.saved_model.save(graph, str(tmp_path / "1"), signatures={"serving_default": graph.serve})
    translations = exported.ExportedTranslator(tmp_path, 2).translate(["a", "abcde", "", "abcd", "abc"], 7)
    assert [translation.text for translation in translations] == ["A", "ABCDE", "", "ABCD", "ABC"]
    assert [record.getMessage() for record in caplog.records] == [
        f"line {number} is longer than this export reads; only its beginning is used" for number in (8, 10) if knows
    ]


def test_a_folder_without_an_export_is_refused(tmp_path):
    assert_one_sentence(run_translate(tmp_path), tmp_path, "no exported version")
    assert_one_sentence(run_translate(tmp_path / "none"), "does not exist")
    (tmp_path / "file").touch()
    assert_one_sentence(run_translate(tmp_path / "file"), "is a file")
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"no protocol buffer")
    assert_one_sentence(run_translate(tmp_path), tmp_path / "1", "cannot be loaded")


@pytest.mark.nightly
@pytest.mark.parametrize(
    "name, keep", [("variables.data-00000-of-00001", 0.5), ("variables.index", 0.5), ("variables.index", 0)]
)
def test_a_version_with_truncated_variables_is_refused(served, tmp_path, name, keep):
    damaged = shutil.copytree(served[0] / "1", tmp_path / "1")
    file = damaged / "variables" / name
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * keep)])
    assert_one_sentence(run_translate(tmp_path), damaged, "cannot be loaded")


WITNESS = """
import sys
from export.translate import main
before = set(sys.modules)
import tensorflow, tensorflow_text
theirs = set(sys.modules) - before  # TensorFlow itself imports parts of Keras
try:
    main()
except SystemExit as end:
    ours = {name for name in set(sys.modules) - theirs if name.startswith(MODEL_CODE)}
    ours |= {"keras", "sentencepiece"} & (set(sys.modules) - theirs)
    ours -= {f"keras_transformer.{name}" for name in ("model_config", "search.options")}  # the tables of options
    sys.exit(f"imported {sorted(ours)}" if ours else end.code)
"""
MODEL_CODE = tuple(f"keras_transformer.{name}" for name in ("layers", "model", "recurrent", "search.", "translation_"))


@pytest.mark.nightly
def test_translating_with_an_export_imports_neither_keras_nor_sentencepiece_nor_the_model(served):
    process = python("-c", WITNESS.replace("MODEL_CODE", repr(MODEL_CODE)), served[0], stdin=encoded(SENTENCES[:2]))
    assert process.returncode == 0, process.stderr.decode()
    assert process.stdout == encoded(translation.text for translation in served[1].translate(SENTENCES[:2]))
    assert b"LOG(INFO)" not in process.stderr


ONE_LINE = """
import gc, sys
import tensorflow as tf, tensorflow_text

translate = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
gc.collect()
for line in translate(text=tf.constant(sys.stdin.read().splitlines()))["translation"].numpy():
    print(line.decode())
assert not [name for name in sys.modules if name.partition(".")[0] in ("export", "keras_transformer")]
"""


@pytest.mark.nightly
def test_a_script_with_tensorflow_alone_needs_nothing_but_a_signature(served):
    """The object that was loaded is gone: no variable stands for it."""
    process = python("-c", ONE_LINE, served[0] / "1", stdin=encoded(SENTENCES[:2]))
    assert process.returncode == 0, process.stderr.decode()[-2000:]
    assert process.stdout == encoded(translation.text for translation in served[1].translate(SENTENCES[:2]))


ECHO = """
import pathlib, runpy, sys, types
from tests.support.engines import Writer

echo = Writer(lambda line: line)
opens_echo = types.SimpleNamespace(open_quietly=lambda version, batch_size: echo)
sys.modules["keras_transformer.translation.exported"] = opens_echo
sys.modules["export.versions"] = types.SimpleNamespace(ExportError=None)
sys.modules["keras_transformer.runs.versions"] = types.SimpleNamespace(find_export=pathlib.Path)
sys.argv = ["translate", "folder", "--batch-size", "1"]
runpy.run_module("export.translate", run_name="__main__")
"""


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="Windows has no such signals")
def test_a_reader_that_closes_the_pipe_ends_the_translation_without_a_traceback():
    group = b"line\n" * BATCHES_AT_ONCE
    with start_python("-c", ECHO, stdin=subprocess.PIPE, text=False) as process:
        process.stdin.write(group)
        process.stdin.flush()
        assert process.stdout.read(len(group)) == group
        process.stdout.close()
        process.stdin.write(group)
        process.stdin.flush()
        assert (process.wait(60), process.stderr.read()) == (-signal.SIGPIPE, b"")
