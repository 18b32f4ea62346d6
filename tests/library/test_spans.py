"""Protected spans: what is found in a text."""

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.spans import KINDS, LEFT, RIGHT, Protection, Span, without_overlaps


def found(text, kinds=KINDS, **more):
    return [(text[span.start : span.end], span.kind) for span in Protection.of(kinds, **more).spans(text)]


@pytest.mark.parametrize(
    "text, spans",
    [
        ("See https://x.org/a_(b)?q=1. Or (www.y.de)!", [("https://x.org/a_(b)?q=1", "urls"), ("www.y.de", "urls")]),
        ("at x.org (https://x.org/a_(b)), [http://y.de]", [("https://x.org/a_(b)", "urls"), ("http://y.de", "urls")]),
        ("Write to jo.doe+x@mail.example.org, or @jo.", [("jo.doe+x@mail.example.org", "emails")]),
        ("{name}, {0} and {} of ${total} {{ user.x }}", ["{name}", "{0}", "{}", "${total}", "{{ user.x }}"]),
        ("%s %(count)d %1$s %.2f %-5d 50%discount 100% sure", ["%s", "%(count)d", "%1$s", "%.2f", "%-5d"]),
        ("<b class='a>b'>x</b><br/><!-- no --> 3 < 4 > 2 <3", ["<b class='a>b'>", "</b>", "<br/>", "<!-- no -->"]),
        ("2 dogs, 1,000.50 m, 2024-01-05, 12:30 B2B 20th", ["2", "1,000.50", "2024-01-05", "12:30"]),
        ('<a href="https://x.org/{id}?n=2">', ['<a href="https://x.org/{id}?n=2">']),
        ("nothing at all", []),
    ],
)
def test_each_kind_is_found_and_an_outer_span_hides_the_inner_ones(text, spans):
    of_text = found(text)
    if spans and isinstance(spans[0], str):
        of_text = [written for written, kind in of_text if kind != "numbers" or written in spans]
    assert of_text == spans


def test_only_the_kinds_that_were_asked_for_are_found():
    assert found("2 https://x.org {a}", "urls, placeholders") == [("https://x.org", "urls"), ("{a}", "placeholders")]
    assert not Protection.of("")
    glossary = Glossary([Term("dog", "Hund")])
    assert all((Protection.of("urls"), Protection.of("", glossary), Protection(forbidden=glossary)))
    with pytest.raises(ConfigError, match="protect has 'url'; it may have urls, emails, placeholders, tags, numbers"):
        Protection.of("url")


def test_the_signs_of_marks_are_text_unless_a_file_has_marks():
    text = f"a {LEFT}element-b 0{RIGHT}"
    assert not Protection(("urls",)).spans(text)
    assert [span[:2] for span in Protection(("urls",), has_marks=True).spans(text)] == [(2, len(text))]


def test_a_term_is_taken_before_a_kind_and_the_longest_one_first():
    glossary = Glossary([Term("iPhone 15", "iPhone 15"), Term("iPhone", "Handy"), Term("15", "fünfzehn")])
    spans = Protection.of("numbers", glossary).spans("iPhone 15, iPhone 16, 15")
    assert [span.target for span in spans] == ["iPhone 15", "Handy", "16", "fünfzehn"]


def test_a_long_line_of_openings_takes_no_time_that_grows_with_its_square():
    for text in ('<a "' * 20_000, "{" * 80_000, "<" * 80_000, "a@" * 40_000, "%(" * 40_000):
        assert not Protection.of(KINDS).spans(text)
    assert [span[:2] for span in Protection.of(KINDS).spans("1." * 40_000)] == [(0, 79_999)]


def test_words_of_files_are_kept_as_they_are_written_and_forbidden_however_they_are(tmp_path):
    for name, word in (("keep", "Apple"), ("forbid", "Pear\npear")):
        (tmp_path / name).write_text(f"{word}\n")
    (tmp_path / "terms").write_text("dog\tHund\n")
    protection = Protection.read("numbers", tmp_path / "keep", tmp_path / "terms", tmp_path / "forbid")
    assert [(span.start, span.target) for span in protection.spans("an apple, Apple, 2 Dog")] == [
        (10, "Apple"),
        (17, "2"),
        (19, "Hund"),
    ]
    assert [place[:2] for place in protection.forbidden.matches("a PEAR")] == [(2, 6)]
    assert not Protection.read("")


@pytest.mark.parametrize(
    "kinds", ["urls, numbers", ["urls", "numbers"], ("urls", "numbers", "urls"), iter(["urls", "numbers"])]
)
def test_kinds_are_a_list_or_one_string(kinds):
    assert Protection(kinds).kinds == ("urls", "numbers")


@pytest.mark.parametrize("kinds", [None, 3, b"urls", [None]])
def test_what_is_no_kind_is_refused(kinds):
    for make in (Protection, Protection.of):
        with pytest.raises(TypeError, match="protect must be kinds of spans, such as 'urls,numbers'. Received: "):
            make(kinds)


@pytest.mark.parametrize("name", ["glossary", "forbidden"])
@pytest.mark.parametrize("terms", [None, {"dog": "Hund"}, [("dog", "Hund")]])
def test_a_glossary_is_a_glossary(name, terms):
    with pytest.raises(TypeError, match=f"{name} must be a Glossary, such as Glossary"):
        Protection(**{name: terms})


def test_a_protection_of_kinds_has_the_glossary_that_is_given_and_one_that_is_there_stays():
    glossary = Glossary([Term("a", "b")])
    protection = Protection.of("urls", glossary)
    assert protection.kinds == ("urls",) and protection.glossary is glossary
    assert Protection.of(protection) is protection


def test_of_spans_the_first_is_taken_and_of_these_the_longest_and_an_empty_one_never():
    spans = [Span(2, 3, "b", ""), Span(2, 5, "a", ""), Span(0, 0, "c", ""), Span(4, 6, "d", ""), Span(5, 6, "e", "")]
    assert [span.kind for span in without_overlaps(spans)] == ["a", "e"]


@pytest.mark.parametrize("stop", [*".,;:!?", ")", "]", "}", "?!)."])
def test_the_punctuation_behind_a_url_is_that_of_the_sentence(stop):
    url = "https://x.org/a(b)[c]{d}?e"
    [span] = Protection(("urls",)).spans(f"see ({url}{stop} ok")
    assert span.target == url
