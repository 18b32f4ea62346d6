"""Whole texts in requests to a local server, over a graph that writes what it reads in capitals."""

import numpy as np
import pytest
import tensorflow as tf

from export.server import paragraphs
from export.server.errors import RequestError
from export.server.paragraphs import (
    MOST_SENTENCES,
    SPANS,
    has_spans,
    lines_in,
    parts_of,
    run_paragraphs,
    with_paragraphs,
)
from export.server.signature import Signature, Tensor
from keras_transformer.text.formats.parts import Field

TEXT = "A dog runs.  It is\nbrown.\r\n\r\n - The end."
RANKED = ("translations", "scores", "log_probabilities", "pieces", "is_cut")


def signature(name):
    inputs = {"text": Tensor("text:0", tf.string, (None,)), "beam_size": Tensor("beam_size:0", tf.int32, (None,))}
    outputs = {each: Tensor(each, tf.string, (None,)) for each in (*RANKED, "truncated")}
    return Signature(name, inputs, outputs, {"beam_size": np.array([4])})


class Graph:
    """Takes 20 characters of a line, and finds two translations; notes what it was asked."""

    def __init__(self):
        self.seen = []

    def __call__(self, names, inputs):
        assert set(inputs) == {"text", "beam_size"} and len(inputs["text"]) == len(inputs["beam_size"]) <= 32
        lines = [text.decode() for text in inputs["text"]]
        self.seen += lines
        best = np.array([[line[:20].upper().encode(), b"other"] for line in lines] + [[b"", b""]], object)[:-1]
        numbers = np.array([[-len(line), -1e9] for line in lines], np.float32)
        found = {
            "translations": best,
            "scores": numbers,
            "log_probabilities": numbers,
            "pieces": best,
            "is_cut": np.array([[line.startswith("It"), False] for line in lines]),
            "truncated": np.array([len(line) > 20 for line in lines]),
            "unplaced": np.array([[b"{x}" if "It" in line else b"", b""] for line in lines], object),
        }
        return {name: found[name] for name in names}


def ask(texts, paragraphs=(True,), outputs=(*RANKED, SPANS), graph=None):
    inputs = {
        "text": np.array([text.encode() for text in texts], object),
        "beam_size": np.array([4]),
        "paragraphs": np.array(paragraphs),
        "language": np.array([b"en"], object),
        "format": np.array([b"text"], object),
        "output_language": np.array([b""], object),
    }
    return run_paragraphs(graph or Graph(), outputs, inputs)


def test_a_text_keeps_all_but_its_sentences():
    answer = ask([TEXT])
    assert answer["translations"][0].tolist() == [TEXT.upper().encode(), b""]
    spans = np.array(answer[SPANS][0].decode().split(), int).reshape(-1, 4)
    assert [TEXT[start:end] for start, end, *_ in spans] == ["A dog runs.", "It is", "brown.", "The end."]
    assert (spans[:, :2] == spans[:, 2:]).all()
    assert ask([TEXT * 2], outputs=("unplaced",))["unplaced"][0].tolist() == [b"{x}\n{x}", b""]
    lengths = [11, 5, 6, 8]
    assert answer["scores"][0].tolist() == [-np.mean(lengths), -1e9]
    assert answer["log_probabilities"][0].tolist() == [-sum(lengths), -1e9]
    assert answer["is_cut"][0].tolist() == [True, False] and answer["pieces"][0].tolist() == [b"", b""]


def test_a_sentence_that_is_too_long_is_split_and_no_sentence_is_translated_twice():
    graph = Graph()
    answer = ask(["Two dogs run, and a cat sleeps. " * 3], graph=graph)
    assert answer["translations"][0, 0].decode() == "TWO DOGS RUN, AND A CAT SLEEPS. " * 3
    assert len(graph.seen) == len(set(graph.seen)) == 3


def test_a_prefix_begins_the_first_sentence_of_a_text_alone():
    """Of a line it begins the line; a sentence that comes again is translated again without it."""

    def graph(names, inputs):
        pairs = zip(inputs["target_prefix"], inputs["text"], strict=True)
        found = {
            "translations": np.array([[begin + text, b""] for begin, text in pairs] + [[b"", b""]], object)[:-1],
            "truncated": np.array([len(text) > 12 for text in inputs["text"]]),
        }
        return {name: found[name] for name in names}

    inputs = {
        "text": np.array([b"a. b.", b"A dog. A cat. A dog.", b"\n***", b"A dog runs and a cat"], object),
        "paragraphs": np.array([False, True, True, True]),
        "language": np.array([b"en"], object),
        "format": np.array([b"text"], object),
        "output_language": np.array([b""], object),
        "target_prefix": np.array([b"1:", b"2:", b"3:", b""], object),
    }
    assert run_paragraphs(graph, ("translations",), inputs)["translations"][:, 0].tolist() == [
        b"1:a. b.",
        b"2:A dog. A cat. A dog.",
        b"\n***",
        b"A dog runs and a cat",
    ]


