"""DOCX: the texts of a document once each, between all that stays."""

import io
import re
import zipfile

import pytest

from keras_transformer.ground.errors import InputError
from keras_transformer.pieces.translation import Translation
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.formats import FORMATS, PACKED, docx_archive
from keras_transformer.text.formats import docx as docx_format
from keras_transformer.text.formats.parts import Field, bytes_of
from keras_transformer.text.marks import MARK
from tests.support.capital_runs import capital_run, translate
from tests.support.documents import capitals
from tests.support.docx_files import PICTURE, archive, body_of, docx, member, members_of, p, r
from tests.support.growth import MOST_GROWTH, growth_of

BOLD, ITALIC = "<w:b/>", "<w:i/>"


def box(*paragraphs):
    """A run with a text box."""
    return f"<w:r><w:pict><w:txbxContent>{''.join(paragraphs)}</w:txbxContent></w:pict></w:r>"


def field(instruction, result, last=True):
    """A field in runs of its own."""
    char = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'.format
    end = char("end") if last else ""
    return f"{char('begin')}<w:r><w:instrText>{instruction}</w:instrText></w:r>{char('separate')}{result}{end}"


def through(content, of_line=capitals, seen=None):
    """A document whose sentences, with signs of its marks, are what a function makes of them."""

    def translated(lines):
        if seen is not None:
            seen.extend(MARK.sub("", line) for line in lines)
        return [Translation(of_line(line), 0.0) for line in lines]

    parts = list(FORMATS["docx"](io.BytesIO(content), "a.docx", ()))
    passages = [part.passage for part in parts if isinstance(part, Field)]
    documents = iter(DocumentTranslator(translated, "en", reads_marks=True).documents(passages))
    written = "".join(part.laid_out(next(documents).text) if isinstance(part, Field) else part for part in parts)
    return PACKED["docx"](bytes_of(written))


def upper(line):
    """Capitals for all but signs."""
    signs = [found[0] for found in MARK.finditer(line)]
    texts = MARK.split(line)[::2]
    return "".join(capitals(text) + sign for text, sign in zip(texts, [*signs, ""], strict=True))


