"""The served graph: what a request may ask, and the answer."""

import dataclasses

import numpy as np
import pytest
import tensorflow as tf

from export.graph import served_graph
from export.graph.request import inputs_of
from export.graph.served_graph import ServedGraph
from export.graph.slices import SLICE_ROWS
from export.graph.text_outputs import alignments, without_duplicates
from keras_transformer.ground.tokens import EOS
from keras_transformer.model import Transformer
from keras_transformer.runs.aligned_by import LAST_BUT_ONE, AlignedBy
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.translation.forced import ForcedDecoder
from keras_transformer.translation.translator import Translator
from tests.support.exports import asker
from tests.support.runs import SENTENCES, random_run

OPTIONS, LONGEST = SearchOptions(extra_length=6), 40
LINES = [*SENTENCES[:6], "", " \t"]


@pytest.fixture(scope="module")
def served(pair):
    return ServedGraph(*pair, OPTIONS, LONGEST)


@pytest.fixture(scope="module")
def ask(served):
    return asker(served)


@pytest.mark.slow
def test_a_line_whose_probabilities_are_no_numbers_is_refused_in_a_sentence(pair):
    """So does the Translator; an empty translation would be wrong."""
    transformer, tokenizer = pair
    huge = Transformer(transformer.transformer_config)
    huge.set_weights([np.asarray(weight) * 1e30 for weight in transformer.get_weights()])
    with pytest.raises(tf.errors.InvalidArgumentError, match="probabilities are NaN"):
        asker(ServedGraph(huge, tokenizer, OPTIONS, LONGEST))("serving_default", LINES)


def texts_of(row):
    return [text.decode() for text in row]


def assert_same_answers(found, expected):
    for name, values in found.items():
        if values.dtype.kind == "f":
            np.testing.assert_allclose(values, expected[name], atol=1e-4)
        elif name != "piece_log_probabilities":  # decimals, which rounding may change
            assert values.tolist() == expected[name].tolist(), name


@pytest.mark.slow
def test_a_line_without_a_letter_comes_back_as_it_is_unless_the_model_or_the_request_reads_it(pair, ask):
    lines = ["12345", SENTENCES[0], "\U0001f600", ""]
    kept, best = ask("translate", lines, n_best=[2]), ask("serving_default", lines)
    assert kept["translations"][[0, 2, 3]].tolist() == [
        [b"12345", *[b""] * 3],
        [lines[2].encode(), *[b""] * 3],
        [b""] * 4,
    ]
    assert kept["scores"][[0, 2], 0].tolist() == [0, 0] == kept["log_probabilities"][[0, 2], 0].tolist()
    assert best["translation"].tolist() == kept["translations"][:, 0].tolist() and best["score"][0] == 0
    reader = dataclasses.replace(OPTIONS, keep_letterless=0)
    expected = Translator(*pair, reader, max_source_tokens=LONGEST).translate(lines)
    asked = ask("translate", lines, keep_letterless=[0])["translations"][:, 0]
    assert texts_of(asked) == [each.text for each in expected] and asked[0] != b"12345"
    reads = asker(ServedGraph(*pair, reader, LONGEST))
    assert reads("serving_default", lines)["translation"].tolist() == asked.tolist()
    assert reads("translate", lines)["translations"][:, 0].tolist() == asked.tolist()


@pytest.mark.slow
def test_the_defaults_translate_as_the_translator_does(pair, ask):
    translations = Translator(*pair, OPTIONS, max_source_tokens=LONGEST).translate(LINES)
    for name, texts, scores in (("serving_default", "translation", "score"), ("translate", "translations", "scores")):
        found = ask(name, LINES)
        best_texts, best_scores = (found[key].reshape(len(LINES), -1)[:, 0] for key in (texts, scores))
        assert texts_of(best_texts) == [one.text for one in translations]
        expected = [one.score if one.text or name == "serving_default" else NEVER for one in translations]
        np.testing.assert_allclose(best_scores, expected, atol=1e-4)


@pytest.mark.slow
def test_n_best_translations_are_sorted_and_differ(pair, ask):
    options = SearchOptions(extra_length=6, n_best=4)
    expected = Translator(*pair, options, max_source_tokens=LONGEST).translate_n_best(LINES[:6])
    found = ask("translate", LINES[:6], n_best=4)
    for texts, scores, translations in zip(found["translations"], found["scores"], expected, strict=True):
        count = len(translations)
        assert texts_of(texts) == [one.text for one in translations] + [""] * (4 - count)
        np.testing.assert_allclose(scores[:count], [one.score for one in translations], atol=1e-4)
        assert (scores[count:] == NEVER).all()


