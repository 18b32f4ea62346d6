"""Attributes of HTML that people read, such as the `alt` of a picture, and where their values stand in a tag."""

import html
import html.entities
import re
from collections.abc import Iterator, Mapping

from keras_transformer.text.formats.parts import Notation, unescaped
from keras_transformer.text.passages import Inner

READ = {  # by element; "" is every one. See https://html.spec.whatwg.org/#the-translate-attribute and WAI-ARIA 1.3
    "": "title aria-label aria-description aria-placeholder aria-roledescription aria-valuetext",
    "img": "alt",
    "area": "alt",
    "input": "alt placeholder",
    "textarea": "placeholder",
    "option": "label",
    "optgroup": "label",
    "track": "label",
    "table": "summary",
}
OF_ELEMENTS = {element: frozenset(names.split()) for element, names in READ.items()}
STYLE_SHEETS = "link", "style"  # their titles name sets of style sheets
BUTTONS = "submit", "button", "reset"  # types of <input> whose value is shown
DESCRIPTIONS = frozenset(  # names and properties of <meta> whose content is text
    "description og:title og:description og:image:alt twitter:title twitter:description twitter:image:alt "
    "dc.title dc.description dcterms.title dcterms.description".split()
)
CODE = re.compile(r"<[?%]")  # of PHP or a template, which makes the value when the page is sent
TAG_NAME = re.compile(r"<[^\s/>]*")
NEXT_ATTRIBUTE = re.compile(  # as HTML divides a tag
    r"[\s/]*+(?P<name>[^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:\"(?P<double>[^\"]*+)\"|'(?P<single>[^']*+)'|(?P<bare>[^\s>]++)))?"
)
REFERENCE = re.compile(r"&(?:#[0-9]++|#[xX][0-9a-fA-F]++|[A-Za-z][A-Za-z0-9]*+(?!=));?")
WHITE_SPACE = re.compile(r"(?<![ \t\f])[ \t\f]*+\r?\n[ \t\f\r\n]*")


def meaning(reference: str) -> str:
    """Return what a reference to a character means in an attribute, where &notit; has no &not in it."""
    return unescaped(reference) if reference[1] == "#" or reference[1:] in html.entities.html5 else reference


def notation(quote: str, is_xml: bool) -> Notation:
    """Return how values between such quotation marks are written. XML has no name for a no-break space."""
    space, own = "&#160;" if is_xml else "&nbsp;", {'"': "&quot;", "'": "&#39;"}[quote]
    return Notation(
        REFERENCE, meaning, lambda text: html.escape(text, quote=False).replace("\xa0", space).replace(quote, own)
    )


def names_read(element: str, attributes: Mapping[str, str | None]) -> frozenset[str]:
    """Return the names of the attributes of an element that people read."""
    names = OF_ELEMENTS[""] - {"title"} if element in STYLE_SHEETS else OF_ELEMENTS[""]
    if element == "input" and (attributes.get("type") or "").lower() in BUTTONS:
        names |= {"value"}
    told = {(attributes.get(key) or "").strip().lower() for key in ("name", "property", "itemprop")}
    if element == "meta" and told & DESCRIPTIONS:
        names |= {"content"}
    return names | OF_ELEMENTS.get(element, frozenset())


def texts_in(raw: str, element: str, attributes: Mapping[str, str | None], is_xml: bool) -> Iterator[Inner]:
    """Yield the values in a tag that people read; of an attribute that comes twice, the first counts.

    raw: the tag as it is written; attributes: what it tells, by names in small letters.
    """
    names = set(names_read(element, attributes) & attributes.keys())
    start = TAG_NAME.match(raw)
    place = start.end() if start else len(raw)
    while names and (found := NEXT_ATTRIBUTE.match(raw, place)):
        place = found.end()
        if (name := found["name"].lower()) not in names:
            continue
        names.remove(name)
        group = next((group for group in ("double", "single", "bare") if found[group] is not None), None)
        if group is None or CODE.search(found[group]) or not any(map(str.isalpha, found[group])):
            continue
        # a value without quotation marks gets some if it changes
        quote = {"double": '"', "single": "'"}.get(group) or next(
            (each for each in "\"'" if each not in found[group]), ""
        )
        if quote:
            kind = notation(quote, is_xml)
            passage = kind.passage_of_lines(found[group], WHITE_SPACE)
            yield Inner(*found.span(group), passage, quote if group == "bare" else "")