CASES = {  # a body, and what is read of it
    "runs that look alike": (p(r("A d"), "<w:proofErr/>", r("og", "<w:lang/>"), r(" runs.")), ["A dog runs."]),
    "an element in a text, which is none": (p("<w:r><w:t>A<w:tab/>dog</w:t></w:r>", r("Two cats.")), ["Two cats."]),
    "sentences": (p(r("A dog. "), r("Two", BOLD), r(" cats.")), ["A dog.", "Two cats."]),
    "a tab": (p("<w:pPr><w:tabs/></w:pPr>", r("Name:"), "<w:r><w:tab/><w:t>Jo</w:t></w:r>"), ["Name:", "Jo"]),
    "a tab within a run": (p("<w:r><w:t>One</w:t><w:tab/><w:t>two</w:t></w:r>"), ["One", "two"]),
    "a page": (p('<w:r><w:t>a</w:t><w:br w:type="page"/><w:t>b</w:t></w:r>'), ["a", "b"]),
    "a line break": (p("<w:r><w:t>A dog.</w:t><w:br/><w:t>A cat.</w:t></w:r>"), ["A dog.", "A cat."]),
    "hyphens": (
        p("<w:r><w:t>a</w:t><w:noBreakHyphen/><w:t>b</w:t><w:softHyphen/><w:t>c</w:t></w:r>"),
        ["a\u2011b\xadc"],
    ),
    "a link": (
        p(r("See "), f'<w:hyperlink r:id="i">{r("this ", BOLD)}{r("page")}</w:hyperlink>', r(".")),
        ["See this page."],
    ),
    "a picture": (p(r("a "), "<w:r><w:drawing><a:p><a:t>x</a:t></a:p></w:drawing></w:r>", r("b")), ["a b"]),
    "a note": (p(r("a"), '<w:r><w:footnoteReference w:id="1"/></w:r>', r(" b")), ["a b"]),
    "a bookmark": (p('<w:bookmarkStart w:id="0"/>', r("a"), '<w:bookmarkEnd w:id="0"/>', r(" b")), ["a b"]),
    "changes": (
        p(r("a "), f"<w:del>{r('x')}</w:del>", f"<w:ins>{r('b')}</w:ins>", f"<w:moveFrom>{r('y')}</w:moveFrom>"),
        ["a b"],
    ),
    "a deleted text box": (p(r("a"), f"<w:del>{box(p(r('x')))}</w:del>", r(" b")), ["a b"]),
    "a field": (p(r("Page "), field("PAGE", r("3")), r(" of it")), ["Page  of it"]),
    "a simple field": (p(r("at "), f'<w:fldSimple w:instr="DATE">{r("May")}</w:fldSimple>', r(" c")), ["at  c"]),
    "a link as a field": (p(r("see "), field(' HYPERLINK "x"', r("here")), r(".")), ["see here."]),
    "a link as a simple field": (p(f'<w:fldSimple w:instr="HYPERLINK x">{r("here")}</w:fldSimple>'), ["here"]),
    "a field in a field": (p(r("a "), field("IF", field("PAGE", r("x"))), r(" b")), ["a  b"]),
    "a field over paragraphs": (
        p(r("a"), field("TOC", r("x"), last=False))
        + p(r("y"))
        + p('<w:r><w:fldChar w:fldCharType="end"/></w:r>', r("b")),
        ["a", "b"],
    ),
    "a field that divides a link": (
        p(f"<w:hyperlink>{r('a')}{field('PAGE', r('x'), last=False)}</w:hyperlink>"),
        [],
    ),
    "a table": ("<w:tbl><w:tr><w:tc>" + p(r("a")) + "</w:tc><w:tc>" + p(r("b")) + "</w:tc></w:tr></w:tbl>", ["a", "b"]),
    "a text box": (p(r("a "), box(p(r("in")), p(r("box"))), r("b")), ["a b", "in", "box"]),
    "a text box before a tab": (p(r("a "), box(p(r("in"))), r("b"), "<w:r><w:tab/></w:r>", r("c")), ["a b", "in", "c"]),
    "a text box between tabs": (
        p(r("a"), "<w:r><w:tab/></w:r>", box(p(r("b"), "<w:r><w:tab/></w:r>", r("c"))), "<w:r><w:tab/></w:r>", r("d")),
        ["a", "b", "c", "d"],
    ),
    "a text box alone": (p(box(p(r("in")))), ["in"]),
    "text boxes in each other": (
        p(
            r("a "),
            box(p(r("b "), box(p(r("c"))), r("d"))),
            r("e"),
        ),
        ["a e", "b d", "c"],
    ),
    "a control": (p(r("a "), f"<w:sdt><w:sdtPr/><w:sdtContent>{r('b')}</w:sdtContent></w:sdt>"), ["a b"]),
    "a value": (p(r("a "), f"<w:sdt><w:sdtPr><w:date/></w:sdtPr><w:sdtContent>{r('x')}</w:sdtContent></w:sdt>"), ["a"]),
    "mathematics": (p(r("a "), "<m:oMath><m:r><m:t>x</m:t></m:r></m:oMath>", r(" b")), ["a  b"]),
    "signs of XML": (p(r("a &lt; b &amp; &#99;")), ["a < b & c"]),
    "no letter": (p(r("12 %")) + p() + "<w:p/>", []),
    "another vocabulary": ("<a:p><a:r><a:t>x</a:t></a:r></a:p>", []),
}


@pytest.mark.parametrize("name", CASES)
def test_each_text_is_read_once_and_what_is_none_stays(name):
    body, texts = CASES[name]
    content, seen = docx(body), []
    assert through(content, str, seen) == content
    assert [re.sub(" +", " ", text) for text in seen] == [re.sub(" +", " ", text) for text in texts]
    new = through(content, upper)
    others = re.compile(r"<(?!/?w:(?:r|t|rPr|proofErr|lang|b|br|noBreakHyphen|softHyphen)\b)[^>]*>")
    assert sorted(others.findall(body_of(new))) == sorted(others.findall(body))
    assert members_of(new)["word/media/a.png"] == PICTURE and list(members_of(new)) == list(members_of(content))
    again = []
    through(new, str, again)
    assert [capitals(text) for text in seen] == again


