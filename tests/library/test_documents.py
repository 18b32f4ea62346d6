"""Texts of many sentences: no character of their structure is lost, and each sentence is known by its place."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keras_transformer.ground.errors import InputError, UserError
from keras_transformer.pieces.translation import Translation
from keras_transformer.text import sentences
from keras_transformer.text.documents import DocumentTranslator, on_one_line
from keras_transformer.text.fitting import graphemes
from keras_transformer.text.formats import plain
from tests.support.documents import capitals, texts_of, translator

TEXT = """Heading

Dr. Smith went to the field in the morning to see, with
his dog, what had changed. Nothing had!
  - one
  - two   words.\r\n\r\n***\r\n\r\nBerlin\r\nHamburg\t"""

# Words, and what stands between them: what people write, and what they do not
PIECES = st.sampled_from(
    [
        "dog",
        "Dr.",
        "A",
        "1.",
        "3.14",
        "e.g.",
        "été",
        "犬が走る。",
        "🎉",
        "́",
        "...",
        "!",
        "-",
        "* ",
        "“",
        "”",
        "&",
        "<b>",
    ]
    + [" ", "  ", "\t", "\n", "\n\n", "\r\n", "\r", "\u2028", "\x0b", "\xa0", "\ufeff", "　", "a" * 45, "of the "]
)
TEXTS = st.lists(PIECES, max_size=60).map("".join) | st.text(st.characters(exclude_categories=["Cs"]))


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, most=st.integers(1, 60))
@example(text=TEXT, most=20)
def test_an_identity_gives_the_text_back(text, most):
    document = translator(str, are_too_long=lambda lines: [len(line) > most for line in lines]).document(text)
    assert document.text == text
    assert all(text[s.source_start : s.source_end] == text[s.target_start : s.target_end] for s in document.sentences)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
@example(text=TEXT)
def test_sentences_that_keep_their_lengths_keep_all_places(text):
    """Line breaks inside a sentence go back by proportion, which is exact if nothing grows or shrinks."""
    document, reached = translator(capitals).document(text), 0
    for sentence in document.sentences:
        assert document.text[reached : sentence.target_start] == text[reached : sentence.source_start]
        reached = sentence.source_end
        assert document.text[sentence.target_start : sentence.target_end] == capitals(
            text[sentence.source_start : sentence.source_end]
        )
    assert document.text[reached:] == text[reached:]


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, word=st.sampled_from(["", "x", "two words", "犬", "a much longer sentence than there was"]))
def test_whatever_comes_out_of_a_model_what_stands_between_sentences_stays(text, word):
    document = translator(lambda line: word).document(text)
    source = target = 0
    for sentence in document.sentences:
        assert document.text[target : sentence.target_start] == text[source : sentence.source_start]
        source, target = sentence.source_end, sentence.target_end
        assert document.text.count("\n") == text.count("\n")
    assert document.text[target:] == text[source:]


@settings(max_examples=100, deadline=None)
@given(text=TEXTS, most=st.integers(1, 40))
@example(text="dogdog\u0301\u0301", most=1)
def test_no_part_is_longer_than_a_model_takes(text, most):
    seen = []
    translator(
        lambda line: seen.append(line) or line, are_too_long=lambda lines: [len(x) > most for x in lines]
    ).document(text)
    letters = [len(list(graphemes(line))) for line in seen]  # these keep their accents
    assert all(len(line) <= most or count <= 1 for line, count in zip(seen, letters, strict=True))


def test_a_document_knows_which_sentence_became_which():
    text = "A dog runs.  It is brown.\n\nThe end."
    document = translator(lambda line: line[::-1]).document(text)
    assert document.text == ".snur god A  .nworb si tI\n\n.dne ehT"
    assert [text[s.source_start : s.source_end] for s in document.sentences] == [
        "A dog runs.",
        "It is brown.",
        "The end.",
    ]
    assert [document.text[s.target_start : s.target_end] for s in document.sentences] == [
        ".snur god A",
        ".nworb si tI",
        ".dne ehT",
    ]
    assert {s.translation.score for s in document.sentences} == {-0.5}


def test_a_prefix_begins_the_first_sentence_alone():
    """And nothing of a text without sentences: what translates is then not asked for one."""

    def begun(lines, prefixes=None):
        begins = prefixes or [""] * len(lines)
        return [Translation(begin + line, 0.0) for begin, line in zip(begins, lines, strict=True)]

    documents = DocumentTranslator(begun)
    assert documents.document("\n***\nA dog. A cat.\n\nThe end.", ">").text == "\n***\n>A dog. A cat.\n\nThe end."
    assert documents.document("\n***\n", ">").text == "\n***\n"


def test_line_breaks_in_a_translation_become_spaces():
    assert translator(lambda line: " one\ntwo \n").document("A dog.\n").text == "one two\n"


def test_without_sentencex_it_is_one_sentence(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sentencex", None)
    with pytest.raises(UserError, match=r"needs? the package sentencex.*keras-transformer-mt\[text\]"):
        translator(str)
    assert sentences.NARROWEST  # the module itself is there without it


WHOLE = [
    "https://x.org/a?with=things&and=more",
    "a.b@x.org",
    "{user.Name!r}",
    "www.x.org/?Is=It!No",
    "<a title='Who? Me. Yes'>",
]


@pytest.mark.parametrize("language", ["en", "de", "zh"])
@pytest.mark.parametrize("span", WHOLE)
def test_no_sentence_ends_inside_a_span(span, language):
    text = f"See {span} today. Ask {span}. It is {span} there?\n\n{span}"
    found = [text[start:end] for start, end in sentences.sentences_of(text, language)]
    assert len(found) >= 3 and sum(sentence.count(span) for sentence in found) == 4
    assert found[-1] == span and (language != "en" or found[:2] == [f"See {span} today.", f"Ask {span}."])


def test_a_stop_of_chinese_behind_a_url_ends_a_sentence():
    text = "看 https://x.org/a。他走了。"
    assert [text[start:end] for start, end in sentences.sentences_of(text, "zh")] == [
        "看 https://x.org/a。",
        "他走了。",
    ]


def test_a_translation_stands_on_one_line_unless_it_is_the_text_itself():
    assert on_one_line("a\nb ", "a\nb ") == "a\nb " and on_one_line(" a\nb ", "c") == "a b"


def test_half_of_a_character_is_one_of_the_text():
    with pytest.raises(InputError, match="^The text has a lone surrogate"):
        translator(str).document("a \ud800")
    assert translator(str).document("").sentences == translator(str, are_too_long=None).document(" \n").sentences == []


def test_a_paragraph_has_so_many_lines_at_most(monkeypatch):
    monkeypatch.setattr(plain, "LONGEST", 2)
    parts = list(plain.text_parts([b"a\n", b"b\n", b"c\n", b" \n", b"d"], "file", ()))
    assert [part if isinstance(part, str) else [part.passage.raw] for part in parts] == [
        ["a\nb\n"],
        ["c\n"],
        " \n",
        ["d"],
    ]
    assert texts_of("text", "") == []
