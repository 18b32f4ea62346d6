"""A line of text, JSON or TSV gets its outputs or its error, and remains one line."""

import json

import pytest

from cluster.formats import LOST, JsonLines, ParquetRows, RowError, TabLines, TextLines

OUTPUTS = {"translation": "eins\tzwei\ndrei", "score": -0.25, "is_cut": True}
NAMES = tuple(OUTPUTS)
FORMATS = {
    "text": (TextLines(), "one\r", ("one",)),
    "tsv": (TabLines((2, 1)), "one\ttwo\r", ("two", "one")),
    "jsonl": (JsonLines(("b", "a")), '{"a": "one", "b": "two"}\r', ("two", "one")),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_line_gives_its_columns_in_the_order_that_is_asked_for(name):
    each, line, columns = FORMATS[name]
    assert each.read(line) == columns
    assert each.read("\ufeff" + line) == columns  # the first line of a file


@pytest.mark.parametrize("name", FORMATS)
def test_whatever_becomes_of_a_line_it_stays_one_line_and_says_whether_it_is_refused(name):
    each, line, _ = FORMATS[name]
    for written, is_refused in ((each.write(line, OUTPUTS), False), (each.refuse(line, NAMES, "No."), True)):
        assert "\n" not in written and "\r" not in written
        assert each.is_refused(written) is is_refused


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n\r\n"])
@pytest.mark.parametrize("each", [TextLines(), TabLines((1,))], ids=["text", "tsv"])
def test_line_ends_of_every_system_become_one_space(each, end):
    assert each.write("one", {"translation": f"eins{end}zwei"}) == each.write("one", {"translation": "eins zwei"})


def test_each_format_has_the_outputs_in_its_own_way():
    assert TextLines().write("one", OUTPUTS) == "eins\tzwei drei"
    assert TextLines().refuse("one", NAMES, "No.") == LOST
    assert TabLines((1,)).write("one\ttwo", OUTPUTS).split("\t") == ["one", "two", "eins zwei drei", "-0.25", "1", ""]
    assert TabLines((1,)).write("one", {"is_cut": None}).split("\t") == ["one", "", ""]
    assert TabLines((1,)).refuse("one\ttwo", NAMES, "No.").split("\t") == ["one", "two", "", "", "", "No."]
    each = JsonLines(("a",))
    assert json.loads(each.write('{"a": "one", "n": 1}', OUTPUTS)) == {"a": "one", "n": 1, **OUTPUTS, "error": None}
    nothing = dict.fromkeys(NAMES)
    assert json.loads(each.refuse('{"n": 1}', NAMES, "No.")) == {"n": 1, **nothing, "error": "No."}
    assert json.loads(each.refuse("{", NAMES, "No.")) == {"line": "{", **nothing, "error": "No."}


@pytest.mark.parametrize(
    ("each", "line", "reason"),
    [
        (TextLines(), f"a{LOST}", "not UTF-8"),
        (TabLines((3,)), "one\ttwo", "2 columns, and column 3"),
        (JsonLines(("a",)), "{", "not JSON"),
        (JsonLines(("a",)), "[1]", "list"),
        (JsonLines(("a",)), '{"a": 1}', "no text in 'a' but 1"),
        (JsonLines(("a",)), "{}", "no text in 'a' but None"),
        (JsonLines(("a",)), json.dumps({"a": ["x" * 90]}), r"no text in 'a' but \['x{58}\.$"),
        (JsonLines(("a",)), '{"a": "one", "error": "of an earlier command"}', "of an earlier command"),
    ],
)
def test_a_line_without_its_text_says_why(each, line, reason):
    with pytest.raises(RowError, match=reason):
        each.read(line)


@pytest.mark.parametrize(
    "line, written",
    [
        ('{"a": "one", "n": 1.50, "m": 1e400}', '{"a": "one", "n": 1.50, "m": 1e400, "score": <S>, "error": <E>}'),
        ('{ "k":1,"k": 2, "a":"\\u00e9" }', '{ "k":1,"k": 2, "a":"\\u00e9", "score": <S>, "error": <E>}'),
        ('{"score": {"x": "}"} , "a": ""}\r', '{"score": <S> , "a": "", "error": <E>}'),
        ('{"a": "", "error" :null, "score":0, "score": 2}', '{"a": "", "error" :<E>, "score":<S>, "score": <S>}'),
        ("{}", '{"score": <S>, "error": <E>}'),
    ],
)
def test_all_but_the_outputs_stays_as_it_is_written(line, written):
    each = JsonLines(("a",))
    assert each.write(line, {"score": 1}) == written.replace("<S>", "1").replace("<E>", "null")
    assert each.refuse(line, ["score"], "No.") == written.replace("<S>", "null").replace("<E>", '"No."')


def test_half_of_a_character_in_another_key_stays_what_it_was():
    line = '{"a": "one", "b": "\\ud83d"}'
    written = JsonLines(("a",)).write(line, {})
    written.encode("utf-8")
    assert json.loads(written)["b"] == "\ud83d"


def test_a_row_of_a_table_has_its_columns_and_the_outputs_in_the_order_of_the_schema():
    each = ParquetRows(("b", "a"), ("a", "n", "score", "error"))
    row = {"a": "one", "b": "two", "n": 3, "score": "of an earlier command"}
    assert each.read(row) == ("two", "one")
    assert each.write(row, {"score": -0.5}) == ("one", 3, -0.5, None)
    assert each.refuse(row, ["score"], "No.") == ("one", 3, None, "No.")
    for error, is_refused in ((None, False), ("No.", True)):
        assert each.is_refused(row | {"error": error}) is is_refused
    with pytest.raises(RowError, match="of an earlier command"):
        each.read(row | {"error": "of an earlier command"})