def test_lines_and_texts_in_one_request_keep_their_rows():
    answer = ask(["a. b.", "A dog. A cat.", ""], paragraphs=(False, True, True))
    assert answer["translations"][:, 0].tolist() == [b"A. B.", b"A DOG. A CAT.", b""]
    assert answer[SPANS].tolist() == [b"", b"0 6 0 6 7 13 7 13", b""]


def test_spans_are_answered_only_if_somebody_asks():
    assert has_spans(("score", SPANS), {"paragraphs": np.array([False])}, False) == ("score",)
    assert has_spans(("score", SPANS), {"paragraphs": np.array([True])}, False) == ("score", SPANS)
    assert has_spans(("score", SPANS), {"paragraphs": np.array([False])}, True) == ("score", SPANS)
    assert has_spans(("score",), {}, False) == ("score",)


@pytest.mark.parametrize(
    ("format", "text"),
    [
        ("json", '{"a": "{n, plural, other {# dogs}}"}'),
        ("json", '{"a_one": "a dog", "a_other": "dogs"}'),
        ("android", '<resources><plurals name="a"><item quantity="other">dogs</item></plurals></resources>'),
    ],
)
def test_a_text_gets_the_forms_of_numbers_of_the_language_of_its_output(format, text):
    def count(language):
        parts = parts_of(text.encode(), format, language)
        return "".join(part.passage.raw if isinstance(part, Field) else part for part in parts).count("dogs")

    assert count("pl") - count("de") == 2  # few and many


def test_a_text_of_too_many_sentences_is_refused():
    text = "\n\n".join(f"dog {number}" for number in range(MOST_SENTENCES + 1))
    with pytest.raises(RequestError, match="more than 1000 sentences"):
        ask([text])


@pytest.mark.parametrize(
    ("texts", "are_texts", "languages", "count"),
    [
        ([TEXT], [True], [b"en"], 4),
        ([TEXT, TEXT], [True], [b"en"], 8),
        ([TEXT, TEXT], [True, False], [b"en"], 5),
        ([TEXT, TEXT], [False], [b"none"], 2),
        (["Er kam am 3. Mai."] * 2, [True], [b"de", b"en"], 3),
        ([], [True], [b"en"], 0),
    ],
)
def test_the_sentences_of_a_request_are_counted_before_any_is_translated(texts, are_texts, languages, count):
    arrays = {"text": np.array([text.encode() for text in texts], object), "paragraphs": np.array(are_texts)}
    arrays |= {"language": np.array(languages, object), "format": np.array([b"text"], object)}
    arrays |= {"output_language": np.array([b""], object)}
    assert len(lines_in(arrays)) == count and lines_in({"text": arrays["text"]}) == texts
    if any(are_texts) and texts:
        for language in (b"none", b"\xff"):
            with pytest.raises(RequestError, match="The language is"):
                lines_in(arrays | {"language": np.array([language], object)})


def test_another_signature_stays_as_it_is():
    """The plain one has one input, whose values a request may give without its name."""
    assert with_paragraphs(signature("serving_default")) == signature("serving_default")
    for lacking in ("translations", "truncated"):
        short = signature("translate")
        del short.outputs[lacking]
        assert set(with_paragraphs(short).inputs) == set(short.inputs)
    extended = with_paragraphs(signature("translate"))
    assert set(extended.inputs) - set(signature("translate").inputs) == set(paragraphs.OF_TEXTS)
    inputs = extended.complete({"text": np.array([b"x"], object)})
    assert not inputs["paragraphs"].any() and (inputs["language"].tolist(), inputs["format"].tolist()) == (
        [b"en"],
        [b"text"],
    )


