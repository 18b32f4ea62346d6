"""Other programs beside this one in a race: the same model, training and search; their commands, without packages."""

import json
import pathlib
import re

import numpy as np
import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.recipes.race import check_paper
from benchmarks.recipes.racing.joeynmt import JoeyNMT
from benchmarks.recipes.racing.marian import Marian
from benchmarks.recipes.racing.ours import Ours
from benchmarks.recipes.racing.racer import Task
from keras_transformer.config import TransformerConfig
from keras_transformer.optimizers import PAPER_ADAM
from keras_transformer.pieces.tokenizer import train_tokenizer
from keras_transformer.schedules import WarmupInverseSquareRoot
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


def ours_in(folder, task):
    """The configuration that this project trains."""
    (folder / "race.toml").write_text(Ours(folder, task).config())
    return load_config(folder / "race.toml")


@pytest.mark.parametrize("layers", [(3, 3), (6, 2)])
def test_both_train_the_same_model_in_the_same_way(task, tmp_path, layers):
    encoder, decoder = layers
    overrides = (f"model.encoder_layers={encoder}", f"model.decoder_layers={decoder}")
    task = task._replace(encoder_layers=encoder, decoder_layers=decoder, overrides=overrides)
    ours = ours_in(tmp_path, task)
    joeynmt = joeynmt_in(tmp_path, task)
    theirs = json.loads(json.dumps(joeynmt.config(tmp_path / "part1", None)))
    found = ours.transformer_config(270)
    model, training = theirs["model"], theirs["training"]
    for side, layers in (("encoder", found.encoder_layers), ("decoder", found.decoder_layers)):
        stack = model[side]
        assert stack["num_layers"] == layers and stack["num_heads"] == found.num_heads
        assert stack["hidden_size"] == found.d_model and stack["ff_size"] == found.d_ff
        assert stack["dropout"] == stack["embeddings"]["dropout"] == found.dropout
        assert stack["layer_norm"] == found.norm and stack["embeddings"]["embedding_dim"] == found.d_model
        assert stack["embeddings"]["scale"] and stack.get("activation", "relu") == found.activation
    assert model["tied_embeddings"] == model["tied_softmax"] == found.shared_embeddings
    assert training["label_smoothing"] == found.label_smoothing
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
    assert options.length_normalization == JoeyNMT.length_normalization == "gnmt"


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({"positions": "rotary"}, '--set model.positions="sinusoidal"'),
        (
            {"norm_kind": "rms", "attention_bias": True},
            '--set model.norm_kind="layer" --set model.attention_bias=false',
        ),
    ],
)
def test_a_model_that_the_other_programs_lack_is_refused_with_what_to_set(changes, settings):
    shape = {"encoder_layers": 6, "decoder_layers": 2, "norm": "pre", "dropout": 0.3, "vocab_size": 300}
    path, model = pathlib.Path("own.toml"), TransformerConfig().replace(**shape)
    check_paper(path, model)
    with pytest.raises(BenchmarkError, match=re.escape(f"both programs have: add {settings}.")):
        check_paper(path, model.replace(**changes))


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_marian_trains_the_same_model_in_the_same_way(task, tmp_path, norm):
    overrides = (f"model.norm={norm}", "model.encoder_layers=6", "model.decoder_layers=2")
    changed = task._replace(norm=norm, encoder_layers=6, decoder_layers=2, overrides=overrides)
    marian = object.__new__(Marian)
    marian.folder, marian.task, marian.threads = tmp_path, changed, 2
    ours, theirs = ours_in(tmp_path, changed), marian.options()
    found = ours.transformer_config(270)
    assert found.norm == norm and theirs["transformer-preprocess"] == ["n" if norm == "pre" else ""]
    assert theirs["transformer-postprocess-top"] == ["n" if norm == "pre" else ""]
    assert [*theirs["enc-depth"], *theirs["dec-depth"]] == [found.encoder_layers, found.decoder_layers]
    assert theirs["transformer-ffn-activation"] == [found.activation]
    assert [*theirs["dim-emb"], *theirs["transformer-dim-ffn"]] == [found.d_model, found.d_ff]
    assert theirs["transformer-heads"] == [found.num_heads] and found.shared_embeddings
    assert theirs["transformer-dropout"] == [found.dropout] and theirs["label-smoothing"] == [found.label_smoothing]
    schedule = WarmupInverseSquareRoot(found.d_model, ours.training.warmup_steps, ours.training.learning_rate_factor)
    peak = float(schedule(ours.training.warmup_steps - 1))
    assert theirs["learn-rate"] == [pytest.approx(peak, rel=1e-6)] and ours.training.cooldown_steps == 0
    assert theirs["lr-warmup"] == theirs["lr-decay-inv-sqrt"] == [ours.training.warmup_steps]
    adam = [PAPER_ADAM["beta_1"], PAPER_ADAM["beta_2"], PAPER_ADAM["epsilon"]]
    assert theirs["optimizer-params"] == adam and theirs["clip-norm"] == [0] and ours.training.clip_norm is None
    assert marian.vocabulary.read_bytes() == task.tokenizer.read_bytes()


def test_how_many_tokens_marian_has_read_stands_in_its_log(task, tmp_path):
    marian = object.__new__(Marian)
    marian.folder = tmp_path
    (tmp_path / "log.txt").write_text(
        "[2026-11-29 07:41:26] Ep. 1 : Up. 100 : Sen. 23,040 : Cost 7.91 * 398,102 @ 4,090 after 398,102 : Time 61.2s\n"
        "[2026-11-29 07:42:26] Ep. 1 : Up. 200 : Sen. 46,201 : Cost 6.83 * 399,540 @ 4,051 after 797,642 : Time 60.1s\n"
    )
    assert marian.tokens(tmp_path / "model.iter100.npz") == 398_102
    assert marian.tokens(tmp_path / "model.iter200.npz") == 797_642


def test_a_checkpoint_that_marian_has_not_finished_is_none(task, tmp_path):
    marian = object.__new__(Marian)
    marian.folder = tmp_path
    np.savez(tmp_path / "model.iter100.npz", weights=np.zeros(1000))
    whole = (tmp_path / "model.iter100.npz").read_bytes()
    (tmp_path / "model.iter200.npz").write_bytes(whole[: len(whole) // 2])
    assert list(marian.checkpoints()) == [100]


def test_text_of_a_race_is_the_same_in_every_epoch(task, tmp_path):
    """The configuration of the task may change it, which Marian cannot."""
    config = tmp_path / "own.toml"
    config.write_text(
        'run_folder = "runs/own"\n[data]\nsource = "files"\ntrain = [["a", "b"]]\nvalidation = [["a", "b"]]\n'
        "placeholders = 0.5\n[tokenizer]\nplaceholders = 8\n[training]\nsteps = 5000\nwarmup_steps = 10\n"
        "[training.augment]\njoined = 0.5\n"
    )
    ours = ours_in(tmp_path, task._replace(config=config))
    assert ours.training.augment is None and ours.data.placeholders == 0 and ours.training.warmup_steps == 10
    assert ours.data.train == [[str(task.text / "train.en"), str(task.text / "train.de")]]
