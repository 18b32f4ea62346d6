"""Weights that are made when an export is opened: what they are, which ones there are, and that no file holds them."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from export.graph.prepared import Prepared, prepared_decoder
from keras_transformer.model import Transformer
from keras_transformer.runs.kinds import incremental_decoder
from keras_transformer.search.short_vocabulary import ShortlistTable
from tests.support.models import SMALL, as_numpy, randomise

WEIGHT = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
TABLE = ShortlistTable(tf.zeros((SMALL.vocab_size, 1), "int32"), tf.zeros((5,), "int32"), 1)
D, V = SMALL.d_model, SMALL.vocab_size


class Transposed(tf.Module):
    """x -> x W^T and x (W^T + 1), by matrices that nobody computes for a request."""

    def __init__(self):
        super().__init__()
        self.weight = tf.Variable(WEIGHT)
        self.transposed = Prepared(lambda: tf.transpose(self.weight))
        self.more = Prepared(lambda: tf.transpose(self.weight) + 1)

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def product(self, x):
        return {"y": x @ self.transposed.read(), "more": x @ self.more.read()}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place, module = str(tmp_path_factory.mktemp("transposed")), Transposed()
    tf.saved_model.save(module, place, {"serving_default": module.product})
    return place


def answer_in_python(loaded, x, name="y"):
    return loaded.signatures["serving_default"](x=tf.constant(x))[name].numpy()


def test_a_session_as_a_server_has_it_makes_them_of_what_it_has_restored(folder):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        definition = tf.compat.v1.saved_model.loader.load(session, ["serve"], folder).signature_def["serving_default"]
        x = np.eye(2, dtype="float32")
        outputs = [definition.outputs[name].name for name in ("y", "more")]
        y, more = session.run(outputs, {definition.inputs["x"].name: x})
    np.testing.assert_array_equal(y, WEIGHT.T)
    np.testing.assert_array_equal(more, WEIGHT.T + 1)


def test_an_export_that_is_opened_twice_has_them_twice_and_frees_them_when_it_goes(folder):
    first, second = (tf.saved_model.load(folder) for _ in range(2))
    x = np.eye(2, dtype="float32")
    np.testing.assert_array_equal(answer_in_python(first, x), WEIGHT.T)
    first.weight.assign(10 * WEIGHT)
    first.transposed._initialize()
    np.testing.assert_array_equal(answer_in_python(first, x), 10 * WEIGHT.T)
    np.testing.assert_array_equal(answer_in_python(first, x, "more"), WEIGHT.T + 1)
    np.testing.assert_array_equal(answer_in_python(second, x), WEIGHT.T)
    held = weakref.ref(first.transposed.value)
    del first
    gc.collect()
    assert held() is None
    np.testing.assert_array_equal(answer_in_python(second, x), WEIGHT.T)


def test_a_signature_is_enough(folder):
    """As scripts write it: nothing holds the object that was loaded."""
    translate = tf.saved_model.load(folder).signatures["serving_default"]
    gc.collect()
    np.testing.assert_array_equal(translate(x=tf.constant(np.eye(2, dtype="float32")))["y"], WEIGHT.T)


def test_the_file_holds_the_weights_alone(folder):
    shapes = [shape for _, shape in tf.train.list_variables(f"{folder}/variables/variables") if shape]
    assert shapes == [[2, 2]]


OF_BLOCK, OF_LOGITS = [[D, 3 * D]], [[D, V]]


@pytest.mark.parametrize(
    ("changes", "dtype", "table", "shapes"),
    [
        ({}, "float32", None, [*OF_BLOCK * 2, *OF_LOGITS]),
        ({"attention_bias": True}, "float32", None, [*OF_BLOCK * 2, *[[3 * D]] * 2, *OF_LOGITS]),
        ({}, "bfloat16", None, [*OF_BLOCK * 2, *OF_LOGITS]),
        # each sentence has columns of its own:
        ({}, "float32", TABLE, OF_BLOCK * 2),
    ],
)
def test_what_every_search_of_an_export_reads_is_prepared_and_nothing_else(changes, dtype, table, shapes):
    transformer = randomise(Transformer(SMALL.replace(**changes), dtype=dtype))
    decoder, prepared = prepared_decoder(transformer, table)
    assert sorted(each.read().shape.as_list() for each in prepared) == sorted(shapes)
    plain = incremental_decoder(transformer)
    tokens = None if table is None else np.array([5, 3])
    leaves, found_leaves = (
        [as_numpy(leaf) for leaf in tf.nest.flatten(each.step_weights(tokens)) if leaf is not None]
        for each in (plain, decoder)
    )
    assert len(leaves) == len(found_leaves)
    for leaf, found_leaf in zip(leaves, found_leaves, strict=True):
        np.testing.assert_array_equal(found_leaf, leaf)


def test_a_step_of_an_export_reads_them_and_no_weight_in_another_form():
    transformer = Transformer(SMALL)
    plain, (decoder, prepared) = incremental_decoder(transformer), prepared_decoder(transformer, None)
    variables = [tf.function(each.step_weights).get_concrete_function().graph.variables for each in (plain, decoder)]
    assert len(variables[0]) == 7  # three matrices of each of two blocks, and the embeddings
    assert {id(variable) for variable in variables[1]} == {id(each.value) for each in prepared}
