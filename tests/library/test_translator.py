"""Text in, translations out: each line has its own translation, whatever the other lines are."""

import itertools
import logging

import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.errors import ConfigError, InputError, UserError
from keras_transformer.ground.tokens import EOS, PAD
from keras_transformer.model import Transformer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.fallback import WithPhrases
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.search.state import Hypotheses
from keras_transformer.translation import compiled_search, parallel
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.translator import Translator
from tests.support.models import pieces_of
from tests.support.runs import SENTENCES, random_run

OPTIONS = SearchOptions(beam_size=3, n_best=3, extra_length=5)
LINES = ["the fox", "dog dog dog", "", "one", "a lazy hen", "three four"]


@pytest.fixture
def echo(monkeypatch, pair):
    """A function that makes a Translator whose search returns the source itself."""

    def search(decoder, source_ids, plan):
        tf.py_function(lambda ids: shapes.append(tuple(ids.shape)), [source_ids], [])
        scores = tf.zeros_like(source_ids[:, :1], tf.float32)
        return WithPhrases.of(Hypotheses(source_ids[:, None, :], scores, scores < 0))

    shapes = []
    monkeypatch.setattr(compiled_search, "search_with_phrases", search)

    def make(**options):
        made = Translator(*pair, **options)
        made.shapes = shapes  # of the batches that were searched
        return made

    return make


# Lines and their order


def test_lines_keep_their_order_whatever_their_length(echo):
    lines = [SENTENCES[n % 3] * (n * 7 % 5 + 1) for n in range(40)]
    assert [translation.text for translation in echo(batch_size=3).translate(lines)] == lines


def test_any_text_passes_unchanged(echo):
    lines = ["안녕하세요 세계", "👩‍👩‍👧‍👦 🇰🇷!", "naïve café", "ＡＢＣ ﬁ ½"]
    assert [translation.text for translation in echo().translate(lines)] == lines


def test_all_spaces_are_one_space_and_a_line_of_invisible_characters_is_blank(echo):
    lines = ["a\tb", "x\u2028y\x85z", "\ufeff  two\u00a0 spa\u00adces ", *"\0\u200b\u2060\ufeff\u00ad\u00a0\u200d"]
    texts = ["a b", "x y z", "two spaces", *[""] * 7]
    assert [translation.text for translation in echo().translate(lines)] == texts


def test_a_model_whose_probabilities_are_no_numbers_is_one_sentence(pair, monkeypatch):
    """The search fills no hypothesis of a line whose logits are NaN."""

    def search(decoder, source_ids, plan):
        scores = tf.where(tf.reduce_all(source_ids[:, :1] == source_ids[:1, :1], -1), 2 * NEVER, 0.0)
        scores = tf.cast(scores, tf.float32)[:, None]
        return WithPhrases.of(Hypotheses(source_ids[:, None, :], scores, scores < -1e9))

    monkeypatch.setattr(compiled_search, "search_with_phrases", search)
    translator = Translator(*pair)
    for translate in (translator.translate, translator.translate_n_best):
        for first, number in (({}, 2), ({"first_line": 11}, 12)):
            with pytest.raises(UserError, match=f"Line {number} has no translation: the model's probabilities are NaN"):
                translate(["", "the fox"], **first)


def test_lines_of_more_tokens_than_were_trained_on_are_counted(echo, pair):
    lengths = [len(pair[1].encode(line)) + 1 for line in LINES if line.strip()]
    for limit in (min(lengths), max(lengths) - 1, max(lengths)):
        translator = echo(trained_tokens=limit)
        for _ in range(2):
            translator.translate(LINES)
        assert translator.longer_than_trained == 2 * sum(length > limit for length in lengths)
    unknown = echo()
    unknown.translate(LINES)
    assert unknown.longer_than_trained == 0


def test_a_line_is_too_long_that_has_more_tokens_than_the_model_takes_or_was_trained_on(echo, pair):
    length = len(pair[1].encode(LINES[0])) + 1
    for limits in ({"trained_tokens": length}, {"max_source_tokens": length}):
        assert echo(**limits).are_too_long([LINES[0]]) == [False]
        shorter = {name: limit - 1 for name, limit in limits.items()}
        assert echo(**shorter).are_too_long([LINES[0]]) == [True]
        assert echo(trained_tokens=99, **shorter if "trained_tokens" not in limits else {}).are_too_long(
            [LINES[0]]
        ) == ["trained_tokens" not in limits]


