"""How a model is told languages: which codes it takes, which it refuses, and which tokens stand where."""

import json

import pytest

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS
from keras_transformer.models.imported.model import languages_of_tags
from keras_transformer.pieces.language_marks import NO_LANGUAGES, Languages, MarkReader, Marks
from keras_transformer.text.asks import of_lines

ONE_PAIR = Languages({"en": ""}, {"de": ""})
TAGS = Languages({}, {"deu": ">>deu<<", "fra": ">>fra<<"}, source_first="target")
MANY = {"eng_Latn": "eng_Latn", "deu_Latn": "deu_Latn", "srp_Cyrl": "srp_Cyrl", "srp_Latn": "srp_Latn"}
NLLB = Languages(MANY, MANY, source_first="source", target_first="target")
LEGACY = NLLB._replace(source_first="", source_last="source")
WORDS = Languages({"en": ""}, {"de": "eng_Latn >>deu<<", "fr": ">>fra<<"}, source_first="target")


class Pieces:
    def pieces(self) -> list[str]:
        return ["<pad>", "<unk>", "<s>", "</s>", *MANY, ">>deu<<", ">>fra<<"]


@pytest.mark.parametrize(
    ("languages", "asked", "codes"),
    [
        (NO_LANGUAGES, ("", ""), ("", "")),
        (ONE_PAIR, ("", ""), ("en", "de")),
        (ONE_PAIR, ("en-GB", "deu"), ("en", "de")),
        (TAGS, ("", "de"), ("", "deu")),
        (TAGS, ("", ""), ("", "")),  # the line may begin with a tag
        (NLLB, ("en", "ger"), ("eng_Latn", "deu_Latn")),
        (NLLB, ("srp_Latn", "srp_Cyrl"), ("srp_Latn", "srp_Cyrl")),
    ],
)
def test_codes_that_mean_the_same_are_one_language(languages, asked, codes):
    assert languages.chosen(*asked) == codes


@pytest.mark.parametrize(
    ("languages", "asked", "sentence"),
    [
        (NO_LANGUAGES, ("en", ""), "The source language is 'en', but this model does not say which it reads"),
        (TAGS, ("en", "de"), "The source language is 'en', but this model does not say"),
        (ONE_PAIR, ("en", "fr"), "The target language is 'fr'; this model writes de."),
        (NLLB, ("en", ""), "This model writes eng_Latn, deu_Latn, srp_Cyrl, srp_Latn: say which is the target"),
        (NLLB, ("", "de"), "This model reads eng_Latn, .*: say which is the source language"),
        (LEGACY, ("", "de"), "This model reads eng_Latn, .*: say which is the source language"),
        (NLLB, ("sr", "de"), "The source language is 'sr'; this model reads srp_Cyrl, srp_Latn: name one of them"),
        (ONE_PAIR, ("English", "de"), "The source language is 'English'; this model reads en"),
    ],
)
def test_a_language_that_the_model_lacks_or_needs_is_named(languages, asked, sentence):
    with pytest.raises(ConfigError, match=sentence):
        languages.chosen(*asked)


@pytest.mark.parametrize(
    ("languages", "text", "found"),
    [
        (TAGS, ">>deu<< a dog", ("deu", "a dog")),
        (TAGS, "  >>fra<<a dog ", ("fra", "a dog ")),
        (TAGS, " a >>deu<< dog", ("", " a >>deu<< dog")),
        (TAGS, ">>deu<<", ("deu", "")),
        (TAGS, "", ("", "")),
        (TAGS._replace(target={"a": "<", "b": "<<"}), "<<x", ("b", "x")),
        (NLLB, "deu_Latn ein Hund", ("deu_Latn", "ein Hund")),
        (Languages({}, {"de": "\u2581to \u2581 German :"}, "target"), "to German: a", ("de", "a")),
        (LEGACY, "deu_Latn ein Hund", ("", "deu_Latn ein Hund")),
        (ONE_PAIR, "ein Hund", ("", "ein Hund")),
    ],
)
def test_the_tag_that_a_text_begins_with_is_told_from_the_text(languages, text, found):
    assert languages.untagged(text) == found


