"""Trainings with an inspected step and without one."""

import math

from tests.support.models import as_numpy
from tests.support.training import momenta_of, train, weights_of


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