@pytest.mark.parametrize("empty", ["", " ", "\t", "\u3000", "\r"])
def test_a_line_without_text_has_an_empty_translation(echo, empty):
    assert echo().translate(["a", empty, "b"])[1] == Translation("", 0.0, ())


def test_no_lines_have_no_translations(echo):
    assert echo().translate([]) == [] and echo().shapes == []


def test_one_string_is_not_a_list_of_sentences(echo):
    with pytest.raises(TypeError, match="lines must be a list of sentences, not one string. Received: 'the fox'"):
        echo().translate("the fox")


def test_half_of_a_surrogate_pair_is_no_text(echo):
    with pytest.raises(InputError, match=r"Line 2 has a lone surrogate.*'a \\ud800'"):
        echo().translate(["one", "a \ud800"])


# Lengths


def test_no_more_lines_than_the_batch_size_are_searched_together(echo, monkeypatch):
    monkeypatch.setattr(parallel, "searches_at_once", lambda: 1)
    translator = echo(batch_size=3)
    translator.translate(["one"] * 7)
    assert [rows for rows, _ in translator.shapes] == [1, 3, 3]


def test_batches_are_of_similar_length_and_every_processor_core_has_one(echo, monkeypatch):
    monkeypatch.setattr(parallel, "searches_at_once", lambda: 3)
    made = echo(batch_size=8)
    made.translate(["a " * n for n in range(1, 13)])
    made.translate(["a"] * 20)
    assert sorted(rows for rows, _ in made.shapes) == [4, 4, 4, 6, 7, 7]
    assert len({length for _, length in made.shapes}) == 4


def warnings_of(caplog):
    """Return what this package has logged, without TensorFlow's messages."""
    return [record.getMessage() for record in caplog.records if record.name == "keras_transformer"]


def test_a_long_line_is_truncated_with_a_warning_that_names_it(echo, pair, caplog):
    lines = ["a", " " * 500, "one two " * 50, "b"]
    with caplog.at_level(logging.WARNING, logger="keras_transformer"):
        texts = [translation.text for translation in echo(max_source_tokens=20).translate(lines, first_line=11)]
    tokens = pair[1].encode(lines[2])
    assert texts == ["a", "", pair[1].decode(tokens[:19]), "b"]
    assert warnings_of(caplog) == [f"line 13 has {len(tokens)} tokens; only the first 19 are used"]


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\u2028", " \n "])
def test_a_line_break_in_a_line_is_read_as_a_space_with_a_warning(echo, caplog, line_break):
    with caplog.at_level(logging.WARNING, logger="keras_transformer"):
        (translation,) = echo().translate([f"one hundred{line_break}two hundred\n"], first_line=7)
    assert translation.text == "one hundred two hundred"
    (warning,) = warnings_of(caplog)
    assert warning.startswith("line 7 has line breaks and is read as one sentence")


def test_a_line_of_exactly_the_limit_is_not_truncated(echo, pair, caplog):
    length = len(pair[1].encode(SENTENCES[0]))
    assert echo(max_source_tokens=length + 1).translate(SENTENCES[:1])[0].text == SENTENCES[0]
    assert not warnings_of(caplog)
    assert echo(max_source_tokens=length).translate(SENTENCES[:1])[0].text != SENTENCES[0]
    assert len(warnings_of(caplog)) == 1


@pytest.mark.slow
def test_learned_positions_bound_the_source(random_folder, tmp_path):
    learned = random_run(tmp_path / "learned", positions="learned", max_positions=24)
    assert Translator.load(learned).max_source_tokens == 24


def test_learned_positions_bound_a_prefix(pair):
    model = Transformer(pair[0].transformer_config.replace(positions="learned", max_positions=8))
    assert len(pair[1].encode("a a a a a a a a")) == 8
    with pytest.raises(InputError, match="has 8 tokens; at most 7 are possible"):
        Translator(model, pair[1]).translate(["a"], prefixes=["a a a a a a a a"])


@pytest.mark.parametrize("field, value", [("batch_size", 0), ("max_source_tokens", 1), ("max_source_tokens", 513)])
def test_invalid_limits_are_named(pair, field, value):
    with pytest.raises(ConfigError, match=f"{field} is {value}; it must be"):
        Translator(*pair, **{field: value})


# Translations


@pytest.fixture(scope="module")
def translations(pair):
    """The translations of LINES, in batches of at most 5."""
    return Translator(*pair, OPTIONS, batch_size=5).translate_n_best(LINES)


