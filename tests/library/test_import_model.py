"""`keras-transformer import`: a run folder appears whole or not at all, and translates as the imported model does."""

import logging

import pytest

import keras_transformer as kt
from keras_transformer.commands.import_model import app
from keras_transformer.commands.score import app as score_app
from keras_transformer.commands.translate import app as translate_app
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.models.imported.huggingface import tokenizer_of
from keras_transformer.pieces.pair_tokenizer import SPECIAL_PIECES
from keras_transformer.runs.run_folder import RunFolder
from tests.support.commands import assert_one_sentence, invoke
from tests.support.marian import (
    MARIAN,
    SELF_ATTENTION,
    best_by_marian,
    changed_options,
    greedy_by_marian,
    huggingface_folder,
    lines,
    marian_folder,
    scores_by_marian,
)

NPZ = MARIAN / f"{SELF_ATTENTION}.npz"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The run folder of the model that Marian trained."""
    folder = tmp_path_factory.mktemp("imported") / "deep" / "run"
    result = invoke(app, NPZ, folder, "--check", MARIAN / "test.en")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{folder}\n"
    return folder


def test_the_run_folder_has_what_commands_read(run):
    folder, model = RunFolder(run), import_folder(NPZ)
    transformer, tokenizer = kt.load_run(run)
    assert transformer.model_config == model.config and tokenizer.model_bytes == model.tokenizer.model_bytes
    for weight in transformer.weights:
        assert (weight.numpy() == model.values[weight.path]).all()
    assert folder.check_lines.read_text(encoding="utf-8").splitlines() == lines("test.en")
    assert folder.inference().search == model.search
    assert sorted(path.name for path in run.parent.iterdir()) == ["run"]


def test_the_ids_are_those_of_the_vocabulary_also_where_both_sides_have_the_same_model(pair, tmp_path):
    """A model of ours, exported, has the ids of its SentencePiece model; a joint one of others need not."""
    for name in ("source.spm", "target.spm"):
        (tmp_path / name).write_bytes(pair[1].model_bytes)
    special, text = max(SPECIAL_PIECES) + 1, "the cat sat"
    pieces = pair[1].pieces()
    for vocabulary in (pieces, pieces[:special] + pieces[: special - 1 : -1], [*pieces, "more"]):
        tokenizer = tokenizer_of(tmp_path, vocabulary)
        assert tokenizer.pieces() == vocabulary
        for encode in (tokenizer.encode, tokenizer.encode_target):
            assert [vocabulary[number] for number in encode(text)] == [
                pieces[number] for number in pair[1].encode(text)
            ]
        assert tokenizer.decode(tokenizer.encode_target(text)) == text


@pytest.mark.nightly
def test_the_commands_translate_and_score_as_marian(run):
    stdin = "".join(f"{line}\n" for line in lines("test.en"))
    greedy = invoke(translate_app, run, "--beam-size", 1, stdin=stdin)
    assert greedy.stdout.splitlines() == greedy_by_marian(SELF_ATTENTION)
    beam = invoke(translate_app, run, "--beam-size", 6, "--length-penalty", 1, "--scores", stdin=stdin)
    assert beam.stdout.splitlines() == [f"{score:.4f}\t{text}" for text, score in rounded(beam.stdout)]
    scored = invoke(score_app, run, "--source", MARIAN / "test.en", "--target", MARIAN / "test.de")
    for line, expected in zip(scored.stdout.splitlines(), scores_by_marian(SELF_ATTENTION), strict=True):
        assert abs(float(line.split("\t")[0]) - expected) < 2e-4


def rounded(printed):
    """Marian's best translations, with the scores that were printed where these are Marian's but for the last digit."""
    ours = [float(line.split("\t")[0]) for line in printed.splitlines()]
    for score, (text, expected) in zip(ours, best_by_marian(SELF_ATTENTION), strict=True):
        yield text, score if abs(score - expected) < 2e-4 else expected


def test_the_log_says_what_was_found(tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="keras_transformer")
    folder = huggingface_folder(tmp_path / "opus-mt")
    assert invoke(app, folder, tmp_path / "run", "--positions", "marian").exit_code == 0
    shape, vocabulary, positions, search, note, seconds = (record.message for record in caplog.records)
    assert shape.startswith("Hugging Face MarianMT: 2 + 2 layers, d_model 48, d_ff 96, 4 heads, swish, post-norm; ")
    assert vocabulary == "153 pieces, one matrix of embeddings and logits; no tags of target languages"
    assert positions == "sinusoids: tensor2tensor, epsilon of LayerNorm: 1e-06"
    assert "beam_size 6" in search and "as Marian computes it" in note and "seconds" in seconds
    parameters = sum(weight.size for weight in map(lambda w: w.numpy(), kt.load_run(tmp_path / "run")[0].weights))
    assert f"{parameters:,} parameters" in shape


def nothing_is_left(tmp_path):
    return sorted(path.name for path in tmp_path.iterdir()) == ["opus"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["opus", "opus"], ["opus exists already: name a folder that does not."]),
        (["none", "run"], ["There is no folder", "none"]),
        (["opus", "run", "--check", "none.txt"], ["none.txt: No such file or directory."]),
        (["opus", "run", "--positions", "huggingface"], ["its positions can be marian alone"]),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(tmp_path, monkeypatch, arguments, parts):
    marian_folder(tmp_path / "opus")
    monkeypatch.chdir(tmp_path)
    assert_one_sentence(invoke(app, *arguments), *parts)
    assert nothing_is_left(tmp_path)


def test_what_cannot_be_imported_is_one_sentence_and_leaves_nothing(tmp_path):
    folder = marian_folder(tmp_path / "opus")
    changed_options(folder, transformer_ffn_depth="3")
    assert_one_sentence(invoke(app, folder, tmp_path / "run"), "transformer-ffn-depth: 3; only 2 can be imported")
    assert nothing_is_left(tmp_path)


def test_a_disk_that_is_full_leaves_nothing(tmp_path, monkeypatch):
    marian_folder(tmp_path / "opus")

    def full(*arguments):
        raise OSError(28, "No space left on device", str(tmp_path / "run.part"))

    monkeypatch.setattr("keras_transformer.runs.saved_run.save_weights", full)
    assert_one_sentence(invoke(app, tmp_path / "opus", tmp_path / "run"), "No space left on device")
    assert nothing_is_left(tmp_path)


def test_an_empty_folder_is_filled(tmp_path):
    (tmp_path / "run").mkdir()
    assert invoke(app, NPZ, tmp_path / "run").exit_code == 0
    kt.load_run(tmp_path / "run")
