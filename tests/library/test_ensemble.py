"""Several models search as one, whose probability of each token is the mean of theirs."""

import functools
import itertools
import json
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf
from keras import ops

import keras_transformer.commands.translate
import train.distil
import train.evaluate
from keras_transformer.ground.errors import ConfigError, UserError
from keras_transformer.pieces.tokenizer import Tokenizer, train_tokenizer
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.inference import Inference
from keras_transformer.runs.kinds import build_model, incremental_decoder, joint_decoder
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.saved_run import load_run, save_run
from keras_transformer.search.ensemble import EnsembleDecoder
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.state import coverage_of
from keras_transformer.search.step import IncrementalDecoder
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.models import LIVELY, as_numpy, assert_close, lively_transformer, softmax, sources
from tests.support.runs import SENTENCES, decisive, random_run
from tests.support.searches import search
from tests.support.tables import assert_same_hypotheses, tokens_of

SOURCES = sources(2, 3, 5, 6)
OPTIONS = SearchOptions(beam_size=3, n_best=3, extra_length=4)
SEEDS = (19, 20, 21)


def decoder_of(*seeds):
    return joint_decoder([lively_transformer(seed=seed) for seed in seeds])


@functools.cache
def found_by(*seeds, options=OPTIONS, static_shapes=False):
    return tuple(map(as_numpy, search(decoder_of(*seeds), SOURCES, options, static_shapes)))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folders of three runs that differ in their weights alone."""
    folder = tmp_path_factory.mktemp("ensemble")
    made = [random_run(folder / "first")]
    transformer, tokenizer = load_run(made[0])
    for seed in (8, 9):
        made.append(folder / f"seed{seed}")
        save_run(decisive(transformer, seed), tokenizer, made[-1])
    return made


# the decoder


@pytest.mark.nightly
def test_the_probability_of_a_token_is_the_mean_of_those_of_the_members():
    tokens = ops.convert_to_tensor(np.array([[5, 6], [7, 8], [9, 10], [11, 4]], "int32"))

    def step_of(decoder):
        return decoder.step(decoder.step_weights(), decoder.start(SOURCES, 2), tokens, ops.convert_to_tensor(0))[0]

    members = [softmax(as_numpy(step_of(decoder_of(seed)))) for seed in SEEDS]
    together = as_numpy(step_of(decoder_of(*SEEDS)))
    assert np.abs(members[0] - members[1]).max() > 0.1  # the members disagree
    assert_close(np.exp(together), np.mean(members, axis=0), atol=1e-6)


def test_a_token_that_is_impossible_to_every_member_has_a_finite_logarithm():
    class Certain:
        config = LIVELY

        def step(self, weights, state, tokens, position, has_room):
            return ops.convert_to_tensor([[0.0, -1e9]]), state

    decoder = EnsembleDecoder([Certain(), Certain()])
    logits, _ = decoder.step((None, None), type("State", (), {"members": (None, None)}), None, 0)
    assert np.isfinite(as_numpy(logits)).all() and as_numpy(logits)[0, 0] == 0.0


@pytest.mark.nightly
def test_a_model_with_itself_is_the_model():
    assert_same_hypotheses(found_by(19, 19), found_by(19))


@pytest.mark.nightly
def test_an_ensemble_finds_other_outputs_than_its_members():
    first_ids = [[tokens_of(ids[0]) for ids in found_by(*seeds)[0]] for seeds in [SEEDS, *([seed] for seed in SEEDS)]]
    assert all(first_ids[0] != alone for alone in first_ids[1:])


@pytest.mark.nightly
@pytest.mark.parametrize("order", [SEEDS[1:] + SEEDS[:1], SEEDS[2:] + SEEDS[:2]], ids=["rotated", "rotated twice"])
def test_the_order_of_the_members_changes_nothing(order):
    assert_same_hypotheses(found_by(*order), found_by(*SEEDS))


@pytest.mark.release
def test_static_shapes_change_nothing():
    assert_same_hypotheses(found_by(*SEEDS, static_shapes=True), found_by(*SEEDS))
    compiled = tf.function(lambda ids: search(decoder_of(*SEEDS), ids, OPTIONS, static_shapes=True), jit_compile=True)(
        tf.constant(SOURCES)
    )
    assert_same_hypotheses(tuple(map(as_numpy, compiled)), found_by(*SEEDS))


@pytest.mark.nightly
def test_a_coverage_penalty_is_that_of_the_mean_coverage():
    state = decoder_of(*SEEDS).start(SOURCES, 3, counts_attention=True)
    members = [decoder_of(seed).start(SOURCES, 3, counts_attention=True) for seed in SEEDS]
    for n, member in enumerate(members):
        sums = ops.ones_like(member.attended.sums) * 0.1 * (n + 1)
        members[n] = member._replace(attended=member.attended._replace(sums=sums))
    expected = np.mean([as_numpy(coverage_of(member)) for member in members], axis=0)
    assert_close(coverage_of(state._replace(members=tuple(members))), expected)
    covering = SearchOptions(beam_size=3, n_best=3, extra_length=4, coverage_penalty=0.7)
    assert_same_hypotheses(found_by(19, 19, options=covering), found_by(19, options=covering))


@pytest.mark.nightly
def test_no_member_is_asked_for_a_position_that_it_has_not_learned():
    short = LIVELY.replace(positions="learned", max_positions=6)
    longer = LIVELY.replace(positions="learned", max_positions=8)
    models = [lively_transformer(longer), lively_transformer(), lively_transformer(short)]
    for order in itertools.permutations(models):
        assert joint_decoder(list(order)).config.position_limit == 6
    ids, *_ = search(
        joint_decoder(models), SOURCES, SearchOptions(beam_size=2, n_best=2, min_length=20, extra_length=20)
    )
    assert max(len(tokens_of(row)) for row in as_numpy(ids).reshape(-1, ids.shape[-1])) == 6


def test_one_model_is_searched_as_it_is_and_none_is_refused():
    assert isinstance(decoder_of(19), IncrementalDecoder)
    with pytest.raises(ConfigError, match="no model to translate with"):
        joint_decoder([])


# translating


@pytest.mark.release
def test_a_translation_has_the_logarithm_of_the_mean_as_its_score(runs):
    """Teacher forcing of each member alone, the independent way to the probability of every token."""
    found = Translator.load(runs, SearchOptions(beam_size=4, length_penalty=0.0, extra_length=5)).translate(SENTENCES)
    tokenizer = Tokenizer(runs[0] / "tokenizer.model")
    read_back = [
        (source, one)
        for source, one in zip(SENTENCES, found, strict=True)
        if (*tokenizer.encode(one.text), 3) == one.ids
    ]
    assert len(read_back) >= 4
    sources, texts = [source for source, _ in read_back], [one.text for _, one in read_back]
    members = [Scorer.load(run, length_penalty=0.0).score(sources, texts) for run in runs]
    for number, (_, one) in enumerate(read_back):
        each = np.array([member[number].piece_log_probabilities for member in members])
        assert one.score == pytest.approx(np.log(np.exp(each).mean(axis=0)).sum(), abs=1e-3)


@pytest.mark.nightly
def test_models_of_different_kinds_and_shapes_translate_together(runs):
    transformer, tokenizer = load_run(runs[0])
    deeper = random_run(runs[0].parent / "deeper", encoder_layers=2, d_model=16, norm="pre")
    recurrent = build_model(RecurrentConfig(vocab_size=tokenizer.vocab_size, d_model=16))
    together = Translator([transformer, load_run(deeper)[0], recurrent], tokenizer, OPTIONS)
    alone = Translator(transformer, tokenizer, OPTIONS)
    scores = [one.score for one in together.translate(SENTENCES)]
    assert np.isfinite(scores).all() and scores != [one.score for one in alone.translate(SENTENCES)]
    with pytest.raises(TypeError, match="must be a Transformer or a RecurrentModel"):
        Translator([transformer, "runs/other"], tokenizer)


def test_a_coverage_penalty_needs_members_that_attend(runs):
    transformer, tokenizer = load_run(runs[0])
    deaf = build_model(RecurrentConfig(vocab_size=tokenizer.vocab_size, d_model=16, attention="none"))
    assert incremental_decoder(deaf).config.attention == "none"
    with pytest.raises(ConfigError, match="coverage"):
        Translator([transformer, deaf], tokenizer, SearchOptions(coverage_penalty=0.5))


@pytest.mark.nightly
def test_one_member_whose_probabilities_are_no_numbers_is_one_sentence(runs):
    transformer, tokenizer = load_run(runs[0])
    broken, _ = load_run(runs[1])
    broken.weights[-1].assign(np.full(broken.weights[-1].shape, np.nan, "float32"))
    with pytest.raises(UserError, match="Line 1 has no translation: the model's probabilities are NaN"):
        Translator([transformer, broken], tokenizer, OPTIONS).translate(SENTENCES[:2])


def test_the_shortest_of_the_training_texts_is_what_an_ensemble_was_trained_on(runs, monkeypatch):
    known = dict(zip(runs, (64, 40, None), strict=True))
    monkeypatch.setattr(RunFolder, "inference", lambda folder: Inference(longest_source=known[folder.path]))
    assert Translator.load(runs[:2]).trained_tokens == 40
    assert Translator.load(runs).trained_tokens is None  # not known of one


# the commands


@pytest.fixture
def text(tmp_path):
    """--source and --reference: English and German sentences, line by line."""
    for name, lines in (("source", SENTENCES), ("reference", SENTENCES[::-1])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return ["--source", tmp_path / "source", "--reference", tmp_path / "reference"]


def ensemble_of(runs):
    return [part for run in runs for part in ("--ensemble", run)]


@pytest.mark.release
def test_translate_takes_further_runs(runs):
    stdin = "".join(f"{line}\n" for line in SENTENCES).encode()
    result = invoke(keras_transformer.commands.translate.app, runs[0], *ensemble_of(runs[1:]), stdin=stdin)
    assert result.exit_code == 0, result.output
    expected = [one.text for one in Translator.load(runs).translate(SENTENCES)]
    assert expected != [one.text for one in Translator.load(runs[0]).translate(SENTENCES)]
    assert result.stdout_bytes.decode().split("\n")[:-1] == [" ".join(line.splitlines()) for line in expected]


@pytest.mark.release
def test_evaluate_scores_what_the_runs_say_together_and_names_them(runs, text, tmp_path):
    output = tmp_path / "output"
    result = invoke(train.evaluate.app, runs[0], *ensemble_of(runs[1:]), *text, "--output", output, "--beam-size", 2)
    assert result.exit_code == 0, result.output
    assert f", ensemble {runs[1]} and {runs[2]}, precision" in result.stdout.splitlines()[0]
    found = Translator.load(runs, SearchOptions(beam_size=2)).translate(SENTENCES)
    assert output.read_text(encoding="utf-8").split("\n")[:-1] == [" ".join(one.text.splitlines()) for one in found]
    as_json = invoke(train.evaluate.app, runs[0], *ensemble_of(runs[1:2]), *text, "--json", "--beam-size", 1)
    assert json.loads(as_json.stdout)["ensemble"] == [str(runs[1])]


@pytest.mark.release
def test_distil_chooses_among_what_the_runs_say_together(runs, text, tmp_path):
    output = tmp_path / "output"
    distil = functools.partial(invoke, train.distil.app, runs[0])
    result = distil(*ensemble_of(runs[1:]), *text, "--output", output, "--beam-size", 2)
    assert result.exit_code == 0, result.output
    found = Translator.load(runs, SearchOptions(beam_size=2, n_best=2)).translate_n_best(SENTENCES)
    written = output.read_text(encoding="utf-8").split("\n")[:-1]
    assert all(
        line in [" ".join(one.text.splitlines()) for one in candidates]
        for line, candidates in zip(written, found, strict=True)
    )


APPS = {
    "translate": keras_transformer.commands.translate.app,
    "evaluate": train.evaluate.app,
    "distil": train.distil.app,
}


@pytest.mark.nightly
@pytest.mark.parametrize("app", APPS.values(), ids=APPS)
def test_a_run_with_other_pieces_is_refused_in_a_sentence(runs, text, tmp_path, app):
    other = tmp_path / "other"
    shutil.copytree(runs[0], other)
    size = Tokenizer(runs[0] / "tokenizer.model").vocab_size
    train_tokenizer([line.upper() for line in SENTENCES] * 5, other / "tokenizer.model", size)
    arguments = [runs[0], *([] if app is APPS["translate"] else text)]
    arguments += ["--output", tmp_path / "output"] if app is train.distil.app else []
    result = invoke(app, *arguments, "--ensemble", other, stdin=b"a\n")
    assert_one_sentence(result, f"{other} has another tokenizer than {runs[0]}", "different seeds")
    missing = invoke(app, *arguments, "--ensemble", pathlib.Path("nowhere"), stdin=b"a\n")
    assert_one_sentence(missing, "There is no run folder nowhere")


@pytest.mark.parametrize("app", list(APPS.values())[1:], ids=list(APPS)[1:])
def test_a_file_of_another_member_is_not_written_over(runs, text, app):
    weights = runs[1] / "model.weights.h5"
    before = weights.read_bytes()
    result = invoke(app, runs[0], "--ensemble", runs[1], *text, "--output", weights)
    assert_one_sentence(result, "model.weights.h5 is a file of the run")
    assert weights.read_bytes() == before
