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

# Whether a text has a required phrase: as a search is content with it, so capital letters count but at the beginning
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
    ("\u0930\u093e\u092e\u093e\u092f\u0923", "\u0930\u093e\u092e", False),  # Ram in Ramayana
    ("\u0930\u093e\u092e \u0906\u092f\u093e", "\u0930\u093e\u092e", True),
    ("cafe\u0301", "cafe", False),
    ("un cafe\u0301", "caf\u00e9", True),
    ("in New\u00a0York", "New York", True),
]

# A phrase, a text, and whether the phrase is there: whoever asks gets this answer. CAPITALS: if these do not count
CAPITALS = "capitals"
IS_THERE = [
    ("dog", "a dog runs", True),
    ("dog", "a dog.", True),
    ("dog", "(dog)", True),
    ("dog", "a dogs run", False),
    ("dog", "hotdog", False),
    ("dog", "a Dog runs", CAPITALS),
    ("Dog", "See a dog", CAPITALS),
    ("dog", "dog_s", False),
    ("dog", "dog2", False),
    ("dog", "2 dog-2", True),
    ("dog", "dog's", True),
    ("don't", "we don\u2019t go", True),
    ("don\u2019t", "we don't go", True),
    ("Wi-Fi", "my Wi\u2011Fi", True),
    ("Wi-Fi", "my Wi\u2013Fi", False),  # a dash is no hyphen
    ("Wi", "my Wi-Fi", True),
    ("New York", "in New\u00a0York", True),
    ("New York", "in New  York", True),
    ("New York", "in New-York", False),
    ("New York", "in NewYork", False),
    ("New York", "in New Yorker", False),
    ("Firefox", "a Fire\u200bfox", True),
    ("Donaudampf", "die Donau\u00addampf", True),
    ("caf\u00e9", "un cafe\u0301", True),
    ("cafe\u0301", "un caf\u00e9", True),
    ("cafe", "un cafe\u0301", False),
    ("caf\u00e9", "un CAFE\u0301", CAPITALS),
    ("stra\u00dfe", "die Stra\u00dfe", CAPITALS),
    ("strasse", "die stra\u00dfe", False),
    ("\u03bf\u03b4\u03cc\u03c2", "\u03b7 \u03bf\u03b4\u03cc\u03c2", True),
    ("\u0440\u0430\u043c\u0430", "\u0434\u0440\u0430\u043c\u0430", False),  # Russian: frame in drama
    ("\u0440\u0430\u043c\u0430", "\u044d\u0442\u0430 \u0440\u0430\u043c\u0430.", True),
    ("\u0930\u093e\u092e", "\u0936\u094d\u0930\u0940 \u0930\u093e\u092e\u093e\u092f\u0923", False),  # Ram in Ramayana
    ("\u0930\u093e\u092e", "\u0936\u094d\u0930\u0940 \u0930\u093e\u092e \u0939\u0948", True),
    ("\u0643\u062a\u0628", "\u0647\u0648 \u0643\u062a\u0628", True),
    ("\u0643\u062a\u0628", "\u0647\u0648 \u0643\u062a\u0628\u0648\u0627", False),
    ("\u0645\u06cc", "\u0622\u0646 \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", False),  # Persian, with a joiner
    ("\u05e9\u05dc", "\u05d4\u05d5\u05d0 \u05e9\u05dc\u05bc\u05b8\u05d4", False),
    ("\u72ac", "\u5927\u304d\u306a\u72ac\u304c", True),
    ("\u72d7", "\u4e00\u53ea\u732b", False),
    ("\u0e2b\u0e21\u0e32", "\u0e2a\u0e2b\u0e21\u0e32\u0e27\u0e34\u0e48\u0e07", True),
    ("\u0e27", "\u0e2b\u0e21\u0e32\u0e27\u0e34\u0e48\u0e07", False),  # half a letter of Thai
    ("\ud55c\uad6d", "\uc5ec\uae30 \u1112\u1161\u11ab\u1100\u116e\u11a8", True),
    ("\ud55c\uad6d", "\uc5ec\uae30 \ud55c\uad6d\uc5b4", False),
    (",", "a, b", True),
    ("z.B.", "so z.B. das", True),
]

# Texts and their numbers, whole with sign, currency, per cent, degrees and unit, or none of them
NUMBERS = [
    ("", []),
    ("no number", []),
    ("12 dogs, 3 cats and 12 hens.", ["12", "3"]),
    ("1,000.50 at 10:30 on 3/4/2024 or 2024-04-03", ["1,000.50", "10:30", "3/4/2024", "2024-04-03"]),
    ("B2B, A4, 4th, x_1, 2\u00bd and x\u00b2 are words, 7 is none", ["7"]),
    ("(5) -6 +7% \u20ac8 9.", ["5", "-6", "+7%", "\u20ac8", "9"]),
    ("3-4a 1.23b a1.2 v1.2.3 1_000 0x1F 5pm the 1980s", []),
    ("\u0663\u0664 1\u0663 5.\u0663 6", ["6"]),
    ("\u27e61\u27e7 and 2 \u27e62\u27e7", ["2"]),
    ("第3回 5人 10\u3001 20 \u00a550円", ["3", "5", "10", "20", "\u00a550"]),
    (
        "$50, US$50, A$ 5, -$4, $-4, 50\u20ac, 50 \u20ac",
        ["$50", "US$50", "A$ 5", "-$4", "$-4", "50\u20ac", "50 \u20ac"],
    ),
    ("$5 $10 5 $ 10", ["$5", "$10", "5 $", "10"]),
    ("5% of 5 % or %50, 7\u2030, 100%% 50%discount", ["5%", "5 %", "%50", "7\u2030", "100%%"]),
    (
        "-5\u00b0C, \u22125 \u00b0F, 45\u00b0N 45\u00b0 5\u00b0Cx",
        ["-5\u00b0C", "\u22125 \u00b0F", "45\u00b0N", "45\u00b0"],
    ),
    ("2026-11-28T12:00 2026-11-28T12:00:05.5+02:00", ["2026-11-28T12:00", "2026-11-28T12:00:05.5+02:00"]),
    (
        "1e-5 2.5E+10 .5 No.5 ...7 1.5GB 5km 100km/h 9m\u00b2 10x 5 km",
        ["1e-5", "2.5E+10", ".5", "5", "7", "1.5GB", "5km", "100km/h", "9m\u00b2", "10x"],
    ),
    (
        "1 000 000 or 1\u202f000,5 or 1'000, May 5 2026, 2010 100",
        ["1 000 000", "1\u202f000,5", "1'000", "5", "2026", "2010", "100"],
    ),
    (
        "10\u201320% 5%-7% $5-$10 3-4 1920x1080 COVID-19 5-fold",
        ["10\u201320%", "5%-7%", "$5-$10", "3-4", "1920x1080", "19", "5"],
    ),
    ("10^6 or 10^-6, 18+ and 5+3 or 5+", ["10^6", "10^-6", "18+", "5", "+3", "5+"]),
    ("<0>{0} {1,number} 5\ufe0f\u20e3 1\u0301", []),
]

