"""What becomes a LiteRT file, room by room; and a folder of CTranslate2, its scores and its README.md."""

import importlib.util
import re
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from export.ctranslate2 import convert as ctranslate2_convert
from export.litert import convert
from export.litert.convert import converted, rooms_up_to, search_function, search_outputs
from export.versions import ExportError
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import EOS
from keras_transformer.model import Transformer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.lite_folder import Room
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import NEVER, UNFINISHED
from tests.support.places import ROOT
from tests.support.searches import arrays_of

OPTIONS = SearchOptions(beam_size=3)


@pytest.mark.parametrize(
    ("longest", "extra", "rooms"),
    [
        (16, 9, [(1, 16), (1, 16, 24), (8, 16, 24)]),
        (32, 9, [(1, 32), (1, 16, 24), (1, 24, 33), (1, 32, 41), (8, 16, 24), (8, 24, 33), (8, 32, 41)]),
        (20, 3, [(1, 20), (1, 16, 19), (1, 20, 23), (8, 16, 19), (8, 20, 23)]),
        (
            65,
            99,
            [
                (1, 32),
                (1, 65),
                (1, 16, 24),
                (1, 24, 34),
                (1, 32, 44),
                (1, 48, 64),
                (1, 64, 84),
                (1, 65, 85),
                (8, 16, 24),
                (8, 24, 34),
                (8, 32, 44),
                (8, 48, 64),
                (8, 64, 84),
            ],
        ),
    ],
)
def test_rooms_end_with_that_for_the_longest_source_and_have_room_for_what_translations_usually_need(
    longest, extra, rooms
):
    assert rooms_up_to(longest, extra) == tuple(Room(*room) for room in rooms)


@pytest.mark.parametrize("quantization", [None, "int8"])
def test_only_a_quantized_file_is_made_with_optimizations(quantization, monkeypatch):
    saved, converter = [], types.SimpleNamespace(optimizations=[], convert=lambda: b"file")

    def from_saved_model(folder, signature_keys):
        assert signature_keys == ["translate_1x16"] and saved[-1][0] == folder
        return converter

    def save(module, folder, signatures, options):
        saved.append((folder, signatures, options.experimental_custom_gradients))

    monkeypatch.setattr(tf.saved_model, "save", save)
    monkeypatch.setattr(tf.lite, "TFLiteConverter", types.SimpleNamespace(from_saved_model=from_saved_model))
    assert converted(Room(1, 16), "search", quantization) == b"file"
    assert converter.optimizations == ([] if quantization is None else [tf.lite.Optimize.DEFAULT])
    [(_, signatures, gradients)] = saved
    assert signatures == {"translate_1x16": "search"} and gradients is False  # those of swish cannot be saved


def test_a_signature_gives_each_value_by_its_own_name():
    room, positions = Room(2, 4, 6), []

    def outputs(of_loops, source_ids, n_best):
        positions.append(of_loops)
        return {
            "ids": source_ids,
            "scores": tf.cast(n_best, tf.float32),
            "is_cut": source_ids > 5,
            "is_done": n_best > 1,
        }

    search = search_function(outputs, room)
    found = search(tf.constant([[5, 6, 3, 0], [7, 3, 0, 0]]), tf.constant([1, 2]))
    assert found["ids"].numpy().tolist() == [[5, 6, 3, 0], [7, 3, 0, 0]] and found["scores"].numpy().tolist() == [1, 2]
    assert found["is_cut"].numpy()[:, 0].tolist() == found["is_done"].numpy().tolist() == [False, True]
    assert positions == [(3, 6)]


def test_what_a_search_does_not_find_has_no_score_and_one_that_has_not_ended_is_not_done(monkeypatch):
    scores = np.array([[-1.0, NEVER], [UNFINISHED, UNFINISHED], [-2.0, -3.0]], np.float32)
    asked = []

    def search(*arguments):
        asked.append(arguments)
        return "ids", tf.constant(scores), "is_cut"

    monkeypatch.setattr(convert, "search", search)
    source_ids = np.array([[5, 7, 3], [7, 7, 3], [3, 0, 0]], np.int32)
    found = search_outputs("decoder", OPTIONS, (7,), "table", (3, 6), source_ids, "n_best")
    assert (found["ids"], found["is_cut"]) == ("ids", "is_cut")
    assert np.array(found["is_done"]).tolist() == [True, False, True]
    assert np.array(found["scores"]).tolist() == [[-1.0, -np.inf], [-np.inf, -np.inf], [-2.0, -3.0]]
    [(decoder, ids, plan)] = asked
    assert decoder == "decoder" and ids is source_ids
    assert (plan.options, plan.static_shapes, plan.positions, plan.shortlist) == (OPTIONS, True, (3, 6), "table")
    rules = arrays_of(plan.rules)
    assert rules["n_best"] == "n_best"
    assert np.array(rules["placeholders"]).tolist() == [[[7, 1]], [[7, 2]], [[7, 0]]]


# CTranslate2, without its package


class Scored:
    """In place of ctranslate2.Translator: each target token has the log-probability -0.5, and so has EOS."""

    def __init__(self, folder):
        self.folder = folder

    def score_batch(self, sources, targets, **limits):
        Scored.asked = self.folder, sources, targets, limits
        return [types.SimpleNamespace(log_probs=[-0.5] * (len(target) + 1)) for target in targets]


