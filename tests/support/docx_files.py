"""Small documents of Word."""

import io
import re
import zipfile

SPACE = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml."
NAMESPACES = f'xmlns:w="{SPACE}" xmlns:a="urn:a" xmlns:mc="urn:mc" xmlns:m="urn:m" xmlns:r="urn:r"'
PICTURE = bytes(range(256)) * 40


def member(root, inside):
    """A member of a document, with its text in a root such as "hdr"."""
    return f'<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\r\n<w:{root} {NAMESPACES}>{inside}</w:{root}>'


def docx(body, **others):
    """A document with this body. `others`: of each further member, its XML inside of its root."""
    roots = {"header": "hdr", "footer": "ftr", "footnotes": "footnotes", "endnotes": "endnotes", "comments": "comments"}
    names = {"document": "document.main", **{name: re.sub(r"\d", "", name) for name in others}}
    overrides = "".join(
        f'<Override PartName="/word/{name}.xml" ContentType="{TYPE}{kind}+xml"/>' for name, kind in names.items()
    )
    members = {
        "[Content_Types].xml": f'<Types xmlns="urn:t"><Default Extension="png" ContentType="image/png"/>{overrides}'
        "</Types>",
        "word/document.xml": member("document", f"<w:body>{body}</w:body>"),
        **{f"word/{name}.xml": member(roots[names[name]], inside) for name, inside in others.items()},
        "word/media/a.png": PICTURE,
    }
    return archive(members)


def archive(members, compression=zipfile.ZIP_DEFLATED):
    """A ZIP file with these members, the first of them stored."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as file:
        for number, (name, content) in enumerate(members.items()):
            info = zipfile.ZipInfo(name, (2020, 2, 3, 4, 5, 6))
            file.writestr(info, content, compression if number else zipfile.ZIP_STORED)
    return written.getvalue()


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        assert file.testzip() is None
        return {name: file.read(name) for name in file.namelist()}


def body_of(content):
    """What the body of a document has."""
    return re.search("<w:body>(.*)</w:body>", members_of(content)["word/document.xml"].decode(), re.DOTALL)[1]


def p(*runs):
    return f"<w:p>{''.join(runs)}</w:p>"


def r(text, properties="", inside=""):
    look = f"<w:rPr>{properties}</w:rPr>" if properties else ""
    return f'<w:r>{look}{inside}<w:t xml:space="preserve">{text}</w:t></w:r>'
