"""Loops of a written version as calls of functions, which take less time per operation than loops within a graph."""

import pathlib

from tensorflow.core.protobuf import saved_model_pb2

from ..versions import SAVED_MODEL
from .operations import nodes_in

LOOPS = {"While", "StatelessWhile"}
LOWERED = "_lower_using_switch_merge"  # what TensorFlow sets: a loop becomes Switch, Merge and NextIteration


def keep_loops_whole(version: pathlib.Path) -> None:
    """Let each loop of a version stay one operation, which calls the functions of its condition and of its body.

    Then the operations of a body are started by an executor that knows nothing of loops: it keeps no books of
    iterations, and what does not change in a loop is not carried around it.
    """
    file = version / SAVED_MODEL
    saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
    for graph in saved.meta_graphs:
        for node in nodes_in(graph):
            if node.op in LOOPS:
                node.attr[LOWERED].b = False
    file.write_bytes(saved.SerializeToString())
