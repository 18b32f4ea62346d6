"""Texts of the rules that Python and a served graph both read: what one makes of a case, the other does too."""

from tests.support.runs import SENTENCES

PREFIXES = [
    "",
    " ",
    "the",
    "the ",
    "t",
    "the f",
    "猫",
    "ü猫",
    SENTENCES[0],
    SENTENCES[1][:9],
    "the  fox ",
    "zwei h",
    "zwe",
]

# Phrases of a line
REQUIRED = [[], ["the fox", "zwei"], [", the", "fox!", " a \t hen "], [SENTENCES[0]], ["(the", "a"], ["\u732b", "the"]]
REQUIRED += [["a", "a ", "the", "a"], ["the\u3000fox", "\u200b"], [" ", "\xa0a\u2028b"]]

# Whether a text has a required phrase: as a search is content with it, so a capital letter counts but at the beginning
HAS_PHRASE = [
    ("Zwei Hunde", "zwei", True),
    ("Zweier Hunde", "zwei", False),
    ("Die Zwei", "zwei", False),
    ("zwei Hunde", "Zwei", False),
    ("der hund", "Hund", False),
    ("<b>Zwei</b> Hunde", "zwei", True),
    ("Ein <b>roter</b> Hund", "roter Hund", True),
    ("SSo", "\u00dfo", False),  # its capital form is two letters
    ("der Hund.", "Hund", True),
    ("der Hunde", "Hund", False),
    ("aHund", "Hund", False),
    ("大きな犬が", "犬", True),
    ("人々A", "人々", True),  # no script without spaces has whole words
    ("a𠮟b", "𠮟", True),
    ("a, b", ",", True),
    ("z.B.", "z.", True),
]

# Texts, and phrases that they must not have, one per line
FORBIDDEN_IN = [
    "",
    "a",
    "The dog, the Dog and dogs",
    "Straße STRASSE straße",
    "dog_s dog-s dog's",
    "İstanbul und İ",
    "ΟΔΟΣ ΟΔΟΣΑ",
    "e\u0301te x² 犬が犬",
    "the big  dog",
    "B.C. b.c",
]
FORBIDDEN = [
    "dog",
    "the dog",
    " Dog \n\n the ",
    "straße",
    "İ\nistanbul",
    "οδος",
    "e\nx",
    "犬\nbig  dog",
    "b.c.\nb\n.",
    "a",
]