def test_the_look_of_words_goes_with_them():
    """The model puts the last word first."""

    def last_first(line):
        words = re.findall("(?:\ue000[^\ue001]*\ue001|[^ \ue000])+", line)
        return " ".join([words[-1], *words[:-1]])

    body = p(r("A "), r("big", BOLD), r(" dog"))
    assert body_of(through(docx(body), last_first)) == p(r("dog A "), r("big", BOLD))
    body = p(r("see "), f'<w:hyperlink r:id="i">{r("this", BOLD)}{r("page")}</w:hyperlink>', r(" "), r("now", ITALIC))
    link = f'<w:hyperlink r:id="i">{r("THIS", BOLD)}{r("PAGE")}</w:hyperlink>'
    assert body_of(through(docx(body), lambda line: last_first(upper(line)))) == p(
        r("NOW", ITALIC), r(" SEE "), link
    ).replace(" SEE ", " SEE ")


def test_signs_that_a_program_cannot_read_are_no_part_of_a_translation():
    assert body_of(through(docx(p(r("a"))), lambda line: "b\x00\x0b & <g1>\ud7ff")) == p(r("b &amp; &lt;g1&gt;\ud7ff"))


def test_headers_footers_and_notes_are_translated_and_comments_not():
    others = {name: p(r(name)) for name in ("header1", "header2", "footer", "footnotes", "endnotes", "comments")}
    seen = []
    new = members_of(through(docx(p(r("body")), **others), seen=seen))
    assert sorted(seen) == sorted(["body", *others][:-1]) and b"COMMENTS" not in new["word/comments.xml"]
    assert all(name.upper().encode() in new[f"word/{name}.xml"] for name in seen if name != "body")


def test_a_type_may_be_told_by_the_ending_and_a_member_may_be_in_utf_16():
    main = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    types = (
        f'<Types><Default Extension="XML" ContentType="{main}"/><Override PartName="/B.xml" ContentType="x"/></Types>'
    )
    text = member("document", p(r("caf\u00e9"))).replace("UTF-8", "UTF-16").encode("utf-16")
    content = archive({"[Content_Types].xml": types, "a.xml": text, "b.xml": "no XML"})
    assert through(content, str) == content
    assert b"CAF\xc3\x89" in members_of(through(content, str.upper))["a.xml"]


DOCUMENT = docx(p(r("a dog")))
DAMAGED = {
    "no archive": (b"A dog.", "is damaged, or no document: File is not a zip file"),
    "cut": (DOCUMENT[:-30], "is damaged, or no document"),
    "a password": (docx_archive.OLE + bytes(99), "has a password, or is of an older program: save it as .docx"),
    "no types": (archive({"a": "b"}), r"no document: it has no \[Content_Types\].xml"),
    "a table": (archive({"[Content_Types].xml": "<Types/>"}), "is an archive, but no document of Word"),
    "no XML": (archive({**members_of(DOCUMENT), "word/document.xml": "<w:p>"}), "document.xml, line 1 is not XML"),
    "an entity": (
        archive({**members_of(DOCUMENT), "word/document.xml": '<!DOCTYPE a [<!ENTITY b SYSTEM "c">]><a>&b;</a>'}),
        "document.xml, line 1 has a <!DOCTYPE>",
    ),
    "long attributes": (
        archive({"[Content_Types].xml": f'<!DOCTYPE a [<!ENTITY b "{"b" * 999}">]>\n<a c="{"&b;" * 9999}"/>'}),
        "Content_Types].xml, line 1 has a <!DOCTYPE>",
    ),
    "members in each other": (
        DOCUMENT[:-300] + DOCUMENT[-300:].replace(b"\x6e\x01\0\0\0\x28\0\0", b"\x6e\x11\0\0\0\x28\0\0"),
        "its members are larger than it is",
    ),
    "a damaged picture": (archive(members_of(DOCUMENT), 0).replace(PICTURE[:9], b"123456789"), "a.png' is not what"),
    "another compression": (archive(members_of(DOCUMENT), zipfile.ZIP_LZMA), "in another compression than Deflate"),
}
DAMAGED["a member that is changed"] = (
    archive({**members_of(DOCUMENT)}).replace(b"a.png", b"b.png", 1),
    "is damaged, or no document",
)
DAMAGED["encrypted"] = (
    DOCUMENT.replace(b"PK\x01\x02\x14\x03\x14\x00\x00", b"PK\x01\x02\x14\x03\x14\x00\x01"),
    "password",
)


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_no_document_is_refused_in_one_sentence_and_nothing_is_written(name, tmp_path, monkeypatch):
    content, words = DAMAGED[name]
    with pytest.raises(InputError, match=words):
        through(content)
    (tmp_path / "a.docx").write_bytes(content)
    run = capital_run(tmp_path, monkeypatch)
    result = translate(run, "--input", tmp_path / "a.docx", "--output", tmp_path / "b.docx")
    assert result.exit_code == 1 and re.fullmatch(f"Error: .*{words}.*\n", result.stderr), result.stderr
    assert not (tmp_path / "b.docx").exists()


