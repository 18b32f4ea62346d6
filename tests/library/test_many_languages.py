"""A model of many languages is told which by tokens at both ends of a source, and by the first one of its output."""

import dataclasses
import functools

import numpy as np
import pytest

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.ground.tokens import BOS, EOS
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.kinds import joint_decoder
from keras_transformer.runs.saved_run import save_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.rules.table import Rules
from keras_transformer.search.search import search
from keras_transformer.text.asks import Ask
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.forced import ForcedDecoder
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.models import LIVELY, as_numpy, assert_close, lively_transformer
from tests.support.runs import SENTENCES

PIECES = {"en": "__en__", "de": "__de__", "fr": "__fr__"}
M2M = Languages(PIECES, PIECES, source_first="source", target_first="target")
LEGACY = Languages(PIECES, PIECES, source_last="source", target_first="target")
TAGS = Languages(target=PIECES, source_first="target")
WORDS = Languages(target={code: f"{piece} __en__" for code, piece in PIECES.items()}, source_first="target")
ALL = {"m2m": M2M, "legacy": LEGACY, "tags": TAGS, "words": WORDS}
LINES = [SENTENCES[0], "a lazy hen", "", SENTENCES[1], "one"]
OPTIONS = SearchOptions(beam_size=3, n_best=3, extra_length=5)


class SilentLanguages(Tokenizer):
    """Pieces of languages have no text."""

    def decode(self, ids):
        return super().decode([number for number in ids if number not in self.silent])


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("languages") / "tokenizer.model"
    train_tokenizer(SENTENCES * 3, path, vocab_size=360, symbols=list(PIECES.values()))
    tokenizer = SilentLanguages(path)
    tokenizer.silent = {tokenizer.pieces().index(piece) for piece in PIECES.values()}
    return lively_transformer(dataclasses.replace(LIVELY, vocab_size=tokenizer.vocab_size)), tokenizer


@pytest.fixture(scope="module")
def translator_for(model):
    """The one Translator of a name of ALL."""
    return functools.cache(lambda name: Translator(*model, OPTIONS, languages=ALL[name]))


def id_of(tokenizer, code):
    return tokenizer.pieces().index(PIECES[code])


def told(tokenizer, languages, line, source, target):
    """The tokens of a source and of the opening of its output, by the words of the interface."""
    codes = {"source": source, "target": target, "": None}
    marks = [
        [id_of(tokenizer, codes[side])] if side else []
        for side in (languages.source_first, languages.source_last, languages.target_first)
    ]
    if languages is WORDS:
        marks[0].append(id_of(tokenizer, "en"))
    return [*marks[0], *tokenizer.encode(line), EOS, *marks[1]], marks[2]


@pytest.mark.parametrize("name", ALL)
def test_a_line_is_searched_with_the_tokens_of_its_languages(model, translator_for, name):
    (transformer, tokenizer), languages = model, ALL[name]
    source = "en" if languages.source else ""
    for target in ("de", "fr"):
        found = translator_for(name).translate_n_best(LINES, source_language=source, target_language=target)
        for line, translations in zip(LINES, found, strict=True):
            if not line:
                continue
            ids, opening = told(tokenizer, languages, line, source, target)
            rules = Rules.of({"openings": np.array(opening, "int32")} if opening else {})
            expected = search(joint_decoder([transformer]), np.array([ids]), SearchPlan(OPTIONS, rules))
            best = as_numpy(expected.ids)[0, 0]
            assert translations[0].ids == tuple(best[best > 0])
            assert_close(translations[0].score, as_numpy(expected.scores)[0, 0], atol=1e-5)
            assert not any(piece in each.text for each in translations for piece in PIECES.values())


@pytest.mark.parametrize("name", ALL)
def test_a_score_is_that_of_the_search_and_of_each_piece(model, translator_for, name):
    (transformer, tokenizer), languages = model, ALL[name]
    how = {"target_language": "de"} | ({"source_language": "fr"} if languages.source else {})
    lines = [line for line in LINES if line]
    texts = [best.text for best in translator_for(name).translate(lines, **how)]
    for line, text, pair in zip(
        lines, texts, Scorer(*model, languages=languages).score(lines, texts, **how), strict=True
    ):
        ids, opening = told(tokenizer, languages, line, "fr", "de")
        target = [*opening, *tokenizer.encode(text), EOS]
        log_probs = as_numpy(ForcedDecoder(transformer)(np.array([ids]), np.array([target])).log_probs)[0]
        assert len(pair.pieces) == len(target)
        assert_close(pair.piece_log_probabilities, [0.0] * len(opening) + list(log_probs[len(opening) :]), atol=1e-5)
        assert pair.log_probability == pytest.approx(sum(pair.piece_log_probabilities), abs=1e-5)


@pytest.mark.parametrize("name", ALL)
def test_an_explanation_is_of_the_same_translation(model, translator_for, name):
    languages = ALL[name]
    how = {"target_language": "de"} | ({"source_language": "en"} if languages.source else {})
    explanation = Explainer(*model, OPTIONS, languages=languages).explain(LINES[0], **how)
    [translations] = translator_for(name).translate_n_best(LINES[:1], **how)
    assert [each.text for each in explanation.translations] == [each.text for each in translations]
    assert_close([each.score for each in explanation.translations], [each.score for each in translations], atol=1e-4)
    ids, opening = told(model[1], languages, LINES[0], "en", "de")
    assert explanation.source_pieces == [model[1].pieces()[number] for number in ids]
    best = explanation.translations[0]
    assert_close(best.score * ((5 + len(best.pieces)) / 6) ** 0.6, best.log_probability, atol=1e-4)
    assert best.pieces[: len(opening)] == [PIECES["de"]] * len(opening)


