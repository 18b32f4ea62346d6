"""Catalogues of gettext: entries without a translation get one, marked as fuzzy, and nothing else changes."""

import gettext
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_transformer.ground.errors import InputError, UserError
from keras_transformer.text.formats.key_marks import marked, place_of_mark
from keras_transformer.text.formats.parts import Field
from keras_transformer.text.formats.po import NOTATION, WIDTH, folded, po_parts
from tests.support.documents import through

HEADER = (
    '# Licence\nmsgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=UTF-8\\n"\n'
    '"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n'
)
FILE = HEADER + (
    "# a note\n#. of the program\n#: a.c:1\n#, c-format\n"
    'msgctxt "menu"\nmsgid ""\n"two %d \\"dogs\\"\\n"\n"and\\ta cat"\nmsgstr ""\n\n'
    'msgid "there"\nmsgstr "da"\nmsgid "next"\nmsgstr ""\n'
    '\n#, fuzzy\n#| msgid "a ct"\nmsgid "a cat"\nmsgstr "eine Katze"\n'
    '#| msgid "a dg"\nmsgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] ""\nmsgstr[1] ""\n\n'
    '#~ msgid "old"\n#~ msgstr ""\n'
)


def loud(text):
    """In capitals, but for escapes and what printf fills in."""
    return re.sub(r"%\w|\\.|[a-z]", lambda found: found[0] if len(found[0]) > 1 else found[0].upper(), text)


def written(text, translate=loud, **options):
    """What comes out if an engine gives `translate` of each text as it is written, escapes included."""
    parts = po_parts(io.BytesIO(text.encode()), "de.po", (), **options)
    return "".join(part.laid_out(translate(part.passage.raw)) if isinstance(part, Field) else part for part in parts)


def of_entry(entry, translate=loud, header=HEADER, **options):
    return written(header + entry, translate, **options).removeprefix(header)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_entries_without_a_translation_get_one_and_nothing_else_changes(ending):
    expected = (
        FILE.replace("#, c-format\n", "#, fuzzy, c-format\n")
        .replace('"and\\ta cat"\nmsgstr ""', '"and\\ta cat"\nmsgstr ""\n"TWO %d \\"DOGS\\"\\n"\n"AND\\tA CAT"')
        .replace('msgid "next"\nmsgstr ""', '#, fuzzy\nmsgid "next"\nmsgstr "NEXT"')
        .replace('#| msgid "a dg"', '#, fuzzy\n#| msgid "a dg"')
        .replace('msgstr[0] ""\nmsgstr[1] ""', 'msgstr[0] "A DOG"\nmsgstr[1] "%d DOGS"')
    )
    assert through("po", FILE.replace("\n", ending), loud) == expected.replace("\n", ending)
    assert written(expected) == expected  # what is fuzzy stays


@pytest.mark.parametrize(
    ("options", "anew"),
    [
        ({}, set()),
        ({"states": ["fuzzy"]}, {"eine Katze"}),
        ({"states": ["translated"]}, {"da"}),
        ({"everything": True}, {"eine Katze", "da"}),
    ],
)
def test_states_say_what_is_translated_anew_and_the_log_what_is_left(options, anew, caplog):
    output = written(FILE, **options)
    assert {text for text in ("eine Katze", "da") if f'"{text}"' not in output} == anew
    [record] = caplog.records if len(anew) < 2 else [None]
    if record:
        left = ", ".join(
            f"1 {state}" for state, text in (("translated", "da"), ("fuzzy", "eine Katze")) if text not in anew
        )
        assert record.getMessage() == f"de.po: {3 + len(anew)} entries translated, {2 - len(anew)} left: {left}"
    with pytest.raises(UserError, match="--state new is no state of entries of PO: give fuzzy or translated"):
        written(FILE, states=["fuzzy", "new", "other"])


RULES = {  # of the rule of plurals: which of "a dog", "dogs" each form is, where only msgid_plural has a number
    "nplurals=1; plural=0;": ["many"],
    "nplurals=2; plural=(n != 1);": ["one", "many"],
    "nplurals=2; plural=(n > 1);": ["many", "many"],  # in French 0 is singular too
    "nplurals=4; plural=(n==1 ? 3 : n%10==1 ? 0 : n%10>=2 ? 1 : 2);": ["many", "many", "many", "one"],
    "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<12 || n%100>14) ? 1 : 2);": ["many"]
    * 3,
}


