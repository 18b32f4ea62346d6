"""Whether the required phrases of a request were forced on the model: an output of the local server, not of the graph.

It takes a second search, without the phrases, of lines whose translations are so improbable that they may have been.
"""

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from keras_transformer.decoding.scores import NEVER
from keras_transformer.text.required import loss_allowed

from ..graph.request import REQUIRED
from .protection import FORCED, as_array, of_rows, phrases_in
from .signature import Arrays, Signature, Tensor

LOG_PROBABILITIES = "log_probabilities"  # an output of the graph

Compute = Callable[[tuple[str, ...], Arrays], Arrays]


def with_forced(signature: Signature) -> Signature:
    """Return the signature `translate` of a graph that takes phrases with FORCED; another signature as it is."""
    if signature.name != "translate" or REQUIRED.name not in signature.inputs:
        return signature
    shape = signature.outputs[LOG_PROBABILITIES].shape
    return signature._replace(outputs=signature.outputs | {FORCED: Tensor("", tf.bool, shape)})


def run_forced(compute: Compute, outputs: tuple[str, ...], inputs: Arrays) -> Arrays:
    """Return outputs of a batch of lines with FORCED, bool (B, K). compute: from names of the others and inputs."""
    others = (name for name in outputs if name != FORCED)
    found = compute(tuple(dict.fromkeys([*others, LOG_PROBABILITIES])), inputs)
    log_probs = found[LOG_PROBABILITIES]  # (B, K)
    allowed = np.array([loss_allowed(phrases_in(required)) for [required] in of_rows(inputs, (REQUIRED,))])
    forced, doubtful = np.zeros(log_probs.shape, bool), np.flatnonzero((allowed > 0) & (log_probs[:, 0] < -allowed))
    if len(doubtful):
        is_for_all = {name: len(values) == 1 for name, values in inputs.items()}
        rows = {name: values if is_for_all[name] else values[doubtful] for name, values in inputs.items()}
        free = compute((LOG_PROBABILITIES,), rows | {REQUIRED.name: as_array([b""])})[LOG_PROBABILITIES][:, :1]
        is_lost = free - log_probs[doubtful] > allowed[doubtful, np.newaxis]
        forced[doubtful] = is_lost & (log_probs[doubtful] > NEVER / 2)
    return {name: found[name] if name in found else forced for name in outputs}
