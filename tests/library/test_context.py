"""Sentences are read with those before them in their document, and each one's translation is cut out again."""

import json

import pytest

from keras_transformer.commands import files
from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.context import BOTH, NO_CONTEXT, SEPARATOR, SIGN, SOURCE, Context
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.lite_folder import Description, Room
from keras_transformer.runs.versions import CONTEXT, ExportError, context_in
from keras_transformer.text.formats.parts import PLAIN
from tests.support.capital_runs import Capitals, capital_run, translate
from tests.support.commands import assert_one_sentence
from tests.support.engines import Writer

ONE, TWO = Context(1), Context(2)


def shout(text):
    return text.upper()


def last_shouted(text):
    """What a model with context on its source side writes: the last sentence of its text."""
    return text.split(SIGN)[-1].strip().upper()


def texts_of(engine, lines, **asked):
    return [each.text for each in engine.translate(lines, **asked)]


@pytest.mark.parametrize(("context", "write"), [(Context(2), last_shouted), (Context(2, BOTH), shout)])
def test_a_line_is_read_behind_the_last_sentences_before_it_and_its_own_translation_comes_back(context, write):
    engine = Writer(write, context=context)
    earlier = [["z", "y", "x"], ["one"], []]
    assert texts_of(engine, ["a b", "c", "d"], context=earlier) == ["A B", "C", "D"]
    assert engine.asked == [f"y{SEPARATOR} x{SEPARATOR} a b", f"one{SEPARATOR} c", "d"]


def test_lines_without_sentences_before_them_are_read_as_by_a_model_of_single_sentences():
    engine, plain = Writer(shout, context=Context(2, BOTH)), Writer(shout)
    lines = ["a", "", "b <b>c</b>"]
    assert texts_of(engine, lines) == texts_of(plain, lines) and engine.asked == plain.asked


def test_a_model_of_single_sentences_refuses_context_and_a_list_of_another_length():
    with pytest.raises(ConfigError, match="reads single sentences: leave out"):
        Writer(shout).translate(["a"], context=[["b"]])
    with pytest.raises(ConfigError, match="before 2 lines, and 1 lines"):
        Writer(shout, context=ONE).translate(["a"], context=[[], []])
    assert texts_of(Writer(shout), ["a"], context=[[]]) == ["A"]


class Short(Writer):
    """Reads five words, the signs among them."""

    def are_too_long(self, lines):
        return [len(line.split()) > 5 for line in lines]


def test_as_many_sentences_are_read_as_fit_and_those_nearest_to_the_line():
    engine = Short(last_shouted, context=Context(3))
    engine.translate(["a", "a b c", "a b c d", "a b c d e f"], context=[["x", "y", "z"]] * 4)
    joined = engine.context.joined
    assert engine.asked == [joined("yza"), joined(["z", "a b c"]), "a b c d", "a b c d e f"]


def test_the_sign_of_the_separator_in_a_text_is_a_space_so_that_no_text_of_a_line_is_lost():
    engine = Writer(last_shouted, context=ONE)
    assert texts_of(engine, [f"a{SIGN}b"], context=[[f"c {SIGN} d"]]) == ["A B"]
    assert engine.asked == [f"c   d{SEPARATOR} a b"]


def test_an_output_of_another_number_of_sentences_is_made_anew_without_them_and_counted(caplog):
    def write(text):
        return "ALL" if "bad" in text and SIGN in text else text.upper()

    engine = Writer(write, context=Context(1, BOTH))
    assert texts_of(engine, ["bad", "good", "bad"], context=[["x"], ["x"], []]) == ["BAD", "GOOD", "BAD"]
    assert "1 of 2 sentences were translated without those before them" in caplog.text


def test_a_line_that_asks_for_its_beginning_is_read_alone_only_if_all_sentences_are_written():
    for context, expected in ((ONE, f"x{SEPARATOR} a"), (Context(1, BOTH), "a")):
        engine = Writer(last_shouted, context=context)
        engine.translate(["a"], prefixes=["A"], context=[["x"]])
        assert engine.asked == [expected]


def reversed_words(text):
    return f"{SEPARATOR} ".join(" ".join(reversed(sentence.split())) for sentence in text.split(SIGN))


def crossed(line):
    words = len(line.split())
    return [(n, words - 1 - n) for n in range(words)]


@pytest.mark.parametrize(
    ("context", "write"),
    [(ONE, lambda text: reversed_words(text.split(SIGN)[-1])), (Context(1, BOTH), reversed_words)],
)
def test_tags_are_placed_by_the_words_of_the_line_and_not_of_those_before_it(context, write):
    asked = {"protect": "tags", "context": [["some words before"]]}
    engine = Writer(write, crossed, context=context)
    assert texts_of(engine, ["one <b>two</b> three four"], **asked) == ["four three <b>two</b> one"]


class Aligning(Writer):
    """Finds the alignment in its search, as a served graph does: of the words of the whole text that it reads."""

    def search(self, lines, asks, first_line):
        candidates = super().search(lines, asks, first_line)
        for line, each in zip(lines, candidates, strict=True):
            last, before = line.split(SIGN)[-1], len(line.split(SIGN)[0].split()) + 1 if SIGN in line else 0
            yield each._replace(alignments=[[(n + before, target) for n, target in crossed(last)]])


def test_an_alignment_of_the_words_of_all_sentences_is_moved_to_those_of_the_last_one():
    engine = Aligning(lambda text: reversed_words(text.split(SIGN)[-1]), context=ONE)
    asked = {"protect": "tags", "context": [["some words before"], []]}
    expected = "four three <b>two</b> one"
    assert texts_of(engine, ["one <b>two</b> three four"] * 2, **asked) == [expected] * 2