@pytest.fixture
def package(monkeypatch):
    """What takes the place of the package ctranslate2, and of what writes weights by it."""
    kinds = types.SimpleNamespace(ACCEPTED_MODEL_TYPES=("int8", "float16"))
    package = types.SimpleNamespace(__version__="9.9", Translator=Scored)
    spec = types.SimpleNamespace(SINUSOIDS=2048)
    for name, module in {
        "ctranslate2": package,
        "ctranslate2.specs": types.ModuleType("specs"),
        "ctranslate2.specs.model_spec": kinds,
        "export.ctranslate2.spec": spec,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: name)
    return spec


def test_only_a_quantization_that_ctranslate2_has_is_taken(package, monkeypatch):
    for kind in (None, "int8", "float16"):
        ctranslate2_convert.require(kind)
    with pytest.raises(ExportError, match="--quantization int7 does not exist; CTranslate2 has int8, float16"):
        ctranslate2_convert.require("int7")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ExportError, match=f"not installed: run `pip install {ctranslate2_convert.PACKAGE}`"):
        ctranslate2_convert.require(None)
    pinned = (ROOT / "requirements-peers.txt").read_text(encoding="utf-8")
    assert re.search(rf"^{ctranslate2_convert.PACKAGE} ", pinned, re.MULTILINE)


@pytest.mark.parametrize("quantization", [None, "int8"])
def test_the_folder_has_the_weights_in_the_type_that_is_asked_for_and_every_sentencepiece_model(
    quantization, package, tmp_path
):
    done = []
    written = types.SimpleNamespace(
        optimize=lambda quantization=None: done.append(quantization), save=lambda folder: done.append(folder)
    )
    package.model_spec = lambda transformer, tokenizer: done.append(tokenizer) or written
    tokenizer = types.SimpleNamespace(sentencepiece_models={"source.spm": b"a", "target.spm": b"b"})
    model = Transformer.__new__(Transformer)
    ctranslate2_convert.write_model(model, tokenizer, tmp_path, quantization)
    assert done == [tokenizer, quantization, str(tmp_path)]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == tokenizer.sentencepiece_models
    recurrent = types.SimpleNamespace(model_config=types.SimpleNamespace(kind="recurrent"))
    with pytest.raises(ExportError, match="of the kind 'recurrent'; CTranslate2 has Transformers only"):
        ctranslate2_convert.write_model(recurrent, tokenizer, tmp_path)


class Letters:
    """A tokenizer of one piece per letter."""

    sentencepiece_models = {"tokenizer.model": b""}

    def pieces(self):
        return ["<pad>", "<unk>", "<s>", "</s>", *"abcdefgh"]

    def encode(self, line):
        return [self.pieces().index(letter) for letter in line]


def translating(answers, **more):
    return types.SimpleNamespace(tokenizer=Letters(), translate=lambda lines: answers, **more)


def test_the_translations_are_scored_without_their_end_and_after_sources_that_are_cut(package, tmp_path):
    options = SearchOptions(length_penalty=1.0, length_normalization="tokens")
    answers = [Translation("a", -0.5, (4, EOS)), Translation("", 0.0), Translation("bc", -0.75, (5, 6))]
    translator = translating(answers, options=options, max_source_tokens=4)
    found = ctranslate2_convert.compare_scores(tmp_path, translator, ["abcdef", "", "gh"])
    folder, sources, targets, limits = Scored.asked
    assert folder == str(tmp_path) and limits["max_input_length"] == 0  # no limit, which would cut translations too
    assert sources == [["a", "b", "c"], ["g", "h"]] and targets == [["a"], ["b", "c"]]
    assert found == (2, 0.25, "gh")  # -0.5 per token


@pytest.mark.parametrize(
    ("alpha", "normalization", "expected"), [(0.0, "gnmt", -6.0), (1.0, "gnmt", -4.5), (1.0, "tokens", -2.0)]
)
def test_a_score_is_that_of_three_tokens_with_eos(alpha, normalization, expected):
    options = SearchOptions(length_penalty=alpha, length_normalization=normalization)
    assert ctranslate2_convert.score([-1.0, -2.0, -3.0], options) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("config", "rows"), [({}, 2048), ({"positions": "learned", "max_positions": 50}, 50)], ids=["sinusoids", "learned"]
)
@pytest.mark.parametrize("has_map", [False, True])
def test_the_readme_has_the_rows_of_the_table_and_the_shortlist_if_there_is_one(
    config, rows, has_map, package, tmp_path
):
    if has_map:
        (tmp_path / "vmap.txt").touch()
    translator = translating([], options=SearchOptions(beam_size=3), max_source_tokens=60)
    shape = TransformerConfig(vocab_size=12, **config)
    ctranslate2_convert.write_readme(tmp_path, "mine", translator, shape)
    text = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert text.startswith("# mine\n") and "CTranslate2 9.9" in text and "beam_size=3" in text
    assert f"Positions in the table: {rows}." in text and f"max_input_length={min(60, rows)}" in text
    assert ("use_vmap=True" in text) is has_map