@pytest.mark.parametrize(("rule", "texts"), RULES.items())
def test_a_form_is_of_the_text_that_is_right_for_all_its_numbers(rule, texts):
    header = f'msgid ""\nmsgstr "Plural-Forms: {rule}\\n"\n\n'
    entry = 'msgid "{}"\nmsgid_plural "{}"\nmsgstr[0] ""\nmsgstr[1] ""\n'

    def forms(one, many):
        return re.findall(r'msgstr\[(\d)\] "(.*)"', of_entry(entry.format(one, many), header=header))

    of_texts = {"one": "ONE DOG", "many": "%d DOGS"}
    assert forms("one dog", "%d dogs") == [(str(form), of_texts[text]) for form, text in enumerate(texts)]
    count, form = int(rule[9]), gettext.c2py(rule.split("plural=")[1].rstrip(";"))
    if count > 1:  # with its number, msgid is right wherever 1 belongs
        is_one = [text == "%d DOG" for _, text in forms("%d dog", "%d dogs")]
        assert is_one == [number == form(1) for number in range(count)]


KEPT, LOST = True, False


@pytest.mark.parametrize(
    ("flag", "source", "translation", "comes_through"),
    [
        ("c-format", "%d of %s", "%d von %s", KEPT),
        ("c-format", "%d of %s", "%s von %d", LOST),  # a program would read a number as text
        ("c-format", "%1$d of %2$s", "%2$s von %1$d", KEPT),
        ("c-format", "%d dogs", "Hunde", LOST),
        ("c-format", "100%% of %d", "%d sind 100%%", KEPT),
        ("c-format", "a {b}", "a", KEPT),
        ("no-c-format", "%d dogs", "Hunde", KEPT),
        ("", "%d dogs", "Hunde", KEPT),
        ("python-format", "%(name)s is %(age)d", "%(age)d ist %(name)s", KEPT),
        ("python-format", "%(name)s", "%(Name)s", LOST),
        ("python-brace-format", "{a} {b}", "{b} {a}", KEPT),
        ("python-brace-format", "{} {0!r}", "{}", LOST),
        ("python-brace-format", "%s {a}", "{a}", KEPT),
        ("qt-format", "%1 of %n", "%n von %1", KEPT),
        ("qt-format", "%1 of %L2", "%1", LOST),
        ("javascript-format", "a ${b}", "a", LOST),
        ("c-format, fuzzy", "a dog", "ein %d Hund", LOST),
    ],
)
@pytest.mark.parametrize("mark", ["#,", "#="])  # flags of translators, and sticky ones
def test_a_translation_without_what_a_program_fills_in_is_left_out_and_named(
    mark, flag, source, translation, comes_through, caplog
):
    entry = (f"{mark} {flag}\n" if flag else "") + f'msgid "{source}"\nmsgstr ""\n'
    output = of_entry(entry, {source: translation}.get)
    assert (f'msgstr "{translation}"' in output, output == entry) == ((True, False) if comes_through else (False, True))
    named = [record.getMessage() for record in caplog.records if "stays as it was" in record.getMessage()]
    assert len(named) == (not comes_through) and all(
        "de.po, line 8" in message and source in message for message in named
    )


def test_a_form_that_cannot_be_made_anew_keeps_the_translation_that_it_had():
    """Of the form with a number the translation lacks it, as a model's may: the old one is not lost."""
    entry = (
        '#, c-format\nmsgid "a dog"\nmsgid_plural "%d dogs"\nmsgstr[0] "ein Hund"\nmsgstr[1] ""\n"%d \\"Hunde\\"\\n"\n'
    )
    output = of_entry(entry, {"a dog": "der Hund", "%d dogs": "Hunde"}.get, everything=True)
    assert output == entry.replace("#, ", "#, fuzzy, ").replace("ein", "der").replace('""\n"%d', '"%d')


@pytest.mark.parametrize("old", ["", "%d Hunde"])
def test_an_entry_of_which_no_form_can_be_made_anew_stays_as_it_is(old):
    """It is not fuzzy then: nobody has to read what was there before."""
    forms = '#, c-format\nmsgid "%d dog"\nmsgid_plural "%d dogs"\n' + f'msgstr[0] "{old}"\nmsgstr[1] "{old}"\n'
    assert of_entry(forms, lambda text: "Hunde", everything=True) == forms