@pytest.mark.parametrize("bound", ["MOST_TEXT", "MOST_BYTES", "MOST_MEMBERS", "FEWEST_TAGS", "MOST_TAGS"])
def test_an_archive_that_is_large_unpacked_is_refused(bound, monkeypatch):
    content = docx(p(r("a" * 100_000)) + "<w:p/>" * 50_000)
    assert len(content) < 12_000
    through(content)
    monkeypatch.setattr(docx_archive, bound, 2 if bound == "MOST_MEMBERS" else 40_000)
    with pytest.raises(InputError, match="divide it|a document may have"):
        through(content)


@pytest.mark.parametrize("sign", ["<w:p/>", "&amp;", "\n", "\r"])
def test_all_that_a_parser_tells_of_is_counted(sign):
    with pytest.raises(InputError, match="tags, references and line breaks"):
        through(docx(p(r("a" + sign * 120_000))))


def test_properties_of_a_run_are_not_repeated_without_end(monkeypatch):
    """Each part of a run is written as a run with its properties."""
    body = p(f"<w:r><w:rPr>{BOLD * 500}</w:rPr>{'<w:t>a</w:t><w:sym/>' * 500}</w:r>")
    through(docx(body, header1=body))
    monkeypatch.setattr(docx_format, "MOST_REPEATED", 5_000_000)  # 3,000 characters for each of 999 parts
    through(docx(body))
    with pytest.raises(InputError, match="word/header1.xml has runs with very long properties"):
        through(docx(body, header1=body))


def test_what_is_text_of_xml_is_read_and_what_is_not_is_left_out():
    seen = []
    body = p(r("a <![CDATA[< b &amp; c]]> d.")) + p(r("e<!-- <![CDATA[x]]> --> f<?x y?>."))
    assert body_of(through(docx(body), seen=seen)) == p(r("A &lt; B &amp;AMP; C D.")) + p(r("E F."))
    assert seen == ["a < b &amp; c d.", "e f."]


