"""`keras-transformer software` makes a corpus from packages: aligned, split by document, the same bytes each time."""

import gzip
import io
import json
import shutil
import subprocess
import tarfile
from collections import Counter

import pytest

from tests.support.catalogues import mo_file
from tests.support.commands import assert_one_sentence, invoke
from train.data.corpus import CorpusError
from train.data.software.command import app
from train.data.software.corpus import split_pairs
from train.data.software.help_pages import paragraphs_of
from train.data.software.packages import Package, licence_of, packages_in
from train.data.software.split import AlignedText, division_of, letters_of, without_near, without_repetitions

PAGE = '<!DOCTYPE html><html lang="{code}"><head><title>{code}</title></head><body><p>menu</p>{body}</body></html>'
RESOURCE = "usr/lib/libreoffice/program/resource"


def deb_file(name, files, section="doc", packer="xz"):
    """A .deb file, by the description in deb(5)."""

    def tar(members):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode=f"w:{packer}") as archive:
            for path, content in members.items():
                member = tarfile.TarInfo(f"./{path}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        return stream.getvalue()

    control = f"Package: {name}\nVersion: 1:2.0-3\nSection: {section}\nDescription: text\n more of it\n"
    files = {**files, f"usr/share/doc/{name}/copyright": b"Format: 1.0\n\nFiles: *\nCopyright: us\nLicense: MPL-2.0\n"}
    content = b"!<arch>\n"
    members = {"debian-binary": b"2.0\n", f"control.tar.{packer}": tar({"control": control.encode()})}
    for member, data in {**members, f"data.tar.{packer}": tar(files)}.items():
        content += (
            f"{member:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
        )
    return content


def help_of(code, pages):
    """The files of a package of help: pages by name, each a dict of paragraphs by id."""
    return {
        f"usr/share/libreoffice/help/{code}/text/{name}": PAGE.format(
            code=code,
            body="".join(f'<p id="{identity}" class="paragraph">{text}</p>' for identity, text in page.items()),
        ).encode()
        for name, page in pages.items()
    }


def documents(name, count):
    """The first documents of a split, such as "swriter/7.html"."""
    pages = (f"swriter/{number}.html" for number in range(10_000))
    return [page for page in pages if division_of(f"help/{page}") == name][:count]


@pytest.fixture
def folder(tmp_path):
    """A folder of .deb files: help in English and German, catalogues in German."""
    english, german = {}, {}
    for split in ("train", "validation", "test"):
        for number, page in enumerate(documents(split, 3)):
            english[page] = {"hd_id1": f"Heading of {split} {'abc'[number]}", "par_id2": "Choose <b>File</b> - Open."}
            german[page] = {"par_id2": "Wählen Sie <b>Datei</b> – Öffnen.", "hd_id1": f"Titel {split} {'abc'[number]}"}
    english["sdraw/main.html"], german["sdraw/main.html"] = (
        {"par_id1": "Draws a line."},
        {"par_id1": "Zeichnet eine Linie."},
    )
    catalogue = mo_file({"dialog|ok\x04_Save as": "_Speichern unter", "Zoom": "Zoom", "42": "42 %"})
    packages = {
        "libreoffice-help-en-us": help_of("en-US", english),
        "libreoffice-help-de": help_of("de", german),
        "libreoffice-l10n-de": {f"{RESOURCE}/de/LC_MESSAGES/{name}.mo": catalogue for name in ("sw", "sd")},
    }
    folder = tmp_path / "packages"
    folder.mkdir()
    for name, files in packages.items():
        (folder / f"{name}_2.0-3_all.deb").write_bytes(deb_file(name, files))
    return folder


def rows(path):
    return [tuple(line.split("\t")) for line in path.read_text(encoding="utf-8").splitlines()]


def test_paragraphs_of_a_page_are_aligned_by_id_and_split_by_document(folder, tmp_path):
    result = invoke(app, "--from", folder, "--to", tmp_path / "out")
    assert result.exit_code == 0, result.output
    train, test, pictures = (rows(tmp_path / "out" / "en-de" / f"{name}.tsv") for name in ("train", "test", "pictures"))
    assert ("Choose File - Open.", "Wählen Sie Datei – Öffnen.") in {row[:2] for row in train}
    assert ("Heading of train a", "Titel train a", f"help/{documents('train', 1)[0]}") in train
    # its other paragraph is in a training page too
    assert sorted(test) == [
        (f"Heading of test {each}", f"Titel test {each}", f"help/{page}")
        for each, page in zip("abc", documents("test", 3), strict=True)
    ]
    assert ("Draws a line.", "Zeichnet eine Linie.", "help/sdraw/main.html") in pictures
    assert ("Save as", "Speichern unter", f"{RESOURCE}/sw.mo") in train + test + rows(
        tmp_path / "out/en-de/validation.tsv"
    )
    assert not any(row[2].endswith("sd.mo") for row in train + test)
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert [package["name"] for package in record["packages"]] == [
        "libreoffice-help-de",
        "libreoffice-help-en-us",
        "libreoffice-l10n-de",
    ]
    assert {(each["version"], each["licence"], each["section"]) for each in record["packages"]} == {
        ("1:2.0-3", "MPL-2.0", "doc")
    }
    assert record["en-de"]["splits"]["test"]["pairs"] == 3
    assert record["en-de"]["counts"]["of test, nearly in another split"] == 1


def test_the_same_packages_give_the_same_bytes_whether_packed_or_not(folder, tmp_path):
    unpacked = tmp_path / "unpacked"
    for package in packages_in(folder, lambda path: True):
        for path, content in package.files.items():
            target = unpacked / package.name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
    for place, out in ((folder, "a"), (folder, "b"), (unpacked, "c")):
        assert invoke(app, "--from", place, "--to", tmp_path / out).exit_code == 0
    files = {path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file()}
    for file in files:
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
        if file.suffix == ".tsv":
            assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "c" / file).read_bytes()