def test_a_language_that_is_found_by_its_meaning_is_one_that_the_model_has():
    assert TAGS.has("target", "de") and NLLB.has("source", "en") and WORDS.has("target", "deu")
    assert not TAGS.has("target", "xx") and not TAGS.has("source", "en") and not NO_LANGUAGES.has("target", "")


@pytest.mark.parametrize("code", [None, 5, 1.5, True, b"de", "\udcff", ["de"], ["de", None], {}, ("de",)])
def test_what_is_no_text_is_no_language(code):
    for languages, asked in ((TAGS, ("", code)), (ONE_PAIR, (code, "")), (NLLB, ("en", code))):
        with pytest.raises(ConfigError, match="(source|target) language is .*; this model .*: give its code"):
            languages.chosen(*asked)
    with pytest.raises(ConfigError, match="The target language is .*: give its code"):
        NO_LANGUAGES.chosen("", code)


@pytest.mark.parametrize("language", [None, 5, b"de", {}, {"de"}])
def test_one_value_that_is_no_list_is_that_of_each_line(language):
    assert of_lines(language, 2) == [language] * 2
    assert of_lines(["de", language], 2) == ["de", language] and of_lines(("de", "fr"), 2) == ("de", "fr")


def test_of_many_languages_a_refusal_names_some():
    many = Languages(target={f"x{number}": "" for number in range(100)})
    with pytest.raises(ConfigError, match=r"writes x0, .*, x11 and 88 more\."):
        many.chosen("", "de")


@pytest.mark.parametrize(
    ("languages", "codes", "marks", "most_in_source"),
    [
        (ONE_PAIR, ("en", "de"), Marks(), 0),
        (TAGS, ("", "fra"), Marks((9,)), 1),
        (TAGS, ("", ""), Marks(), 1),
        (NLLB, ("eng_Latn", "deu_Latn"), Marks((4,), (), (5,)), 1),
        (LEGACY, ("deu_Latn", "srp_Cyrl"), Marks((), (5,), (6,)), 1),
        (WORDS, ("en", "de"), Marks((4, 8)), 2),
        (WORDS, ("en", "fr"), Marks((9,)), 2),
    ],
)
def test_each_piece_stands_in_its_place(languages, codes, marks, most_in_source):
    reader = MarkReader(languages, Pieces())
    assert (reader.marks(*codes), reader.most_in_source) == (marks, most_in_source)


def test_a_piece_that_the_tokenizer_lacks_is_named():
    with pytest.raises(ConfigError, match="no piece '__en__'"):
        MarkReader(Languages({"en": "__en__"}), Pieces())


@pytest.mark.parametrize("piece", ["<pad>", "<unk>", "<s>", "</s>", "eng_Latn </s>"])
def test_a_piece_that_stands_for_something_else_is_no_language(piece):
    with pytest.raises(ConfigError, match=f"{piece.split()[-1]}' cannot stand for a language: it is the padding"):
        MarkReader(Languages({}, {"de": piece}, source_first="target"), Pieces())


@pytest.mark.parametrize("languages", [NO_LANGUAGES, ONE_PAIR, TAGS, NLLB, LEGACY, WORDS])
def test_languages_are_what_their_json_says(languages):
    assert Languages.of(json.loads(json.dumps(languages.as_json()))) == languages


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([], r"languages is \[\]"),
        ({"sources": {}}, "languages is {'sources'"),
        ({"source": ["en"]}, "languages.source is"),
        ({"target": {"de": 3}}, "languages.target is"),
        ({"target": {"": "a"}}, "languages.target is {'': 'a'}; it must be a piece"),
        ({"source": 3}, "languages.source is 3"),
        ({"target_first": "both"}, "languages.target_first is 'both'"),
        ({"source_first": "target", "target": {"de": ""}}, "a language of that side has no piece"),
        ({"source_first": "source", "source": {"de": "a", "en": "  "}}, "a language of that side has no piece"),
        ({"target_first": "target", "target": {"de": "a b"}}, "a language of that side has several pieces"),
    ],
)
def test_json_that_describes_no_languages_is_one_sentence(values, sentence):
    with pytest.raises(ConfigError, match=sentence):
        Languages.of(values)


