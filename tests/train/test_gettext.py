"""data.source = "gettext": catalogues as sentence pairs, what is left out of them, and what is refused."""

import gettext
import io
import random
import shutil
import struct
import subprocess
from collections import Counter

import pytest

from tests.support.catalogues import mo_file
from train.config.sources.gettext import GettextData
from train.data.catalogues import pairs_of, read_catalogue, single_spaced, without_marks
from train.data.corpus import CorpusError
from train.data.sources.gettext import read_corpus, read_test_split

GERMAN = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
PO = r"""
# A catalogue
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\n"

msgctxt "menu"
msgid "_Open \"%s\"\n"
msgstr "\"%s\" öff_nen\n"

#, fuzzy
msgid "Guess"
msgstr "Geraten"

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d Datei"
msgstr[1] "%d Dateien"

msgid "Not done"
msgstr ""

msgid "Twice"
msgstr "Doppelt"

msgid "Twice"
msgstr "Zweimal"

#~ msgid "Old"
#~ msgstr "Alt"
"""
PAIRS = [
    ('Open "%s"', '"%s" öffnen'),
    ("%d file", "%d Datei"),
    ("%d files", "%d Dateien"),
    ("Twice", "Doppelt"),
]


def pairs(content, name="a.po", source=None, counts=None):
    """The pairs of a catalogue, given as text or bytes; source: the catalogue of another language."""
    counts = Counter() if counts is None else counts
    catalogues = [
        each if each is None else read_catalogue(each.encode() if isinstance(each, str) else each, name, counts)
        for each in (content, source)
    ]
    return list(pairs_of(*catalogues, counts))


def po(messages, header=GERMAN):
    """A .po file of messages, msgid to msgstr."""
    lines = "".join(f'"{line}\\n"\n' for line in header.splitlines())
    return f'msgid ""\nmsgstr ""\n{lines}\n' + "".join(f'msgid "{a}"\nmsgstr "{b}"\n\n' for a, b in messages.items())


def test_a_po_file_gives_its_translated_messages_and_each_rule_is_counted():
    counts = Counter()
    assert pairs(PO, counts=counts) == PAIRS
    assert +counts == {
        "fuzzy": 1,
        "obsolete": 1,
        "untranslated": 1,
        "repeated in a catalogue": 1,
        "messages with plural forms": 1,
        "contexts taken away": 1,
        "with keyboard marks taken away": 1,
    }


@pytest.mark.skipif(not shutil.which("msgfmt"), reason="needs msgfmt, of gettext")
def test_what_msgfmt_makes_of_a_po_file_gives_the_same_pairs(tmp_path):
    text = PO.replace('msgid "Twice"\nmsgstr "Zweimal"\n', "")
    (tmp_path / "a.po").write_text(text, encoding="utf-8")
    subprocess.run(["msgfmt", "-o", tmp_path / "a.mo", tmp_path / "a.po"], check=True)
    assert sorted(pairs((tmp_path / "a.mo").read_bytes(), "a.mo")) == sorted(PAIRS)


@pytest.mark.parametrize("order", "<>")
def test_a_mo_file_has_the_messages_that_pythons_gettext_reads(order):
    words = "Öffnen Datei speichern 日本 € the of \n %s".split(" ")
    drawn = random.Random(1)
    messages = {f"{number} {drawn.choice(words)}": " ".join(drawn.choices(words, k=5)) for number in range(300)}
    content = mo_file(messages, order=order)
    theirs = gettext.GNUTranslations(io.BytesIO(content))._catalog
    ours = read_catalogue(content, "a.mo", Counter()).messages
    assert {key[1]: message.forms[0] for key, message in ours.items()} == {k: v for k, v in theirs.items() if k}


def test_a_mo_file_in_another_charset_is_read_in_it():
    header = "Content-Type: text/plain; charset=ISO-8859-15\n"
    assert pairs(mo_file({"Price": "Preis in €"}, header, "iso-8859-15"), "a.mo") == [("Price", "Preis in €")]


