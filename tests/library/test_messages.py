"""ICU messages with branches: which sentences they have, and what is written in their place."""

import time

import pytest

from keras_transformer.pieces.translation import Translation
from keras_transformer.text.asks import NOTHING, Ask
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.messages import LONGEST_WHOLE, is_sentence, joined, lost, pieces_of, without_messages
from keras_transformer.text.road import Candidates, translate
from keras_transformer.text.sentences import sentences_of
from keras_transformer.text.spans import LEFT, RIGHT, Protection
from tests.support.engines import Writer, diagonal

PLURAL = "{n, plural, one {# dog} other {# dogs}}"
SIGN = f"{LEFT}alone 0/{RIGHT}"
MESSAGES = [  # a line, its sentences, and the line with each of these in capitals
    (PLURAL, ["# dog", "# dogs"], "{n, plural, one {# DOG} other {# DOGS}}"),
    (
        f"I see {PLURAL}.",
        ["I see # dog.", "I see # dogs."],
        "{n, plural, one {I SEE # DOG.} other {I SEE # DOGS.}}",
    ),
    (
        "{n,plural,offset:1 =0{no} =1 { one } few{}\n other{#}}",
        ["no", "one", "#"],
        "{n,plural,offset:1 =0{NO} =1 { ONE } few{}\n other{#}}",
    ),
    (
        f"{{g, select, male {{He has {PLURAL}}} other {{They run}}}}!",
        ["He has # dog!", "He has # dogs!", "They run!"],
        "{g, select, male {{n, plural, one {HE HAS # DOG!} other {HE HAS # DOGS!}}} other {THEY RUN!}}",
    ),
    (  # the number of the outer message inside of the inner one
        "{a, selectordinal, other {#th}} and {b, plural, other {# cats}}",
        ["{a, number}th and # cats"],
        "{a, selectordinal, other {{b, plural, other {{A, NUMBER}TH AND # CATS}}}}",
    ),
    (f"a {SIGN} b {PLURAL}", [f"a {SIGN} b", "# dog", "# dogs"], None),  # a sign comes once
    (f"b {PLURAL[:-2]} {SIGN}}}}}", ["b # dog", f"b # dogs {SIGN}"], None),
    ("{n, select, other {it''s '{this}' {name}}}", ["it''s '{this}' {name}"], None),
]
NONE = ["", "a {b}", "{n, plural}", "{n, plural, one {x}", "{n, plural, one {x} y}", "{n, plural, }", "{n, number}"]
NONE += ["'{n, plural, one {x} other {y}}'", "{n, dual, one {x}}", "{n,plural,other{" * 9 + "x" + "}}" * 9]


@pytest.mark.parametrize("line, sentences, capitals", MESSAGES)
def test_branches_are_sentences_and_all_else_stays(line, sentences, capitals):
    pieces = pieces_of(line)
    assert [piece for piece in pieces if is_sentence(piece)] == sentences
    if capitals:
        assert joined(pieces, list(map(str.upper, sentences))) == capitals


@pytest.mark.parametrize("line", NONE)
def test_what_has_no_branches_is_no_message(line):
    assert pieces_of(line) is None and without_messages(line) == line


@pytest.mark.parametrize("line", [PLURAL * 4, "a " + PLURAL * 40, f"{PLURAL} {SIGN}", "{n,plural,other{a}}" * 500])
def test_a_line_whose_branches_would_become_many_sentences_keeps_its_order(line):
    pieces = pieces_of(line)
    sentences = list(filter(is_sentence, pieces))
    assert joined(pieces, sentences).count("plural") >= line.count("plural")
    assert len(sentences) <= max(64, line.count("{") + 1)
    if line.count("plural") > 8:
        assert "".join(pieces) == line


def test_an_apostrophe_before_a_brace_or_a_number_quotes_nothing():
    assert joined(pieces_of("{n, plural, other {of {x} # a}}"), ["l'{x} l'# l'a"]) == (
        "{n, plural, other {l''{x} l''# l'a}}"
    )


@pytest.mark.parametrize(
    "sentence, translation, missing",
    [
        ("# dogs of {name}", "{name} hat # Hunde", []),
        ("# dogs of {name}", "Hunde", ["#", "{name}"]),
        ("# dogs", "# # Hunde", ["#"]),
        ("{a} and {a}", "{a}", ["{a}"]),
        ("{n, number} dogs", "{n, number} Hunde", []),
        ("{n, number} dogs", "{n, Nummer} Hunde", ["{n, number}"]),
        ("it''s '{this}' at 5 %", "'{das}' bei 5%", []),  # quoted braces are text, and so is all else
    ],
)
def test_numbers_and_arguments_that_a_translation_lacks_or_has_too_often(sentence, translation, missing):
    assert set(missing) <= set(lost(sentence, translation)) and bool(missing) == bool(lost(sentence, translation))


