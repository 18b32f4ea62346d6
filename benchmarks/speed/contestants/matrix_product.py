"""The limit: this machine's float32 matrix product through XLA, at a size at which it is fast."""

import tensorflow as tf

from benchmarks.speed.contestants import Contestant, Lane
from benchmarks.speed.contestants.workload import Workload

SIZE = 2048
PRODUCTS = 4  # per step; each multiplies the previous result


def prepare(workload: Workload) -> Contestant:
    """One lane. Its work is counted in FLOPs: SIZE^3 multiplications and as many additions per product."""
    state, factor = tf.random.normal((SIZE, SIZE)), tf.random.normal((SIZE, SIZE), stddev=SIZE**-0.5)

    @tf.function(jit_compile=True)
    def product(state, factor):
        for _ in range(PRODUCTS):
            state = tf.matmul(state, factor)  # variance stays 1
        return state

    def run(steps: int) -> float:
        for _ in range(steps):
            result = product(state, factor)
        return float(result[0, 0])

    return Contestant({"gemm_peak": Lane(run, PRODUCTS * 2 * SIZE**3)})
