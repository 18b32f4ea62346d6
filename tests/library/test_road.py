"""The road of a line, with an engine that writes in capitals: what is asked for comes, is named, or is refused."""

import pytest

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.asks import SPANS, Ask, asks_of
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.road import LONGEST_LINE, refusal, translate
from keras_transformer.text.spans import KINDS, Protection
from tests.support.engines import Writer, diagonal

EVERYTHING = Protection(KINDS, Glossary([Term("dog", "Köter")]))
FOX = Glossary([Term("fox", "-")])


def test_only_lines_with_spans_are_changed_and_a_line_of_spans_alone_is_not_translated(caplog):
    engine = Writer(str.upper)
    lines = ["no  span", "<b>https://x.org</b> {0}", "see {x}"]
    results = engine.translate(lines, first_line=5, protect=EVERYTHING)
    assert engine.asked == ["no  span", "", "see {x}"]
    assert [best.text for best in results] == ["NO  SPAN", lines[1], "SEE {X}"]
    assert results[2].unplaced == ("{x}",)
    assert "line 7: {x} has no place in its translation" in caplog.text


@pytest.mark.parametrize(
    ("required", "text"),
    [
        ((), "{x} IS HERE"),
        (("NAME",), "NAME {x} IS HERE"),
        (("nAME",), "NAME {x} IS HERE"),  # at the beginning a capital letter counts as a small one
        (("NAME IS",), "NAME IS {x} HERE"),
        (("NAME IS", "IS HERE"), "NAME IS HERE {x}"),
        (("AM",), "{x} IS HERE"),
    ],
)
def test_no_span_replaces_a_phrase_that_must_come(required, text):
    engine = Writer(lambda line: line.upper().replace("{X}", "NAME"), diagonal)
    results = engine.translate(["{x} is here", "is {x}"], protect=EVERYTHING, required=[required, []])
    assert [best.text for best in results] == [text, "IS {x}"]


def kept(lines, protect="", **traits):
    engine = Writer(str.upper, diagonal, **traits)
    return [best.text for best in engine.translate(lines, protect=protect)], engine.asked


@pytest.mark.parametrize("protect", ["", EVERYTHING])
def test_a_line_without_a_letter_comes_back_as_it_is_and_a_blank_one_is_left_to_the_engine(protect):
    lines = ["12345", " -7 % ", "\U0001f600", "", " ", "a 1", "{1} 2"]
    texts, asked = kept(lines, protect)
    assert texts == ["12345", " -7 % ", "\U0001f600", "", " ", "A 1", "{1} 2"]
    assert asked == ["", "", "", "", " ", "a 1", ""]


@pytest.mark.parametrize("options", [{"keep_letterless": 0}, SearchOptions(keep_letterless=0)])
def test_a_model_that_reads_digits_translates_them(options):
    assert kept(["12345", "{x}", "{x} 2"], "placeholders", options=options)[1] == ["12345", "", "{x} 2"]


def test_each_line_may_ask_for_its_own():
    asks = [Ask(protection=Protection(glossary=Glossary([Term("dog", word)]))) for word in ("Hund", "Köter")]
    found = translate(Writer(str.upper, diagonal), ["a dog"] * 2, asks)
    assert [best.text for [best], *_ in found] == ["A Hund", "A Köter"]


def test_placeholders_of_the_model_hide_spans_and_terms_if_it_does_not_align():
    def hidden(**traits):
        engine = Writer(str.upper, diagonal, **traits)
        [best] = engine.translate(["see {x}, a dog"], protect=EVERYTHING)
        return engine.asked, best.text

    assert hidden() == (["see {x}, a dog"], "SEE {x}, A Köter")
    assert hidden(placeholders=2) == (["see \u27e61\u27e7, a dog"], "SEE {x}, A Köter")
    assert hidden(placeholders=2, aligns=False) == (["see \u27e61\u27e7, a \u27e62\u27e7"], "SEE {x}, A Köter")


