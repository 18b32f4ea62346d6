"""Characters that are the same to a tokenizer: the same ids in Python, in a graph, and in other programs."""

import itertools
import re
import sys
import unicodedata

import pytest

from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.pieces.normalization import (
    INVISIBLE,
    JOINERS,
    NORMALIZATIONS,
    SELECTORS,
    SPACES,
    STYLES,
    VARIANTS,
    is_blank,
    lower_case,
    members,
    normalization_rules,
)
from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError, train_tokenizer
from tests.support.texts import LANGUAGES, SENTENCES, TEXTS, random_texts

CHARACTERS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
VISIBLE_FORMATS = set(members("\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd\U00013430-\U0001345f"))
MEANINGFUL = [
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, "I want": the non-joiner ends a prefix
    "PDF\u200c\u0647\u0627",  # Persian, "PDFs"
    "\u0915\u094d\u200d\u0937 \u0915\u094d\u200c\u0937",  # Hindi: half a letter, and a letter with a virama
    "\u0d28\u0d4d\u200d",  # Malayalam: an old way to write a final consonant
    "👩‍💻 👩🏽‍🚀 🏳️‍🌈 ❤️ ☺︎ 1️⃣ 🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
    "\u8fbb\U000e0100 \u8fbb\ufe00\u4eba",  # variants of a Chinese character
    "\u182d\u180b\u1820 \u1820\u180d",  # Mongolian
    "\u2229\ufe00 \ua856\ufe00 \u1000\ufe00\u1001",  # a sign with serifs; a letter of Phags-pa, and of Burmese
]


@pytest.fixture(scope="module", params=NORMALIZATIONS[:2])
def tokenizer(request, tmp_path_factory):
    """One of normal form NFC, and one of NFKC."""
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.model"
    train_tokenizer(SENTENCES, path, 400, normalization=request.param)
    tokenizer = Tokenizer(path)
    assert tokenizer.normalization == request.param
    return tokenizer


def normalised(text, normalization, lowercase=False):
    """What the ids of a text decode to: at each place the longest rule holds, then spaces are joined."""
    rules = normalization_rules(normalization, lowercase)
    pattern = "|".join(
        f"{re.escape(text[i:j])}" for i in range(len(text)) for j in range(i + 4, i, -1) if text[i:j] in rules
    )
    read = re.sub(pattern, lambda match: rules[match[0]], text) if pattern else text
    return " ".join(word for word in read.split(" ") if word)


def test_decoding_gives_the_normalised_text(tokenizer):
    for text in (*TEXTS, *LANGUAGES, *MEANINGFUL, *random_texts(1_000)):
        assert tokenizer.decode(tokenizer.encode(text)) == normalised(text, tokenizer.normalization), text


@pytest.mark.slow
def test_every_character_is_read_as_its_rule_says_in_python_and_in_the_graph(tokenizer):
    tensorflow = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    rules = normalization_rules(tokenizer.normalization, False)
    others = [character for character in CHARACTERS[::61] if character not in rules]
    variants = set(members(VARIANTS))  # half of the rules, all alike
    sequences = [sequence for number, sequence in enumerate(rules) if sequence[0] not in variants or number % 29 == 0]
    texts = [f"Ein {sequence}Haus" for sequence in (*sequences, *filter(is_blank, CHARACTERS), *others)]
    ids = tokenizer.encode_batch(texts)
    assert graph_tokenizer(tokenizer.model_bytes).encode(tensorflow.constant(texts)).to_list() == ids
    assert list(map(tokenizer.decode, ids)) == [normalised(text, tokenizer.normalization) for text in texts]


def test_all_spaces_are_one_space_and_invisible_characters_are_nothing(tokenizer):
    ids = tokenizer.encode("Ein Mann steht")
    for space in members(SPACES):
        for text in (f"Ein{space}Mann steht", f"{space}Ein Mann{space}{space}steht{space}", f"Ein{space} Mann steht"):
            assert tokenizer.encode(text) == ids, (hex(ord(space)), text)
    for invisible in members(INVISIBLE):
        for text in (
            f"{invisible}Ein Mann steht",
            f"Ein Ma{invisible}nn steht",
            f"Ein {invisible}Mann steht{invisible}",
        ):
            assert tokenizer.encode(text) == ids, (hex(ord(invisible)), text)
    for joiner in (*JOINERS, *STYLES, *members(VARIANTS)):
        assert tokenizer.encode(f"Ein Ma{joiner}nn {joiner}steht") == ids
        assert tokenizer.encode(f"im Jahr {joiner}1{joiner}9{joiner}07") == tokenizer.encode("im Jahr 1907")