SLOW = {  # documents of about n characters
    "marks alone": lambda n: p("<w:x/>" * (n // 6)),
    "marks around": lambda n: p("<w:x/>" * (n // 12), r("a"), "<w:x/>" * (n // 12)),
    "parts of a run": lambda n: p(f"<w:r>{'<w:t>a</w:t><w:x/>' * (n // 18)}</w:r>"),
    "runs": lambda n: p((r("a", BOLD) + r("b", ITALIC)) * (n // 100)),
    "text boxes in each other": lambda n: "<w:p><w:r><w:t>a</w:t><w:x>" * (n // 50) + "</w:x></w:r></w:p>" * (n // 50),
    "fields": lambda n: p(field("PAGE", r("3")) * (n // 300)),
    "fields in each other": lambda n: p('<w:r><w:fldChar w:fldCharType="begin"/></w:r>' * (n // 49), r("a")),
    "no comments": lambda n: p(r("a" + "--" * (n // 4) + "]]" * (n // 4))),
}


@pytest.mark.parametrize("name", SLOW)
def test_four_times_the_document_takes_not_much_more_than_four_times_as_long(name):
    assert growth_of(lambda content: through(content), lambda n: docx(SLOW[name](n)), 6_000, 400_000) < MOST_GROWTH


@pytest.mark.parametrize("end", ["\n", "\r\n", "\n    ", "&#10;"])
def test_the_end_of_a_line_of_xml_is_a_space_and_no_line_break(end):
    seen = []
    new = body_of(through(docx(p(r(f"A dog{end}runs."), "<w:r><w:cr/></w:r>", r("Two."))), seen=seen))
    assert seen == ["A dog runs.", "Two."] and new.count("<w:br/>") == 1 and "A DOG RUNS." in new


def test_a_field_without_an_end_is_named_since_all_behind_it_stays(caplog):
    begin, seen = '<w:r><w:fldChar w:fldCharType="begin"/></w:r>', []
    through(docx(p(r("a")) + p(begin, r("b")) + p(r("c")), header1=p(r("d"))), seen=seen)
    assert seen == ["a", "d"] and caplog.messages == [
        "a.docx, word/document.xml: a field that begins has no end, so that the text behind it stays as it is"
    ]


@pytest.mark.parametrize("container", ["ins", "hyperlink"])
def test_a_paragraph_that_stays_since_a_field_divides_what_is_in_it_is_named(container, caplog):
    begin, end = (
        f'<w:{container}><w:r><w:fldChar w:fldCharType="{kind}"/></w:r></w:{container}>' for kind in ("begin", "end")
    )
    through(docx(p(r("A dog.")) + p(begin, "<w:r><w:instrText>XE x</w:instrText></w:r>", end, r("Cats."))))
    assert caplog.messages == [
        "a.docx, word/document.xml: a paragraph stays as it is, since a field divides a link or a tracked change: Cats."
    ]


def test_depth_costs_no_recursion():
    deep = "<w:hyperlink>" * 3000 + r("a") + "</w:hyperlink>" * 3000
    seen = []
    through(docx(p(deep) + "<w:tbl>" * 3000 + p(r("b")) + "</w:tbl>" * 3000), seen=seen)
    assert seen == ["b"]


def test_the_command_writes_a_document_whole_and_to_standard_output_too(tmp_path, monkeypatch):
    run = capital_run(tmp_path, monkeypatch)
    (tmp_path / "a.docx").write_bytes(DOCUMENT)
    assert translate(run, "--input", tmp_path / "a.docx", "--output", tmp_path / "b.docx").exit_code == 0
    assert body_of((tmp_path / "b.docx").read_bytes()) == p(r("A DOG"))
    assert [each.name for each in tmp_path.glob("b.docx*")] == ["b.docx"]
    result = translate(run, "--format", "docx", stdin=DOCUMENT)
    assert result.stdout_bytes == (tmp_path / "b.docx").read_bytes()


def test_a_document_that_was_stopped_goes_on_and_is_the_same(tmp_path, monkeypatch):
    run = capital_run(tmp_path, monkeypatch)
    body = "".join(p(r(f"Dog {number}. "), r("Cat.", BOLD)) for number in range(100))
    (tmp_path / "a.docx").write_bytes(docx(body, header1=p(r("Two."))))
    command = ["--input", tmp_path / "a.docx", "--batch-size", "1", "--output"]
    assert translate(run, *command, tmp_path / "b.docx").exit_code == 0
    run.fails_at = "Two."
    translate(run, *command, tmp_path / "c.docx")
    assert not (tmp_path / "c.docx").exists() and (tmp_path / "c.docx.unfinished").stat().st_size
    run.fails_at, run.seen = None, []
    assert translate(run, *command, tmp_path / "c.docx").exit_code == 0 and "Dog 0." not in run.seen
    assert (tmp_path / "c.docx").read_bytes() == (tmp_path / "b.docx").read_bytes()
    assert [each.name for each in tmp_path.glob("c.docx*")] == ["c.docx"]