def test_what_is_missing_or_came_all_the_same_is_named_and_logged(caplog):
    protection = Protection(glossary=Glossary([Term("dog", "Fox")]), forbidden=FOX)
    results = Writer(str.upper, diagonal).translate(
        ["a dog runs", "a cat"], 3, protect=protection, required=[["dog", "RUNS"], ["hen", " "]]
    )
    assert [best.unplaced for best in results] == [("dog",), ("hen",)]
    assert caplog.messages == [
        "line 3: dog did not fit into its translation",
        "line 3: its translation has a phrase that is forbidden",
        "line 4: hen did not fit into its translation",
    ]
    caplog.clear()
    translate(Writer(str.upper), ["a"], [Ask(required=("hen",))], first_line=None)
    assert not caplog.messages


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"prefixes": ["A"]}, "This writer does not take target_prefix; it takes glossary, keep, protect."),
        ({"required": [["A"]]}, "This writer does not take required; it takes glossary, keep, protect."),
        ({"protect": Protection(forbidden=FOX)}, "This writer does not take forbidden; it takes glossary, keep, pro"),
    ],
)
def test_what_an_engine_is_not_able_to_do_is_refused_by_one_sentence(asked, sentence):
    able, unable = Writer(str.upper), Writer(str.upper, abilities=SPANS)
    assert able.translate(["a"], **asked)[0].text == "A"
    with pytest.raises(ConfigError, match=sentence):
        unable.translate(["a"], **asked)
    with pytest.raises(ConfigError, match="This writer does not take beam_size; it takes"):
        able.with_options({"beam_size": 2})
    assert refusal("It", [], []) is None and refusal("It", ["a"], []) == "It does not take a; it takes lines alone."


@pytest.mark.parametrize(
    ("error", "asked", "sentence"),
    [
        (ConfigError, {"prefixes": ["a"] * 2}, "There are 2 prefixes for 1 lines: give one per line."),
        (ConfigError, {"required": ["fox"]}, "The phrases of a line are the text 'fox': give a list of texts per line"),
        (ConfigError, {"required": []}, "There are phrases for 0 lines, and 1 lines: give a list of phrases per line."),
        (
            InputError,
            {"required": [["Fox"]], "protect": Protection(forbidden=FOX)},
            "The phrase 'Fox' must come, and 'Fox' must not: keep one.",
        ),
    ],
)
def test_what_contradicts_itself_is_one_sentence(error, asked, sentence):
    with pytest.raises(error, match=sentence):
        Writer(str.upper).translate(["a"], **asked)


OF_ONE_LANGUAGE = {
    "a text": lambda engine, **asked: engine.translate_document("A dog. A cat.", **asked),
    "a line as it comes": lambda engine, **asked: list(engine.translate_live("a", **asked)),
    "lines": lambda engine, **asked: engine.translate(["a"], **{side: [language] for side, language in asked.items()}),
}


@pytest.mark.parametrize("work", OF_ONE_LANGUAGE)
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("language", [["de"], ["de", "fr"], ("de", "fr"), {}, {"de"}, None, 5, b"de"], ids=str)
def test_a_language_is_one_text(work, side, language):
    for languages in (NO_LANGUAGES, Languages(source={"de": "", "fr": ""}, target={"de": "", "fr": ""})):
        engine = Writer(str.upper, languages=languages)
        with pytest.raises(ConfigError, match=f"^The {side} language is .*: give its code, or '' for none[.]$"):
            OF_ONE_LANGUAGE[work](engine, **{f"{side}_language": language})
        assert engine.asked == []


def test_blank_phrases_are_none_and_the_same_one_counts_once():
    assert asks_of(1, required=[["a ", " ", "a", "\u200b"]]) == asks_of(1, required=[["a"]])


def test_a_text_is_translated_by_its_sentences():
    engine = Writer(str.upper)
    assert engine.translate_document("One  dog. See {x}.\n\nTwo.", protect="placeholders").text == (
        "ONE  DOG. SEE {X}.\n\nTWO."
    )


def test_a_line_that_asks_for_something_has_a_length_that_is_checked_before_any_work():
    engine, line = Writer(str.upper, diagonal), "a " * (LONGEST_LINE // 2)
    assert engine.translate([line + "b"])[0].text == f"{line}b".upper()  # the engine cuts it
    assert engine.translate([line], protect=EVERYTHING)[0].text
    for asked in ({"protect": EVERYTHING}, {"required": [["A"]]}, {"protect": Protection(forbidden=FOX)}):
        with pytest.raises(InputError, match=r"Line 7 has 10,001 characters and asks for .*10,000"):
            engine.translate([line + "b"], 7, **asked)
    marks = Protection(has_marks=True)
    assert engine.translate(["a \ue000b 0\ue001" * LONGEST_LINE], protect=marks)[0].text
