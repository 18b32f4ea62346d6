"""Which forms a language has for numbers of things: the categories of CLDR, and how many forms Qt has.

CLDR: https://cldr.unicode.org/index/cldr-spec/plural-rules, as Babel 2.19 has them. Qt:
https://doc.qt.io/qt-6/i18n-plural-rules.html.
"""

import re
from collections.abc import Callable, Mapping

from keras_transformer.pieces.languages import short_code
from keras_transformer.text.messages import without_messages
from keras_transformer.text.syntaxes import PLACEHOLDER

OTHER, ONE = "other", "one"
ORDER = ("zero", ONE, "two", "few", "many", OTHER)
EXACTLY = {"zero": "=0", ONE: "=1", "two": "=2"}  # what ICU has for a number alone, and Flutter for the category too
# Categories by language. With a "+", one is for further whole numbers too, as in French, where "one" is 0 as well
CLDR = {
    "other": "bm bo dz hnj id ig ii ja jbo jv kea km ko lkt lo ms my nqo osa sah ses sg su th to tpi wo yo yue zh",
    "one other": "af an asa ast az bal bem bez bg brx ce cgg chr ckb da de dv ee el en eo et eu fi fo fur fy gsw ha "
    "haw hu ia ie io jgo jmc ka kaj kcg kk kkj kl ks ksb ku ky lb lg lij mas mgo ml mn mr nb nd ne nl nn "
    "nnh no nr ny nyn om or os pap ps rm rof rwk saq sc sd sdh seh sn so sq ss ssy st sv sw syr ta te teo "
    "tig tk tn tr ts ug ur uz ve vo vun wae xh xog yi",
    "one+ other": "ak am as bho bn ceb csw doi fa ff fil gu hi hy is kab kn kok ln mg mk nso pa pcm si tg ti tzm vi wa "
    "zu",
    "one many other": "ca es gl it lld pt_pt scn vec",
    "one+ many other": "fr pt",
    "one few other": "ro",
    "one+ few other": "bs hr shi sr",
    "one two other": "he iu naq sat se sma smj smn sms",
    "one few many other": "cs pl sk",
    "one+ few many other": "be lt ru uk",
    "one two few many other": "ga mt",
    "one+ two few many other": "sgs",
    "one+ two+ few other": "dsb gd hsb sl",
    "one+ two+ few many other": "br gv",
    "zero one other": "blo cv ksh lag",
    "zero+ one+ other": "lv prg",
    "zero one two few many other": "ar cy",
    "zero one two+ few many other": "kw",
}
QT = {  # how many forms; all other languages have two
    1: "bi my zh dz fj gn hu id ja jv ko ms na om fa su tt th bo tr vi yo za",
    3: "lv dv iu ik ga gv mi se sm sa cs sk mk lt be bs hr ru sr uk pl ro",
    4: "gd mt sl",
    5: "cy",
    6: "ar",
}
FORMS = {code: tuple(forms.split()) for forms, codes in CLDR.items() for code in codes.split()}
FORMS_OF_QT = {code: count for count, codes in QT.items() for code in codes.split()}
BAR = re.compile(r"(?P<quote>\"|&quot;)|\|")
OTHER_CODES = {"iw": "he", "in": "id", "ji": "yi", "tl": "fil", "sh": "sr"}  # that Android and Qt have too


def code_of(language: str) -> str:
    code = short_code(language)
    return OTHER_CODES.get(code, code)


def categories_of(language: str) -> tuple[str, ...]:
    """Return the categories of a language such as "de" or "pt-PT"; () if they are not known."""
    marked = FORMS.get(language.lower().replace("-", "_"), FORMS.get(code_of(language), ()))
    return tuple(category.rstrip("+") for category in marked)


def forms_of_qt(language: str) -> int:
    """Return how many forms a language has in Qt."""
    return FORMS_OF_QT.get(code_of(language), 2)


def text_for(category: str, texts: Mapping[str, str], language: str, has_same: Callable[[str, str], bool]) -> str:
    """Return which of the categories of a source has the text for one of another language.

    That for 1 is right only if the category is for nothing else, or if the text has its number: "%d dog". has_same:
    whether a text has what is filled into another one.
    """
    marked = FORMS.get(language.lower().replace("-", "_"), FORMS.get(code_of(language), (category,)))
    if category in texts and category in marked:
        return category
    if f"{ONE}+" in marked and category == ONE and ONE in texts and has_same(texts[ONE], texts.get(OTHER, "")):
        return ONE
    return OTHER


def hide(placeholder: re.Match[str]) -> str:
    """Return letters of the same length, but the name of a quotation mark as it is."""
    return placeholder[0] if BAR.fullmatch(placeholder[0]) else "m" * len(placeholder[0])


def divided(raw: str) -> list[str]:
    """Return a text, as it is written, in its forms for numbers and the "|" between them: "a dog|{n} dogs".

    Vue, Laravel and Symfony have them so. A sign in a placeholder, a message or quotation marks divides nothing.
    """
    if "|" not in raw:
        return [raw]
    hidden = PLACEHOLDER.sub(hide, without_messages(raw))
    parts, reached, is_quoted = [], 0, False
    for found in BAR.finditer(hidden):
        if found["quote"]:
            is_quoted = not is_quoted
        elif not is_quoted:
            parts += [raw[reached : found.start()], "|"]
            reached = found.end()
    return [*parts, raw[reached:]]