@pytest.mark.parametrize(
    ("text", "marker", "plain", "translation", "expected"),
    [
        ("_Open", None, "Open", "Datei", "_Datei"),
        ("Sa_ve", None, "Save", "\u201eDatei\u201c", "\u201e_Datei\u201c"),
        ("&Print %s&", None, "Print %s&", "%s drucken", "%s &drucken"),
        ("Save ~As...", None, "Save As...", "\u4fdd\u5b58...", "\u4fdd\u5b58(~A)..."),
        ("_Open", None, "Open", "...", "..."),
        ("_Open", "&", "_Open", "_Datei", "_Datei"),
        ("_Cut &Paste", "&", "_Cut Paste", "_weg", "_&weg"),
        ("a file_name", None, "a file_name", "x", "x"),
        ("PLAY_URI", None, "PLAY_URI", "x", "x"),
        ("R&amp;D", None, "R&amp;D", "x", "x"),
        ("Q&A", None, "Q&A", "x", "x"),
        ("_One _Two", None, "_One _Two", "x", "x"),
        ("AT & T, ~ 5", None, "AT & T, ~ 5", "x", "x"),
    ],
)
def test_the_sign_that_marks_a_key_is_no_text_and_stands_before_a_letter(text, marker, plain, translation, expected):
    seen = []
    header = HEADER.replace("\n\n", f'\n"X-Accelerator-Marker: {marker}\\n"\n\n') if marker else HEADER
    output = of_entry(f'msgid "{text}"\nmsgstr ""\n', lambda raw: seen.append(raw) or translation, header)
    assert seen == [plain] and f'msgstr "{expected}"' in output
    place = place_of_mark(text, marker)
    assert place is None or marked(plain, text[place : place + 2]).count(text[place]) == text.count(text[place])


@given(st.text())
def test_escapes_give_the_text_back(text):
    tokens = list(NOTATION.tokens(NOTATION.written(text)))
    assert "".join(token.text for token in tokens) == text and "\n" not in NOTATION.written(text)


@given(st.lists(st.sampled_from(["a", "word", "\\n", "\\\\", '\\"', " ", "  ", "x" * 50, "\\\\n"]), max_size=60))
def test_folded_lines_are_the_text_none_too_long_and_each_ends_with_the_texts_own(pieces):
    text = "".join(pieces)
    first, *rows = folded("msgstr[0]", text, WIDTH, "\r\n").split("\r\n")[:-1]
    assert first.startswith('msgstr[0] "') and all(row[0] == row[-1] == '"' for row in rows)
    inside = [first[11:-1], *(row[1:-1] for row in rows)]
    assert "".join(inside) == text
    for row in inside:
        assert len(row.rstrip(" ")) <= WIDTH - 2 or " " not in row.rstrip(" ")
        assert re.sub(r"\\\\", "", row).find("\\n") in (
            -1,
            len(re.sub(r"\\\\", "", row)) - 2,
        )  # nothing behind a line end
    assert folded("msgstr", text, len(text) + 20, "\n").count("\n") <= len(re.findall(r"\\n", text)) + 2


@given(*[st.text(" \t\f\v", max_size=3)] * 3)
def test_white_space_is_what_it_is_to_gettext(before, between, behind):
    """To msgfmt, with form feeds, which may stand alone on a line and begin a page."""
    entry = f'{before}\n{before}msgid{between}"a"{behind}\n{before}"b"{behind}\nmsgstr "c"\n{behind}\n'
    entry += 'msgid "d"\nmsgstr ""\n'
    assert of_entry(entry) == entry.replace('msgid "d"\nmsgstr ""', '#, fuzzy\nmsgid "d"\nmsgstr "D"')


def test_a_file_of_long_lines_is_not_folded():
    long = "a dog " * 30
    entry = f'msgid "{long}"\nmsgstr ""\n'
    assert of_entry(entry) == f'#, fuzzy\nmsgid "{long}"\nmsgstr "{long.upper()}"\n'
    of_short_lines = f'# {long}\nmsgid ""\n"{long[:60]}"\n"{long[60:120]}"\n"{long[120:]}"\nmsgstr ""\n'
    assert of_entry(of_short_lines).count("\n") == 2 + 4 + 4


