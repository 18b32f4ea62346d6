"""Which TensorFlow runs a graph is known from its operations."""

from export.graph.operations import OF_OLDEST, OLDEST, oldest_tensorflow


def test_an_operation_that_the_oldest_tensorflow_is_not_known_to_have_needs_the_own_one():
    assert oldest_tensorflow({"MatMul", "While"}, "2.99") == OLDEST
    assert oldest_tensorflow({"MatMul", "BrandNewOp"}, "2.99") == "2.99"
    assert oldest_tensorflow({*OF_OLDEST}, "2.99") == oldest_tensorflow(set(), "2.99") == OLDEST
