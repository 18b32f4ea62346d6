"""Trainings with an inspected step and without one."""

import math

import numpy as np

from tests.support.models import as_numpy
from tests.support.training import momenta_of, train, weights_of
from train.step.layer_charts import histograms, update_ratios


def three_steps(model, inspects):
    """Logs, weights and moments of three steps, of which the second alone is inspected if `inspects`, and that one."""
    logs = train(model, 0, 1)
    model.inspects = inspects
    logs += train(model, 1, 2)
    inspected, model.inspects = model.inspected, False
    logs += train(model, 2, 3)
    return logs, [*weights_of(model), *momenta_of(model)], inspected


def norm(tensors):
    return math.sqrt(sum((as_numpy(tensor) ** 2).sum() for tensor in tensors))


def on_replicas(model):
    """What is to be asserted of an inspected step on several replicas."""
    start = [np.array(variable.value) for variable in (*model.variables, *model.optimizer.variables)]
    _, plain, _ = three_steps(model, False)
    for variable, value in zip((*model.variables, *model.optimizer.variables), start, strict=True):
        variable.assign(value)
    logs, values, inspected = three_steps(model, True)
    return {
        "is_same": all((one == other).all() for one, other in zip(plain, values, strict=True)),
        "norms": [norm(inspected.gradients), logs[1]["gradient_norm"]],
        "ratios": len(update_ratios(model, inspected)),
        "histograms": len(histograms(model, inspected).value),
    }
