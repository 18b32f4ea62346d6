"""What XLA compiles of a training step: all of it, or all but its matrix products."""

from collections.abc import Callable

import tensorflow as tf

PRODUCTS = ("MatMul", "BatchMatMulV2")  # TensorFlow's operations that multiply matrices


def graph_of(function: Callable, xla: bool, xla_multiplies: bool = True) -> Callable:
    """The function as a graph of TensorFlow, which XLA compiles if `xla`, on one device.

    xla_multiplies: False leaves each matrix product to TensorFlow, and XLA compiles each stretch between them.
    """
    if not xla or xla_multiplies:
        return tf.function(function, jit_compile=xla)

    def between_products(*arguments):
        with tf.xla.experimental.jit_scope(compile_ops=lambda node: node.op not in PRODUCTS):
            return function(*arguments)

    return tf.function(between_products)
