"""Protected spans through a translation: whatever the model writes and however it aligns words, nothing is lost."""

import collections
import itertools
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_transformer.search.options import SearchOptions
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.protected import ProtectedLine
from keras_transformer.text.spans import KINDS, TAGS, Protection
from keras_transformer.translation.translator import Translator

GLOSSARY = Glossary([Term("dog", "Köter"), Term("New York", "New York", ("case",))])
EVERYTHING = Protection(KINDS, GLOSSARY)
DIAGONAL = [(number, number) for number in range(20)]


def restored(line, translation, alignment=DIAGONAL, protection=EVERYTHING):
    return ProtectedLine.of(line, protection).restored(translation, alignment)[0]


@pytest.mark.parametrize(
    "line, translation, text",
    [
        ("Hello {name}!", "Hallo {Name}!", "Hallo {name}!"),
        ("A dog runs.", "Ein Hund läuft.", "Ein Köter läuft."),
        ("A dog.", "Ein Hund.", "Ein Köter."),
        ("I paid 1,000.50 on 2024-01-05.", "Ich zahlte 1.000,50 am 5.1.2024.", "Ich zahlte 1,000.50 am 2024-01-05."),
        ("Visit https://x.org.", "Besuchen https://x.org.", "Besuchen https://x.org."),
        ("Visit us at https://x.org.", "Besuchen Sie uns.", "Besuchen Sie uns https://x.org."),
        ("{count}-fold", "{zahl}-fach", "{count}-fold"),
        ("see {a}{b} now", "sieh {b} jetzt", "sieh {b} {a} jetzt"),
        ("<b>Dogs</b> run.", "Hunde laufen.", "<b>Hunde</b> laufen."),
        ("We saw (<b>it</b>).", "Wir sahen (es).", "Wir sahen (<b>es</b>)."),
        ("<p>All of it.</p>", "Alles davon jetzt.", "<p>Alles davon jetzt.</p>"),
        ("One<br>two <br/> three", "Eins zwei drei", "Eins<br>zwei <br/> drei"),
        ("<i>never <u>ever</u></i>, no", "nie jemals, nein", "<i>nie <u>jemals</u></i>, nein"),
        ("a </b> b <i> c", "x y z", "x </b> y <i> z"),
    ],
)
def test_a_span_stands_where_its_words_are(line, translation, text):
    assert restored(line, translation) == text


def test_tags_follow_their_words_to_another_place():
    assert restored("the <b>red</b> <i>car</i>", "Auto rotes", [(2, 0), (1, 1)]) == "<i>Auto</i> <b>rotes</b>"


def test_punctuation_before_a_pair_stays_before_it_whatever_spaces_are_inside_of_the_pair():
    alignment = [(0, 0), (1, 1), (2, 1), (3, 2)]
    for inside in ("red", " red ", "  red "):
        assert restored(f"see (<b>{inside}</b>) now", "sieh (rot) jetzt", alignment) in (
            "sieh (<b>rot</b>) jetzt",
            "sieh (<b>rot)</b> jetzt",
        )


CITY = Protection((TAGS,), Glossary([Term("New York", "Neu-York"), Term("new york city", "NYC")]))


@pytest.mark.parametrize(
    "line, translation, alignment, text",
    [
        ("in New <b>York</b> now", "in York neu jetzt", DIAGONAL, "in <b>Neu-York</b> jetzt"),
        ("in <b>New</b> York now", "in A B jetzt", DIAGONAL, "in <b>Neu-York</b> jetzt"),
        ("in <b>New</b> <i>York</i> now", "in A B jetzt", DIAGONAL, "in <b>Neu-York</b> <i></i>jetzt"),
        ("in <b>old New</b> York", "in alten A B", DIAGONAL, "in <b>alten Neu-York</b>"),
        ("in New<br>York now", "in A B jetzt", DIAGONAL, "in <br>Neu-York jetzt"),
        ("N<b>ew York</b> City is", "A B C ist", DIAGONAL, "<b>NYC</b> ist"),
        ("New <b>York</b>", "A B", DIAGONAL, "<b>Neu-York</b>"),  # nothing else is to be translated
        ("New <!-- x --> York is", "A B ist", DIAGONAL, "<!-- x -->Neu-York ist"),
        ("New <b>Yorker</b> is", "A B ist", DIAGONAL, "A <b>B</b> ist"),  # no whole word
    ],
)
def test_a_term_that_a_tag_divides_is_found_and_its_tags_are_around_its_translation(line, translation, alignment, text):
    protected = ProtectedLine.of(line, CITY)
    restored, unplaced = protected.through(translation, alignment)
    assert "".join(restored.split()) == "".join(text.split()) and not unplaced


