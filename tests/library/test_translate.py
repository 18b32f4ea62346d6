"""The command `keras-transformer translate`: line in, line out."""

import inspect
import pathlib
import signal
import subprocess

import pytest

from keras_transformer.commands import console
from keras_transformer.commands.translate import app
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.road import Engine
from keras_transformer.text.spans import Protection
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.processes import python, start_python
from tests.support.runs import random_run
from tests.support.searches import OTHER_VALUES


class Shouter(Engine):
    """An engine in place of a Translator: translations are the line in capitals, and again with exclamation marks."""

    abilities = Translator.abilities

    def __init__(self):
        self.first_lines, self.is_cut = [], False
        self.longer_than_trained, self.trained_tokens = 0, 64

    def search(self, lines, asks, first_line):
        raise NotImplementedError

    def are_too_long(self, lines):
        return [False] * len(lines)

    def load(self, run, options, **settings):
        self.run, self.options, self.settings = run, options, settings
        return self

    def translate_n_best(self, lines, first_line, prefixes, protection, required, **languages):
        self.first_lines.append(first_line)
        self.prefixes, self.protection, self.required = prefixes, protection, required
        ranks = range(self.options.n_best)
        return [[Translation(line.upper() + "!" * n, -0.25 - n, (), self.is_cut) for n in ranks] for line in lines]


@pytest.fixture
def shouter(monkeypatch):
    shouter = Shouter()
    monkeypatch.setattr(Translator, "load", shouter.load)
    return shouter


def translate(text, *arguments, run="some_run"):
    """Returns click's result of `translate RUN *arguments < text`, where text is bytes."""
    return invoke(app, run, *arguments, stdin=text)


# Lines


@pytest.mark.parametrize(
    "text, expected",
    [
        ("a\nb\n", "A\nB\n"),
        ("a\nb", "A\nB\n"),
        ("a\r\nb\r\n", "A\nB\n"),
        ("a\n\n\nb\n", "A\n\n\nB\n"),
        ("\n", "\n"),
        ("", ""),
        ("\ufeffgrüße 안녕 👋\n", "GRÜSSE 안녕 👋\n"),
        ("a\x0bb\x0cc\x85d\u2028e\rf\n", "A\x0bB\x0cC\x85D\u2028E F\n"),
    ],
)
def test_a_line_of_output_for_each_line_of_input(shouter, text, expected):
    result = translate(text.encode())
    assert (result.exit_code, result.stdout_bytes.decode()) == (0, expected)


def test_lines_longer_than_any_that_were_trained_on_are_one_warning_at_the_end(shouter, caplog):
    assert translate(b"a\nb\n").exit_code == 0 and not caplog.messages
    for count, said in ((1, "1 line is longer"), (3, "3 lines are longer")):
        shouter.longer_than_trained = count
        translate(b"a\nb\n")
        (warning,) = caplog.messages
        assert warning.startswith(said) and "(64 tokens)" in warning
        caplog.clear()


def test_scores_come_first_and_a_tab_follows(shouter):
    assert translate(b"a b\n\n", "--scores").stdout == "-0.2500\tA B\n-0.2500\t\n"


def test_n_best_are_lines_of_number_text_and_score(shouter):
    result = translate(b"a\nb\n", "--n-best", 2)
    assert result.stdout == "1 ||| A ||| -0.2500\n1 ||| A! ||| -1.2500\n2 ||| B ||| -0.2500\n2 ||| B! ||| -1.2500\n"


def test_a_line_break_inside_a_translation_becomes_a_space(shouter):
    assert translate(b"a\rb\n").stdout == "A B\n"
    assert translate(b"a\rb\n", "--n-best", 2).stdout == "1 ||| A B ||| -0.2500\n1 ||| A B! ||| -1.2500\n"


def test_a_long_text_is_translated_in_groups_and_lines_keep_their_numbers(shouter, monkeypatch):
    monkeypatch.setattr(console, "BATCHES_AT_ONCE", 2)
    result = translate(b"a\nb\nc\nd\ne\nf\ng\n", "--batch-size", 1, "--n-best", 2)
    assert shouter.first_lines == [1, 3, 5, 7]
    assert [line.split(" ||| ")[0] for line in result.stdout.splitlines()] == list("11223344556677")