@pytest.mark.slow
def test_other_lines_do_not_change_a_translation(pair, translations):
    alone = Translator(*pair, OPTIONS, batch_size=1)
    for line, expected in zip(LINES, translations, strict=True):
        [found] = alone.translate_n_best([line])
        assert [translation.ids for translation in found] == [translation.ids for translation in expected]
        np.testing.assert_allclose([t.score for t in found], [t.score for t in expected], atol=1e-4)


def test_n_best_are_different_texts_best_first(translations):
    for line, found in zip(LINES, translations, strict=True):
        texts, scores = [translation.text for translation in found], [translation.score for translation in found]
        assert len(set(texts)) == len(texts) <= OPTIONS.n_best
        assert scores == sorted(scores, reverse=True) and (scores[0] < 0 or not line)
    assert max(len(found) for found in translations) == OPTIONS.n_best


def test_the_text_is_the_decoded_ids(pair, translations):
    for translation in (translation for found in translations for translation in found if translation.ids):
        assert translation.ids[-1] == EOS and PAD not in translation.ids
        assert translation.text == pair[1].decode(translation.ids)


@pytest.mark.slow
def test_translate_returns_the_best_of_the_n_best(pair, translations):
    found = Translator(*pair, OPTIONS, batch_size=6).translate(LINES)
    assert [translation.text for translation in found] == [candidates[0].text for candidates in translations]


def test_two_spellings_of_one_text_count_once(monkeypatch, pair):
    pieces = pieces_of(pair[1])
    letters = {piece for piece in pieces if len(piece) == 1 and piece.isascii() and piece.isalpha()}
    whole = next(piece for piece in pieces if len(piece) == 2 and set(piece) <= letters)
    other = min(letters - set(whole))
    spellings = [[pieces.index(letter) for letter in whole], [pieces.index(whole)], [pieces.index(other)]]
    ids = np.full((1, 3, 16), PAD, "int32")
    for row, tokens in zip(ids[0], spellings, strict=True):
        row[: len(tokens) + 1] = [*tokens, EOS]
    scores = np.array([[-0.5, -1.0, -2.0]], "float32")
    monkeypatch.setattr(
        compiled_search,
        "search_with_phrases",
        lambda *_: WithPhrases.of(Hypotheses(tf.constant(ids), tf.constant(scores), tf.constant(scores) > 0)),
    )
    [found] = Translator(*pair, OPTIONS, batch_size=1).translate_n_best(["x"])
    assert [(translation.text, translation.score) for translation in found] == [(whole, -0.5), (other, -2.0)]
    [best] = Translator(*pair, SearchOptions(beam_size=3, n_best=1), batch_size=1).translate_n_best(["x"])
    assert best == found[:1]


# What a script gives


@pytest.mark.parametrize(
    ("kind", "options"), [(Translator, None), *itertools.product((Translator, Explainer), (4, {"beam_size": 4}))]
)
def test_options_that_are_none_are_refused_in_a_sentence(pair, kind, options):
    with pytest.raises(
        TypeError, match=r"options must be SearchOptions, such as SearchOptions\(beam_size=4\)\. Received: "
    ):
        kind(*pair, options)


@pytest.mark.nightly
def test_a_clone_translates_as_its_original(pair):
    clone = keras.models.clone_model(pair[0])
    clone.set_weights(pair[0].get_weights())
    assert Translator(clone, pair[1], OPTIONS).translate(LINES) == Translator(*pair, OPTIONS).translate(LINES)


@pytest.mark.nightly
def test_many_translators_warn_of_no_tracing(pair, caplog):
    for _ in range(6):
        Translator(*pair, SearchOptions(beam_size=1, max_length=2)).translate(LINES[:1])
    assert not [record for record in caplog.records if "retracing" in record.getMessage()]


# Run folders


def test_a_run_is_float32_whatever_keras_default_is(random_folder, pair, bfloat16_by_default):
    transformer, _ = load_run(random_folder)
    assert transformer.precision == "float32"
    for found, expected in zip(transformer.weights, pair[0].weights, strict=True):
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


@pytest.mark.slow
def test_a_translation_that_its_limit_ended_is_marked(pair):
    """A longer limit continues each translation that is marked, and changes none that is not."""
    greedy = {"beam_size": 1, "extra_length": 20}
    short, longer = (Translator(*pair, SearchOptions(max_length=n, **greedy)).translate(SENTENCES) for n in (4, 5))
    marks = [translation.is_cut for translation in short]
    assert marks == [one.ids != other.ids for one, other in zip(short, longer, strict=True)] and True in marks
    assert not Translator(*pair).translate([" "])[0].is_cut
