"""Contestants that translate random sentences with random weights, and the bytes that such a translation must read.

Sources have SOURCE_TOKENS tokens, and outputs TARGET_TOKENS: the models never end one by themselves.
"""

import functools
import os
import tempfile
import time
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.translate_work import SOURCE_TOKENS, TARGET_TOKENS, forbid_the_end
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.tokens import EOS
from keras_transformer.search.options import SearchOptions
from train.cost.transformer_cost import network_matrices

OURS, PEER = "search, JAX", "CTranslate2"


class Contestant(NamedTuple):
    label: str  # OURS or PEER
    precision: str  # a dtype of Keras, or a compute type of CTranslate2


CONTESTANTS = {
    "ours_bfloat16": Contestant(OURS, "bfloat16"),
    "ours_float32": Contestant(OURS, "float32"),
    "ctranslate2_float16": Contestant(PEER, "float16"),
    "ctranslate2_float32": Contestant(PEER, "float32"),
    "ctranslate2_auto": Contestant(PEER, "auto"),
}
BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "int16": 2, "int8": 1}


class Case(NamedTuple):
    beam_size: int
    rows: int  # sentences at once


class Round(NamedTuple):
    """One translation of all rows. `precision`: of weights and of what is beside them, as in "int8_float16"."""

    seconds: float
    precision: str


def needed_bytes(config: TransformerConfig, case: Case, precision: str) -> int:
    """Bytes that one translation must read, however it is computed: weights once a step, and what attention reads.

    A hypothesis reads its own past; the hypotheses of a sentence read its source together. Biases, norms, rows of the
    embedding and the activations of the encoder are left out, and so is all that is written.
    """
    of_weights, of_caches = BYTES[precision.split("_")[0]], BYTES[precision.split("_")[-1]]
    of_caches = 4 if precision == "int8" else of_caches
    heads = config.num_heads * (config.d_k + config.d_v)  # columns of keys and values, or of queries and outputs
    network, half = network_matrices(config) * config.d_model * config.d_ff, config.d_model * heads
    once = config.encoder_layers * (2 * half + network) + config.decoder_layers * half  # and the memory's projections
    a_step = config.decoder_layers * (3 * half + network) + config.d_model * config.vocab_size
    positions = SOURCE_TOKENS * TARGET_TOKENS + case.beam_size * sum(range(1, TARGET_TOKENS + 1))
    caches = case.rows * config.decoder_layers * heads * positions
    return of_weights * (once + TARGET_TOKENS * a_step) + of_caches * caches


def source_ids(vocab_size: int, rows: int) -> np.ndarray:
    """int32 (rows, SOURCE_TOKENS): random pieces, then EOS."""
    ids = np.random.default_rng(1).integers(EOS + 1, vocab_size, (rows, SOURCE_TOKENS), dtype=np.int32)
    ids[:, -1] = EOS
    return ids


class Translation:
    """A contestant. It is ready when every case has been translated once, so that nothing is compiled later.

    A case that fails, as for want of memory, is answered with the reason.
    """

    def __init__(self, name: str, config: TransformerConfig, cases: list[Case]):
        contestant = CONTESTANTS[name]
        os.environ["KERAS_BACKEND"] = "jax"
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        self.translate = {OURS: OurSearch, PEER: CTranslate2}[contestant.label](config, contestant.precision)
        self.failures: dict[Case, str] = {}
        for case in cases:
            try:
                self.translate(case)
            except Exception as error:  # of either framework
                self.failures[case] = f"{type(error).__name__}: {first_line_of(error)}"

    def round(self, case: Case) -> Round | str:
        """Translate a case. Returns the reason if it failed when it was compiled."""
        if case in self.failures:
            return self.failures[case]
        started = time.perf_counter()
        self.translate(case)
        return Round(time.perf_counter() - started, self.translate.precision)

    def outputs(self, case: Case) -> list[list[int]]:
        """Return the ids of the best output of each sentence. The last one is EOS of ours, and a word of the peer's."""
        return self.translate(case)


def random_transformer(config: TransformerConfig, dtype: str):
    import keras

    from keras_transformer.model import Transformer

    keras.utils.set_random_seed(1)
    transformer = Transformer(config, dtype=dtype)
    forbid_the_end(transformer)
    return transformer


class OurSearch:
    """The project's search, compiled as a whole; each beam and number of rows is compiled once."""

    def __init__(self, config: TransformerConfig, precision: str):
        self.config, self.precision = config, precision
        self.transformer = random_transformer(config, precision)

    def __call__(self, case: Case) -> list[list[int]]:
        weights = [variable.value for variable in self.transformer.variables]
        return np.asarray(self.search(case.beam_size)(weights, source_ids(self.config.vocab_size, case.rows))).tolist()

    @functools.cache  # noqa: B019  (one object per process)
    def search(self, beam_size: int) -> Any:
        """Return the compiled function (weights, ids int (B, S)) -> ids (B, L) of the best outputs."""
        import jax
        import keras

        from keras_transformer.search.plan import SearchPlan
        from keras_transformer.search.search import search
        from keras_transformer.search.step import IncrementalDecoder

        decoder = IncrementalDecoder(self.transformer)
        plan = SearchPlan(SearchOptions(beam_size, extra_length=TARGET_TOKENS - SOURCE_TOKENS))

        def best(weights, ids):  # weights that are not arguments would be constants of the program
            with keras.StatelessScope(state_mapping=list(zip(self.transformer.variables, weights, strict=True))):
                return search(decoder, ids, plan).ids[:, 0]

        return jax.jit(best)


class CTranslate2:
    """The same weights in CTranslate2, on a GPU if it finds one."""

    def __init__(self, config: TransformerConfig, precision: str):
        os.environ["JAX_PLATFORMS"] = "cpu"  # the weights pass through it: the device is for CTranslate2
        import ctranslate2

        from export.ctranslate2.spec import model_spec

        self.vocab_size = config.vocab_size
        self.pieces = [
            "<pad>",
            "<unk>",
            "<s>",
            "</s>",
            *(f"w{number}" for number in range(config.vocab_size - EOS - 1)),
        ]
        spec = model_spec(random_transformer(config, "float32"), self.pieces)
        spec.optimize()
        device = "cuda" if ctranslate2.get_cuda_device_count() else "cpu"
        with tempfile.TemporaryDirectory() as folder:
            spec.save(folder)
            self.translator = ctranslate2.Translator(folder, device=device, compute_type=precision)
        self.precision = self.translator.compute_type
        self.number_of = {piece: number for number, piece in enumerate(self.pieces)}

    def __call__(self, case: Case) -> list[list[int]]:
        ids = source_ids(self.vocab_size, case.rows)[:, :-1]  # it adds EOS
        results = self.translator.translate_batch(
            [[self.pieces[piece] for piece in row] for row in ids.tolist()],
            max_batch_size=case.rows,
            beam_size=case.beam_size,
            length_penalty=SearchOptions.length_penalty,
            min_decoding_length=TARGET_TOKENS,
            max_decoding_length=TARGET_TOKENS,
        )
        return [[self.number_of[piece] for piece in result.hypotheses[0]] for result in results]