# Options


def test_every_option_arrives(shouter):
    words = [word for name, value in OTHER_VALUES.items() for word in (f"--{name.replace('_', '-')}", value)]
    words += "--batch-size 5 --max-source-tokens 99 --precision bfloat16 --target-prefix Die".split()
    assert translate(b"a\nb\n", *words, run="the_run").exit_code == 0
    assert shouter.run == [pathlib.Path("the_run")]
    assert shouter.options == SearchOptions(**OTHER_VALUES)
    assert shouter.prefixes == ["Die", "Die"]
    settings = {"batch_size": 5, "max_source_tokens": 99, "precision": "bfloat16", "trees_only": False}
    assert shouter.settings == settings


OF_FILES = {  # of every option with a file or a word: what is written there, and what the Translator gets of it
    "--target-prefixes": ("Die\n\n", "prefixes", ["Die", ""]),
    "--required": ("red dog\tfox\n\n", "required", [["red dog", "fox"], [""]]),
    "--keep": ("Apple\n", "protection", Protection((), Glossary([Term("Apple", "Apple", ("case",))]))),
    "--glossary": ("dog\tHund\n", "protection", Protection((), Glossary([Term("dog", "Hund")]))),
    "--forbid": ("Pear\n", "protection", Protection(forbidden=Glossary([Term("Pear", "pear")]))),
}


@pytest.mark.parametrize("option", OF_FILES)
def test_every_file_arrives(option, shouter, tmp_path):
    text, name, expected = OF_FILES[option]
    (tmp_path / "file").write_text(text)
    assert translate(b"a\nb\n", option, tmp_path / "file").exit_code == 0
    others = {"prefixes": None, "required": None, "protection": Protection()} | {name: expected}
    assert {name: repr(getattr(shouter, name)) for name in others} == {name: repr(others[name]) for name in others}
    for kind in ("glossary", "forbidden") if name == "protection" else ():
        found, wanted = (getattr(each, kind).matches("Apple apple dog PEAR") for each in (shouter.protection, expected))
        assert list(found) == list(wanted)


def test_words_on_the_command_line_arrive(shouter):
    assert translate(b"a\n", "--protect", "urls,emails", "--require", "fox", "--require", "dog").exit_code == 0
    assert shouter.protection.kinds == ("urls", "emails") and shouter.required == [["fox", "dog"]]
    assert translate(b"a\n", "--constrained").exit_code == 1  # of a run that writes text


def test_lines_of_a_file_are_read_in_place_of_the_standard_input(shouter, tmp_path):
    (tmp_path / "in").write_text("b\n")
    assert translate(b"a\n", "--input", tmp_path / "in").stdout == "B\n"


@pytest.mark.parametrize(
    ("format", "option", "sentence"),
    [
        *(("text", option, "are for lines: leave them out") for option in ("--scores", "--confidence", "--n-best=2")),
        *(
            ("text", option, "are for lines: leave them out")
            for option in ("--require=a", "--required", "--target-prefixes")
        ),
        ("html", "--target-prefix=a", "--target-prefix is for lines and for --format text"),
    ],
)
def test_what_is_for_lines_is_refused_for_other_files(format, option, sentence, shouter, tmp_path):
    (tmp_path / "file").write_text("a\n")
    files = [tmp_path / "file"] if option in ("--required", "--target-prefixes") else []
    result = translate(b"a\n", "--format", format, option, *files)
    assert result.exit_code == 1 and sentence in result.stderr and not shouter.first_lines


def test_the_defaults_are_those_of_the_classes(shouter):
    translate(b"a")
    assert shouter.options == SearchOptions() and shouter.prefixes is None
    parameters = inspect.signature(Translator).parameters
    assert shouter.settings == {name: parameters[name].default for name in shouter.settings}


