"""Checks of a written version: it translates as the Translator does, and needs no XLA."""

import pathlib
from typing import NamedTuple

from tensorflow.core.protobuf import meta_graph_pb2, saved_model_pb2

from keras_transformer.translation import Translation

from ..versions import SAVED_MODEL, ExportError

# Scores closer than this are equal, and of scores below -1 those closer than this share of the score: rounding decides
# between their texts. In bfloat16 a logit has 8 bits, and batches of other sizes round otherwise.
TIES = {"float32": 1e-4, "bfloat16": 0.1}


class Difference(NamedTuple):
    """A line that the export and the Translator translate differently, numbered from 1."""

    number: int
    line: str
    exported: Translation
    expected: Translation

    def __str__(self):
        return (
            f"line {self.number}, {shortened(self.line)}: "
            f"{shortened(self.exported.text)} with score {self.exported.score:.6f} from the export, "
            f"{shortened(self.expected.text)} with score {self.expected.score:.6f} from the Translator"
        )


class Comparison(NamedTuple):
    """How many lines two translators agree on.

    same: equal text and score. ties: equal score, another text. differences: another score.
    """

    same: int
    ties: int
    differences: list[Difference]


def compare(
    exported: list[Translation], translated: list[Translation], lines: list[str], tie: float = TIES["float32"]
) -> Comparison:
    """Compare two translations of each of `lines`.

    Scores s and t are equal if |s - t| < tie max(1, |t|): a sum of large parts, as with a large coverage penalty, is
    rounded in proportion.
    """
    same, ties, differences = 0, 0, []
    for number, (found, expected) in enumerate(zip(exported, translated, strict=True), start=1):
        largest = tie * max(1.0, abs(expected.score))
        if not abs(found.score - expected.score) < largest:  # written so that NaN is a difference
            differences.append(Difference(number, lines[number - 1], found, expected))
        elif found.text == expected.text:
            same += 1
        else:
            ties += 1
    return Comparison(same, ties, differences)


def refuse_xla(version: pathlib.Path) -> None:
    """Raise ExportError if a version needs XLA, which TensorFlow Serving switches off."""
    if found := xla_in(meta_graph(version)):
        raise ExportError(f"The graph needs XLA, which a server does not have: {', '.join(sorted(found))}.")


def meta_graph(version: pathlib.Path) -> meta_graph_pb2.MetaGraphDef:
    """Return the graph, function library and signatures of a version folder."""
    saved = saved_model_pb2.SavedModel.FromString((version / SAVED_MODEL).read_bytes())
    return saved.meta_graphs[0]


def xla_in(graph: meta_graph_pb2.MetaGraphDef) -> set[str]:
    """Return what in a graph needs XLA: names of operations, and attributes that demand compilation."""
    functions = graph.graph_def.library.function
    operations = {name for name in operations_in(graph) if name.lstrip("_").startswith("Xla")}
    owners = (*nodes_in(graph), *functions)
    return operations | {name for owner in owners for name in owner.attr if name == "_XlaMustCompile"}


def operations_in(graph: meta_graph_pb2.MetaGraphDef) -> set[str]:
    """Return the names of the operations in a graph and in its functions, without those functions themselves."""
    own = {function.signature.name for function in graph.graph_def.library.function}
    return {node.op for node in nodes_in(graph)} - own


def nodes_in(graph: meta_graph_pb2.MetaGraphDef) -> list:
    functions = graph.graph_def.library.function
    return [*graph.graph_def.node, *(node for function in functions for node in function.node_def)]


def plural(count: int, noun: str) -> str:
    return noun if count == 1 else noun + "s"


def shortened(text: str, limit: int = 60) -> str:
    """Return `text` in quotes, with dots in place of what exceeds `limit` characters."""
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