@pytest.mark.slow
def test_pieces_have_the_log_probabilities_that_scoring_gives_them(served, ask):
    found = ask("translate", LINES[:6], n_best=2, length_penalty=1.0)
    texts, pieces = found["translations"][:, 1], found["pieces"][:, 1]
    scored = ask("score", LINES[:6], translation=texts, length_penalty=1.0)
    same = [row for row in range(6) if scored["pieces"][row] == pieces[row]]  # a text may have other pieces too
    assert len(same) >= 3
    for row in same:
        assert scored["score"][row] == pytest.approx(found["scores"][row, 1], abs=1e-4)
        assert scored["log_probability"][row] == pytest.approx(found["log_probabilities"][row, 1], abs=1e-4)
    for row in range(6):
        of_pieces = [float(number) for number in found["piece_log_probabilities"][row, 1].split()]
        assert len(of_pieces) == len(pieces[row].split()) and pieces[row].endswith(b"</s>")
        assert sum(of_pieces) == pytest.approx(found["log_probabilities"][row, 1], abs=1e-4 * len(of_pieces))
        penalty = (5 + len(of_pieces)) / 6
        assert found["log_probabilities"][row, 1] / penalty == pytest.approx(found["scores"][row, 1], abs=1e-4)


@pytest.mark.slow
def test_each_line_has_options_of_its_own(ask):
    given = {
        "beam_size": [1, 2, 4, 4, 3, 1, 1, 1], "length_penalty": [0, 1, 0.6, 2, 0, 0, 0, 0],
        "min_length": [1, 1, 9, 1, 1, 1, 1, 1], "max_length": [40, 3, 40, 40, 40, 40, 40, 40],
        "no_repeat_ngram_size": [0, 0, 0, 1, 0, 2, 0, 0], "repetition_penalty": [1, 1, 1, 1, 2, 1, 1, 1],
        "temperature": [0, 0, 0, 0, 0, 1, 0, 1], "top_k": [0, 0, 0, 0, 0, 50, 0, 0], "seed": [0, 0, 0, 0, 0, 7, 0, 0],
        "target_prefix": ["", "", "", "", "two", "", "", ""], "n_best": [1, 2, 3, 1, 2, 1, 1, 1],
        "sibling_penalty": [0, 0, 1.5, 0, 0.5, 0, 0, 0],
    }  # fmt: skip
    together = ask("translate", LINES, **given)
    for scores, wanted in zip(together["scores"], given["n_best"], strict=True):
        assert (scores[wanted:] == NEVER).all()
    assert (together["scores"][1:3, 1] > NEVER / 2).all()  # two are wanted, and found
    for row in range(len(LINES)):
        alone = ask("translate", LINES[row : row + 1], **{name: values[row] for name, values in given.items()})
        assert_same_answers(alone, {name: values[row : row + 1] for name, values in together.items()})
    plain = ask("translate", LINES)["translations"][:, 0]
    assert sum(a != b for a, b in zip(together["translations"][:6, 0], plain, strict=False)) >= 4
    assert len(together["pieces"][1, 0].split()) <= 3 and len(together["pieces"][2, 0].split()) >= 9
    assert together["translations"][4, 0].startswith(b"two")
    pieces = together["pieces"][3, 0].split()
    assert len(pieces) == len(set(pieces))


@pytest.mark.slow
@pytest.mark.parametrize("rule", [{"repetition_penalty": 2.0}, {"sibling_penalty": 3.0}])
def test_a_penalty_of_a_request_is_the_translators(pair, ask, rule):
    options = SearchOptions(extra_length=6, n_best=4, **rule)
    expected = Translator(*pair, options, max_source_tokens=LONGEST).translate_n_best(LINES[:6])
    found, plain = (ask("translate", LINES[:6], n_best=4, **asked)["translations"] for asked in (rule, {}))
    for texts, translations in zip(found, expected, strict=True):
        assert texts_of(texts) == [one.text for one in translations] + [""] * (4 - len(translations))
    assert (found != plain).any()


@pytest.mark.slow
def test_each_line_is_scored_with_its_own_length_penalty_and_pieces(ask):
    alphas = [0.0, 1.0, 2.0]
    found = ask("score", LINES[:3], translation=["two dogs"] * 3, length_penalty=alphas)
    for row, alpha in enumerate(alphas):
        of_pieces = [float(number) for number in found["piece_log_probabilities"][row].split()]
        assert len(of_pieces) == len(found["pieces"][row].split()) and max(of_pieces) < 0
        assert sum(of_pieces) == pytest.approx(found["log_probability"][row], abs=1e-4 * len(of_pieces))
        penalty = ((5 + len(of_pieces)) / 6) ** alpha
        assert found["score"][row] == pytest.approx(found["log_probability"][row] / penalty, rel=1e-4)


