"""A training of seconds that several tests share: sentences to copy, a model of 16 dimensions, and its steps."""

import collections
import functools

import keras
import numpy as np
import tensorflow as tf

from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import EOS
from keras_transformer.inspection.bleu import Score, Scores
from keras_transformer.runs.kinds import build_model
from keras_transformer.runs.run_folder import RunFolder
from tests.support.optimizers import arrays
from train.config.run import RunConfig
from train.config.training import TrainingConfig
from train.data.batches import PackedBatches, training_dataset
from train.data.encoding import EncodedPairs, Sentences
from train.loop.checkpoints import Checkpoints
from train.loop.fit import fit
from train.loop.progress import Progress
from train.step.training_model import compiled
from train.validation.validation import Sample, Validation
from train.workers.strategy import distributed
from train.workers.workers import Workers

TINY = TransformerConfig(vocab_size=23, encoder_layers=1, decoder_layers=1, d_model=16, d_ff=24, num_heads=2)
TRAINING = TrainingConfig(tokens_per_batch=64, row_length=16, warmup_steps=20, xla=False, precision="float32")


def copying_pairs(count=60):
    """Sentences of 2 to 6 tokens and EOS, each its own translation."""
    rng = np.random.default_rng(0)
    sentences = [[*map(int, rng.integers(4, TINY.vocab_size, rng.integers(2, 7))), EOS] for _ in range(count)]
    return EncodedPairs(Sentences.of(sentences, np.uint16), Sentences.of(sentences, np.uint16), collections.Counter())


PAIRS = copying_pairs()
ORDER = 3  # the seed of their shuffling
BATCHES = PackedBatches(PAIRS, TRAINING.tokens_per_batch, TRAINING.row_lengths, ORDER)  # its first batch has padding


def tensors(batch):
    return {name: tf.constant(ids) for name, ids in batch.items()}


def training_model(dropout=0.0, weights_seed=1, config=TINY, **training):
    """A TrainingModel ready for its first step; `training` changes fields of TRAINING."""
    training = TRAINING.model_copy(update=training)
    keras.utils.set_random_seed(weights_seed)
    transformer = build_model(config.replace(dropout=dropout), dtype=training.precision)
    return compiled(transformer, training, tf.distribute.get_strategy())


class Reusable:
    """A TrainingModel whose step is traced once for several trainings, which takes seconds."""

    def __init__(self, model):
        self.model = model
        self.variables = [*model.variables, *model.optimizer.variables]
        self.start = [np.array(variable.value) for variable in self.variables]

    def from_the_start(self):
        """The model as it was given. It is the same object every time, so keep `weights_of` it, not itself."""
        for variable, value in zip(self.variables, self.start, strict=True):
            variable.assign(value)
        self.model.wants_to_stop = self.model.inspects = False
        return self.model


@functools.cache
def reusable(**arguments):
    return Reusable(training_model(**arguments))


class Logs(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.steps = []

    def on_train_batch_end(self, batch, logs=None):
        self.steps.append({name: float(value) for name, value in logs.items()})


def train(model, first, last, batches=BATCHES):
    """Do the steps first .. last - 1 with `fit`, as train/run.py does. Returns the logs of each."""
    logs = Logs()
    dataset = distributed(training_dataset(batches, first, last), model.distribute_strategy)
    model.fit(dataset, steps_per_epoch=last - first, shuffle=False, verbose=0, callbacks=[logs])
    return logs.steps


def assert_stopped_ends_as_uninterrupted(model, folder):
    """Four updates, and two with two from a checkpoint in `folder`, have the same logs and end in the same bits."""
    everything = [*model.weights, *model.optimizer.variables]
    start, logs = arrays(everything), train(model, 0, 4)
    straight = arrays(everything)
    for variable, value in zip(everything, start, strict=True):
        variable.assign(value)
    Checkpoints(folder).save(model, model.optimizer, Progress(0))
    assert train(model, 0, 2) == logs[:2]
    Checkpoints(folder).save(model, model.optimizer, Progress(2))
    for variable in everything:
        variable.assign(np.full(variable.shape, 7))
    assert Checkpoints(folder).restore_latest(model, model.optimizer) == Progress(2)
    assert train(model, 2, 4) == logs[2:]
    for one, other in zip(arrays(everything), straight, strict=True):
        np.testing.assert_array_equal(one, other)


def weights_of(model):
    return [np.asarray(weight.value) for weight in model.weights]


def weights_by_path(model):
    return dict(zip([weight.path for weight in model.weights], weights_of(model), strict=True))


def assert_same_weights(weights, others):
    """Bit for bit."""
    for one, other in zip(weights, others, strict=True):
        np.testing.assert_array_equal(one, other)


def momenta_of(model):
    """What the optimizer remembers of every weight: both moments, whose scale Adam's updates hide, and any average."""
    return [np.asarray(variable.value) for variable in model.optimizer.variables if len(variable.shape)]


def scores_of(bleu=0.0, exact=0.0, chrf=0.0, undefined=""):
    """Scores with these numbers, of one sentence."""
    measured = (Score("BLEU", "raw text", bleu, "tok:13a", undefined), Score("chrF", "raw text", chrf, "nc:6"))
    return Scores(measured, exact, sentences=1)


def no_validation():
    """Stands for a Validator: a Validation of nothing."""
    return Validation(1.0, 1.0, 0.5, scores_of(), [Sample("a", "b", "c")])


def fit_in(folder, model, batches=BATCHES, validate=no_validation, **training):
    """`fit` in a run folder from where it stands; `training` changes fields of TRAINING. Returns the Progress."""
    folder.mkdir(exist_ok=True)
    alone = Workers(tf.distribute.get_strategy())
    config = RunConfig(run_folder=str(folder), data={"source": "numbers"})
    config = config.model_copy(update={"training": TRAINING.model_copy(update=training)})
    return fit(config, RunFolder(folder), batches, model, validate, alone)


def checkpoint_names(folder):
    """The names of the checkpoints in a run folder, the oldest first."""
    return sorted(path.name for path in (folder / "checkpoints").glob("*.npz"))
