"""Probabilities of translations: IBM Model 1 beside plain Python, and files of Marian."""

import collections
import gzip

import numpy as np
import pytest

from keras_transformer.errors import InputError
from keras_transformer.shortlist import lexicon as module
from keras_transformer.shortlist.lexicon import learned_lexicon, read_lexicon

DAS, BUCH, EIN, THE, BOOK, A = range(4, 10)
VOCABULARY = 10
CORPUS = ([[THE, BOOK], [THE], [A, BOOK]], [[DAS, BUCH], [DAS], [EIN, BUCH]])


def model_1(sources, targets, iterations):
    """Brown et al. 1993, in plain Python: {(source, target): probability}, with None for NULL."""
    pairs = [([None, *source], target) for source, target in zip(sources, targets, strict=True) if source and target]
    table = collections.defaultdict(lambda: 1.0)
    for _ in range(iterations):
        counts, totals = collections.Counter(), collections.Counter()
        for source, target in pairs:
            for t in target:
                total = sum(table[s, t] for s in source)
                for s in source:
                    counts[s, t] += table[s, t] / total
                    totals[s] += table[s, t] / total
        table = {pair: count / totals[pair[0]] for pair, count in counts.items()}
    return {pair: probability for pair, probability in table.items() if pair[0] is not None}


def as_dict(lexicon):
    pairs = zip(lexicon.sources.tolist(), lexicon.targets.tolist(), strict=True)
    return dict(zip(pairs, lexicon.probabilities.tolist(), strict=True))


def random_corpus(pairs=40, seed=0):
    generator = np.random.default_rng(seed)
    return tuple(
        [generator.integers(4, VOCABULARY, generator.integers(0, 6)).tolist() for _ in range(pairs)] for _ in range(2)
    )


@pytest.mark.parametrize("iterations", [1, 2, 5])
@pytest.mark.parametrize("corpus", [CORPUS, random_corpus()], ids=["books", "random"])
def test_the_probabilities_are_those_of_plain_python(corpus, iterations):
    found = as_dict(learned_lexicon(*corpus, VOCABULARY, iterations))
    assert found == pytest.approx(model_1(*corpus, iterations))


def test_a_word_is_translated_by_what_it_stands_beside_everywhere():
    found = as_dict(learned_lexicon(*CORPUS, VOCABULARY, 20))
    assert min(found[THE, DAS], found[BOOK, BUCH], found[A, EIN]) > 0.9
    sums = collections.Counter()
    for (source, _), probability in found.items():
        sums[source] += probability
    assert list(sums.values()) == pytest.approx([1.0] * 3)


def test_the_size_of_a_chunk_changes_nothing(monkeypatch):
    whole = learned_lexicon(*random_corpus(), VOCABULARY)
    monkeypatch.setattr(module, "CHUNK", 5)
    for some, others in zip(learned_lexicon(*random_corpus(), VOCABULARY), whole, strict=True):
        np.testing.assert_allclose(some, others)


def test_pairs_with_an_empty_side_say_nothing():
    assert len(learned_lexicon([[], [A]], [[EIN], []], VOCABULARY).sources) == 0
    more = [[*side, []] for side in CORPUS]
    assert as_dict(learned_lexicon(*more, VOCABULARY)) == as_dict(learned_lexicon(*CORPUS, VOCABULARY))


# files of Marian

IDS = {"das": DAS, "Buch": BUCH, "the": THE, "book": BOOK}
LINES = "das the 0.75\nBuch book 0.9\nNULL the 0.2\ndas NULL 0.1\nHaus house 1\nBuch book 0.5\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_a_file_of_marian_has_target_then_source(pack, tmp_path):
    (tmp_path / "lex.s2t").write_bytes(pack(LINES.encode()))
    lexicon, unknown = read_lexicon(tmp_path / "lex.s2t", IDS)
    assert as_dict(lexicon) == {(THE, DAS): 0.75, (BOOK, BUCH): 0.5} and unknown == 1


def test_a_probability_is_from_0_to_1_both_included(tmp_path):
    (tmp_path / "lex.s2t").write_text("das the 0\nBuch book 1\n")
    assert as_dict(read_lexicon(tmp_path / "lex.s2t", IDS)[0]) == {(THE, DAS): 0.0, (BOOK, BUCH): 1.0}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("das the -0.1\n", ["line 1"]),
        ("das the 0.5\ndas the\n", ["line 2", "target source probability"]),
        ("das the x\n", ["line 1"]),
        ("das the nan\n", ["line 1"]),
        ("das the 1.5\n", ["line 1"]),
        ("Haus house 0.5\n", ["no words that are pieces"]),
        ("", ["no words that are pieces"]),
    ],
)
def test_a_file_that_is_none_is_one_sentence(text, parts, tmp_path):
    (tmp_path / "lex.s2t").write_text(text)
    with pytest.raises(InputError, match=".*".join(["lex.s2t", *parts])):
        read_lexicon(tmp_path / "lex.s2t", IDS)


def test_a_damaged_gzip_is_named(tmp_path):
    (tmp_path / "lex.s2t.gz").write_bytes(gzip.compress(LINES.encode() * 50)[:40])
    with pytest.raises(InputError, match="lex.s2t.gz cannot be decompressed"):
        read_lexicon(tmp_path / "lex.s2t.gz", IDS)
