"""Muon and Adafactor against what they are defined by, and against Keras' own classes."""

import keras
import numpy as np
import pytest

from keras_transformer.runs.kinds import build_model
from tests.support.models import SMALL, as_numpy, assert_close, normal
from tests.support.optimizers import SHAPES, arrays, built, gradients, training_of, weights
from train.step.matrix_optimizers import Muon
from train.step.optimizer import training_optimizer


@pytest.mark.parametrize("shape", [(16, 16), (16, 40), (40, 16)])
def test_muon_makes_all_singular_values_of_a_kernels_update_about_1_and_turns_nothing(shape):
    """Five steps of Newton and Schulz end between 0.68 and 1.14 for values that are not tiny (Jordan et al. 2024)."""
    kernel = keras.Variable(np.zeros(shape, "float32"), name="kernel")
    optimizer = training_optimizer(64, training_of("muon", {}, schedule="constant", learning_rate=0.5))
    optimizer.build([kernel])
    gradient = normal(*shape)
    optimizer.apply([gradient])
    update = -as_numpy(kernel) / (0.5 * 0.2 * max(shape) ** 0.5)
    left, _, right = np.linalg.svd(gradient, full_matrices=False)
    turned = left.T @ update @ right.T
    assert (0.6 < np.diag(turned)).all() and (np.diag(turned) < 1.25).all()
    assert_close(turned - np.diag(np.diag(turned)), np.zeros_like(turned), atol=1e-4)


def test_muon_takes_adamw_for_what_is_no_kernel():
    variables, optimizer = built("muon", {"weight_decay": 0.1})
    others = weights()
    adamw = keras.optimizers.AdamW(training_rate(), weight_decay=0.1, epsilon=1e-7)
    adamw.exclude_from_weight_decay(var_list=[each for each in others if len(each.shape) < 2])
    adamw.build(others)
    for step in range(3):
        optimizer.apply(gradients(step))
        adamw.apply(gradients(step))
    for path, one, other in zip(SHAPES, variables, others, strict=True):
        if path != "block/kernel":
            assert_close(one, other)
    assert sum("velocity" in variable.path for variable in optimizer.variables) == len(SHAPES) - 1


def training_rate():
    return training_optimizer(64, training_of("adam", {}))._learning_rate


def test_every_kernel_of_a_model_is_a_matrix_and_no_embedding_is_a_kernel():
    muon = Muon()
    for changes in ({}, {"tied_logits": False}, {"shared_embeddings": False}, {"positions": "relative"}):
        model = build_model(SMALL.replace(**changes))
        of_muon = [weight.path for weight in model.weights if not muon._should_use_adamw(weight)]
        inside = [w.path for w in model.weights if "block" in w.path and len(w.shape) == 2]
        assert of_muon == inside
        assert all(len(weight.shape) == 2 for weight in model.weights if weight.name.endswith("kernel"))


def test_adafactor_updates_as_keras_own_class_does_without_a_second_moment_of_the_size_of_a_matrix():
    variables, optimizer = built("adafactor", {})
    others = weights()
    theirs = keras.optimizers.Adafactor(training_rate())
    theirs.build(others)
    for step in range(4):
        optimizer.apply(gradients(step))
        theirs.apply(gradients(step))
        for one, other in zip(variables, others, strict=True):
            assert_close(one, other)
    kept = {variable.name: tuple(variable.shape) for variable in optimizer.variables}
    assert kept.pop("iteration") == ()
    assert kept == {
        "embedding_matrix_rows": (7,),
        "embedding_matrix_columns": (4,),
        "block_kernel_rows": (4,),
        "block_kernel_columns": (6,),
        "block_bias_velocity": (6,),
        "norm_gamma_velocity": (4,),
    }
    assert any(array.any() for array in arrays(optimizer.variables))
