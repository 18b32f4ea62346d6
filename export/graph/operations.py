"""The operations of a written version: which TensorFlow has them, and that none needs XLA."""

import pathlib

from tensorflow.core.framework import node_def_pb2
from tensorflow.core.protobuf import meta_graph_pb2

from keras_transformer.translation.exported import meta_graph

from ..versions import ExportError

OLDEST = "2.12"  # its C++ runtime, with tensorflow-text 2.12, has all operations below in its registry
OF_OLDEST = frozenset(
    """
    AddV2 All Any ArgMax AsString Assert AssignVariableOp BatchMatMulV2 BiasAdd BitwiseXor BroadcastTo Cast
    ConcatV2 Const Cos Cumsum DisableCopyOnRead Einsum Equal Erf Exp ExpandDims Fill FloorDiv FloorMod
    GatherV2 Greater GreaterEqual Identity If IsFinite Less LessEqual Log LogSoftmax LogicalAnd LogicalNot
    LogicalOr MatMul MatrixDiagV3 Max Maximum Mean MergeV2Checkpoints Minimum Mul Neg NoOp NotEqual OneHot
    OnesLike Pack PartitionedCall Placeholder PlaceholderWithDefault Pow Prod RaggedGather RaggedRange
    RaggedTensorToTensor Range ReadVariableOp RealDiv ReduceJoin Relu Reshape RestoreV2 RightShift Rsqrt
    SaveV2 ScatterNd Select SelectV2 SentencepieceDetokenizeOp SentencepieceIdToStringOp SentencepieceOp
    SentencepieceTokenizeOp Shape ShardedFilename Sigmoid Sin Size Softmax Softplus SplitV Sqrt Square
    SquaredDifference Squeeze StatefulPartitionedCall StatelessIf StatelessWhile StaticRegexFullMatch
    StopGradient StridedSlice StringJoin StringLength StringStrip Sub Substr Sum Tanh TensorListFromTensor
    TensorListGetItem TensorListReserve TensorListSetItem TensorListStack TensorScatterUpdate Tile TopKV2
    Transpose UnicodeTranscode Unpack UnsortedSegmentProd UnsortedSegmentSum VarHandleOp Where While
    RaggedTensorFromVariant RaggedTensorToVariant StaticRegexReplace UnicodeDecode UnicodeEncode Unique
    Pad Split ZerosLike
    HashTableV2 LookupTableFindV2 LookupTableImportV2 StaticRegexReplace
    DenseBincount GatherNd Min PadV2 StringLower StringSplitV2 UnsortedSegmentJoin UnsortedSegmentMax
    UnsortedSegmentMin StringUpper NormalizeUTF8
    """.split()
)  # those of the last four lines are of TensorFlow 2.4, and tensorflow-text 2.4, or older


def refuse_xla(version: pathlib.Path) -> None:
    """Raise ExportError if a version needs XLA, which TensorFlow Serving switches off."""
    if names := xla_in(meta_graph(version)):
        raise ExportError(f"The graph needs XLA, which a server does not have: {', '.join(sorted(names))}.")


def xla_in(graph: meta_graph_pb2.MetaGraphDef) -> set[str]:
    """Return what in a graph needs XLA: names of operations, and of attributes that demand compilation."""
    functions = graph.graph_def.library.function
    operations = {name for name in operations_in(graph) if name.lstrip("_").startswith("Xla")}
    owners = (*nodes_in(graph), *functions)
    return operations | {name for owner in owners for name in owner.attr if name == "_XlaMustCompile"}


def operations_in(graph: meta_graph_pb2.MetaGraphDef) -> set[str]:
    """Return the names of the operations in a graph and in its functions, without those functions themselves."""
    own = {function.signature.name for function in graph.graph_def.library.function}
    return {node.op for node in nodes_in(graph)} - own


def nodes_in(graph: meta_graph_pb2.MetaGraphDef) -> list[node_def_pb2.NodeDef]:
    """Return the nodes of a graph and of its functions."""
    functions = graph.graph_def.library.function
    return [*graph.graph_def.node, *(node for function in functions for node in function.node_def)]


def oldest_tensorflow(operations: set[str], own: str) -> str:
    """Return the oldest TensorFlow that is known to have these operations; `own` is the version that wrote them."""
    return OLDEST if operations <= OF_OLDEST else own
