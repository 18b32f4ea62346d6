"""The graph of a model for TensorBoard's graph tab."""

from collections.abc import Callable

import keras
import tensorflow as tf
from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_BLOB_SEQUENCE, Summary, SummaryMetadata
from tensorboard.plugins.graph import metadata
from tensorboard.util.tensor_util import make_tensor_proto

from ..config.training import RowLengths


def graph_summary(model: keras.Model, rows: int, row_lengths: RowLengths) -> Summary:
    """Return the operations of a Transformer on a batch, without training, as TensorBoard's form of a run's graph.

    Their names begin with the names of layers and sublayers, so that the tab shows a box for each: "embedding",
    "encoder_block_1" and so on. A layer that is called again has "_1" at the end of its name.

    rows, row_lengths: of the batch. Shapes that are known make it half as large.
    """
    lengths = {"source": row_lengths.source, "target": row_lengths.target}
    specs = {
        name: tf.TensorSpec((rows, lengths[name.partition("_")[0]]), value.dtype, name=name)
        for name, value in model.input.items()
    }

    @tf.function(autograph=False)
    def call(inputs):
        return model.call(inputs, training=False)  # __call__ would put one box, of the model, around all

    graph_def = call.get_concrete_function(specs).graph.as_graph_def(add_shapes=True)
    drop_waiting(graph_def)
    move_weights_into_layers(graph_def)
    name_boxes_after_layers(graph_def, model)
    value = Summary.Value(
        tag=metadata.RUN_GRAPH_NAME,
        metadata=SummaryMetadata(
            plugin_data=SummaryMetadata.PluginData(plugin_name=metadata.PLUGIN_NAME),
            data_class=DATA_CLASS_BLOB_SEQUENCE,
        ),
        tensor=make_tensor_proto([graph_def.SerializeToString()]),
    )
    return Summary(value=[value])


def drop_waiting(graph_def: tf.compat.v1.GraphDef) -> None:
    """Remove what only makes operations wait for others: it would be an edge of every box."""
    kept = [node for node in graph_def.node if node.op != "NoOp"]
    for node in kept:
        node.input[:] = [source for source in node.input if not source.startswith("^")]
    del graph_def.node[:]
    graph_def.node.extend(kept)


def move_weights_into_layers(graph_def: tf.compat.v1.GraphDef) -> None:
    """Rename what stands for a weight after the operation that first reads it; TensorFlow names it outside of layers.

    A weight that is read in several places, such as shared embeddings, is in the box of the first one.
    """
    weights = {node.name for node in graph_def.node if node.op == "Placeholder" and is_resource(node)}
    names = {}
    for node in graph_def.node:
        for source in weights.intersection(node.input):
            names.setdefault(source, f"{node.name}/weight")
    rename(graph_def, lambda name: names.get(name, name))


def is_resource(node: tf.compat.v1.NodeDef) -> bool:
    return node.attr["dtype"].type == tf.resource.as_datatype_enum


def name_boxes_after_layers(graph_def: tf.compat.v1.GraphDef, model: keras.Model) -> None:
    """Give the first call of a layer the layer's own name, and the next one the same with "_1".

    Keras opens the scope of a layer twice per call, to build it and to compute it, and TensorFlow numbers scopes: the
    first call has "_1" at its end, the second one "_3".
    """
    layers = {layer.name for layer in model.layers}
    layers |= {name for weight in model.weights for name in weight.path.split("/")[:-1]}  # of sublayers too

    def name_of(scope: str) -> str:
        layer, _, number = scope.rpartition("_")
        if layer not in layers or not number.isdecimal():
            return scope
        return f"{layer}_{int(number) // 2}" if int(number) > 1 else layer

    rename(graph_def, lambda name: "/".join(map(name_of, name.split("/"))))


def rename(graph_def: tf.compat.v1.GraphDef, new_name: Callable[[str], str]) -> None:
    """Rename all nodes, also where they are inputs: "name", or "name:1" for another output."""
    for node in graph_def.node:
        node.name = new_name(node.name)
        for number, source in enumerate(node.input):
            name, colon, output = source.partition(":")
            node.input[number] = f"{new_name(name)}{colon}{output}"
