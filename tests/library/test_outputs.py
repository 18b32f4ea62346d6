"""Trees as `keras-transformer translate` writes them, and options that only one kind of outputs has."""

import sys

import pytest

from keras_transformer.commands import translate as command
from keras_transformer.ground.errors import ConfigError
from keras_transformer.parsing.written import drawing, with_trees
from keras_transformer.pieces.language_marks import NO_LANGUAGES
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.inference import Inference
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.outputs import outputs_of
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke

SEARCH = {"beam_size": 7, "length_penalty": 0.3, "extra_length": 300}
FLAT = "(S (NP XX )NP (VP XX )VP XX )S"


class Parser:
    """Stands in for a Translator: each line becomes the same tree over three words, and then one without brackets."""

    longer_than_trained, languages = 0, NO_LANGUAGES

    def load(self, run, options, **settings):
        self.options, self.settings = options, settings
        return self

    def told(self, ask):
        return ask

    def translate_n_best(self, lines, first_line, prefixes, protection, required, **languages):
        self.lines = lines
        outputs = [Translation(FLAT, -0.5), Translation("XX", -1.5)][: self.options.n_best]
        return [outputs if line else [Translation("", 0.0)] for line in lines]


@pytest.fixture
def parser(monkeypatch):
    parser = Parser()
    monkeypatch.setattr(Translator, "load", parser.load)
    return parser


@pytest.fixture
def run(tmp_path):
    Inference("trees", SEARCH).save(tmp_path / "inference.json")
    return tmp_path


def parse(run, text, *arguments):
    return invoke(command.app, run, *arguments, stdin=text)


def test_a_line_becomes_a_tree_over_its_words(run, parser, caplog):
    result = parse(run, b"time  flies .\n\ndogs bark (\n")
    assert result.stdout.splitlines() == [
        "(S (NP (XX time)) (VP (XX flies)) (XX .))",
        "",
        "(S (NP (XX dogs)) (VP (XX bark)) (XX -LRB-))",
    ]
    assert parser.lines == ["time flies .", "", "dogs bark -LRB-"] and not caplog.records


def test_an_output_that_is_no_tree_over_the_words_is_repaired_with_a_warning(run, parser, caplog):
    result = parse(run, b"a b .\ntime flies\n")
    assert result.stdout.splitlines()[1] == "(S (NP (XX time)) (VP (XX flies)))"
    (warning,) = caplog.messages
    assert "line 2" in warning and "2 words" in warning


def test_scores_and_several_trees(run, parser):
    assert parse(run, b"a b c\n", "--scores").stdout == "-0.5000\t(S (NP (XX a)) (VP (XX b)) (XX c))\n"
    assert parse(run, b"a b c\n", "--n-best", 2).stdout.splitlines() == [
        "1 ||| (S (NP (XX a)) (VP (XX b)) (XX c)) ||| -0.5000",
        "1 ||| (S (XX a) (XX b) (XX c)) ||| -1.5000",
    ]


def test_a_drawing_has_the_phrases_above_their_words(run, parser):
    lines = parse(run, b"time flies .\n\na b c\n", "--draw").stdout.split("\n")
    assert lines[0].split() == ["S"]
    drawn = "\n".join(lines)
    assert drawn.index("NP") < drawn.index("time") and "XX" not in drawn
    words = next(line for line in lines if "time" in line)
    assert words.split() == ["time", "flies", "."] and [line for line in lines if line.split() == ["a", "b", "c"]]


@pytest.mark.parametrize("line, word", [(b"thanks :) !\n", ":-RRB-"), (b"see (x) .\n", "-LRB-x-RRB-")])
def test_brackets_inside_words_are_escaped_in_trees_and_in_drawings(run, parser, line, word):
    first, _, last = line.decode().split()
    assert parse(run, line).stdout == f"(S (NP (XX {first})) (VP (XX {word})) (XX {last}))\n"
    assert parser.lines == [f"{first} {word} {last}"]
    drawn = parse(run, line, "--draw")
    assert drawn.exit_code == 0 and [first, word, last] in [row.split() for row in drawn.stdout.split("\n")]


def test_a_drawing_has_tags_that_are_known():
    lines = drawing("(S (NP (NN time)) (VP (VBZ flies)) (. .))").split("\n")
    drawn = [line.split() for line in lines if "NN" in line or "flies" in line]
    assert drawn == [["NN", "VBZ", "."], ["time", "flies", "."]]


def test_a_drawing_of_nothing_is_nothing():
    assert drawing("") == ""


def test_the_search_is_that_of_the_run_unless_the_command_line_has_another(run, parser):
    parse(run, b"a\n")
    assert parser.options == SearchOptions(7, 0.3, 300)
    parse(run, b"a\n", "--beam-size", 4, "--extra-length", 50)
    assert parser.options == SearchOptions(4, 0.3, 50)  # typed, though these are the defaults


def test_the_search_is_constrained_if_asked(run, parser):
    parse(run, b"a\n")
    assert parser.settings["trees_only"] is False
    parse(run, b"a\n", "--constrained")
    assert parser.settings["trees_only"] is True


@pytest.mark.parametrize(
    "outputs, arguments, message",
    [
        ("text", ["--draw"], "writes text"),
        ("text", ["--constrained"], "writes text"),
        ("trees", ["--constrained", "--target-prefix", "(S"], "--target-prefix"),
        ("trees", ["--draw", "--scores"], "--scores"),
        ("trees", ["--draw", "--n-best", 2], "--n-best"),
    ],
)
def test_what_contradicts_the_run_is_one_sentence(tmp_path, parser, outputs, arguments, message):
    Inference(outputs).save(tmp_path / "inference.json")
    assert_one_sentence(parse(tmp_path, b"a\n", *arguments), arguments[0], message)


def test_text_is_read_and_written_as_it_is(tmp_path, parser):
    assert parse(tmp_path, b"a  b (\n").stdout == FLAT + "\n" and parser.lines == ["a  b ("]
    assert parser.options == SearchOptions()


@pytest.mark.parametrize("option", ["--draw", "--constrained"])
def test_a_run_folder_that_does_not_exist_is_named_as_such(tmp_path, parser, option):
    assert_one_sentence(parse(tmp_path / "typo", b"a\n", option), "There is no run folder")


def test_outputs_that_become_the_same_tree_are_written_once_with_the_best_score():
    outputs = [Translation(text, score) for text, score in ((FLAT, -0.5), (FLAT + " )S", -0.7), ("XX", -1.5))]
    [found] = with_trees(["time flies ."], [outputs], 1)
    assert [one.score for one in found] == [-0.5, -1.5] and found[0].text != found[1].text


def test_the_lines_whose_best_output_is_repaired_are_named_by_their_numbers(caplog):
    whole, broken = Translation(FLAT, -0.5), Translation("XX", -0.5)
    with_trees(["time flies ."] * 4, [[whole, broken], [broken], [], [broken, whole]], 7)
    assert [record.args[0] for record in caplog.records] == [8, 10]


def test_to_draw_without_nltk_is_refused_with_what_installs_it(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "nltk", None)
    with pytest.raises(ConfigError, match="--draw needs the package nltk, which is not installed: pip install nltk."):
        outputs_of(run).check_drawn(is_one_per_line=True)
    with pytest.raises(ConfigError, match="leave out --n-best and --scores"):
        outputs_of(run).check_drawn(is_one_per_line=False)
