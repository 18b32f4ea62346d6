"""A translation is shown while it is written: whatever the tokens are, the pieces are its text."""

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.search.options import SearchOptions
from keras_transformer.text.asks import Ask
from keras_transformer.text.live import HALF, LiveText
from keras_transformer.text.road import translate
from keras_transformer.text.spans import Protection
from keras_transformer.translation.translator import Translator
from tests.support.runs import SENTENCES

TOKENS = {
    "words": [b"Ein", b" Hund", b" l", "äuft".encode(), b".", b" Und", b" so", b" ", b" weiter", b"!"] * 3,
    "bytes": [bytes([byte]) for byte in "你好 é🙂 a\ufffd\u0301 \U0001f469\u200d\U0001f680 b".encode()],
    "spaces": [b"a", b" ", b"\n", b" ", b" ", b"b", b" "],
    "no text": [b"", b"", b"", b"", b"", b"a", b"", b""] * 4,
    "damaged": [b"a", b"\xc3", b"\xc3", b"b", b"\xf0\x9f", b"\x99", b"", b"\xff"],
    "none": [],
}


def looks(tokens, fewest, most):
    """Each search's limit, and the piece after it; the last one writes all tokens."""
    live, found = LiveText(fewest, most), []
    while not live.has_ended:
        count = live.limit or len(tokens) + 1
        text = b"".join(tokens[: count - 1]).decode(errors="replace")
        found.append((live.limit, live.piece(text, is_cut=count <= len(tokens))))
    return found


@pytest.mark.parametrize("most", [0, 1, 4, 5, 12, 10**6])
@pytest.mark.parametrize("fewest", [0, 1, 7])
@pytest.mark.parametrize("name", TOKENS)
def test_the_pieces_are_the_text_and_no_piece_has_half_of_a_character(name, fewest, most):
    for count in range(len(TOKENS[name]) + 1):
        tokens = TOKENS[name][:count]
        whole, found = b"".join(tokens).decode(errors="replace"), looks(tokens, fewest, most)
        assert "".join(piece for _, piece in found) == whole
        assert not any(piece.endswith(HALF) for _, piece in found[:-1])


@pytest.mark.parametrize("count", [1, 10, 100, 1000])
def test_all_searches_together_take_at_most_three_times_the_steps_of_the_last_one(count):
    tokens = [b"a "] * count
    limits = [limit for limit, _ in looks(tokens, 1, 10**6)]
    assert limits == [4 * 2**n for n in range(len(limits))] and limits[-1] > count
    assert sum(min(limit, count + 1) for limit in limits) <= 3 * (count + 1)


def test_a_text_that_its_own_limit_ends_is_searched_once_more_alone():
    live, limits = LiveText(1, 10**6), []
    while not live.has_ended:
        limits.append(live.limit)
        live.piece("a b c d e f"[: 2 * (live.limit or 99)], is_cut=True)
    assert limits == [4, 8, 16, 0]


def test_what_was_shown_stays_when_rounding_chooses_another_token():
    live = LiveText(1, 10**6)
    assert (live.piece("Ein Hund", True), live.limit, live.prefix) == ("Ein Hund", 8, "")
    assert (live.piece("Ein Kater läuft.", False), live.has_ended, live.limit) == ("", False, 0)
    assert live.prefix == "Ein Hund"
    assert (live.piece("Ein Hund läuft.", False), live.has_ended) == (" läuft.", True)


def test_a_text_that_does_not_go_on_as_it_began_is_one_sentence():
    live = LiveText(1, 10**6)
    live.piece("Ein", True)
    live.piece("Das", False)
    with pytest.raises(InputError, match="ask for it as a whole"):
        live.piece("Das", False)


LINES = [
    *SENTENCES,
    "",
    " ",
    "12 !",
    "a  dog",
    "日本 é 🙂",
    "the dog " * 60,
    "I see {n, plural, one {# dog} other {a}}.",
]


@pytest.fixture(scope="module")
def greedy(random_folder):
    return Translator.load(random_folder, SearchOptions(beam_size=1, extra_length=60), max_source_tokens=40)


@pytest.mark.parametrize(
    "options",
    [{}, {"max_length": 9}, {"min_length": 30}, {"no_repeat_ngram_size": 2}, {"repetition_penalty": 1.5}],
    ids=str,
)
def test_a_translator_writes_what_it_translates(greedy, options):
    translator = greedy.with_options(options) if options else greedy
    expected = translator.translate(LINES)
    most = 0
    for line, best in zip(LINES, expected, strict=True):
        live, pieces = translator.translate_live(line), []
        try:
            while True:
                pieces.append(next(live))
        except StopIteration as end:
            assert (end.value.text, end.value.is_cut) == (best.text, best.is_cut)
        assert "".join(pieces) == best.text, line
        most = max(most, len(pieces))
    assert most > 2


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"beam_size": 2}, {}),
        ({"temperature": 1.0}, {}),
        ({"require_numbers": 1}, {}),
        ({}, {"prefix": "the"}),
        ({}, {"required": ["dog"]}),
        ({}, {"protect": Protection(("urls",))}),
    ],
    ids=str,
)
def test_what_cannot_be_stopped_on_its_way_comes_as_a_whole(greedy, options, asked):
    translator = greedy.with_options(options) if options else greedy
    own = {"prefixes": [asked["prefix"]]} if "prefix" in asked else {}
    own |= {name: [asked[name]] for name in ("required",) if name in asked} | (
        {"protect": asked["protect"]} if "protect" in asked else {}
    )
    [expected] = translator.translate(SENTENCES[:1], **own)
    assert list(translator.translate_live(SENTENCES[0], **asked)) == [expected.text]


def test_what_a_line_may_not_ask_is_refused(greedy):
    with pytest.raises(ConfigError, match="writes|languages"):
        list(greedy.translate_live("the dog", target_language="de"))


def test_a_limit_ends_a_translation_where_it_says(greedy):
    whole = greedy.translate(SENTENCES[:1])[0]
    for limit in (1, 2, 5):
        [found] = translate(greedy, SENTENCES[:1], [Ask(limit=limit)])
        ids = np.array(found.translations[0].ids)
        assert found.translations[0].is_cut and ids[:-1].tolist() == list(whole.ids[: limit - 1])
