"""Resources of Android: texts are translated where they stand, and plurals have the forms of the language."""

import io
import re

import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.text.formats import FORMATS
from keras_transformer.text.formats.endings import format_of_name
from keras_transformer.text.formats.parts import Field
from tests.support.documents import capitals, texts_of, through, translated

FILE = r"""<?xml version="1.0" encoding="utf-8"?>
<!-- Licence -->
<resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">
    <string name="a">don\'t <b>open</b> it\n\u0020now \&quot;or\" &amp; then</string>
    <string name="kept" translatable="false">Brand</string>
    <string name="reference">@string/a</string><string name="number">%1$d %%</string><string name="empty"/>
    <string name="g">see <xliff:g id="who" example="Bob">%1$s</xliff:g>
        there</string>  <!-- a comment -->
    <string name="cdata"><![CDATA[one <i>dog</i> & cat]]></string>
    <string name="html">two &lt;b>dogs&lt;/b></string>
    <string-array name="list"><item>red</item><item>"  dark   blue"</item></string-array>
    <integer name="n">7</integer><color name="c">#ffffff</color>
</resources>
"""


def resources(content):
    return f"<resources>\n{content}\n</resources>\n"


def of_language(content, language, of_line=str):
    return translated(FORMATS["android"](io.BytesIO(content.encode()), "strings.xml", (), language), of_line)


def laid_out(source, translation):
    parts = FORMATS["android"](io.BytesIO(resources(f'<string name="a">{source}</string>').encode()), "strings.xml", ())
    [field] = [part for part in parts if isinstance(part, Field)]
    return field.laid_out(field.passage.written(translation))


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_an_engine_that_changes_nothing_gives_the_file_back(ending):
    file = FILE.replace("\n", ending)
    assert through("android", file, str) == of_language(file, "de") == file


def test_texts_change_and_all_else_stays():
    output = through("android", FILE, capitals)
    assert re.sub("[A-Za-z]", "", output) == re.sub(
        "[A-Za-z]", "", FILE.replace("&quot;", '"').replace("i> &", "i> &amp;")
    )
    for part in (r"DON\'T <b>OPEN</b> IT\n\u0020NOW \"OR\" &amp; THEN", ">Brand<", ">@string/a<", ">%1$d %%<"):
        assert part in output
    assert 'SEE <xliff:g id="who" example="Bob">%1$s</xliff:g>\n        THERE' in output
    assert "<![CDATA[ONE <i>DOG</i> &amp; CAT]]>" in output and "TWO &lt;b>DOGS&lt;/b>" in output
    assert "<item>RED</item>" in output and "#ffffff" in output


@pytest.mark.parametrize("spaces", [r" \u0020", r"\u0020\u0020", r"\u0020 \u0020 "])
def test_spaces_that_are_shown_beside_each_other_stay_shown(spaces):
    output = through("android", f'<resources><string name="a">one{spaces}two</string></resources>', capitals)
    [text] = re.findall("ONE(.*)TWO", output)
    shown = re.sub(" +", " ", text).replace(r"\u0020", " ")  # as Android reads it
    assert shown == spaces.replace(r"\u0020", " ")


def test_a_model_reads_what_the_program_shows():
    assert texts_of("android", FILE) == [
        "don't open it", 'now "or" & then', "see  there", "one dog & cat", "two dogs", "red", "dark blue",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "translation", "written"),
    [
        ("a dog", 'it\'s "1 < 2"\n\\', r"it\'s \"1 &lt; 2\"\n\\"),
        ("a dog", "@home", r"\@home"),
        ("a dog", "?", r"\?"),
        (r"\@home", "@home", r"\@home"),
        ("<![CDATA[a dog]]>", "1 < 2", "1 < 2"),
        ("<![CDATA[a <b>dog</b>]]>", "1 < 2", "1 &lt; 2"),
        ("%1$s has %2$d", "%2$d hat %1$s", "%2$d hat %1$s"),
        ("%s has %d", "%d hat %s", "%s has %d"),
        ("100% sure", "100% sicher", "100% sicher"),
    ],
)
def test_a_translation_is_written_so_that_it_is_read_back(source, translation, written):
    assert laid_out(source, translation) == written


@pytest.mark.parametrize("empty", ['<plurals name="a"/>', '<plurals name="a">\n  <!-- later -->\n</plurals>'])
def test_plurals_without_a_form_stay_as_they_are(empty):
    assert of_language(resources(empty + '<string name="b">dog</string>'), "de", str.upper) == resources(
        empty + '<string name="b">DOG</string>'
    )