@pytest.mark.parametrize("longest", range(3, 9))
@pytest.mark.parametrize("marks", [Marks(), Marks((9,)), Marks((4,), (), (5,)), Marks((), (5,), (6,)), Marks((8, 9))])
def test_a_source_has_its_marks_once_and_is_cut_between_them(marks, longest):
    text = [10, 11, 12, 13]
    found = marks.around(text, longest)
    room = longest - 1 - len(marks.first) - len(marks.last)
    assert found == [*marks.first, *text[:room], EOS, *marks.last] and len(found) <= longest
    assert marks.around([*marks.first, *text], longest) == found  # of a line that begins with its tag


@pytest.mark.parametrize(
    ("pieces", "pair", "languages"),
    [
        (["▁a"], ("en", "de"), ONE_PAIR),
        (["▁a"], ("en", None), NO_LANGUAGES),
        (["▁a"], ("en", "ROMANCE"), NO_LANGUAGES),
        ([">>deu<<", ">>fra<<", ">>x", "<<"], (None, "mul"), TAGS),
        ([">>deu<<", ">>fra<<"], ("eng", None), TAGS._replace(source={"eng": ""})),
    ],
)
def test_models_of_marian_have_the_languages_of_their_tags_or_of_their_pair(pieces, pair, languages):
    assert languages_of_tags(pieces, pair) == languages


@pytest.mark.parametrize(
    ("languages", "codes", "told"),
    [
        (NLLB, ("en", "de"), ("eng_Latn", "deu_Latn")),
        (LEGACY, ("deu", "en"), ("deu_Latn", "eng_Latn")),
        (TAGS, ("en", "fr"), ("", "fra")),  # nothing is known of its sources
        (WORDS, ("en", "deu"), ("en", "de")),
    ],
)
def test_marks_are_found_on_the_pair_that_has_them(languages, codes, told):
    reader = MarkReader(languages, Pieces())
    (marks,) = reader.of_pairs([codes])
    assert marks == reader.marks(*told) != Marks()
    assert marks.before([30]) == [*marks.opening, 30, EOS]
    assert reader.marks_on(marks.around([20, 21]), marks.before([30])) == marks
    assert reader.marks_on([20, EOS], [30, EOS]) == Marks()
    assert languages.of_lines([codes]) == {"source_language": [told[0]], "target_language": [told[1]]}


def test_a_text_that_begins_with_all_pieces_of_another_language_has_another_tag():
    reader = MarkReader(WORDS, Pieces())
    marks = reader.marks("en", "de")
    assert [marks.other_tag(ids, reader.tags) for ids in ([4, 8, 20], [4, 20], [9, 20], [])] == [(), (), (9,), ()]
    assert reader.marks("en", "fr").other_tag([4, 8, 20], reader.tags) == (4, 8)
    assert Marks().other_tag([9, 20], reader.tags) == ()


def test_a_tag_can_begin_with_that_of_another_language():
    languages = Languages(target={"zh": "eng_Latn", "zh_Hant": "eng_Latn >>deu<<"}, source_first="target")
    reader = MarkReader(languages, Pieces())
    for code in languages.target:
        marks = reader.marks("", code)
        source = marks.around([20])
        assert reader.marks_on(source, [30, EOS]) == marks and marks.other_tag(source, reader.tags) == ()
    assert reader.marks("", "zh").other_tag(source, reader.tags) == marks.first


def test_a_model_of_one_pair_is_told_nothing():
    assert MarkReader(ONE_PAIR, Pieces()).of_pairs([("en", "de")]) == [] and ONE_PAIR.of_lines([("x", "y")]) == {}