@pytest.mark.parametrize("cut", [4, 70, 300, -40])
def test_a_damaged_package_is_one_sentence(folder, tmp_path, cut):
    path = folder / "libreoffice-help-de_2.0-3_all.deb"
    path.write_bytes(path.read_bytes()[:cut])
    result = invoke(app, "--from", folder, "--to", tmp_path / "out")
    assert_one_sentence(result, "libreoffice-help-de_2.0-3_all.deb", "no intact .deb file")


def test_what_is_no_folder_of_packages_is_one_sentence(tmp_path):
    (tmp_path / "empty").mkdir()
    assert_one_sentence(invoke(app, "--from", tmp_path / "none", "--to", tmp_path / "out"), "no folder")
    assert_one_sentence(invoke(app, "--from", tmp_path / "empty", "--to", tmp_path / "out"), "no .deb file")
    assert_one_sentence(invoke(app, "--languages", "de,?", "--to", tmp_path / "out"), "'?'")


def test_a_language_that_no_package_has_is_one_sentence(folder, tmp_path):
    result = invoke(app, "--from", folder, "--languages", "fr", "--to", tmp_path / "out")
    assert_one_sentence(result, "no text of the language fr")


@pytest.mark.skipif(not shutil.which("dpkg-deb"), reason="needs dpkg-deb")
@pytest.mark.parametrize("packer", ["xz", "gzip", "zstd"])
def test_packages_that_dpkg_builds_are_read(tmp_path, packer):
    root = tmp_path / "root"
    for path, content in help_of("de", {"swriter/a.html": {"par_id1": "Text"}}).items():
        (root / path).parent.mkdir(parents=True)
        (root / path).write_bytes(content)
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN" / "control").write_text(
        "Package: help\nVersion: 3\nArchitecture: all\nMaintainer: us <us@example.org>\nSection: non-free/graphics\n"
        "Description: help\n"
    )
    done = subprocess.run(["dpkg-deb", f"-Z{packer}", "-b", root, tmp_path], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"this dpkg-deb does not pack by {packer}")
    with pytest.raises(CorpusError, match="the package help twice"):
        packages_in(tmp_path, lambda path: True)
    (unpacked,) = packages_in(root, lambda path: path.endswith(".html"))
    shutil.rmtree(root)
    (packed,) = packages_in(tmp_path, lambda path: path.endswith(".html"))
    assert packed._replace(sha256="") == unpacked._replace(sha256="")
    assert (packed.name, packed.version, packed.section) == ("help", "3", "graphics")
    assert list(packed.files) == ["usr/share/libreoffice/help/de/text/swriter/a.html"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ('<p id="par_id1">Press <span class="emph">Ctrl</span>\n + F<br>now.</p>', "Press Ctrl + F now."),
        (
            '<p id="par_id1">In <span class="switchinline"><span class="MAC" id="MAC1">Settings</span>'
            '<span id="default1"><b>Tools</b> - Options</span></span>.</p>',
            "In Tools - Options.",
        ),
        (
            '<p id="par_id1">A <span class="switch"><span id="a">Slide</span><span id="b">Page</span></span>.</p>',
            "A Slide.",
        ),
        ('<div id="par_id1">Outer <ul><li>item</ul></div>', "Outer item"),
        ('<p id="par_id1">One<p id="par_id2">Two', "One"),
        ('<p id="par_id1">&lt;b&gt; &amp; &uuml;&#8211;</p>', "<b> & ü–"),
        ('<p id="par_id1">One</p><p id="par_id1">Another</p>', "One"),
        ('<p id="par_id1"><script>no();</script>Yes</p>', "Yes"),
    ],
)
def test_the_text_of_a_paragraph_is_what_its_reader_sees(body, text):
    assert paragraphs_of(PAGE.format(code="en", body=body))["par_id1"] == text


