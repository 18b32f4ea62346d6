"""JoeyNMT beside this project in a race: the same model, training and search; its commands, without its package."""

import json

import pytest

from benchmarks.recipes.racing.joeynmt import JoeyNMT
from benchmarks.recipes.racing.ours import Ours
from benchmarks.recipes.racing.racer import Task
from keras_transformer.optimizers import PAPER_ADAM
from keras_transformer.pieces.tokenizer import train_tokenizer
from train.config.run import load_config


@pytest.fixture(scope="module")
def task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("race")
    for split in ("train", "val"):
        for language in ("en", "de"):
            (folder / f"{split}.{language}").write_text("a dog\na man\n")
    train_tokenizer(["a dog", "a man"] * 50, folder / "tokenizer.model", 270)
    return Task(folder, folder / "tokenizer.model")


def joeynmt_in(folder, task):
    """JoeyNMT in a folder, of an environment that there is not."""
    joeynmt = object.__new__(JoeyNMT)
    joeynmt.folder, joeynmt.task, joeynmt.python = folder, task, folder / "python"
    return joeynmt


def test_both_train_the_same_model_in_the_same_way(task, tmp_path):
    (tmp_path / "race.toml").write_text(Ours(tmp_path, task).config())
    ours = load_config(tmp_path / "race.toml")
    joeynmt = joeynmt_in(tmp_path, task)
    theirs = json.loads(json.dumps(joeynmt.config(tmp_path / "part1", None)))
    found = ours.transformer_config(270)
    model, training = theirs["model"], theirs["training"]
    for side, layers in (("encoder", ours.model.encoder_layers), ("decoder", ours.model.decoder_layers)):
        stack = model[side]
        assert stack["num_layers"] == layers and stack["num_heads"] == ours.model.num_heads
        assert stack["hidden_size"] == ours.model.d_model and stack["ff_size"] == ours.model.d_ff
        assert stack["dropout"] == stack["embeddings"]["dropout"] == ours.training.dropout
        assert stack["layer_norm"] == found.norm and stack["embeddings"]["embedding_dim"] == found.d_model
        assert stack["embeddings"]["scale"] and stack.get("activation", "relu") == found.activation
    assert model["tied_embeddings"] == model["tied_softmax"] == found.shared_embeddings
    assert training["label_smoothing"] == ours.training.label_smoothing
    assert training["learning_rate_warmup"] == ours.training.warmup_steps
    assert training["learning_rate_factor"] == ours.training.learning_rate_factor
    assert (training["optimizer"], training["scheduling"], ours.training.schedule) == ("adam", "noam", "paper")
    assert training["adam_betas"] == [PAPER_ADAM["beta_1"], PAPER_ADAM["beta_2"]]
    assert "clip_grad_norm" not in training and ours.training.clip_norm is None
    vocabulary = (tmp_path / "vocabulary.txt").read_text(encoding="utf-8").split("\n")[:-1]
    assert len(vocabulary) == len(set(vocabulary)) == 270  # the four special ones have other numbers here


def test_both_search_in_the_same_way(task, tmp_path):
    mine = task._replace(beam_size=3, length_penalty=0.7)
    options = Ours(tmp_path, mine).search_options()
    theirs = joeynmt_in(tmp_path, mine).config(tmp_path / "part1", None)["testing"]
    assert (options.beam_size, options.length_penalty) == (theirs["beam_size"], theirs["beam_alpha"]) == (3, 0.7)