@pytest.mark.parametrize(
    ("rule", "forms", "expected"),
    [
        ("nplurals=1; plural=0;", ["%d ファイル"], [("%d files", "%d ファイル")]),
        (
            "nplurals=2; plural=(n > 1);",
            ["%d fichier", "%d fichiers"],
            [("%d file", "%d fichier"), ("%d files", "%d fichiers")],
        ),
        (
            "nplurals=3; plural=(n%10==1 && n%100!=11 ? 0 : n%10>=2 && n%10<=4 && (n%100<10 || n%100>=20) ? 1 : 2);",
            ["%d файл", "%d файла", "%d файлов"],
            [("%d file", "%d файл"), ("%d files", "%d файла"), ("%d files", "%d файлов")],
        ),
    ],
)
def test_each_plural_form_stands_beside_the_text_of_its_numbers(rule, forms, expected):
    header = f"Content-Type: text/plain; charset=UTF-8\nPlural-Forms: {rule}\n"
    assert pairs(mo_file({"%d file\0%d files": "\0".join(forms)}, header), "a.mo") == expected


@pytest.mark.parametrize(
    "rule", ["nplurals=2; plural=n !=;", "nplurals=2; plural=__import__('os');", "nplurals=1; plural=n;", ""]
)
def test_a_rule_of_plurals_that_does_not_parse_costs_its_messages_alone(rule):
    header, counts = f"Content-Type: text/plain; charset=UTF-8\nPlural-Forms: {rule}\n", Counter()
    content = mo_file({"%d file\0%d files": "%d Datei\0%d Dateien", "Yes": "Ja"}, header)
    assert pairs(content, "a.mo", counts=counts) == [("Yes", "Ja")]
    assert counts["catalogues without a rule of plurals"] == counts["messages with plural forms and no rule"] == 1


def test_the_source_may_be_another_languages_catalogue():
    french = mo_file(
        {"menu\4Open": "Ouvrir", "%d file\0%d files": "%d fichier\0%d fichiers", "Only here": "Seul"},
        "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n > 1);\n",
    )
    german = mo_file({"menu\4Open": "Öffnen", "Open": "Offen", "%d file\0%d files": "%d Datei\0%d Dateien"}, GERMAN)
    counts = Counter()
    assert sorted(pairs(german, "a.mo", french, counts)) == [
        ("%d fichier", "%d Datei"),
        ("%d fichier", "%d Dateien"),  # of 0 files
        ("%d fichiers", "%d Dateien"),
        ("Ouvrir", "Öffnen"),
    ]
    assert counts["untranslated in the source language"] == 1


@pytest.mark.parametrize(
    ("source", "target", "bare"),
    [
        ("_Save as", "Speichern _unter", ("Save as", "Speichern unter")),
        ("&File", "Fichier(&F)", ("File", "Fichier")),
        ("Hori_zontal:", "Hor_izontal:", ("Horizontal:", "Horizontal:")),
        ("~Edit...", "編集 (~E)...", ("Edit...", "編集...")),
        ("Add", "H_inzufügen", ("Add", "Hinzufügen")),
        ("Set file_name", "file_name setzen", ("Set file_name", "file_name setzen")),
        ("R&D costs", "Kosten für R&D", ("R&D costs", "Kosten für R&D")),
        ("Cut & paste &amp; go", "~ 5 %_s", ("Cut & paste &amp; go", "~ 5 %_s")),
        ("_bold_ and _it_", "/_a", ("_bold_ and _it_", "/_a")),
    ],
)
def test_marks_of_keys_are_taken_away_and_signs_stay(source, target, bare):
    assert without_marks(source, target) == bare


def test_a_text_is_on_one_line_with_single_spaces_and_those_that_do_not_break_stay():
    assert single_spaced(" a\n\t b\r\n  c\u00a0%\u202f! ") == "a b c\u00a0%\u202f!"


def test_a_text_with_many_marks_takes_time_in_proportion():
    assert without_marks("_a " * 200_000, "(_a" * 200_000)[1] == "(_a" * 200_000


