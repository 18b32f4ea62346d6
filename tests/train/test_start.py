"""A run that starts from another one: its weights, by piece, and once only."""

import functools
import logging

import numpy as np
import pytest

import train.__main__
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.errors import ConfigError
from keras_transformer.model import Transformer
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run
from tests.support.commands import invoke
from tests.support.runs import SENTENCES, random_run, write_config
from tests.support.training import checkpoint_names, fit_in, no_validation, reusable, weights_by_path, weights_of
from train.config.run import load_config
from train.config.training import TrainingConfig
from train.loop.checkpoints import read_weights
from train.record.start import assign_start, load_start_weights, shared_pieces
from train.step.lora import adapt

TABLES = {"source_embedding/matrix", "target_embedding/matrix", "logits/matrix", "logits/bias"}  # a row per piece
train_command = functools.partial(invoke, train.__main__.app)


def test_pieces_are_found_wherever_they_are():
    assert shared_pieces(["<s>", "a", "new", "b"], ["<s>", "b", "old", "a"]) == ([0, 1, 3], [0, 3, 1])


@pytest.mark.nightly
def test_with_the_same_tokenizer_every_weight_is_that_of_the_other_run(random_folder, pair):
    other, tokenizer = pair
    transformer = Transformer(other.transformer_config)
    assign_start(random_folder, transformer, tokenizer, {})
    for found, expected in zip(weights_of(transformer), weights_of(other), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.nightly
@pytest.mark.parametrize("blocks", [1, 2])
def test_a_shallower_decoder_begins_with_the_last_blocks(tmp_path, blocks):
    folder = random_run(tmp_path / "run", decoder_layers=3)
    other, tokenizer = load_run(folder)
    transformer = Transformer(other.transformer_config.replace(decoder_layers=blocks))
    assign_start(folder, transformer, tokenizer, {})
    found, expected = weights_by_path(transformer), weights_by_path(other)
    of_blocks = [path for path in found if path.startswith("decoder_block")]
    for path in found.keys() - set(of_blocks):
        np.testing.assert_array_equal(found[path], expected[path])
    for path in of_blocks:
        number, weight = path.removeprefix("decoder_block_").split("/", 1)
        np.testing.assert_array_equal(found[path], expected[f"decoder_block_{int(number) + 3 - blocks}/{weight}"])
    assert len(of_blocks) == len({path.split("/", 1)[1] for path in of_blocks}) * blocks


@pytest.mark.nightly
def test_with_a_new_tokenizer_known_pieces_keep_their_rows_and_new_ones_their_first_values(tmp_path, caplog):
    folder = random_run(tmp_path / "run", shared_embeddings=False, logits_bias=True)
    train_tokenizer([*SENTENCES[3:], "a zebra xylophone"] * 5, tmp_path / "new.model", 300)
    old, new = Tokenizer(folder / "tokenizer.model").pieces(), Tokenizer(tmp_path / "new.model")
    transformer = Transformer(TransformerConfig.load(folder / "model.json").replace(vocab_size=300))
    before, expected = weights_by_path(transformer), weights_by_path(load_run(folder)[0])
    with pytest.raises(ConfigError, match=r"names 'target_embedding', but \d+ of the 300 pieces are not known to"):
        assign_start(folder, transformer, new, {"a": "encoder*", "training.frozen names 'target_embedding'": "target*"})
    assert all(np.array_equal(value, before[path]) for path, value in weights_by_path(transformer).items())
    with caplog.at_level(logging.INFO, logger="train"):
        assign_start(folder, transformer, new, {"training.frozen names 'encoder*'": "encoder*"})
    found, known = weights_by_path(transformer), [piece in old for piece in new.pieces()]
    assert 260 < sum(known) < 300 and f"knows {sum(known)} of 300 pieces" in caplog.text
    for path in found:
        if path not in TABLES:
            np.testing.assert_array_equal(found[path], expected[path])
            continue
        for row, piece in enumerate(new.pieces()):
            origin = expected[path][old.index(piece)] if piece in old else before[path][row]
            np.testing.assert_array_equal(found[path][row], origin)
    assert found.keys() >= TABLES


def test_lora_learns_new_pieces_by_training_the_embeddings_alone(tmp_path):
    start, run = random_run(tmp_path / "start"), RunFolder(tmp_path / "run")
    train_tokenizer([*SENTENCES[3:], "a zebra xylophone"] * 5, tmp_path / "new.model", 300)
    new = Tokenizer(tmp_path / "new.model")
    transformer = Transformer(TransformerConfig.load(start / "model.json").replace(vocab_size=300))
    lora = TrainingConfig(start_from=str(start), lora_rank=2)
    with pytest.raises(ConfigError, match=r'lora_rank is 2, without "embeddings" .* but \d+ of the 300 pieces'):
        load_start_weights(lora, run, transformer, new)
    with_embeddings = lora.model_copy(update={"lora_matrices": ["query", "embeddings"]})
    load_start_weights(with_embeddings, run, transformer, new)
    adapt(transformer, with_embeddings)
    trained = {weight.path for weight in transformer.trainable_weights if "lora" not in weight.path}
    assert trained == {"embedding/matrix"}


@pytest.mark.nightly
def test_only_a_run_without_a_checkpoint_begins_with_other_weights(tmp_path, random_folder, pair):
    other, tokenizer = pair
    training, folder = TrainingConfig(start_from=str(random_folder)), RunFolder(tmp_path)
    folder.checkpoints.mkdir()
    transformer = Transformer(other.transformer_config)
    before = weights_of(transformer)
    load_start_weights(TrainingConfig(), folder, transformer, tokenizer)
    checkpoint = folder.checkpoints / "step-00000002.npz"
    checkpoint.touch()
    load_start_weights(training, folder, transformer, tokenizer)
    np.testing.assert_array_equal(weights_of(transformer)[0], before[0])
    checkpoint.unlink()
    load_start_weights(training, folder, transformer, tokenizer)
    np.testing.assert_array_equal(weights_of(transformer)[0], weights_of(other)[0])


@pytest.mark.nightly
def test_a_run_that_is_killed_before_its_first_checkpoint_goes_on_from_the_weights_that_it_started_from(tmp_path):
    def killed():
        raise KeyboardInterrupt

    every = {"steps": 4, "validate_every": 2, "checkpoint_every": 4, "start_from": "another run"}
    model = reusable(dropout=0.2).from_the_start()
    fit_in(tmp_path / "calm", model, **every)
    expected = weights_of(model)
    with pytest.raises(KeyboardInterrupt):
        fit_in(tmp_path / "killed", reusable(dropout=0.2).from_the_start(), validate=killed, **every)
    assert checkpoint_names(tmp_path / "killed") == ["step-00000000.npz"]
    resumed = reusable(dropout=0.2).from_the_start()
    for weight in resumed.weights:
        weight.assign(weight + 1.0)  # as initialised; `load_start_weights` leaves them, since there is a checkpoint
    fit_in(tmp_path / "killed", resumed, validate=no_validation, **every)
    for weight, other in zip(weights_of(resumed), expected, strict=True):
        np.testing.assert_array_equal(weight, other)


@pytest.mark.release
@pytest.mark.slow
def test_the_command_fine_tunes_a_finished_run_with_every_option_on(finished, tmp_path, caplog, monkeypatch):
    start, config = finished[1], write_config(tmp_path, "tuned")
    options = [
        f"training.start_from={start}",
        'training.frozen=["embedding"]',
        "training.ema_decay=0.9",
        "training.keep_best=true",
        "training.patience=5",
        "training.find_micro_batches=true",
        "training.steps=2",
        "data.validation_pairs=2",
        "data.test_pairs=2",
    ]
    answers = iter([False, True])  # whether a step fits: not that of all rows at once
    monkeypatch.setattr("train.cost.micro_batches.step_fits", lambda *_: next(answers))
    with caplog.at_level(logging.INFO, logger="train"):
        result = train_command(config, *(word for option in options for word in ("--set", option)))
    assert result.exit_code == 0, result.output
    assert "knows 300 of 300 pieces" in caplog.text and "fits in memory" in caplog.text
    tuned = config.with_suffix("")
    assert (tuned / "tokenizer.model").read_bytes() == (start / "tokenizer.model").read_bytes()
    training = load_config(tuned / "config.toml").training
    assert training.find_micro_batches is False and training.micro_batches > 1
    assert f"{training.micro_batches} micro-batches" in caplog.text
    expected, found = weights_by_path(load_run(start)[0]), weights_by_path(load_run(tuned)[0])
    np.testing.assert_array_equal(found["embedding/matrix"], expected["embedding/matrix"])
    assert any(not np.array_equal(found[path], expected[path]) for path in found)
    first = read_weights(tuned / "checkpoints/step-00000000.npz")
    assert all(np.array_equal(first[path], expected[path]) for path in expected)
