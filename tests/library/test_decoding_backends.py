"""The search uses Keras alone: every backend finds the same translations, without TensorFlow."""

import numpy as np
import pytest

from keras_transformer.ground.tokens import BOS
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.step import IncrementalDecoder
from tests.support.models import LIVELY, as_numpy, lively_transformer, sources
from tests.support.processes import run_without_tensorflow
from tests.support.searches import search
from tests.support.variants import VARIANTS

pytestmark = pytest.mark.release

OPTIONS = {
    "beam": SearchOptions(beam_size=3, n_best=3, extra_length=4),
    "covering": SearchOptions(beam_size=3, n_best=3, extra_length=4, coverage_penalty=0.5),
    "diverse": SearchOptions(3, n_best=3, extra_length=4, sibling_penalty=0.5),
    "greedy": SearchOptions(1, extra_length=4),
    "drawn": SearchOptions(3, n_best=3, extra_length=4, temperature=1.0, seed=-7),
    "prefix": SearchOptions(beam_size=2, n_best=2, extra_length=4),
    "phrases": SearchOptions(beam_size=3, n_best=3, extra_length=4),
    **dict.fromkeys(VARIANTS, SearchOptions(beam_size=2, n_best=2, extra_length=3)),
}
RULES = {
    "phrases": {
        "required": np.array(
            [
                [[[6, 5, 0], [BOS, 7, 5]], [[8, 0, 0], [0, 0, 0]]],
                [[[10, 9, 0], [BOS, 9, 0]], [[0, 0, 0], [0, 0, 0]]],
                [[[0, 0, 0], [0, 0, 0]], [[0, 0, 0], [0, 0, 0]]],
            ],
            "int32",
        ),
        "word_edges": np.arange(2 * LIVELY.vocab_size).reshape(2, -1) % 2 == 1,
        "forbidden": np.array([[[0, 9]], [[5, 5]], [[0, 10]]], "int32"),
    },
    "prefix": {
        "prefixes": np.array([[5, 6], [7, 0], [0, 0]], "int32"),
        "endings": np.array([[[5, 6], [7, 0]], [[0, 0], [-1, -1]], [[6, 5], [6, 7]]], "int32"),
    },
}


def found(name):
    """Return ids and scores side by side: (B, K, L + 1)."""
    decoder = IncrementalDecoder(lively_transformer(LIVELY.replace(**VARIANTS.get(name, {}))))
    ids, scores, _ = map(as_numpy, search(decoder, sources(2, 4, 6), OPTIONS[name], rules=RULES.get(name)))
    return np.concatenate([ids, scores[..., np.newaxis]], axis=-1)


SCRIPT = """
import sys, numpy
from tests.library.test_decoding_backends import OPTIONS, found
numpy.savez(sys.argv[1], **{name: found(name) for name in OPTIONS})
print("tensorflow" in sys.modules)
"""


@pytest.mark.parametrize("backend", ["jax", "torch"])
def test_another_backend_finds_the_same_without_tensorflow(backend, tmp_path):
    run_without_tensorflow(backend, SCRIPT, tmp_path / "found.npz")
    with np.load(tmp_path / "found.npz") as other:
        for name in OPTIONS:
            np.testing.assert_allclose(other[name], found(name), atol=1e-4, rtol=1e-4)


JIT = """
import sys, jax, numpy
from tests.library.test_decoding_backends import RULES
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.step import IncrementalDecoder
from tests.support.models import lively_transformer, sources
from tests.support.searches import search
decoder = IncrementalDecoder(lively_transformer())
find = lambda ids: tuple(search(decoder, ids, SearchOptions(2, extra_length=4), rules=RULES["prefix"]))
compiled, eager = jax.jit(find)(sources(2, 4, 6)), find(sources(2, 4, 6))
numpy.savez(sys.argv[1], compiled_ids=compiled[0], compiled_scores=compiled[1], ids=eager[0], scores=eager[1])
print("tensorflow" in sys.modules)
"""


def test_a_search_with_prefixes_compiles_as_a_whole_with_jax(tmp_path):
    run_without_tensorflow("jax", JIT, tmp_path / "found.npz")
    with np.load(tmp_path / "found.npz") as found:
        np.testing.assert_array_equal(found["compiled_ids"], found["ids"])
        np.testing.assert_allclose(found["compiled_scores"], found["scores"], atol=1e-4)
        assert found["ids"].shape[:2] == (3, 2)