def capitals_of(line):
    return line.upper()


def test_the_road_translates_branches_one_by_one_and_protects_their_numbers_and_placeholders():
    engine = Writer(lambda line: line.upper().replace("#", "x"), diagonal)
    lines = ["a cat", f"I see {PLURAL[:-2]} of {{name}}}}}}", ""]
    found = translate(engine, lines, [NOTHING] * 3)
    assert [each.translations[0].text for each in found] == [
        "A CAT",
        "{n, plural, one {I SEE # DOG} other {I SEE # DOGS OF {name}}}",
        "",
    ]
    assert engine.asked[:3] == ["a cat", "", ""] and engine.asked[3:] == ["I see # dog", "I see # dogs of {name}"]


def test_what_a_message_lacks_is_named_and_its_score_is_that_of_the_worst_sentence(caplog):
    scores = {"# dog": -3.0, "# dogs": -1.0}

    class Engine(Writer):
        def search(self, lines, asks, first_line):
            found = super().search(lines, asks, first_line)
            return [
                each._replace(translations=[Translation(each.translations[0].text, scores.get(line, 0.0))] * 2)
                for line, each in zip(lines, found, strict=True)
            ]

    [candidates] = translate(Engine(lambda line: "y"), [PLURAL], [Ask(required=("z",))], first_line=7)
    assert [message.partition(" has no place")[0] for message in caplog.messages] == ["line 7: #, z"]
    first, second = candidates.translations
    assert first == second and first.score == -3.0 and first.unplaced == ("#", "z")
    assert first.text == "{n, plural, one {y} other {y}}"


def test_a_message_has_as_many_translations_as_the_sentence_with_most_and_the_others_give_their_last():
    class Engine(Writer):
        def search(self, lines, asks, first_line):
            texts = [[line.upper(), line.title()][: line.count(" ")] or [line] for line in lines]
            return [Candidates([Translation(text, 0.0) for text in of_line]) for of_line in texts]

    [candidates] = translate(Engine(capitals_of), ["{n, plural, one {# dog} other {# old dogs}}"], [NOTHING])
    assert [each.text for each in candidates.translations] == [
        "{n, plural, one {# DOG} other {# OLD DOGS}}",
        "{n, plural, one {# DOG} other {# Old Dogs}}",
    ]


def test_a_message_is_inside_of_one_sentence_and_is_not_divided_if_it_is_long():
    message = "{n, plural,\n  one {# dog. One.}\n  other {# dogs}}"
    text = f"A cat. I see {message} here. No more."
    assert [text[slice(*span)] for span in sentences_of(text, "en")] == ["A cat.", f"I see {message} here.", "No more."]

    def lines(asked):
        return [each.translations[0] for each in translate(Writer(capitals_of), asked, [NOTHING] * len(asked))]

    document = DocumentTranslator(lines, "en", lambda lines: [len(line) > 20 for line in lines]).document(text)
    assert "one {I SEE # DOG. ONE. HERE.}" in " ".join(document.text.split()) and "plural," in document.text


def test_a_file_puts_marks_into_branches():
    ask = NOTHING._replace(protection=Protection(has_marks=True))
    [found] = translate(Writer(capitals_of, diagonal), [f"{{n, plural, other {{{SIGN} dogs}}}}"], [ask])
    assert found.translations[0].text == f"{{n, plural, other {{{SIGN} DOGS}}}}"


@pytest.mark.parametrize(
    "part", ["{n,plural,other{", "{n,plural,other{a}} ", "{n,plural,", "{", "'{", "}", "{n,plural,other{a}}"]
)
@pytest.mark.parametrize("closes", ["", "}}", "a"])
def test_four_times_the_line_takes_no_more_than_four_times_the_time_or_little(part, closes):
    def seconds(count):
        line, begin = part * count + closes * count, time.process_time()
        pieces_of(line)
        return time.process_time() - begin

    count = 8_000 // len(part)
    assert seconds(4 * count) < 0.1 or seconds(4 * count) < 8 * seconds(count)


def test_the_text_around_a_message_comes_into_each_branch_only_up_to_a_length():
    """A line of n characters and 64 branches would be 64 n characters."""
    message = "{n, select, " + " ".join(f"b{number} {{x}}" for number in range(60)) + "}"
    around = "word " * (LONGEST_WHOLE // 5)
    short, long = (len("".join(pieces_of(f"{text}{message}."))) for text in (around[: -len(message) - 1], around))
    assert short > 60 * (LONGEST_WHOLE - len(message) - 60) and long == len(around) + len(message) + 1