# Mistakes


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["--beam-size", 0], "Error: beam_size is 0"),
        (["--n-best", 5], "Error: n_best is 5"),
        (["--batch-size", 9], "Error: There is no run folder some_run"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_1(arguments, sentence):
    result = translate(b"a\n", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(sentence) and result.stderr.count("\n") == 1


def test_lines_before_an_invalid_byte_are_translated_and_the_byte_is_named(shouter, caplog):
    shouter.is_cut, shouter.longer_than_trained = True, 1
    result = translate(b"a\nb\nna\xefve\nd\n")
    assert (result.exit_code, result.stdout) == (1, "A\nB\n")
    assert result.stderr.startswith("Error: the input, line 3 ") and "byte 3 is 0xef" in result.stderr
    assert result.stderr.count("\n") == 1 and "(line numbers: 1, 2)" in caplog.text and "1 line is" in caplog.text


# The process


@pytest.mark.nightly
def test_the_whole_command_under_a_c_locale(tmp_path):
    run = random_run(tmp_path / "run")
    lines = ["the fox", "", "안녕 👋", "one two three " * 9]
    options = "--beam-size", 1, "--extra-length", 4, "--max-source-tokens", 30, "--batch-size", 2
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    text = "\n".join(lines).encode()
    process = python("-m", "keras_transformer", "translate", run, *options, stdin=text, **locale)
    greedy = SearchOptions(beam_size=1, extra_length=4)
    translator = Translator.load(run, greedy, batch_size=2, max_source_tokens=30)
    expected = [console.on_one_line(translation.text) for translation in translator.translate(lines)]
    assert process.returncode == 0, process.stderr.decode()
    assert process.stdout.decode() == "".join(f"{text}\n" for text in expected)
    assert "WARNING: line 4 has " in process.stderr.decode()


ECHO = """
import signal, sys, types
from keras_transformer.pieces.language_marks import NO_LANGUAGES
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job would ignore it


class Echo:
    load = classmethod(lambda cls, *arguments, **settings: cls())
    longer_than_trained, languages = 0, NO_LANGUAGES

    def told(self, ask):
        return ask

    def translate_n_best(self, lines, first_line, prefixes, protection, required, **languages):
        return [[types.SimpleNamespace(text=line, score=0.0, is_cut=None, is_forced=False)] for line in lines]


sys.modules["keras_transformer.translation.translator"] = types.SimpleNamespace(Translator=Echo)
sys.modules["keras_transformer.translation.parallel"] = types.SimpleNamespace(tune_for_translation=lambda: None)
sys.argv = ["keras-transformer", "translate", "run", "--batch-size", "1"]
from keras_transformer.__main__ import main

main()
"""
GROUP = b"line\n" * console.BATCHES_AT_ONCE


@pytest.fixture
def echo():
    """The real command in a process of its own, after its first group of lines; its Translator returns the lines."""
    process = start_python("-c", ECHO, stdin=subprocess.PIPE, text=False)
    process.stdin.write(GROUP)
    process.stdin.flush()
    assert process.stdout.read(len(GROUP)) == GROUP
    yield process
    process.kill()
    process.communicate()


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="Windows has no such signals")
def test_ctrl_c_ends_the_process_without_a_traceback(echo):
    echo.send_signal(signal.SIGINT)
    assert (echo.wait(60), echo.stderr.read()) == (-signal.SIGINT, b"")


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="Windows has no such signals")
def test_a_reader_that_closes_the_pipe_ends_the_process_without_a_traceback(echo):
    echo.stdout.close()
    echo.stdin.write(GROUP)
    echo.stdin.flush()
    assert (echo.wait(60), echo.stderr.read()) == (-signal.SIGPIPE, b"")


@pytest.mark.nightly
@pytest.mark.skipif(not hasattr(signal, "SIGPIPE"), reason="Windows has no such signals")
def test_an_ignored_ctrl_c_stays_ignored():
    script = ECHO.replace("signal.default_int_handler", "signal.SIG_IGN")
    process = start_python("-c", script, stdin=subprocess.PIPE, text=False)
    process.stdin.write(GROUP)
    process.stdin.flush()
    assert process.stdout.read(len(GROUP)) == GROUP
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(GROUP)
    assert (process.returncode, output, errors) == (0, GROUP, b"")


@pytest.mark.nightly
def test_lines_whose_translation_was_cut_are_named_at_the_end(random_folder, caplog):
    lines = b"the fox\n\nthe dog\n"
    assert translate(lines, "--max-length", "1", run=random_folder).stdout == "\n\n\n"
    assert "(line numbers: 1, 3)" in caplog.text and "--max-length" in caplog.text