# Texts, and whether they are kept since they have no letter, and are not blank
LETTERLESS = [("12345", True), ("\U0001f600 !", True), ("-7 %\n8", True), ("...", True), ("\u2167 \u0663", True)]
LETTERLESS += [
    ("", False),
    (" \u3000\u200b", False),
    ("a", False),
    ("12 \u732b", False),
    ("7\u00aa", False),
    ("\u0915", False),
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
    "\u0930\u093e\u092e\u093e\u092f\u0923 \u0930\u093e\u092e \u0915\u092e\u0940",  # Hindi: Ramayana, Ram, lack
    "\u0b95\u0bb2\u0bcd\u0bb5\u0bbf \u0b95\u0bb2\u0bcd",  # Tamil: education, stone
    "\u05e9\u05dc\u05bc\u05b8\u05d4 \u05e9\u05dc \u0643\u064e\u062a\u064e\u0628\u064e \u0643\u062a\u0628",  # vowels
    "\u4e00\u53ea\u72d7\u5728\u8dd1\u3002 \u0e2b\u0e21\u0e32\u0e27\u0e34\u0e48\u0e07 dog\u72d7dog",  # Han, Thai
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 \u0645\u06cc do\u00adg dog\u200bs",  # Persian, a soft hyphen
    # one text in other forms: decomposed, jamo, other signs for the same character, marks without a letter
    "un cafe\u0301, CAFE\u0301 caf\u00e9s cafe u\u0308\u0304ber \u00fc\u0304ber",
    "\u1112\u1161\u11ab\u1100\u116e\u11a8 \ud558\u11ab\uad6d \ud55c\uad6d\uc5b4",
    "5 \u2126 5 \u03a9 \u212bngstrom \u212a \uf900 \u8c48 \u0958 \u0915\u093c",
    "\u0301a \u0301b  \u200b  c\u0301\u0301 e" + "\u0301" * 40 + " J\u030c \u01f0",
    "new \u00a0 york new\u200b york new-york new\u2011york don\u2019t",
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
    "\u0930\u093e\u092e\n\u0915\u092e",
    "\u0b95\u0bb2\u0bcd\n\u0b95\u0bb2",
    "\u05e9\u05dc\n\u0643\u062a\u0628",
    "\u72d7\n\u0e2b\u0e21\u0e32\n\u0e27",
    "\u0645\u06cc",
    "caf\u00e9\n\u00fc\u0304ber",
    "cafe\u0301\ncafe",
    "\ud55c\uad6d\n\u1112\u1161\u11ab",
    "\u03a9\n\u00e5ngstrom\nk\n\u8c48\n\u0958",
    "\u2126\n\u212a\n\uf900\n\u0915\u093c",
    "a\nb\nc\u0301\ne\u0301\nj\u030c\n\u01f0",
    "new york\nNew\u2010York\ndon't",
    "new  \u00a0york\nnew \u200b york",
]

# Phrases of a request that must not come, and whether they are refused
FORBIDDEN_REFUSED = [
    (case, False) for case in ("", "\u2800", "dog\u2581", " \t\n", "a" * 1000, "dog\n" * 200, "\ufffd", "\0")
]
FORBIDDEN_REFUSED += [(f"dog\t{space}", False) for space in "\u2800\u3164\u180e\u2581\x1c\u3000\uffa0"]
FORBIDDEN_REFUSED += [("\u00e4" * 1000 + "\u2800\n\u3164", False), ("\n".join("abc" * 333) + "d", False)]
FORBIDDEN_REFUSED += [
    ("a" * 1001, True),
    ("\u00e4" * 500 + "\n" + "b" * 501, True),
    ("dog\tregex", True),
    ("a\t\u200b", True),
]
FORBIDDEN_REFUSED += [("cat\ndog\tx\u2800", True), ("a\t\u00ad", True), ("dog\u2800\tcat", True)]
FORBIDDEN_REFUSED = [(case.encode(), is_refused) for case, is_refused in FORBIDDEN_REFUSED]
FORBIDDEN_REFUSED += [
    (b"\x80" * 1001, True),
    (b"dog\t\xff", True),
    (b"dog\xff", True),
    (b"\xed\xa0\x80", True),
    (b"\xc0\x80", True),
]
