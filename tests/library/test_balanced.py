"""A search that writes nothing but trees: what may come next, and the laws of its outputs."""

import dataclasses

import numpy as np
import pytest
from keras import ops

from keras_transformer.ground.errors import ConfigError
from keras_transformer.ground.tokens import EOS, PAD
from keras_transformer.parsing.balanced import DEEPEST, TreeDecoder
from keras_transformer.parsing.linear import is_tree
from keras_transformer.search.options import OPTIONS as TABLE
from keras_transformer.search.options import RUN_OPTIONS, SearchOptions
from keras_transformer.search.scores import NEVER
from keras_transformer.search.step import IncrementalDecoder
from keras_transformer.translation.forced import ForcedDecoder
from keras_transformer.translation.translator import Translator
from tests.support.models import LIVELY, assert_close, lively_transformer
from tests.support.searches import OTHER_VALUES, search

PIECES = ["<pad>", "<unk>", "<s>", "</s>", "(S", "▁(S", "▁)S", "▁(NP", "▁)NP", "▁XX", "a", "▁a", "b", "▁b"]
NUMBERS = {piece: number for number, piece in enumerate(PIECES)}
OPTIONS = SearchOptions(beam_size=4, extra_length=8, n_best=4)


def ids(text):
    return [NUMBERS[piece] for piece in text.split()]


def padded(*rows):
    batch = np.full((len(rows), max(map(len, rows))), PAD, "int32")
    for row, tokens in zip(batch, rows, strict=True):
        row[: len(tokens)] = tokens
    return batch


SOURCES = padded(
    [*ids("a b ▁a b ▁b"), EOS],  # three words
    [*ids("a"), EOS],
    [*ids("b ▁a ▁b ▁a ▁b a"), EOS],
    [EOS],
)
WORDS = (3, 1, 5, 0)


def found(options=OPTIONS, sources=SOURCES, static_shapes=False):
    """The search of a Transformer with random weights, which has never seen a tree."""
    decoder = TreeDecoder(IncrementalDecoder(lively_transformer()), PIECES, options)
    hypotheses = search(decoder, sources, options, static_shapes)
    return ops.convert_to_numpy(hypotheses.ids), ops.convert_to_numpy(hypotheses.scores)


def symbols(tokens):
    return [PIECES[token].removeprefix("▁") for token in tokens if token not in (PAD, EOS)]


@pytest.fixture(scope="module")
def outputs():
    return found()


@pytest.mark.nightly
def test_every_output_is_a_tree_over_the_words_of_its_source(outputs):
    trees = 0
    for words, hypotheses, scores in zip(WORDS, *outputs, strict=True):
        assert scores[0] > NEVER / 2
        for tokens in hypotheses[scores > NEVER / 2]:
            assert is_tree(symbols(tokens), words) or (words == 0 and symbols(tokens) == [])
            trees += 1
    assert trees >= 3 * 3 and LIVELY.vocab_size == len(PIECES)


@pytest.mark.nightly
def test_a_line_has_one_symbol_without_a_space(outputs):
    for tokens in outputs[0][0]:
        assert [PIECES[token] for token in tokens if PIECES[token] == "(S"] == ["(S"]


@pytest.mark.nightly
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_scores_are_the_models_own_log_probabilities_and_coverage(beta):
    hypotheses, scores = found(dataclasses.replace(OPTIONS, coverage_penalty=beta))
    sources = np.repeat(SOURCES[:1], 4, axis=0)
    made = ForcedDecoder(lively_transformer())(sources, hypotheses[0])
    lengths = (hypotheses[0] != PAD).sum(1)
    expected = ops.convert_to_numpy(made.log_probs).sum(1) / ((5 + lengths) / 6) ** 0.6
    assert_close(scores[0], expected + beta * ops.convert_to_numpy(made.log_coverage(sources)), atol=1e-4)


@pytest.mark.nightly
def test_static_shapes_give_the_same_outputs(outputs):
    again = found(static_shapes=True)
    assert np.array_equal(again[0], outputs[0])
    assert_close(again[1], outputs[1], atol=1e-4)


@pytest.mark.nightly
def test_a_tree_fits_into_the_longest_output():
    """Of 5 words, 9 tokens hold a flat tree, EOS and one more symbol, with which no bracket can begin."""
    rows, scores = found(SearchOptions(beam_size=4, extra_length=2, n_best=4), SOURCES[2:3])
    for tokens in rows[0][scores[0] > NEVER / 2]:
        assert is_tree(symbols(tokens), 5) and symbols(tokens).count("XX") == 5 and len(symbols(tokens)) == 7
    rows, scores = found(SearchOptions(beam_size=1, extra_length=1, max_length=4), SOURCES[2:3])
    assert scores[0, 0] > NEVER / 2  # a tree of 5 words cannot fit: the search is free, and what it finds is repaired


MORE = [*PIECES, "XX", "/b", ")S", ")NP"]  # which are part of the word before, though they look like symbols


class Anything:
    """A decoder for which all tokens are alike."""

    config = LIVELY

    def start(self, source_ids, hypotheses, counts_attention):
        return ()

    def step(self, weights, state, tokens, position, has_room):
        return ops.zeros((ops.shape(tokens)[0] * tokens.shape[1], len(MORE))), state