def test_another_charset_is_read_and_becomes_utf_8():
    file = HEADER.replace("# Licence", "# Müller\n" + "# free\n" * 400).replace("UTF-8", "ISO-8859-1")
    file += 'msgid "Müller"\nmsgstr ""\n'
    parts = po_parts(io.BytesIO(file.encode("latin-1")), "de.po", ())
    output = "".join(part.laid_out(part.passage.raw) if isinstance(part, Field) else part for part in parts)
    added = output.replace("#, fuzzy\n", "").replace('msgstr "Müller"', 'msgstr ""')
    assert added == file.replace("ISO-8859-1", "UTF-8")
    template = HEADER.replace("UTF-8", "CHARSET") + 'msgid "a"\nmsgstr "b"\n'
    assert written(template) == template.replace("CHARSET", "UTF-8")


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (
            'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n',
            r"line 1 has forms .* tells no rule for them: add Plural-Forms",
        ),
        ('"a"\n', "line 1 is a text behind no msgid: '\"a\"'"),
        ('msgid "a"\nmsgstr "b\n', "line 2 is 'msgstr \"b', not such as msgid"),
        ('msgid "a\nmsgstr "b"\n', "line 1 is 'msgid \"a', not such as"),
        (
            'msgid "a"\nmsgid "b"\nmsgstr ""\n',
            "line 1 has an entry of msgid, msgid, msgstr: an entry is msgid and msgstr",
        ),
        ('msgid "a"\n\n# b\n', "line 1 has an entry of msgid: an entry is msgid and msgstr"),
        ('msgid "a"\nmsgstr[1] ""\n', r"line 1 has an entry of msgid, msgstr\[1\]"),
        ('msgid "a"\nmsgid_plural "b"\nmsgstr[1] ""\n', r"line 1 has an entry of msgid, msgid_plural, msgstr\[1\]"),
        (
            'msgid "a"\nmsgstr ""\n\nmsgid "a"\nmsgstr "b"\n',
            "line 4 has the entry of line 1 again, 'a': msguniq makes one",
        ),
        ("# nothing\n", "is no catalogue of gettext: it has no entry"),
        ("", "is no catalogue of gettext: it has no entry"),
    ],
)
def test_what_is_no_catalogue_is_refused_before_anything_is_translated(entry, sentence):
    with pytest.raises(InputError, match=f"de.po(, | ){sentence}"):
        next(iter(po_parts(io.BytesIO(entry.encode()), "de.po", ())))


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("nplurals=2; plural=n !! 1;", "needs the rule of plurals of the header, 'n !! 1', which is none"),
        ("nplurals=2; plural=n % 0;", "needs the rule of plurals of the header, 'n % 0', which is none"),
        ("nplurals=2; plural=n;", "has 2 forms by the header, whose rule 'n' gives form 199"),
        ("nplurals=INTEGER; plural=EXPRESSION;", "tells no rule for them"),
    ],
)
def test_a_rule_of_plurals_that_cannot_be_is_refused_where_it_is_needed(rule, sentence):
    header = f'msgid ""\nmsgstr "Plural-Forms: {rule}\\n"\n\n'
    assert of_entry('msgid "a"\nmsgstr ""\n', header=header).endswith('"A"\n')
    with pytest.raises(InputError, match=f"de.po, line 4 .*{re.escape(sentence)}"):
        of_entry('msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n', header=header)


def test_a_template_without_a_rule_of_plurals_is_refused_before_anything_is_translated():
    template = 'msgid ""\nmsgstr ""\n\nmsgid "a"\nmsgstr ""\n\nmsgid "b"\nmsgid_plural "c"\nmsgstr[0] ""\n'
    with pytest.raises(InputError, match="a.pot, line 7 has forms .* add Plural-Forms, as msginit does"):
        next(po_parts(io.BytesIO(template.encode()), "a.pot", ()))


@pytest.mark.parametrize("everything", [False, True])
def test_two_entries_of_different_context_and_an_obsolete_one_are_no_duplicates(everything):
    file = HEADER + 'msgctxt "x"\nmsgid "a"\nmsgstr ""\n\nmsgid "a"\nmsgstr ""\n\n#~ msgid "a"\n#~ msgstr "b"\n'
    assert written(file, everything=everything).count('msgstr "A"') == 2


@pytest.mark.release
def test_translate_toolkit_reads_the_same_entries_with_translations():
    pypo = pytest.importorskip("translate.storage.pypo")
    before, after = (pypo.pofile.parsestring(text.encode()).units for text in (FILE, written(FILE)))
    for old, new in zip(before, after, strict=True):
        assert (new.source, new.getcontext(), new.getlocations(), new.getnotes()) == (
            old.source,
            old.getcontext(),
            old.getlocations(),
            old.getnotes(),
        )
        if not (old.isheader() or old.isobsolete()):
            assert new.target and new.isfuzzy() == (not old.target or old.isfuzzy())
    assert after[1].target == 'TWO %d "DOGS"\nAND\tA CAT'