PLURALS = resources(
    '  <plurals name="dogs">\n    <item quantity="one">%d dog</item>\n'
    '    <item quantity="other">%d dogs</item>\n  </plurals>'
)


@pytest.mark.parametrize(
    ("language", "one", "expected"),
    [
        ("de", "%d dog", {"one": "%d DOG", "other": "%d DOGS"}),
        ("pl", "%d dog", {"one": "%d DOG", "few": "%d DOGS", "many": "%d DOGS", "other": "%d DOGS"}),
        ("ru-RU", "one dog", {"one": "%d DOGS", "few": "%d DOGS", "many": "%d DOGS", "other": "%d DOGS"}),  # 21 too
        ("ru", "%d dog", {"one": "%d DOG", "few": "%d DOGS", "many": "%d DOGS", "other": "%d DOGS"}),
        ("jpn", "%d dog", {"other": "%d DOGS"}),
        ("fr", "one dog", {"one": "%d DOGS", "many": "%d DOGS", "other": "%d DOGS"}),  # 0 too
        ("ar", "a dog", dict.fromkeys("zero two few many other".split(), "%d DOGS") | {"one": "A DOG"}),
        ("", "%d dog", {"one": "%d DOG", "other": "%d DOGS"}),
        ("tlh", "%d dog", {"one": "%d DOG", "other": "%d DOGS"}),
    ],
)
def test_plurals_get_the_forms_of_the_language(language, one, expected, caplog):
    upper = lambda text: re.sub("[a-ce-z]|(?<!%)d", lambda found: found[0].upper(), text)  # noqa: E731
    output = of_language(PLURALS.replace("%d dog<", f"{one}<"), language, upper)
    items = re.findall(r'\n    <item quantity="(\w+)">(.*)</item>', output)
    assert dict(items) == expected and len(items) == len(expected)
    assert [name for name, _ in items] == [name for name in "zero one two few many other".split() if name in expected]
    assert ("tell the language with --target-language" in caplog.text) == (language in ("", "tlh"))


@pytest.mark.parametrize(
    ("file", "sentence"),
    [
        ("<resources>\n<string", "line 2 is not XML"),
        ("<html/>", "is XML, but no resources of Android: its first element is <html>"),
        (
            resources('<string name="a">x</string>\n<string name="a">y</string>'),
            "line 3 has 'string a' of line 2 again",
        ),
        (
            '<!DOCTYPE r [\n<!ENTITY a "b">\n<!ENTITY c "&a;&a;">]><resources/>',
            "line 3 has the entity 'c', which is made",
        ),
        ('<!DOCTYPE r [<!ENTITY a SYSTEM "/etc/passwd">]><resources/>', "line 1 has the entity 'a', which is a file"),
        (
            resources('<plurals name="a"><item quantity="one">x</item></plurals>'),
            "line 2 has plurals of one: they need other, and may",
        ),
    ],
)
def test_what_is_wrong_is_one_sentence_before_anything_is_translated(file, sentence):
    with pytest.raises(
        InputError, match=f"strings.xml(,| ){re.escape(sentence) if '<' in sentence else ' ?' + sentence}"
    ):
        of_language(file, "de")


def test_two_products_have_a_text_of_one_name_and_an_entity_stays():
    file = resources('<string name="a">x</string><string name="a" product="tablet">y &app;</string>')
    file = '<!DOCTYPE resources [<!ENTITY app "Nice">]>\n' + file
    assert through("android", file, capitals) == file.replace(">x<", ">X<").replace(">y ", ">Y ")


def test_a_name_tells_it():
    assert format_of_name("res/values/strings.xml") == "android" and format_of_name("other.xml") is None


def test_the_log_says_what_is_left(caplog):
    through("android", FILE, str)
    [message] = [record.getMessage() for record in caplog.records]
    assert message == "file: 6 texts translated, 4 left: 2 without words, 1 not to be translated, 1 references"


@pytest.mark.release
def test_categories_are_those_of_cldr():
    babel = pytest.importorskip("babel")
    from keras_transformer.text.formats.plurals import FORMS, categories_of

    for code, marked in FORMS.items():
        language, _, country = code.partition("_")
        form = babel.Locale(language, country.upper() or None).plural_form
        assert set(categories_of(code)) == {*form.tags, "other"}, code
        for name, number in (("zero", 0), ("one", 1), ("two", 2)):
            numbers = {n for n in range(1000) if form(n) == name}
            assert (name in marked, f"{name}+" in marked) == (numbers == {number}, bool(numbers - {number})), code
