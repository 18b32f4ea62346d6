"""Every optimizer that `training.optimizer` may name, on four weights, with gradients that follow from the step."""

import types

import keras
import numpy as np
import tensorflow as tf

from tests.support.models import normal
from train.config.training import TrainingConfig
from train.step.optimizer import training_optimizer
from train.step.schedule_free import evaluation_weights

SHAPES = {"embedding/matrix": (7, 4), "block/kernel": (4, 6), "block/bias": (6,), "norm/gamma": (4,)}
VECTORS = ("block/bias", "norm/gamma")
OPTIONS = {  # of the keys of our table, and of classes of Keras that keep something in another way
    "adam": {"weight_decay": 0.1},
    "adamw": {"weight_decay": 0.1},
    "schedule_free": {"weight_decay": 0.1},
    "muon": {"weight_decay": 0.1},
    "lion": {"weight_decay": 0.1},
    "adafactor": {"weight_decay": 0.1},
    "Nadam": {"weight_decay": 0.1},  # keeps a number that it does not register
    "SGD": {"momentum": 0.9, "nesterov": True},
    "RMSprop": {"centered": True, "momentum": 0.5},
}
RATE = {"schedule": "warmup", "learning_rate": 0.02, "warmup_steps": 3}


def training_of(name, options=None, **changes):
    """The section [training] with an optimizer, and its OPTIONS unless others are given."""
    options = OPTIONS[name] if options is None else options
    return TrainingConfig(**RATE | changes, optimizer=name, optimizer_options=options or None)


def weights():
    """Weights with the paths and shapes of SHAPES."""
    made = []
    for path, shape in SHAPES.items():
        scope, name = path.split("/")
        with keras.name_scope(scope):
            made.append(keras.Variable(normal(*shape, seed=len(path)), name=name))
    return made


def built(name, options=None, **changes):
    """The weights and their optimizer."""
    variables = weights()
    optimizer = training_optimizer(64, training_of(name, options, **changes))
    optimizer.build(variables)
    return variables, optimizer


def gradients(step):
    return [normal(*shape, seed=10 * step + place) for place, shape in enumerate(SHAPES.values())]


def arrays(variables):
    return [np.array(variable.value) for variable in variables]


def updated(name, steps=5, xla=None, **changes):
    """Arrays of the weights and of what the optimizer keeps, after updates that are eager if xla is None."""
    variables, optimizer = built(name, **changes)
    apply = optimizer.apply if xla is None else tf.function(optimizer.apply, jit_compile=xla)
    for step in range(steps):
        apply([optimizer.scale_loss(tf.constant(gradient)) for gradient in gradients(step)])
    return arrays([*variables, *optimizer.variables])


def model_of(variables, optimizer):
    """What `evaluation_weights` reads of a model."""
    return types.SimpleNamespace(trainable_variables=variables, optimizer=optimizer)


def updated_on_replicas(strategy, name, **changes):
    """`updated` on every replica of a strategy, and the weights that translate."""
    with strategy.scope():
        variables, optimizer = built(name, **changes)

    @tf.function
    def step_of_all(parts):
        strategy.run(lambda: optimizer.apply([optimizer.scale_loss(part) for part in parts]))

    for step in range(3):
        step_of_all(list(map(tf.constant, gradients(step))))
    with evaluation_weights(model_of(variables, optimizer)):
        translating = arrays(variables)
    return [*arrays([*variables, *optimizer.variables]), *translating]