@pytest.mark.slow
def test_any_number_of_lines_is_translated_in_slices(ask):
    lines = [SENTENCES[n % 6] if n % 7 else "" for n in range(SLICE_ROWS + 30)]
    found = ask("serving_default", lines)
    few = ask("serving_default", LINES[:6])
    for line, text in zip(lines, found["translation"], strict=True):
        assert text == (few["translation"][SENTENCES.index(line)] if line else b"")


@pytest.mark.slow
def test_a_long_line_is_cut_and_reported(pair, ask):
    lines = ["one two " * 100, "é" * 5_000, "short"]
    found = ask("translate", lines)
    assert found["truncated"].tolist() == [True, True, False]
    long = ["one two " * 100, "two"]
    assert ask("score", ["a", "a"], translation=long)["truncated"].tolist() == [True, False]
    assert ask("translate", ["a", "a"], target_prefix=long)["truncated"].tolist() == [True, False]
    expected = Translator(*pair, OPTIONS, max_source_tokens=LONGEST).translate(lines)
    assert texts_of(found["translations"][:, 0]) == [one.text for one in expected]


@pytest.mark.slow
def test_no_output_is_longer_than_the_positions_of_the_model(tmp_path, eager):
    learned = load_run(random_run(tmp_path / "run", positions="learned", max_positions=12))
    served = ServedGraph(*learned, SearchOptions(beam_size=1, extra_length=6), max_source_tokens=10)
    assert served.longest_output == 12
    ask = asker(served)
    for pieces, is_cut in ((11, False), (12, True)):  # EOS is one of the 12
        line = " ".join(["a"] * pieces)
        assert len(learned[1].encode(line)) == pieces
        assert ask("score", ["a"], translation=line)["truncated"].tolist() == [is_cut]
    with pytest.raises(tf.errors.InvalidArgumentError, match="max_length"):
        ask("translate", ["a"], max_length=13)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "field", "most"),  # most: tokens, the end of sentence included
    [
        ("translate", "text", 8),
        ("translate", "target_prefix", 8),
        ("tokenize", "text", 8),
        ("score", "text", 8),
        ("score", "translation", 8 + 1),
        ("explain", "text", 6),
        ("explain", "target_prefix", 6),
    ],
)
def test_what_fills_a_limit_is_whole_and_one_piece_more_is_cut(pair, eager, monkeypatch, name, field, most):
    monkeypatch.setattr(served_graph, "EXPLAINED_TOKENS", 6)
    ask = asker(ServedGraph(*pair, SearchOptions(beam_size=1, extra_length=1), max_source_tokens=8))
    for pieces, is_cut in ((most - 1, False), (most, True)):
        line = " ".join(["a"] * pieces)
        assert len(pair[1].encode(line)) == pieces
        given = {"text": "a"} | ({"translation": "a"} if name == "score" else {}) | {field: line}
        assert ask(name, [given.pop("text")], **given)["truncated"].tolist() == [is_cut]


def test_lines_are_tokenized_as_the_model_reads_them(pair, ask):
    found = ask("tokenize", ["a " * LONGEST, "a " * (LONGEST - 1)])
    assert {len(ids.split()) for ids in found["ids"]} == {LONGEST} and found["truncated"].tolist() == [True, False]
    found = ask("tokenize", LINES)
    assert found["truncated"].tolist() == ask("serving_default", LINES)["truncated"].tolist()
    for line, pieces, ids in zip(LINES, found["pieces"], found["ids"], strict=True):
        expected = [*pair[1].encode(line), 3] if line.strip() else []
        assert [int(number) for number in ids.split()] == expected
        assert pieces.decode().split() == [pair[1].pieces()[number] for number in expected]


