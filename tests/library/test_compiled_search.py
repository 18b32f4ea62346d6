"""Which search a batch of lines gets: one with what its lines ask for, and with nothing else."""

import numpy as np
import pytest

from keras_transformer import compiled_search
from keras_transformer.compiled_search import Asked, CompiledSearch, SearchHow, search_results
from keras_transformer.decoding.options import SearchOptions
from keras_transformer.decoding.state import Hypotheses
from keras_transformer.prefixes import NO_PREFIX, rules_of_prefixes
from keras_transformer.text.forbidden import rule_of_forbidden
from keras_transformer.text.required import Phrase, rule_of_required

IDS = np.array([[4, 5, 3], [6, 3, 0]], "int32")
EDGES = np.array([[True, False], [False, True]])
PREFIX = NO_PREFIX._replace(tokens=[7, 8])
SEQUENCES, PHRASES = ((5, 6), (9,)), (Phrase("a b", (4, 5)), Phrase("c", (6,), (7, 8)))


@pytest.mark.parametrize(
    ("asked", "leaves"),
    [
        ([Asked(), Asked()], 1),
        ([Asked(), Asked(prefix=PREFIX)], 4),
        ([Asked(forbidden=SEQUENCES), Asked()], 4),
        ([Asked(), Asked(phrases=PHRASES)], 6),
        ([Asked(PREFIX, SEQUENCES), Asked(phrases=PHRASES)], 6),
    ],
)
def test_a_search_is_given_the_rules_that_some_line_asks_for(asked, leaves, monkeypatch):
    monkeypatch.setattr(compiled_search, "search_results", lambda how, *inputs: inputs)
    given = CompiledSearch(None, lambda: EDGES)(IDS, asked)
    prefixes = rules_of_prefixes([line.prefix for line in asked])
    expected = [
        IDS, prefixes["prefixes"], prefixes["endings"], rule_of_forbidden([line.forbidden for line in asked]),
        rule_of_required([line.phrases for line in asked]), EDGES,
    ]  # fmt: skip
    assert len(given) == leaves
    for found, rule in zip(given, expected, strict=False):
        np.testing.assert_array_equal(found, rule)


def test_the_rules_are_named_and_those_of_placeholders_are_of_the_model(monkeypatch):
    asked, options = [], SearchOptions()
    free = Hypotheses(np.zeros((1, 1, 2), "int32"), np.full((1, 1), -2.0, "float32"), np.ones((1, 1), bool))
    monkeypatch.setattr(compiled_search, "search", lambda *given, **named: asked.append((*given, named)) or free)
    found = search_results(SearchHow("decoder", options, (), "shortlist"), IDS)
    assert found[:3] == tuple(free) and np.array(found[3]).tolist() == [[0.0]]  # nothing was lost
    [(decoder, ids, given, named)] = asked
    assert (decoder, ids is IDS, given is options) == ("decoder", True, True)
    assert named == {"rules": {}, "shortlist": "shortlist"}
    monkeypatch.setattr(compiled_search, "search_with_phrases", lambda *given, **named: [(*given, named)])
    how = SearchHow("decoder", options, (5,), None)
    [(*_, rules, named)] = search_results(how, IDS, "prefixes", "endings", "forbidden", "required", "word_edges")
    counts = np.array(rules.pop("placeholders"))
    assert counts.tolist() == [[[5, 1]], [[5, 0]]] and named == {"shortlist": None}
    assert all(name == rule for name, rule in rules.items())
    assert set(rules) == {"prefixes", "endings", "forbidden", "required", "word_edges"}