@pytest.mark.parametrize("placeholders", [0, 1, 2, 8])
def test_without_an_alignment_a_divided_term_is_named_or_stands_for_a_placeholder(placeholders):
    line = ProtectedLine.of("in New <b>York</b>, <i>New York</i>", CITY, placeholders, hides_terms=True)
    symbols = "".join(f"\u27e6{number}\u27e7 " for number in range(1, min(placeholders, 2) + 1))
    text, unplaced = line.restored(f"in {symbols}", [])
    assert text.count("Neu-York") + len(unplaced) == 2 and all(tag in text for tag in ("<b>", "</b>", "<i>", "</i>"))


def test_a_further_copy_is_taken_out_but_not_that_of_a_number():
    assert restored("Hi {name}", "Hi {name} {name}") == "Hi {name}"
    assert restored("Hi {name}", "Hi {name}{name}{name}") == "Hi {name}"
    assert restored("Hi 2", "Hi 2 2") == "Hi 2 2"


@pytest.mark.parametrize("placeholders", [0, 1, 2, 3])
def test_without_an_alignment_what_was_not_copied_is_unplaced_as_a_reader_knows_it(placeholders):
    line = ProtectedLine.of("Hello {name}, see {url} or a dog", EVERYTHING, placeholders, hides_terms=True)
    copied = "\u27e61\u27e7" if placeholders else "{name}"
    assert line.restored(f"Hallo {copied}, sieh", []) == ("Hallo {name}, sieh", ("{url}", "Köter"))


WORDS = st.sampled_from(
    "a, the. Hund! {name} {0} %s https://x.org/a jo@x.org 3 1,000 dog New York (dog) {a}/{b} <b> </b> <i> </i> <br/> "
    "<b>x</b> x<br>y x<i/>. (<i/>x x<i>y</i>. </u> <u".split(" ")
)
TEXTS = st.lists(WORDS, max_size=14).map(" ".join)
ALIGNMENTS = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15)), min_size=1, max_size=30)


@settings(max_examples=120, deadline=None)
@given(TEXTS, TEXTS, ALIGNMENTS)
def test_every_span_comes_through_whatever_the_model_writes(line, translation, alignment):
    protected = ProtectedLine.of(line, EVERYTHING)
    text, unplaced = protected.restored(re.sub(r"[<>]", "", translation), alignment)
    assert unplaced == ()
    tags = collections.Counter(tag.target for tag in protected.tags)
    assert collections.Counter(span.target for span in EVERYTHING.spans(text) if span.kind == TAGS) == tags
    for value, wanted in collections.Counter(span.target for span in protected.source.spans).items():
        assert text.count(value) >= wanted


@settings(max_examples=120, deadline=None)
@given(TEXTS, TEXTS, ALIGNMENTS)
def test_tags_cost_no_character_of_a_translation(line, translation, alignment):
    translation = " ".join(re.sub("[<>]", "", translation).split())
    text = restored(line, translation, alignment, Protection((TAGS,)))
    for span in reversed(Protection((TAGS,)).spans(text)):
        text = text[: span.start] + text[span.end :]
    assert "".join(text.split()) == "".join(translation.split())


ELEMENTS = st.recursive(
    st.lists(WORDS.filter(lambda word: "<" not in word), min_size=1, max_size=3).map(" ".join),
    lambda inner: st.tuples(st.sampled_from("bipx"), st.lists(inner, max_size=3)),
    max_leaves=8,
)


def written(element, numbers):
    """An element as XML, with a number of its own in each tag."""
    if isinstance(element, str):
        return element
    name, inner = element
    tag = f'<{name} n="{next(numbers)}"'
    if not inner:
        return f"{tag}/>"
    return f"{tag}>{' '.join(written(each, numbers) for each in inner)}</{name}>"


def parents_in(text):
    root = ElementTree.fromstring(f"<root>{text}</root>")
    return {child.get("n"): parent.get("n") for parent in root.iter() for child in parent}


@settings(max_examples=120, deadline=None)
@given(st.lists(ELEMENTS, max_size=4), TEXTS, ALIGNMENTS)
def test_elements_keep_what_they_are_in(elements, translation, alignment):
    numbers = itertools.count()
    line = " ".join(written(element, numbers) for element in elements)
    assert parents_in(restored(line, re.sub(r"[<>]", "", translation), alignment)) == parents_in(line)


@settings(max_examples=40, deadline=None)
@given(st.permutations(range(5)))
def test_a_lone_tag_stays_between_the_pairs_before_it_and_those_behind(places):
    alignment = list(enumerate(places))
    text = restored("<b>one</b> <i>two</i> </u> three <p>four</p> five", "A B C D E", alignment)
    assert max(text.index("</b>"), text.index("</i>")) < text.index("</u>") < text.index("<p>")


def test_without_spans_a_line_is_not_looked_at():
    assert not ProtectedLine.of("Nothing  here to protect.", EVERYTHING).has_spans


