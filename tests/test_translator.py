"""Text in, translations out: every line in its place, whatever stands in the others."""

import logging
import shutil

import numpy as np
import pytest

from keras_transformer import translator as translator_module
from keras_transformer.config import ConfigError, SearchOptions
from keras_transformer.decoding import Hypotheses
from keras_transformer.tokenizer import TokenizerError
from keras_transformer.tokens import EOS, PAD
from keras_transformer.translator import LENGTHS, Translation, Translator, load_run
from tests.support.runs import RUN_MODEL, SENTENCES, random_run

OPTIONS = SearchOptions(beam_size=3, n_best=3, extra_length=5)
LINES = ["the fox", "dog dog dog", "", "one", "a lazy hen", "three four"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("runs") / "random")


@pytest.fixture(scope="module")
def pair(run):
    return load_run(run)


@pytest.fixture
def echo(monkeypatch, pair):
    """A function that makes a Translator of options whose search returns the source itself."""

    def search(decoder, source_ids, options):
        shapes.append(tuple(source_ids.shape))
        return Hypotheses(source_ids[:, None, :], np.zeros((len(source_ids), 1), "float32"))

    shapes = []
    monkeypatch.setattr(translator_module, "search", search)

    def make(**options):
        made = Translator(*pair, xla=False, **options)
        made.shapes = shapes  # of the batches that were compiled
        return made

    return make


# Lines and their order


def test_lines_keep_their_order_whatever_their_length(echo):
    lines = [SENTENCES[n % 3] * (n * 7 % 5 + 1) for n in range(40)]
    assert [translation.text for translation in echo(batch_size=3).translate(lines)] == lines


def test_any_text_goes_through(echo):
    lines = ["안녕하세요 세계", "👩‍👩‍👧‍👦 🇰🇷!", "naïve café", "a\tb", "x\u2028y\x85z", "  two  spaces ", "\x00"]
    assert [translation.text for translation in echo().translate(lines)] == lines


@pytest.mark.parametrize("empty", ["", " ", "\t", "\u3000", "\r"])
def test_a_line_without_text_has_an_empty_translation(echo, empty):
    assert echo().translate(["a", empty, "b"])[1] == Translation("", 0.0, ())


def test_no_lines_no_translations(echo):
    assert echo().translate([]) == [] and echo().shapes == []


def test_one_string_is_not_a_list_of_sentences(echo):
    with pytest.raises(TypeError, match="lines must be a list of sentences, not one string. Received: 'the fox'"):
        echo().translate("the fox")


# Lengths


def test_few_shapes_are_compiled(echo):
    made = echo(batch_size=4)
    made.translate(["a " * n for n in range(1, 60)])
    assert len(made.shapes) == len(set(made.shapes)) <= 8
    assert {rows for rows, _ in made.shapes} <= {1, 4} and {length for _, length in made.shapes} <= set(LENGTHS)


def test_a_long_line_is_cut_with_a_warning_that_names_it(echo, pair, caplog):
    lines = ["a", " " * 500, "one two " * 50, "b"]
    with caplog.at_level(logging.WARNING, logger="keras_transformer"):
        texts = [translation.text for translation in echo(max_source_tokens=20).translate(lines, first_line=11)]
    tokens = pair[1].encode(lines[2])
    assert texts == ["a", "", pair[1].decode(tokens[:19]), "b"]
    assert caplog.messages == [f"line 13 has {len(tokens)} tokens; only the first 19 are translated"]


def test_a_line_that_just_fits_is_whole(echo, pair, caplog):
    length = len(pair[1].encode(SENTENCES[0]))
    assert echo(max_source_tokens=length + 1).translate(SENTENCES[:1])[0].text == SENTENCES[0]
    assert not caplog.messages
    assert echo(max_source_tokens=length).translate(SENTENCES[:1])[0].text != SENTENCES[0]
    assert len(caplog.messages) == 1


def test_learned_positions_bound_the_source(run, tmp_path):
    learned = random_run(tmp_path / "learned", positions="learned", max_positions=24)
    assert Translator.load(learned, xla=False).max_source_tokens == 24


