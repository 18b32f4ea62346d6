"""Is the phrase there? Python, the rule of the search and a served graph give one answer for phrase and text."""

import numpy as np
import pytest
import tensorflow as tf

from export.graph.forbidden import matches, read_forbidden
from keras_transformer.ground.errors import InputError
from keras_transformer.search.rules.required import Required
from keras_transformer.text.forbidden import forbidden_phrases
from keras_transformer.text.glossary import CASE, Glossary, Term
from keras_transformer.text.occurrences import occurrences, places_of
from keras_transformer.text.required import PhraseReader, has_phrase, is_missing, rule_of_required
from keras_transformer.text.spans import TERM, Span
from tests.support.models import as_numpy
from tests.support.searches import state_of
from tests.support.text_rules import IS_THERE


@pytest.mark.parametrize("phrase, text, answer", IS_THERE, ids=ascii)
def test_python_gives_one_answer(phrase, text, answer):
    as_written = {
        "glossary": bool(list(Glossary([Term(phrase, "x", (CASE,))]).matches(text))),
        "span": bool(occurrences([Span(0, 1, TERM, phrase)], text)[phrase]),
        "required": has_phrase(text, phrase),
        "required, at the end": not is_missing(phrase, text),
        "places": bool(list(places_of(phrase, text))),
    }
    assert as_written == dict.fromkeys(as_written, answer is True)
    without_capitals = {
        "glossary": bool(list(Glossary([Term(phrase, "x")]).matches(text))),
        "forbidden": bool(forbidden_phrases(phrase.encode()).found(text)),
    }
    assert without_capitals == dict.fromkeys(without_capitals, bool(answer))


def test_a_served_graph_gives_the_answer_of_python():
    read = read_forbidden(tf.constant([phrase for phrase, *_ in IS_THERE]))
    in_graph = tf.function(
        matches, [tf.TensorSpec([], tf.string), tf.RaggedTensorSpec([None, None], tf.int32, 1)], autograph=False
    )
    for number, (phrase, text, answer) in enumerate(IS_THERE):
        places = [tuple(place) for place in in_graph(tf.constant(text), read[number]).numpy().tolist()]
        assert bool(places) == bool(answer), (phrase, text)
        assert places == sorted({match[:2] for match in forbidden_phrases(phrase.encode()).matches(text)})


def test_the_rule_of_a_search_is_content_with_no_text_that_lacks_the_phrase(pair):
    """A phrase in other pieces it does not know again: then it asks for a phrase that the text has."""
    reader, answers = PhraseReader(pair[1]), []
    for phrase, text, answer in IS_THERE:
        try:
            rule = rule_of_required([reader.read([phrase], longest=200)])
        except InputError:  # no piece for it
            continue
        ids = np.array([[pair[1].encode_target(text)]], "int32")
        rules = {"required": rule, "word_edges": reader.word_edges, "limits": np.array([200], "int32")}
        state = state_of(ids, np.zeros((1, 1), "float32"), **rules)
        progress = state.rules.find(Required).progress(state)
        is_content = bool(as_numpy(progress.is_met | progress.is_open)[0, 0, 0])
        answers.append((is_content, has_phrase(pair[1].decode(ids[0, 0]), phrase)))
        assert is_content <= answers[-1][1], (phrase, text, answer)
    assert len(answers) > 30 and sum(is_content for is_content, _ in answers) > 10
