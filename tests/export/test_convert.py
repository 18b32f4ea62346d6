"""What becomes a LiteRT file, room by room; and a folder of CTranslate2, its scores and its README.md."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.lite.python import schema_py_generated as schema

from export.ctranslate2 import convert as ctranslate2_convert
from export.litert.convert import converted, loops_of, read_as_integers, rooms_up_to, search_function
from export.litert.format import LARGEST, refuse_too_large
from export.litert.stand_ins import rounded_matrix
from export.versions import ExportError
from keras_transformer.runs.lite_folder import Room
from keras_transformer.search.options import SearchOptions
from tests.support.models import as_numpy, lively_transformer


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
    usual = tuple(Room(*room) for room in rooms)
    assert rooms_up_to(longest, extra) == usual
    assert rooms_up_to(longest, extra, constraints=True) == (*usual, Room(1, longest, is_constrained=True))


def test_a_signature_gives_each_value_by_its_own_name():
    room, loops = Room(2, 4, 6), []

    def outputs(of_loops, source_ids, n_best):
        loops.append(of_loops)
        return {
            "ids": source_ids,
            "scores": tf.cast(n_best, tf.float32),
            "is_cut": source_ids > 5,
            "is_done": n_best > 1,
        }

    search = search_function(outputs, room)
    found = search(source_ids=tf.constant([[5, 6, 3, 0], [7, 3, 0, 0]]), n_best=tf.constant([1, 2]))
    assert found["ids"].numpy().tolist() == [[5, 6, 3, 0], [7, 3, 0, 0]] and found["scores"].numpy().tolist() == [1, 2]
    assert found["is_cut"].numpy()[:, 0].tolist() == found["is_done"].numpy().tolist() == [False, True]
    assert loops == [loops_of(room)]


# CTranslate2, without its package


@pytest.mark.parametrize(
    ("alpha", "normalization", "expected"), [(0.0, "gnmt", -6.0), (1.0, "gnmt", -4.5), (1.0, "tokens", -2.0)]
)
def test_a_score_is_that_of_three_tokens_with_eos(alpha, normalization, expected):
    options = SearchOptions(length_penalty=alpha, length_normalization=normalization)
    assert ctranslate2_convert.score([-1.0, -2.0, -3.0], options) == pytest.approx(expected)


def test_a_row_is_read_to_half_a_step_of_its_own_grid_of_254_steps_and_as_before_afterwards():
    model = lively_transformer()
    embedding = model.get_layer("source_embedding")
    ids = np.arange(embedding.vocab_size).reshape(1, -1)
    exact = as_numpy(embedding(ids))[0]
    with read_as_integers(model, lambda integers: lambda: integers):
        read = as_numpy(embedding(ids))[0]
    steps = np.abs(exact).max(axis=1, keepdims=True) / 127
    assert 0 < np.abs(read - exact).max() and (np.abs(read - exact) <= 0.5001 * steps).all()
    assert np.allclose(np.abs(read).max(axis=1, keepdims=True), 127 * steps)
    assert (as_numpy(embedding(ids))[0] == exact).all()


def test_the_logits_of_chosen_pieces_are_of_rounded_rows_and_those_of_all_are_as_they_were():
    model = lively_transformer()
    embedding = model.get_layer("target_embedding")
    tokens = np.array([[5, 2, 9], [7, 7, 4]], np.int32)
    exact, chosen = (as_numpy(embedding.output_weights(each).kernel) for each in (None, tokens))
    with read_as_integers(model, lambda integers: lambda: integers):
        all_of_them, rows = (as_numpy(embedding.output_weights(each).kernel) for each in (None, tokens))
    assert (all_of_them == exact).all() and rows.shape == chosen.shape
    steps = np.abs(chosen).max(axis=-2, keepdims=True) / 127
    assert 0 < np.abs(rows - chosen).max() and (np.abs(rows - chosen) <= 0.5001 * steps).all()


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_rounded_rows_are_the_integers_of_the_converter(dtype):
    values = np.random.default_rng(1).normal(size=(2000, 32))
    matrix = values.astype(dtype).astype("float32")  # in float16 some of them become exact halves
    logits = tf.function(
        lambda states: {"logits": tf.matmul(states, matrix, transpose_b=True)},
        [tf.TensorSpec([1, 32], tf.float32, "states")],
        autograph=False,
    )
    file = schema.ModelT.InitFromPackedBuf(converted("logits", logits, "int8"), 0)
    [of_converter] = [each.data for each in file.buffers if each.data is not None and len(each.data) == matrix.size]
    integers, _ = rounded_matrix(matrix)
    np.testing.assert_array_equal(integers, of_converter.view(np.int8).reshape(matrix.shape))


@pytest.mark.parametrize(
    ("parameters", "quantization", "told"),
    [
        (LARGEST // 4, None, None),
        (LARGEST, "int8", None),
        (484_000_000, "int8", None),
        (
            484_000_000,
            None,
            "1.94 GB of weights in float32, .* at most 1.80: give --quantization int8, or export it as",
        ),
        (3_300_000_000, None, "13.20 GB of weights in float32, .* at most 1.80: export it as"),
        (3_300_000_000, "int8", "3.30 GB of weights in int8, .* at most 1.80: export it as"),
    ],
)
def test_a_model_that_no_file_can_hold_is_refused_before_it_is_converted(parameters, quantization, told):
    if told is None:
        return refuse_too_large(parameters, quantization)
    with pytest.raises(ExportError, match=f"^The model has {told} a SavedModel"):
        refuse_too_large(parameters, quantization)