@pytest.mark.parametrize("field, value", [("batch_size", 0), ("max_source_tokens", 1), ("max_source_tokens", 513)])
def test_limits_that_make_no_sense_are_named(pair, field, value):
    with pytest.raises(ConfigError, match=f"{field} is {value}; it must be"):
        Translator(*pair, **{field: value})


# Translations


@pytest.fixture(scope="module")
def translations(pair):
    """Of LINES, in batches of 5, under XLA."""
    return Translator(*pair, OPTIONS, batch_size=5).translate_n_best(LINES)


def test_company_and_xla_change_no_translation(pair, translations):
    alone = Translator(*pair, OPTIONS, batch_size=1, xla=False)
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


def test_the_text_is_what_the_ids_spell(pair, translations):
    for translation in (translation for found in translations for translation in found if translation.ids):
        assert translation.ids[-1] == EOS and PAD not in translation.ids
        assert translation.text == pair[1].decode(translation.ids)


def test_translate_gives_the_best_of_the_n_best(pair, translations):
    found = Translator(*pair, OPTIONS, batch_size=6, xla=False).translate(LINES)
    assert [translation.text for translation in found] == [candidates[0].text for candidates in translations]


def test_two_spellings_of_one_text_count_once(monkeypatch, pair):
    pieces = pair[1].pieces
    letters = {piece for piece in pieces if len(piece) == 1 and piece.isascii() and piece.isalpha()}
    whole = next(piece for piece in pieces if len(piece) == 2 and set(piece) <= letters)
    other = min(letters - set(whole))
    spellings = [[pieces.index(letter) for letter in whole], [pieces.index(whole)], [pieces.index(other)]]
    ids = np.full((1, 3, 16), PAD, "int32")
    for row, tokens in zip(ids[0], spellings, strict=True):
        row[: len(tokens) + 1] = [*tokens, EOS]
    scores = np.array([[-0.5, -1.0, -2.0]], "float32")
    monkeypatch.setattr(translator_module, "search", lambda *_: Hypotheses(ids, scores))
    [found] = Translator(*pair, OPTIONS, batch_size=1, xla=False).translate_n_best(["x"])
    assert [(translation.text, translation.score) for translation in found] == [(whole, -0.5), (other, -2.0)]


# Run folders


def test_a_folder_that_is_not_there():
    with pytest.raises(ConfigError, match="There is no run folder nowhere"):
        load_run("nowhere")


@pytest.mark.parametrize("name", ["model.json", "tokenizer.model", "model.weights.h5"])
def test_a_missing_file_is_named(run, tmp_path, name):
    shutil.copytree(run, tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    with pytest.raises(ConfigError, match=f"has no {name}"):
        load_run(tmp_path / "run")


def test_a_tokenizer_of_another_size_is_refused(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    RUN_MODEL.replace(vocab_size=331).save(tmp_path / "run" / "model.json")
    with pytest.raises(ConfigError, match="a vocabulary of 331 and tokenizer.model one of 330"):
        load_run(tmp_path / "run")


@pytest.mark.parametrize("change", [{"d_model": 16}, {"decoder_layers": 2}])
def test_weights_of_another_model_are_refused(run, tmp_path, change):
    shutil.copytree(run, tmp_path / "run")
    RUN_MODEL.replace(**change).save(tmp_path / "run" / "model.json")
    with pytest.raises(ConfigError, match="does not hold the weights of the model that model.json describes: A total"):
        load_run(tmp_path / "run")


def test_files_cut_short_are_refused(run, tmp_path):
    shutil.copytree(run, tmp_path / "run")
    weights, tokenizer = tmp_path / "run" / "model.weights.h5", tmp_path / "run" / "tokenizer.model"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(ConfigError, match="model.weights.h5 does not hold"):
        load_run(tmp_path / "run")
    tokenizer.write_bytes(tokenizer.read_bytes()[:-100])
    with pytest.raises(TokenizerError, match="is not a SentencePiece model"):
        load_run(tmp_path / "run")