def test_code_and_text_without_an_id_are_no_paragraphs():
    body = '<p id="par_id1" class="code">x = 1</p><pre><code>y = 2</code></pre><p>none</p><h2 id="hd_id7">A title</h2>'
    assert paragraphs_of(PAGE.format(code="en", body=body)) == {"hd_id7": "A title"}


def test_a_page_that_never_ends_its_elements_is_read_in_linear_time():
    body = '<div><span class="emph">' * 20_000 + '<p id="par_id1">Text' + "</b>" * 20_000
    assert paragraphs_of(body)["par_id1"] == "Text"


def test_a_test_text_that_differs_from_a_training_text_by_numbers_case_and_marks_is_left_out():
    train = [AlignedText("Column 1:", "Spalte 1:", "a")]
    near = [AlignedText("COLUMN 23", "Andere", "b"), AlignedText("Other", "spalte (7)", "b")]
    far = [AlignedText("Columns", "Spalten", "b")]
    assert without_near(near + far, train) == far
    assert letters_of("Größe: 3,5 cm!") == letters_of("GRÖSSE 12 CM")


def test_pairs_that_teach_nothing_are_left_out_and_counted():
    counts = Counter()
    pairs = [("1 + 2", "3 = 4"), ("PDF", "pdf"), ("Yes", "Ja"), ("Yes", "Ja"), ("Yes", "Doch")]
    pairs += [("IMCOT", "[text/scalc/01/func_imcot.xhp#imcot_head not found].")]
    kept = without_repetitions([AlignedText(*pair, "d") for pair in pairs], counts)
    assert [pair[:2] for pair in kept] == [("Yes", "Ja"), ("Yes", "Doch")]
    assert counts == {
        "without letters": 1,
        "the same in both languages": 1,
        "repeated": 1,
        "with a part of help that is missing": 1,
    }


def test_a_document_is_in_the_same_split_whatever_stands_beside_it():
    names = [f"help/{number}.html" for number in range(4000)]
    shares = Counter(map(division_of, names))
    assert shares == Counter(map(division_of, reversed(names)))
    assert 0.04 < shares["test"] / 4000 < 0.06 and 0.02 < shares["validation"] / 4000 < 0.04


def package(files, section="doc", name="made-up"):
    return Package(name, "1", section, "MIT", "0", files)


def test_a_damaged_catalogue_and_a_page_without_ids_are_counted():
    page = PAGE.format(code="", body="<p>nothing</p>").encode()
    files = {
        "usr/share/locale/de/LC_MESSAGES/a.mo": mo_file({"Open the file": "Die Datei öffnen"}),
        "usr/share/locale/de/LC_MESSAGES/b.mo": mo_file({"Close": "Schließen"})[:-3],
        "usr/share/libreoffice/help/en-US/text/x.html": page,
        "usr/share/libreoffice/help/de/text/x.html": page,
        "usr/share/libreoffice/help/de/text/y.html": page,
        "usr/share/libreoffice/help/de/text/z.html": b"<p>\xfc</p>",
    }
    counts = Counter()
    splits = split_pairs([package(files)], "de", counts)
    assert [pair for pairs in splits.values() for pair in pairs] == [
        ("Open the file", "Die Datei öffnen", "usr/share/locale/a.mo")
    ]
    assert counts["pages that are not UTF-8"] == 1
    assert (counts["damaged catalogues"], counts["pages without ids"], counts["pages of one language alone"]) == (
        1,
        1,
        1,
    )


def test_programs_of_the_sections_graphics_sound_and_video_are_kept_apart():
    files = {"usr/share/locale/pt_BR/LC_MESSAGES/a.mo": mo_file({"Open the file": "Abrir"})}
    for section, name in (("graphics", "a"), ("sound", "a"), ("video", "a"), ("localization", "vlc-l10n")):
        pairs = split_pairs([package(files, section, name)], "pt-BR", Counter())["pictures"]
        assert [pair.source for pair in pairs] == ["Open the file"]
    with pytest.raises(CorpusError):
        split_pairs([package(files)], "pt", Counter())


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("Format: 1.0\n\nFiles: doc/*\nLicense: GFDL\n\nFiles: *\nCopyright: us\nLicense: GPL-3+\n text\n", "GPL-3+"),
        ("Files: a\nLicense: MIT or BSD\n\nLicense: GPL\n", "MIT or BSD"),
        ("This program is free software.\n", None),
    ],
)
def test_the_licence_is_that_of_all_files(text, licence):
    assert licence_of(text.encode()) == licence


def test_compressed_text_is_no_package(tmp_path):
    (tmp_path / "a.deb").write_bytes(gzip.compress(b"text"))
    with pytest.raises(CorpusError, match="no intact .deb file"):
        packages_in(tmp_path, lambda path: True)