def test_marks_of_languages_are_of_no_word(model, translator_for):
    """Spans that come through are placed by words, of which these tokens are none."""
    for name, languages in ALL.items():
        translator = translator_for(name)
        how = {"target_language": "de"} | ({"source_language": "en"} if languages.source else {})
        [best] = translator.translate(LINES[:1], **how)
        [alignment] = translator.align([(LINES[0], best)], [translator.told(Ask(**how))])
        words = [piece.startswith("\u2581") for piece in map(model[1].pieces().__getitem__, model[1].encode(LINES[0]))]
        assert {target for _, target in alignment} == set(range(len(alignment)))
        assert all(0 <= source <= sum(words[1:]) for source, _ in alignment)
        assert len(alignment) <= len(best.text.split()) + 1


def test_a_prefix_and_phrases_come_behind_the_opening(model, translator_for):
    translator = translator_for("m2m")
    how = {"source_language": "en", "target_language": "fr"}
    [best] = translator.translate(LINES[:1], prefixes=["the do"], required=[["lazy"]], **how)
    assert best.text.startswith("the do") and "lazy" in best.text
    assert best.ids[0] == id_of(model[1], "fr") and BOS not in best.ids


def test_a_run_folder_keeps_its_languages(model, tmp_path):
    transformer, tokenizer = model
    save_run(transformer, tokenizer, tmp_path / "run", LINES[:1], Inference(languages=TAGS))
    translator = Translator.load(tmp_path / "run")
    assert translator.languages == TAGS
    assert translator.translate(LINES[:1], target_language="de") == Translator(*model, languages=TAGS).translate(
        LINES[:1], target_language="de"
    )
    translator.save_to_preset(tmp_path / "preset")
    assert Translator.from_preset(tmp_path / "preset").languages == TAGS


@pytest.mark.parametrize(
    ("languages", "how", "sentence"),
    [
        (M2M, {"source_language": "en"}, "writes en, de, fr: say which is the target language"),
        (M2M, {"source_language": "en", "target_language": "xx"}, "'xx'; this model writes en, de, fr"),
        (Languages(), {"target_language": "de"}, "does not say which it writes: leave it out"),
    ],
)
def test_a_language_that_it_lacks_or_needs_is_refused_before_any_search(model, languages, how, sentence):
    translator = Translator(*model, OPTIONS, languages=languages)
    for lines in (LINES, ["1,000"], ["{n, plural, one {a dog} other {# dogs}}"]):
        with pytest.raises(ConfigError, match=sentence):
            translator.translate(lines, **how)


def test_lines_and_messages_go_to_their_language(translator_for):
    """A line of an ICU message with branches has its sentences searched apart, in the same language."""
    translator = translator_for("m2m")
    how = {"source_language": "en", "target_language": "de"}
    message = "{n, plural, one {a lazy hen} other {one}}"
    of_branches = [best.text.strip() for best in translator.translate(["a lazy hen", "one"], **how)]
    [of_message] = translator.translate([message], **how)
    assert all(text in of_message.text for text in of_branches if "#" not in text)


@pytest.mark.slow
@pytest.mark.parametrize("name", ALL)
def test_each_line_may_have_languages_of_its_own(translator_for, name):
    translator, lines = translator_for(name), LINES[:2] + LINES[3:4]
    targets = ["de", "fr", "de"]
    sources = ["en", "en", "fr"] if ALL[name].source else ""
    found = translator.translate_n_best(lines, source_language=sources, target_language=targets)
    for number, line in enumerate(lines):
        alone = {"source_language": sources and sources[number], "target_language": targets[number]}
        expected = translator.translate_n_best([line], **alone)[0]
        assert [each.text for each in found[number]] == [each.text for each in expected]
    with pytest.raises(ConfigError, match="There are 2 languages for 3 lines: give one, or one per line"):
        translator.translate(lines, target_language=["de", "fr"])


@pytest.mark.parametrize("name", ["m2m", "tags"])
@pytest.mark.parametrize("space", ["", " ", "\t"])
def test_a_tag_in_the_line_that_contradicts_the_language_is_refused_by_all_and_the_same_one_counts_once(
    model, translator_for, name, space
):
    translator, asked = translator_for(name), {"target_language": "de"}
    asked |= {"source_language": "en"} if name == "m2m" else {}
    own, other = ("__en__", "__de__") if name == "m2m" else ("__de__", "__fr__")
    [plain] = translator.translate(["the dog"], **asked)
    [tagged] = translator.translate([f"{space}{own}the dog"], **asked)
    assert tagged.text == plain.text
    line, sentence = f"{space}{other} the dog", f"begins with {other}, but its language is {own}: leave out the one"
    scorer, explainer = (each(*model, languages=ALL[name]) for each in (Scorer, Explainer))
    with pytest.raises(InputError, match=f"Line 2 {sentence}"):
        translator.translate(["the dog", line], **asked)
    with pytest.raises(InputError, match=f"Line 1 {sentence}"):
        scorer.score([line], ["a"], **asked)
    with pytest.raises(InputError, match=f"Line 1 {sentence}"):
        explainer.explain(line, **asked)


def test_a_tag_in_the_line_of_a_model_that_is_asked_for_none_is_the_language(translator_for):
    translator = translator_for("tags")
    expected = translator.translate(["the dog"], target_language="fr")
    assert [best.text for best in translator.translate(["__fr__the dog"])] == [best.text for best in expected]
