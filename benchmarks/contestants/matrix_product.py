"""The limit: the float32 matrix product of this machine, through XLA, at a size where it is fastest."""

import tensorflow as tf

from benchmarks.contestants import Contestant, Lane

SIZE = 2048
PRODUCTS = 4  # of a step, each of the result before


def prepare(workload):
    """One lane, whose work is counted in FLOPs: two, one to multiply and one to add, for each of SIZE^3."""
    state, factor = tf.random.normal((SIZE, SIZE)), tf.random.normal((SIZE, SIZE), stddev=SIZE**-0.5)

    @tf.function(jit_compile=True)
    def product(state, factor):
        for _ in range(PRODUCTS):
            state = tf.matmul(state, factor)  # variance stays 1
        return state

    def run(steps):
        for _ in range(steps):
            result = product(state, factor)
        return float(result[0, 0])

    return Contestant({"gemm_peak": Lane(run, PRODUCTS * 2 * SIZE**3)})