@pytest.mark.slow
@pytest.mark.parametrize("option", inputs_of(OPTIONS, LONGEST + OPTIONS.extra_length), ids=lambda option: option.name)
def test_a_value_out_of_bounds_is_refused_by_name(ask, option):
    wrong = [option.lowest - 1, option.highest + 1] if abs(option.lowest) < 2**31 - 1 else []
    wrong = [value for value in wrong if abs(value) < 2**31]
    for value in [*wrong, *([float("nan")] if option.dtype == tf.float32 else [])]:
        with pytest.raises(tf.errors.InvalidArgumentError, match=f"{option.name} must be from"):
            ask("translate", LINES[:2], **{option.name: value})
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"{option.name} must have one value, or one per line"):
        ask("translate", LINES[:2], **{option.name: [option.default] * 3})


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked, law",
    [
        ({"n_best": [1, 3], "beam_size": 2}, "n_best must not exceed beam_size"),
        ({"min_length": 9, "max_length": [9, 8]}, "min_length must not exceed max_length"),
        ({"top_k": 5}, "top_k needs a temperature above 0"),
        ({"top_p": 0.5, "temperature": [1.0, 0.0]}, "top_p needs a temperature above 0"),
    ],
)
def test_options_that_contradict_each_other_in_a_line_are_refused(ask, asked, law):
    with pytest.raises(tf.errors.InvalidArgumentError, match=law):
        ask("translate", LINES[:2], **asked)


def test_words_are_aligned_by_the_attention_of_their_pieces():
    source = tf.constant([["a", "\u2581d", "og", "</s>"]])
    target = tf.constant([["H", "und", "\u2581ein", "</s>", "<pad>"]])
    attention = np.zeros((1, 5, 4), "float32")
    attention[0, 0] = [0.6, 0.1, 0.3, 0.0]  # H: more to "a" than to either piece of "dog" ...
    attention[0, 1] = [0.1, 0.4, 0.5, 0.0]  # ... but "Hund" as a whole to "dog"
    attention[0, 2] = [0.3, 0.1, 0.1, 0.5]  # what goes to the end of the sentence is not counted
    assert alignments(tf.constant(attention), source, target).numpy().tolist() == [b"1-0 0-1"]


@pytest.fixture(scope="module")
def deep_pair(tmp_path_factory):
    return load_run(random_run(tmp_path_factory.mktemp("deep") / "run", decoder_layers=3))


def words_of(pieces):
    """Return the number of the word that each piece belongs to, without the end of sentence."""
    return np.cumsum([number > 0 and piece.startswith("\u2581") for number, piece in enumerate(pieces[:-1])])


def aligned(weights, source, target):
    """Return each word of `target` with the word of `source` to which its pieces attend most; weights (T - 1, S)."""
    of_source, of_target = words_of(source), words_of(target)
    attended = [
        [weights[:, :-1][of_target == word][:, of_source == other].sum() for other in range(of_source[-1] + 1)]
        for word in range(of_target[-1] + 1)
    ]
    return " ".join(f"{np.argmax(sums)}-{word}" for word, sums in enumerate(attended))


@pytest.mark.slow
@pytest.mark.parametrize(("aligned_by", "layer"), [(LAST_BUT_ONE, 2), (AlignedBy(1), 1), (AlignedBy(3), 3)])
def test_words_are_aligned_by_all_heads_of_one_block(deep_pair, eager, aligned_by, layer):
    transformer, tokenizer = deep_pair
    options = SearchOptions(beam_size=1, extra_length=6)
    answer = asker(ServedGraph(*deep_pair, options, LONGEST, aligned_by))("translate", SENTENCES)
    forced, written, expected = ForcedDecoder(transformer), tokenizer.pieces(), {}
    for line, target in zip(SENTENCES, answer["pieces"][:, 0], strict=True):
        source, target = [*tokenizer.encode(line), EOS], target.decode().split(" ")
        attention = forced([source], [[written.index(piece) for piece in target]]).attention
        for block in (1, 2, 3):
            heads = attention[f"decoder_block_{block}/memory"][0].numpy()  # (h, T, S)
            for name, weights in (("all heads", heads.mean(axis=0)), ("the first head", heads[0])):
                words = aligned(weights[:-1], [written[piece] for piece in source], target)
                expected.setdefault((block, name), []).append(words)
    found = texts_of(answer["alignments"][:, 0])
    assert [key for key, alignments in expected.items() if alignments == found] == [(layer, "all heads")]


def test_duplicates_go_to_the_end_and_have_no_score():
    ids = tf.constant([[[1], [2], [3], [4]]])
    scores, texts = tf.constant([[-1.0, -2.0, -3.0, -4.0]]), tf.constant([["x", "y", "x", "z"]])
    ids, scores, texts = without_duplicates(ids, scores, texts)
    assert texts.numpy().tolist() == [[b"x", b"y", b"z", b"x"]] and ids.numpy().ravel().tolist() == [1, 2, 4, 3]
    assert scores.numpy().tolist() == [[-1.0, -2.0, -4.0, NEVER]]
