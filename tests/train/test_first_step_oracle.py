"""The first training step of every imported family has the loss and the gradients of PyTorch on transformers' model."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.model import Transformer
from keras_transformer.models.imported.names import as_huggingface, weights_of_side
from keras_transformer.models.imported.t5_names import weights_of_blocks
from tests.support import m2m, mbart, t5
from tests.support.huggingface import marian_mt
from tests.support.imported import Both
from tests.support.marian import marian_pieces
from tests.support.peers import Peer, needs
from tests.support.training import TRAINING
from train.step.training_model import compiled

pytestmark = [pytest.mark.release, needs("transformers", "torch")]
transformers, torch = Peer("transformers"), Peer("torch")
CLOSE, CLOSE_GRADIENT = 1e-4, 1e-3
KINDS = [*t5.KINDS, *mbart.KINDS, *m2m.KINDS, "marian"]


def pieces_of(kind):
    if kind == "marian":
        return [*marian_pieces(), "<pad>"]
    if kind in m2m.KINDS:
        return [*m2m.text_pieces(), *m2m.added_pieces(kind)]
    return t5.pieces_of(kind) if kind in t5.KINDS else mbart.all_pieces(kind)


def opened(folder, kind):
    """A new folder of a kind, in transformers and imported."""
    make = next((made for made, kinds in FOLDERS.items() if kind in kinds), None)
    if make:
        make(folder, kind)
    else:
        marian_mt(folder)
    settings, pieces = json.loads((folder / "config.json").read_text(encoding="utf-8")), pieces_of(kind)
    special = {pieces.index("<unk>"): UNK, settings["pad_token_id"]: PAD, settings["eos_token_id"]: EOS}
    return Both(folder, getattr(transformers, settings["architectures"][0]), pieces, special)


FOLDERS = {t5.t5_folder: t5.KINDS, mbart.mbart_folder: mbart.KINDS, m2m.m2m_folder: m2m.KINDS}


def rows_of(both, seed):
    """Rows of ids there of different lengths, which end in the end of a sentence."""
    chance, words = np.random.default_rng(seed), [number for number in range(len(both.here)) if both.here[number] > 3]
    return [[*chance.choice(words, length).tolist(), both.eos] for length in (3, 9, 5, 14)]


def filled(rows, filler):
    return torch.nn.utils.rnn.pad_sequence([torch.tensor(row) for row in rows], True, filler)


def step_of_pytorch(both, sources, targets, smoothing):
    """The loss per token of a batch, and its gradient by the names of arrays; without dropout."""
    start = both.theirs.config.decoder_start_token_id
    labels, inputs = filled(targets, -100), filled([[start, *row[:-1]] for row in targets], both.pad)
    batch = filled(sources, both.pad)
    found = both.theirs(
        input_ids=batch, attention_mask=(batch != both.pad).long(), decoder_input_ids=inputs, labels=labels
    )
    logits = found.logits.flatten(0, 1)
    loss = torch.nn.functional.cross_entropy(logits, labels.flatten(), label_smoothing=smoothing)
    if not smoothing:
        assert found.loss.item() == pytest.approx(loss.item(), abs=1e-5)  # of transformers itself
    both.theirs.zero_grad()
    loss.backward()
    weights = both.theirs.named_parameters()
    return loss.item(), {name: weight.grad.numpy() for name, weight in weights if weight.grad is not None}


def step_here(both, sources, targets, smoothing):
    """The loss in the logs of a step, and the gradients that it applied, by the path of a weight."""
    config = both.imported.config.replace(dropout=0.0, label_smoothing=smoothing)
    transformer = Transformer(config)
    for weight in transformer.weights:
        weight.assign(both.imported.values[weight.path])
    model = compiled(transformer, TRAINING, tf.distribute.get_strategy())
    sides = {"source_ids": [both.here[row] for row in sources], "labels": [both.here[row] for row in targets]}
    batch = {
        name: filled(list(map(np.ndarray.tolist, rows)), PAD).numpy().astype("int32") for name, rows in sides.items()
    }
    batch["target_ids"] = np.insert(batch["labels"][:, :-1], 0, BOS, axis=1)
    segments = {
        f"{side}_segments": batch[name] != PAD for side, name in (("source", "source_ids"), ("target", "labels"))
    }
    batch |= {name: real.astype("int32") for name, real in segments.items()}
    model.inspects = True
    logs = model.make_train_function()(iter(tf.data.Dataset.from_tensors(batch)))
    paths = [weight.path for weight in model.trainable_variables]
    return float(logs["loss"]), dict(zip(paths, map(np.asarray, model.inspected.gradients), strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_and_the_gradients_of_a_step_are_those_of_pytorch(kind, tmp_path):
    both = opened(tmp_path / "there", kind)
    sources, targets, config = rows_of(both, 1), rows_of(both, 2), both.imported.config
    weights = [weight for side in ("encoder", "decoder") for weight in weights_of_side(side, config)]
    weights = weights_of_blocks(config) if kind in t5.KINDS else weights
    matrices = [weight for weight in weights if weight.is_kernel]
    assert len(matrices) >= 32  # both blocks of both sides
    for smoothing in (0.0, 0.1):
        expected, there = step_of_pytorch(both, sources, targets, smoothing)
        found, here = step_here(both, sources, targets, smoothing)
        assert found == pytest.approx(expected, abs=CLOSE)
        for weight in matrices:
            gradient, ours = there[weight.huggingface], as_huggingface(weight, here[weight.ours])
            close = CLOSE_GRADIENT * np.abs(gradient).max()
            np.testing.assert_allclose(ours, gradient, atol=close, err_msg=weight.ours)