def test_each_text_is_divided_by_the_rules_of_its_language():
    inputs = {
        "text": np.array([b"Er kam am 3. Mai."] * 2, object),
        "beam_size": np.array([4]),
        "paragraphs": np.array([True]),
        "language": np.array([b"de", b"en"], object),
        "format": np.array([b"text"], object),
        "output_language": np.array([b""], object),
    }
    spans = run_paragraphs(Graph(), (SPANS,), inputs)[SPANS].tolist()
    assert [len(places.split()) // 4 for places in spans] == [1, 2]


def test_as_many_sentences_as_are_possible_are_translated_and_a_text_in_another_encoding_is_refused(monkeypatch):
    monkeypatch.setattr(paragraphs, "MOST_SENTENCES", 2)
    assert ask(["a dog\n\na cat\n\na dog"])["translations"][0, 0] == b"A DOG\n\nA CAT\n\nA DOG"
    with pytest.raises(RequestError, match="more than 2 sentences"):
        ask(["a dog\n\na cat\n\na cow"])
    with pytest.raises(RequestError, match="not UTF-8"):
        run_paragraphs(
            Graph(),
            ("scores",),
            {
                "text": np.array([b"\xff"], object),
                "beam_size": np.array([4]),
                "paragraphs": np.array([True]),
                "language": np.array([b"en"], object),
                "format": np.array([b"text"], object),
                "output_language": np.array([b""], object),
            },
        )


def test_a_text_takes_no_required_phrases():
    inputs = {
        "text": np.array([b"a", b"A dog."], object),
        "paragraphs": np.array([False, True]),
        "beam_size": np.array([4]),
    }
    inputs |= {
        "language": np.array([b"en"], object),
        "format": np.array([b"text"], object),
        "output_language": np.array([b""], object),
        "required": np.array([b"", b"Hund"], object),
    }
    with pytest.raises(RequestError, match="required is for sentences, and paragraphs is true"):
        run_paragraphs(Graph(), RANKED, inputs)


def test_the_sentences_of_a_text_are_counted_with_the_parts_of_those_that_are_too_long(monkeypatch):
    text, graph = "One two three, four five six, seven eight nine.", Graph()
    ask([text], graph=graph)
    count = len(set(graph.seen))
    assert count > 2  # the sentence itself, and its parts
    monkeypatch.setattr(paragraphs, "MOST_SENTENCES", count)
    ask([text])
    monkeypatch.setattr(paragraphs, "MOST_SENTENCES", count - 1)
    with pytest.raises(RequestError, match=f"more than {count - 1} sentences, the most here"):
        ask([text])


def test_a_line_may_have_required_phrases_beside_a_text_without_any():
    asked = []

    def graph(names, inputs):
        asked.append(inputs.pop("required").tolist())
        return Graph()(names, inputs)

    inputs = {
        "text": np.array([b"a", b"A dog."], object),
        "paragraphs": np.array([False, True]),
        "beam_size": np.array([4]),
        "language": np.array([b"en"], object),
        "format": np.array([b"text"], object),
        "output_language": np.array([b""], object),
        "required": np.array([b"Hund", b""], object),
    }
    found = run_paragraphs(graph, ("translations",), inputs)["translations"]
    assert found[:, 0].tolist() == [b"A", b"A DOG."] and asked == [[b"Hund"], [b""]]


def second_best(names, inputs):
    """A graph that finds a second translation, in small letters, of all sentences but "It is" ones."""
    lines = [text.decode() for text in inputs["text"]]
    has = [not line.startswith("It") for line in lines]
    found = {
        "translations": as_array(
            [[line.upper().encode(), line.lower().encode() * n] for line, n in zip(lines, has, strict=True)]
        ),
        "scores": np.array([[-1.0, -3.0 if each else -1e9] for each in has]),
        "truncated": np.array([False] * len(lines)),
    }
    return {name: found[name] for name in names}


def as_array(rows):
    return np.array([*rows, [b"", b""]], object)[:-1]


@pytest.mark.parametrize("n_best", [1, 2, 2**31 - 1])
def test_a_text_has_a_translation_of_each_rank_that_is_asked_for(n_best):
    inputs = {
        "text": np.array([b"A dog runs. It is. The end."], object),
        "n_best": np.array([n_best], np.int32),
        "paragraphs": np.array([True]),
        "language": np.array([b"en"], object),
        "format": np.array([b"text"], object),
        "output_language": np.array([b""], object),
    }
    answer = run_paragraphs(second_best, ("translations", "scores"), inputs)
    others = [b"", -1e9] if n_best == 1 else [b"a dog runs. IT IS. the end.", pytest.approx(-7 / 3)]
    assert answer["translations"][0].tolist() == [b"A DOG RUNS. IT IS. THE END.", others[0]]
    assert answer["scores"][0].tolist() == [-1.0, others[1]]
    inputs["text"] = np.array([b"12 ..."], object)  # without a sentence
    assert run_paragraphs(second_best, ("translations",), inputs)["translations"][0].tolist() == [b"12 ...", b""]


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("html", "<p>A <!-- x --> dog.</p>\r\n<pre>x y</pre>", "<p>A <!-- x --> DOG.</p>\r\n<pre>x y</pre>"),
        ("html", "A &lt; dog<br>it is", "A &lt; DOG<br>IT IS"),
        ("html", "<p>A dog", "<p>A DOG"),
        ("html", "", ""),
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\na\n", "1\n00:00:01,000 --> 00:00:02,000\nA\n"),
    ],
)
def test_what_is_no_text_of_a_format_stays(format, text, expected):
    inputs = {
        "text": np.array([text.encode()], object),
        "paragraphs": np.array([True]),
        "language": np.array([b"en"], object),
        "format": np.array([format.encode()], object),
        "output_language": np.array([b""], object),
    }
    answer = run_paragraphs(second_best, ("translations", SPANS), inputs)
    assert answer["translations"][0][0].decode() == expected and answer[SPANS][0] == b""


@pytest.mark.parametrize(
    ("format", "text", "words"),
    [
        ("docs", b"a", "format is 'docs'; it may be text, "),
        ("jsonl", b"{}", "format is 'jsonl'"),
        ("xliff", b"<a>", "The text"),
        ("html", b"\xff\xfe\xff", "The text"),
    ],
)
def test_a_text_that_is_not_of_its_format_is_refused_before_any_is_translated(format, text, words):
    inputs = {
        "text": np.array([text], object),
        "paragraphs": np.array([True]),
        "language": np.array([b"en"], object),
        "format": np.array([format.encode()], object),
        "output_language": np.array([b""], object),
    }
    with pytest.raises(RequestError, match=words):
        lines_in(inputs)
