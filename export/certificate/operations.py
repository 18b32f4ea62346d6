"""Which TensorFlow is old enough to run an export: a server's version is older than that of who trains."""

OLDEST = "2.12"  # what the names below were looked up in: the registry of its C++ runtime, with tensorflow-text 2.12
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
    Transpose UnicodeTranscode Unpack UnsortedSegmentSum VarHandleOp Where While
    Pad Split ZerosLike
    """.split()
)  # the last line is of TensorFlow 1.0, whose operations every later version has


def oldest_tensorflow(operations: set[str], own: str) -> str:
    """Return the oldest TensorFlow that is known to have these operations; `own` is the version that wrote them."""
    return OLDEST if operations <= OF_OLDEST else own