@pytest.mark.nightly
def test_protected_spans_come_through_a_model_of_random_weights(pair):
    """It copies nothing, so each is put where it is aligned; lines without spans are translated as they are."""
    translator = Translator(*pair, SearchOptions(n_best=2, extra_length=5))
    lines = ["the fox {name} sees 3 dogs", "one", "<b>the fox</b> and <i>the hen</i>", "https://x.org", ""]
    results = translator.translate_n_best(lines, protect=Protection(("placeholders", "numbers", "tags", "urls")))
    for translation in results[0]:
        assert translation.text.count("{name}") == 1 and "3" in translation.text.split()
    for translation in results[2]:
        assert re.findall("<.*?>", translation.text) in (
            ["<b>", "</b>", "<i>", "</i>"],
            ["<i>", "</i>", "<b>", "</b>"],
        )
    assert [best.text for best, *_ in results[3:]] == ["https://x.org", ""]
    assert results[1] == translator.translate_n_best(lines)[1]
    assert translator.translate(lines, protect="")[0] == translator.translate(lines)[0]


@pytest.mark.parametrize(
    "line, translation, text",
    [
        ("A man with 23 x@y.org", "Ein Mann mit⟦1⟧⟦2⟧und", "Ein Mann mit 23 x@y.org und"),
        ("A man with 23 x@y.org", "我有⟦1⟧只⟦2⟧。", "我有23只x@y.org。"),
        ("a {x}3 or {z}px", "⟦1⟧⟦2⟧-⟦3⟧px", "{x}3-{z}px"),
        ("3=px 4", "⟦1⟧px ⟦2⟧ ⟦9⟧", "3 px 4 ⟦9⟧"),
        ("a %spx", "⟦1⟧px", "%spx"),
        ("px%s a", "px⟦1⟧oder", "px%s oder"),
    ],
)
def test_what_placeholders_stand_for_makes_no_word_of_two(line, translation, text):
    assert ProtectedLine.of(line, EVERYTHING, placeholders=4).with_targets(translation) == text


def test_a_text_may_have_signs_like_our_placeholders_whatever_is_protected():
    line = ProtectedLine.of("\u27e61\u27e7 or https://x.org \u27e69\u27e7", Protection(("urls",)), placeholders=2)
    assert line.source.text == "\u27e61\u27e7 or \u27e62\u27e7 \u27e69\u27e7"
    assert line.with_targets("\u27e62\u27e7 oder \u27e61\u27e7") == "https://x.org oder \u27e61\u27e7"


@pytest.mark.parametrize(
    "translation, text",
    [
        ("Sie sitzen auf einer Bank.", "Sie sitzen auf einer Sitzbank."),  # no word attends to the bench most
        ("Der Sitzbänken, Sitzbanken nah.", "Der Sitzbänken, Sitzbank nah."),
        ("Sie sitzen auf einem Stuhl.", "Sie sitzen auf einem Stuhl Sitzbank."),
    ],
)
def test_a_term_replaces_another_form_of_itself_where_attention_misses_it(translation, text):
    protection = Protection(glossary=Glossary([Term("bench", "Sitzbank")]))
    assert restored("They sit on a bench.", translation, [(0, 0), (1, 1), (2, 2), (3, 3), (3, 4)], protection) == text


def test_terms_become_placeholders_only_for_a_model_that_does_not_align():
    line = ProtectedLine.of("a dog sees {x}", EVERYTHING, placeholders=2)
    assert line.source.text == "a dog sees \u27e61\u27e7"
    assert line.restored("ein Hund sieht \u27e61\u27e7", DIAGONAL) == ("ein Köter sieht {x}", ())
    hidden = ProtectedLine.of("a dog sees {x}", EVERYTHING, placeholders=2, hides_terms=True)
    assert hidden.source.text == "a \u27e61\u27e7 sees \u27e62\u27e7"


def test_without_spaces_a_sentence_is_one_word_and_nothing_is_lost():
    """Chinese, Japanese and Thai: so docs/text.md says."""
    assert restored("a dog runs", "一只Köter跑", [(0, 0)]) == "一只Köter跑"
    assert restored("a dog runs", "eine Köterin", [(0, 0), (1, 1)]) == "eine Köter"
    assert restored("<b>狗</b>跑得快。", "犬は速く走る。", [(0, 0)]) == "<b>犬は速く走る</b>。"
    assert restored("我看见{x}了。", "それを見た。", [(0, 0)]) == "それを見た {x}。"
    assert restored("ฉันเห็น{x}แล้ว", "Ich habe es gesehen.", [(0, 0)]) == "Ich {x} habe es gesehen."
    assert restored("我看见 {x} 了", "それを見た", [(0, 0), (1, 0), (2, 0)]) == "それを見た {x}"
