"""Holding what was written against what it was made from."""

from typing import NamedTuple

from tensorflow.core.protobuf import saved_model_pb2

from export.versions import SAVED_MODEL, ExportError

TIE = 1e-4  # two scores closer than this are one: rounding decides between their texts


class Difference(NamedTuple):
    """A line that an export translates otherwise than the Translator, numbered from 1."""

    number: int
    line: str
    exported: object  # has text and score
    expected: object  # the same

    def __str__(self):
        return (
            f"line {self.number}, {shortened(self.line)}: "
            f"{shortened(self.exported.text)} with score {self.exported.score:.6f} from the export, "
            f"{shortened(self.expected.text)} with score {self.expected.score:.6f} from the Translator"
        )


class Comparison(NamedTuple):
    """How many lines two translators agree on.

    ties: lines whose texts differ, but whose scores do not, by TIE. differences: those that differ in more, or in
    the score of the same text.
    """

    same: int
    ties: int
    differences: list

    def __str__(self):
        lines, ties, different = self.same + self.ties + len(self.differences), self.ties, len(self.differences)
        return (
            f"compared {lines} {plural(lines, 'line')}: {self.same} the same, {ties} {plural(ties, 'tie')}, "
            f"{different} different"
        )


def compare(exported, translator, lines):
    """Translate `lines` with both, anything that has `translate(lines)`. Returns a Comparison."""
    same, ties, differences = 0, 0, []
    pairs = zip(exported.translate(lines), translator.translate(lines), strict=True)
    for number, (found, expected) in enumerate(pairs, start=1):
        if not abs(found.score - expected.score) < TIE:  # also where one of them is NaN
            differences.append(Difference(number, lines[number - 1], found, expected))
        elif found.text == expected.text:
            same += 1
        else:
            ties += 1
    return Comparison(same, ties, differences)


def refuse_xla(version):
    """Raises ExportError where a version needs XLA, which TensorFlow Serving switches off."""
    if found := xla_in(meta_graph(version)):
        raise ExportError(f"The graph needs XLA, which a server does not have: {', '.join(sorted(found))}.")


def meta_graph(version):
    """The MetaGraphDef of a version folder: graph, function library, signatures."""
    saved = saved_model_pb2.SavedModel.FromString((version / SAVED_MODEL).read_bytes())
    return saved.meta_graphs[0]


def xla_in(graph):
    """What in a MetaGraphDef needs XLA: the names of operations, and attributes that demand to be compiled."""
    functions = graph.graph_def.library.function
    nodes = [*graph.graph_def.node, *(node for function in functions for node in function.node_def)]
    operations = {node.op for node in nodes if node.op.lstrip("_").startswith("Xla")}
    attributes = {name for owner in (*nodes, *functions) for name in owner.attr if name == "_XlaMustCompile"}
    return operations | attributes


def plural(count, noun):
    return noun if count == 1 else noun + "s"


def shortened(text, limit=60):
    return repr(text if len(text) <= limit else text[: limit - 3] + "...")