def test_a_document_is_read_sentence_by_sentence_with_those_before():
    pytest.importorskip("sentencex")
    engine = Writer(last_shouted, context=TWO)
    text = "One is here.  Two is there.\n\n- Three goes. Four comes."
    assert engine.translate_document(text).text == text.upper()
    assert engine.asked[-1] == engine.context.joined(["Two is there.", "Three goes.", "Four comes."])
    assert engine.asked[0] == "One is here."


def test_passages_of_one_text_go_on_and_others_begin_anew():
    pytest.importorskip("sentencex")
    from keras_transformer.text.documents import DocumentTranslator

    asked = []

    def translate(lines, context, first_line=1):
        asked.append(context)
        return Writer(last_shouted, context=ONE).translate(lines)

    documents = DocumentTranslator(translate, context=1)
    passages = [PLAIN.passage(text) for text in ("A goes. B comes.", "1 2 3", "C is.")]
    documents.documents(passages)
    documents.documents(passages, before=[])
    documents.documents(passages[2:], before=passages[:1])
    assert asked == [[[], ["A goes."], []], [[], ["A goes."], ["B comes."]], [["B comes."]]]


def test_inference_json_an_export_and_a_lite_model_say_what_is_read_and_older_files_say_nothing(tmp_path):
    context = Context(2, BOTH)
    Inference(context=context).save(tmp_path / "inference.json")
    assert Inference.load(tmp_path / "inference.json").context == context
    Inference().save(tmp_path / "inference.json")
    assert "context" not in json.loads((tmp_path / "inference.json").read_text())
    assert Inference.load(tmp_path / "inference.json").context == NO_CONTEXT

    room = Room(1, 8, None, False)
    Description({}, (room,), context=context).save(tmp_path / "litert.json")
    assert Description.load(tmp_path / "litert.json").context == context

    assert context_in(tmp_path) == NO_CONTEXT
    (tmp_path / CONTEXT).parent.mkdir()
    (tmp_path / CONTEXT).write_text(json.dumps(context.as_json()))
    assert context_in(tmp_path) == context
    (tmp_path / CONTEXT).write_text('{"sentences": -1}')
    with pytest.raises(ExportError, match="context.sentences is -1; it must be"):
        context_in(tmp_path)


@pytest.mark.parametrize(
    "values", [[], {"sides": "target"}, {"sentences": True}, {"sentences": 1.5}, {"separator": " "}, {"pages": 1}]
)
def test_a_context_that_makes_no_sense_is_refused(values):
    with pytest.raises(ConfigError, match="context"):
        Context.of(values)


def test_what_is_joined_is_cut_again():
    for context in (ONE, Context(3, SOURCE)):
        text = context.joined(["a b", "c", "d e"])
        assert context.last(text, 3) == "d e" and context.last(text, 2) is None
        assert context.without_first(text) == context.joined(["c", "d e"])
        assert context.without_first("d e") == "d e"


class Reader(Capitals):
    """Writes a line with the last words of the sentences before it."""

    context = TWO

    def translate(self, lines, first_line=1, context=(), **asked):
        translations = super().translate(lines)
        earlier = ["".join(text.split()[-1] for text in texts) for texts in context]
        return [each._replace(text=f"{each.text}({n})") for each, n in zip(translations, earlier, strict=True)]

    def translate_n_best(self, lines, first_line, prefixes, protection=(), required=None, **asked):
        return [[each] for each in self.translate(lines, **asked)]


@pytest.mark.parametrize(
    ("form", "options", "content", "expected"),
    [
        ("lines", ["--context"], "a 1\nb 2\nc 3\nd 4\n\ne 5\nf 6\n", "A 1()|B 2(1)|C 3(12)|D 4(23)|()|E 5()|F 6(5)|"),
        ("text", [], "A is 1. B is 2.\n\nC is 3.\n", "A IS 1.() B IS 2.(1.)||C IS 3.(1.2.)|"),
        ("html", [], "<p>A is 1.<p>B is 2.<p>C is 3.", "<p>A IS 1.()<p>B IS 2.(1.)<p>C IS 3.(1.2.)"),
        ("tsv", ["--field", "t"], "t\nA is 1. B is 2.\nC is 3.\n", "t|A IS 1.() B IS 2.(1.)|C IS 3.()|"),
    ],
)
@pytest.mark.parametrize("fails_at", [None, "c 3", "C is 3."])
def test_a_file_is_read_as_one_document_and_after_a_kill_too(
    tmp_path, monkeypatch, form, options, content, expected, fails_at
):
    pytest.importorskip("sentencex")
    monkeypatch.setattr(files, "BATCHES_OF_A_FILE", 0)
    run, source, target = capital_run(tmp_path, monkeypatch, Reader()), tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text(content, encoding="utf-8")
    command = ["--format", form, *options, "--input", source, "--output", target]
    run.fails_at = fails_at
    translate(run, *command)
    run.fails_at = None
    result = translate(run, *command)
    assert (result.exit_code, target.read_text(encoding="utf-8").replace("\n", "|")) == (0, expected), result.stderr


def test_context_is_for_lines_and_for_a_model_that_reads_it(tmp_path, monkeypatch):
    run = capital_run(tmp_path, monkeypatch)
    assert_one_sentence(translate(run, "--context", stdin=b"a\n"), "--context: The Translator reads single sentences")
    result = translate(run, "--context", "--paragraphs", stdin=b"a\n")
    assert_one_sentence(result, "--context is for lines, and --format text is read so by itself")
