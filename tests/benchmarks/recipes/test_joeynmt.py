"""JoeyNMT beside this project in a race: the same model, training and search; its commands, without its package."""

import json
import pathlib
import subprocess
import sys

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.recipes.racing.joeynmt import READ_TOKENS, JoeyNMT
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


def test_joeynmt_begins_each_part_in_a_folder_of_its_own_with_the_newest_checkpoint(task, tmp_path):
    joeynmt = joeynmt_in(tmp_path, task)

    def begun():
        python, *module, mode, config, skip = joeynmt.command()
        assert (python, module, mode, skip) == (str(joeynmt.python), ["-m", "joeynmt"], "train", "--skip-test")
        return json.loads(pathlib.Path(config).read_text(encoding="utf-8"))

    first = begun()
    assert first["model_dir"] == str(tmp_path / "part1") and "load_model" not in first["training"]
    for part, name in (("part1", "50"), ("part1", "100"), ("part2", "120"), ("part2", "latest"), ("part2", "best")):
        (tmp_path / part).mkdir(exist_ok=True)
        (tmp_path / part / f"{name}.ckpt").touch()
    third, newest = begun(), str(tmp_path / "part2" / "120.ckpt")
    assert third["model_dir"] == str(tmp_path / "part3") and third["training"]["load_model"] == newest
    assert sorted(joeynmt.checkpoints()) == [50, 100, 120]


@pytest.mark.release
def test_the_tokens_of_joeynmt_are_those_in_its_checkpoint(tmp_path, monkeypatch, capsys):
    torch = pytest.importorskip("torch")
    torch.save({"stats_state": {"steps": 3, "total_tokens": 123}}, tmp_path / "3.ckpt")
    monkeypatch.setattr(sys, "argv", ["-c", str(tmp_path / "3.ckpt")])
    exec(READ_TOKENS, {})
    assert capsys.readouterr().out == "123\n"


def test_an_environment_without_joeynmt_is_named(task, tmp_path):
    with pytest.raises(BenchmarkError, match="make race-peer"):
        JoeyNMT(tmp_path, task, tmp_path / "python")


@pytest.mark.parametrize(
    ("stderr", "expected"), [("a\nkilled: memory\n", "exit code 9: killed: memory"), ("", "no message")]
)
def test_a_translation_that_fails_is_one_sentence(task, tmp_path, monkeypatch, stderr, expected):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 9, "", stderr))
    with pytest.raises(BenchmarkError, match=expected):
        joeynmt_in(tmp_path, task).translate(tmp_path / "part1" / "50.ckpt", "val")