@pytest.mark.parametrize(
    ("content", "name", "parts"),
    [
        (b"PK\3\4 no", "a.mo", ["a.mo is no catalogue"]),
        (mo_file({"Yes": "Ja"})[:-4], "a.mo", ["a.mo is damaged", "ends at byte"]),
        (mo_file({"Yes": "Ja"})[:30], "a.mo", ["a.mo is damaged"]),
        (struct.pack("<7I", 0x950412DE, 0, 1 << 31, 28, 28, 0, 0), "a.mo", ["a.mo is damaged"]),
        (mo_file({"Yes": "Für"}, charset="latin-1"), "a.mo", ["a.mo says that it is UTF-8"]),
        (mo_file({"Yes": "Ja"}, "Content-Type: text/plain; charset=NONE-SUCH\n"), "a.mo", ["a.mo", "NONE-SUCH"]),
        (po({"Yes": "Ja"}).encode() + b'msgid "a"\nmsgstr "\xfc"\n', "a.po", ["a.po, line 10", "UTF-8"]),
        (po({"Yes": "Ja"}).encode() + b"msgid a\n", "a.po", ["a.po, line 9"]),
        (b"", "a.po", ["a.po is no catalogue"]),
    ],
)
def test_a_damaged_catalogue_is_one_sentence_with_its_file(content, name, parts):
    with pytest.raises(CorpusError) as caught:
        pairs(content, name)
    assert all(part in str(caught.value) for part in parts) and "\n" not in str(caught.value)


@pytest.fixture
def locale(tmp_path):
    """A folder as programs have it: locale/LANGUAGE/LC_MESSAGES/PROGRAM.mo, and one of .po files by language."""
    for program in ("editor", "shell", "mail"):
        for code, text in (("de", "öffnen"), ("fr", "ouvrir"), ("pt_BR", "abrir")):
            path = tmp_path / "locale" / code / "LC_MESSAGES" / f"{program}.mo"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(mo_file({f"Open the {program}": f"{program} {text}"}))
    for code in ("de", "fr"):
        (tmp_path / "po").mkdir(exist_ok=True)
        (tmp_path / "po" / f"tool-{code}.po").write_text(po({"Open": f"Open in {code}"}), encoding="utf-8")
    return tmp_path


def section(folder, **values):
    paths = {
        name: [str(folder / path) for path in values.pop(name)]
        for name in ("train", "validation", "test")
        if name in values
    }
    return GettextData(source="gettext", **{"target_language": "de"} | paths | values)


def test_a_folder_gives_the_catalogues_of_the_target_language(locale):
    data = section(
        locale, train=["locale/de/LC_MESSAGES/editor.mo", "po"], validation=["locale/de/LC_MESSAGES/shell.mo"]
    )
    corpus = read_corpus(data)
    assert list(corpus.train) == [("Open the editor", "editor öffnen"), ("Open", "Open in de")]
    assert list(corpus.validation) == list(read_test_split(data)) == [("Open the shell", "shell öffnen")]
    assert corpus.test is None and len(data.paths()) == 3
    whole = section(locale, train=["locale"], validation=["po"], target_language="pt_BR")
    assert len(whole.catalogues("train")) == 3
    assert len(section(locale, train=["locale/de"], validation=["po"]).catalogues("train")) == 3


def test_the_source_language_is_that_of_the_same_catalogue(locale):
    data = section(locale, train=["locale"], validation=["po"], source_language="fr")
    corpus = read_corpus(data)
    assert ("mail ouvrir", "mail öffnen") in list(corpus.train)
    assert list(corpus.validation) == [("Open in fr", "Open in de")]
    (locale / "po" / "tool-fr.po").unlink()
    with pytest.raises(CorpusError, match="tool-fr.po with the same catalogue in the source language fr"):
        read_corpus(data)


def test_a_changed_catalogue_has_another_fingerprint(locale):
    data = section(locale, train=["locale"], validation=["po"])
    before = read_corpus(data).train.fingerprint()
    assert read_corpus(data).train.fingerprint() == before
    (locale / "locale" / "de" / "LC_MESSAGES" / "mail.mo").write_bytes(mo_file({"Open": "Post öffnen"}))
    assert read_corpus(data).train.fingerprint() != before


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"train": ["none.mo"]}, "no such file"),
        ({"train": ["po"], "target_language": "ja"}, "language ja"),
        ({"train": ["po"], "validation": ["po/tool-de.po"]}, "both have"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(locale, values, part):
    with pytest.raises(CorpusError, match=part):
        read_corpus(section(locale, **{"validation": ["locale"]} | values))


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"target_language": "en"}, "msgid_language"),
        ({"source_language": "de"}, "source_language"),
        ({"target_language": "?"}, "no code of a language"),
        ({"shards": 2}, "shards"),
    ],
)
def test_languages_that_make_no_sense_are_refused(tmp_path, values, part):
    with pytest.raises(ValueError, match=part):
        section(tmp_path, train=["a"], validation=["b"], **values)
