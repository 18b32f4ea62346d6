"""Texts for tokenizers: what they learn from, and what they must not lose."""

import random

SENTENCES = [
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Ein Mann in einem blauen Hemd steht auf einer Leiter und putzt ein Fenster.",
    "Two young, White males are outside near many bushes.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "두 젊은 남자가 덤불 근처에 서 있다.",
] * 3

TEXTS = [
    "",
    " ",
    "   leading, trailing and   inner spaces  ",
    "tab\tand\ttab",
    "two\nlines\r\n",
    "\n",
    "emoji 👩‍👩‍👧 🇰🇷 😀",
    "한글 각 각",  # composed, and as three combining letters
    "e\u0301 is not é",
    "Z̸̢a̷l̶g̵o̶",
    "ﬁ ½ Ⅻ ＡＢＣ",  # what a normalisation would change
    "\u00a0no-break\u2028line separator\ufeff",
    "nul \0 and bell \a",
    "<s> </s> <pad> <unk> <0x41>",
    "x" * 10_000,
    "many words " * 1_000,
]


def random_texts(count):
    rng = random.Random(7)
    letters = list("  \t\nabMä한😀\u0301\0\u2028")
    return ["".join(rng.choices(letters, k=rng.randint(0, 12))) for _ in range(count)]


LANGUAGES = [  # in NFC; with letters and marks that NFD divides
    "Übergrößenträger, œuvre, façade, Škoda, Łódź, Ångström, İstanbul, fjörður, ñandú",
    "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi.",
    "Ὅλοι οἱ ἄνθρωποι γεννιοῦνται ἐλεύθεροι, ΐ ΰ ᾧ",
    "Все люди рождаются свободными; ёж, йод, їжак, ѝ",
    "يولد جميع الناس أحرارًا متساوين في الكرامة. أَإِآؤُئِ قُرْآن",
    "כָּל בְּנֵי הָאָדָם נוֹלְדוּ בְּנֵי חוֹרִין",
    "तमाम इनसान ज़िन्दगी में बराबर हैं, पढ़ना, ऩ",
    "সমস্ত মানুষ স্বাধীনভাবে জন্মগ্রহণ করে, কো কৌ",
    "எல்லா மனிதர்களும் சுதந்திரமாகவே பிறக்கின்றனர், கொ கௌ",
    "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "すべての人間は、ガッツポーズで、プールへ。ヴ",
    "ກະລຸນາ ကျွန်ုပ် សូម ขอบคุณค่ะ ประเทศไทย น้ำ",
]
