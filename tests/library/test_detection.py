"""The language of a text among some."""

import gzip
import itertools
import sys
import time

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.text.detection import MOST_READ, Detected, detected, identifier
from tests.support.places import CORPORA

SENTENCES = {
    "en": "A small dog runs across the green field.",
    "de": "Ein kleiner Hund läuft über die grüne Wiese.",
    "fr": "Un petit chien court à travers le pré vert.",
    "ja": "小さな犬が緑の野原を走っている。",
}


@pytest.fixture(autouse=True)
def needs_the_package():
    pytest.importorskip("py3langid", reason="needs the extra clean")


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_is_most_probable_in_its_language_and_probabilities_add_up_to_1(language):
    found = detected(SENTENCES[language], SENTENCES)
    assert found[0].language == language and found[0].confidence > 0.5
    assert sum(each.confidence for each in found) == pytest.approx(1)
    assert [each.confidence for each in found] == sorted((each.confidence for each in found), reverse=True)


@pytest.mark.parametrize("language", SENTENCES)
def test_only_the_languages_that_are_asked_for_are_found(language):
    others = [code for code in SENTENCES if code != language]
    assert {each.language for each in detected(SENTENCES[language], others)} == set(others)


def test_a_code_is_returned_as_it_was_given_and_of_variants_the_first_one():
    found = detected(SENTENCES["ja"], ["eng_Latn", "jpn_Jpan", "xx"])
    assert [each.language for each in found] == ["jpn_Jpan", "eng_Latn"]
    assert detected("我们的狗在绿色的田野上奔跑。", ["zho_Hans", "zho_Hant", "en"])[0].language == "zho_Hans"


def test_one_language_alone_is_certain():
    assert detected(SENTENCES["de"], ["en"]) == [Detected("en", 1.0)]


@pytest.mark.parametrize("text", ["", " ", "12.5 !", "🙂"])
def test_a_text_without_a_letter_is_in_none(text):
    assert detected(text, ["en", "de"]) == [Detected("en", 0.0), Detected("de", 0.0)]


def test_no_language_that_is_known_is_refused():
    with pytest.raises(ConfigError, match="No language can be detected among xx: name it"):
        detected("a", ["xx"])


def test_without_the_package_a_sentence_names_it(monkeypatch):
    from keras_transformer.text import detection

    detection._identifier.cache_clear()
    monkeypatch.setitem(sys.modules, "py3langid.langid", None)
    with pytest.raises(ConfigError, match="Language detection needs the package py3langid, .* pip install"):
        detected("a", ["en"])


def test_a_long_text_costs_what_its_beginning_does():
    def seconds(text):
        begun = time.process_time()
        detected(text, SENTENCES)
        return time.process_time() - begun

    text = SENTENCES["en"] * 100
    seconds(text)
    assert any(seconds(text * 200) < 5 * seconds(text[:MOST_READ]) + 0.02 for _ in range(4))


def captions(language, count):
    """The first captions of Multi30k's validation text."""
    for folder in CORPORA:
        if (file := folder / f"val.{language}.gz").exists():
            with gzip.open(file, "rt", encoding="utf-8") as lines:
                return [line.strip() for line in itertools.islice(lines, count)]
    pytest.skip("Multi30k is not here: make multi30k")


@pytest.mark.slow
@pytest.mark.parametrize("among", ["three", "all"])
@pytest.mark.parametrize("language", ["en", "de", "fr"])
def test_of_captions_most_are_found(language, among):
    """With -s it prints the shares of docs/endpoints.md."""
    languages = ["en", "de", "fr"] if among == "three" else identifier("This test").labels
    lines = captions(language, 1000)
    right = sum(detected(line, languages)[0].language == language for line in lines) / len(lines)
    print(f"\n{language} among {len(languages)}: {right:.1%} of {len(lines)}")
    assert right > 0.95