def probabilities_after(output, options):
    """Those of the token that follows `output`, over two words."""
    decoder = TreeDecoder(Anything(), MORE, options)
    state, logits = decoder.start(padded([*ids("a ▁b"), EOS]), 1), None
    for position, token in enumerate([PAD, *ids(output)]):
        logits, state = decoder.step(None, state, ops.convert_to_tensor([[token]]), position)
    return ops.convert_to_numpy(ops.softmax(logits))[0]


@pytest.mark.parametrize(
    "output, allowed",
    [
        ("", "(S"),
        ("(S", "▁(S ▁(NP ▁XX"),  # no bracket is empty
        ("(S ▁XX", "▁(S ▁(NP ▁XX"),  # the outermost bracket has all words
        ("(S ▁(NP ▁XX", "▁(S ▁(NP ▁XX ▁)NP"),
        ("(S ▁(NP ▁XX ▁)NP", "▁(S ▁(NP ▁XX"),
        ("(S ▁(NP ▁XX ▁)NP ▁XX", "▁)S"),
        ("(S ▁(S ▁(NP ▁XX ▁XX", "▁)NP"),
        ("(S ▁XX ▁XX ▁)S", "</s>"),
    ],
)
def test_what_may_come_next_over_two_words(output, allowed):
    probabilities = probabilities_after(output, OPTIONS)
    assert {MORE[token] for token in np.flatnonzero(probabilities) if token != PAD} == set(allowed.split())
    assert_close(probabilities[ids(allowed)], [1 / len(MORE)] * len(allowed.split()))  # as likely as before


@pytest.mark.parametrize(("most", "allowed"), [(6, "▁XX"), (7, "▁(S ▁(NP ▁XX")])
def test_a_bracket_opens_only_if_all_words_and_its_own_end_have_room(most, allowed):
    """(S (NP XX XX )NP )S and EOS are 7 tokens."""
    probabilities = probabilities_after("(S", dataclasses.replace(OPTIONS, max_length=most))
    assert {MORE[token] for token in np.flatnonzero(probabilities) if token != PAD} == set(allowed.split())


@pytest.mark.nightly
def test_no_more_brackets_open_than_there_is_room_for_their_labels():
    opened = "(S" + " ▁(S" * (DEEPEST - 2)
    options = dataclasses.replace(OPTIONS, extra_length=1_000)
    for output, may_open in ((opened, True), (f"{opened} ▁(S", False)):
        assert (probabilities_after(output, options)[NUMBERS["▁(S"]] > 0) == may_open


@pytest.mark.parametrize("changes", [{"min_length": 40}, {"no_repeat_ngram_size": 2}, {"repetition_penalty": 0.4}])
def test_rules_that_contradict_a_search_for_trees_are_refused(changes):
    with pytest.raises(ConfigError) as error:
        TreeDecoder(Anything(), PIECES, SearchOptions(beam_size=1, **changes))
    [(name, value)] = changes.items()
    assert f"{name} is {value} (--{name.replace('_', '-')})" in str(error.value) and "--constrained" in str(error.value)


@pytest.mark.nightly
def test_a_search_for_trees_writes_trees_or_refuses_an_option():
    """Of every option: a new one must keep this law, or be refused."""
    refused = set()
    of_a_run = set(RUN_OPTIONS) - {"no_repeat_ngram_size", "repetition_penalty"}
    for name in OTHER_VALUES.keys() - of_a_run - {"min_length", "max_length"}:
        needed = {"temperature": 1.0} if TABLE[name].needs else {}
        options = dataclasses.replace(OPTIONS, **needed | {name: OTHER_VALUES[name]})
        try:
            rows, scores = found(options, SOURCES[:3])
        except ConfigError:
            refused.add(name)
            continue
        for words, hypotheses, of_row in zip(WORDS[:3], rows, scores, strict=True):
            assert all(is_tree(symbols(tokens), words) for tokens in hypotheses[of_row > NEVER / 2]), name
    assert refused == {"no_repeat_ngram_size", "require_numbers"}


@pytest.mark.parametrize("missing", ["(S", "▁)S", "▁XX"])
def test_a_tokenizer_without_the_symbols_of_a_tree_is_refused(missing):
    with pytest.raises(ConfigError, match="treebank"):
        TreeDecoder(Anything(), [piece for piece in PIECES if piece != missing], OPTIONS)


class Pieces:
    """A tokenizer that knows PIECES, and encodes every text as one of them."""

    vocab_size = LIVELY.vocab_size

    def pieces(self):
        return PIECES

    def encode_batch(self, lines):
        return [ids("a") for _ in lines]

    def unknown_tag(self, line):
        return ""


def test_a_beginning_that_need_not_be_one_of_a_tree_is_refused():
    translator = Translator(lively_transformer(), Pieces(), OPTIONS, trees_only=True)
    with pytest.raises(ConfigError, match="for trees only does not take target_prefix"):
        translator.translate(["a"], prefixes=["(S"])