def test_what_is_canonically_equivalent_has_the_same_ids(tokenizer):
    for character in CHARACTERS:
        if (parts := unicodedata.normalize("NFD", character)) != character:
            composed = unicodedata.normalize("NFC", character)
            assert tokenizer.encode(f" {parts}") == tokenizer.encode(f" {composed}"), hex(ord(character))
    for text in LANGUAGES:
        forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
        assert tokenizer.encode(forms[0]) == tokenizer.encode(forms[1]) == tokenizer.encode(text)


def test_the_marks_of_a_letter_may_come_in_any_order(tokenizer):
    for first, second in itertools.permutations("\u0302\u0323"):
        for letter in (f"e{first}{second}", unicodedata.normalize("NFC", f"e{first}") + second):
            assert tokenizer.decode(tokenizer.encode(f"Vi{letter}t")) == "Việt"


def test_the_hyphen_that_does_not_break_is_a_hyphen(tokenizer):
    assert tokenizer.encode("E\u2011Mail") == tokenizer.encode("E-Mail")


def test_full_width_letters_are_the_plain_ones_for_nfkc_alone(tokenizer):
    text = tokenizer.decode(tokenizer.encode("ＡＢＣ！ ﬁ ½ ｶﾞ"))
    assert text == {"nfc": "ＡＢＣ！ ﬁ ½ ｶﾞ", "nfkc": "ABC! fi 1⁄2 ガ"}[tokenizer.normalization]


def test_joiners_and_selectors_that_carry_meaning_stay(tokenizer):
    for text in MEANINGFUL:
        assert tokenizer.decode(tokenizer.encode(text)) == text
    for character in members(SELECTORS):
        assert character in tokenizer.decode(tokenizer.encode(f"\u8fbb{character}"))


def test_the_plain_letters_of_lower_case_are_composed_too(tmp_path):
    train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 400, lowercase=True)
    tokenizer = Tokenizer(tmp_path / "tokenizer.model")
    assert tokenizer.normalization == "nfc" and tokenizer.is_lowercase
    for text in ("E\u0301 \u00c9 e\u0301", "H\u0331 h\u0331", "\u212b A\u030a", "MA\u200dNN\u00a0I\u0307", "\u200dA"):
        assert tokenizer.decode(tokenizer.encode(text)) == normalised(text, "nfc", True)
    assert tokenizer.decode(tokenizer.encode("E\u0301 H\u0331 A\u030a")) == "é ẖ å"


def test_what_is_read_in_place_of_a_character_is_in_lower_case_too():
    for normalization in NORMALIZATIONS:
        rules = normalization_rules(normalization, lowercase=True)
        assert [other for other in rules.values() if other != lower_case(other)] == []
    read = {"\uff21": "a", "\u212a": "k", "\u212b": "å", "A\u030a": "å", "\u216b": "xii", "Q": "q"}
    assert {sequence: normalization_rules("nfkc", lowercase=True)[sequence] for sequence in read} == read


def test_another_normalization_is_refused(tmp_path):
    with pytest.raises(ValueError, match="one of nfc, nfkc, identity. Received: 'nfd'"):
        train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 400, normalization="nfd")
    assert not list(tmp_path.iterdir())


def test_a_symbol_with_a_space_that_the_rules_would_change_is_refused(tmp_path):
    with pytest.raises(TokenizerError, match="reads its 'e\u0301' as 'é'"):
        train_tokenizer(SENTENCES, tmp_path / "tokenizer.model", 400, [" e\u0301"])


def test_blank_are_all_spaces_controls_and_invisible_characters_of_unicode():
    blank = {character for character in CHARACTERS if is_blank(character)}
    of_unicode = {c for c in CHARACTERS if unicodedata.category(c) in ("Zs", "Zl", "Zp", "Cc", "Cf")} - VISIBLE_FORMATS
    assert of_unicode <= blank
    assert blank - of_unicode == set(
        members(
            "\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2065\u2581\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
        )
    )
    assert blank >= {character for character in CHARACTERS if not character.strip()}
    assert is_blank("") and is_blank(" \t\u00a0\u200b\ufeff\u00ad\u2060\n") and not is_blank("\u200b.")


@pytest.mark.slow
def test_what_normalises_to_nothing_is_blank(tokenizer):
    for character in CHARACTERS:
        assert is_blank(character) or tokenizer.encode(character), hex(ord(character))
