"""A recurrent model through every door: trained, continued, translated, explained, exported."""

import re

import numpy as np
import pytest

from export.ctranslate2.convert import write_model
from export.graph.operations import OLDEST, meta_graph, oldest_tensorflow, operations_in, xla_in
from export.graph.served_graph import ServedGraph
from export.graph.version_folder import write_saved_model
from export.versions import ExportError
from keras_transformer.ground.tokens import EOS
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.kinds import build_model, load_model_config
from keras_transformer.runs.saved_run import load_run
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.explainer import Explainer
from keras_transformer.translation.scorer import Scorer
from keras_transformer.translation.translator import Translator
from tests.support.commands import assert_one_sentence, invoke
from tests.support.events import read_pictures
from tests.support.exports import asker
from tests.support.models import as_numpy, randomise
from tests.support.runs import SENTENCES, write_config
from train.__main__ import app
from train.record.start import assign_start

pytestmark = pytest.mark.slow

MODEL = '[model]\nkind = "recurrent"\nd_model = 16\n\n'
OPTIONS = SearchOptions(beam_size=2, extra_length=4)
ONE_STEP = (
    "training.steps=1",
    "training.checkpoint_every=1",
    "training.average_checkpoints=1",
    "training.validate_every=1",
    "training.picture_sentences=1",
    "training.clip_norm=1",
)


def changed(*changes):
    return [part for change in changes for part in ("--set", change)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """The configuration file of a run of one step. The run folder is beside it."""
    config = write_config(tmp_path_factory.mktemp("runs"))
    text = config.read_text(encoding="utf-8")
    config.write_text(re.sub(r"\[model\].*?\n\n", MODEL, text, flags=re.DOTALL), encoding="utf-8")
    found = invoke(app, config, *changed(*ONE_STEP))
    assert found.exit_code == 0, found.output
    return config


@pytest.mark.nightly
def test_training_records_what_there_is_to_see(run):
    folder = run.with_suffix("")
    assert load_model_config(folder / "model.json") == RecurrentConfig(vocab_size=300, d_model=16)
    metrics = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    assert "attention/memory_1_head_1" in metrics
    assert "attention/encoder" not in metrics and "residual_rms" not in metrics
    assert sorted(read_pictures(folder / "tensorboard" / "validation")) == ["attention_pictures/1_memory_sentence_1"]
    report = (folder / "report.md").read_text(encoding="utf-8")
    assert f"{load_run(folder)[0].count_params():,}" in report
    assert (folder / "tensorboard" / "projector" / "embedding.tsv").exists()


@pytest.mark.nightly
def test_a_run_goes_on_as_the_kind_that_it_was_begun_with(run):
    kind = changed(*ONE_STEP, "model.kind=transformer", "model.num_heads=2")
    found = invoke(app, run, *kind)
    assert_one_sentence(found, "model.kind", "recurrent", "transformer")


@pytest.mark.nightly
def test_another_run_begins_with_its_weights(run):
    folder = run.with_suffix("")
    model, tokenizer = build_model(load_model_config(folder / "model.json")), Tokenizer(folder / "tokenizer.model")
    assign_start(folder, model, tokenizer, {})
    trained, _ = load_run(folder)
    for weight, expected in zip(model.weights, trained.weights, strict=True):
        np.testing.assert_array_equal(as_numpy(weight), as_numpy(expected))


def pair_of(run, attention, cell="gru"):
    """A model with random weights and a tokenizer."""
    config = RecurrentConfig(vocab_size=300, d_model=16, attention=attention, cell=cell)
    return randomise(build_model(config), scale=0.5), Tokenizer(run.with_suffix("") / "tokenizer.model")


@pytest.mark.release
@pytest.mark.parametrize(
    "attention, cell", [("dot", "gru"), ("general", "lstm"), ("additive", "lstm"), ("none", "lstm")]
)
def test_a_served_graph_translates_and_explains_as_the_translator_does(run, attention, cell):
    pair, lines = pair_of(run, attention, cell), [SENTENCES[0], ""]
    ask = asker(ServedGraph(*pair, OPTIONS, 40))
    expected = [found.text.encode() for found in Translator(*pair, OPTIONS).translate(lines)]
    answer = ask("translate", lines)
    assert answer["translations"][:, 0].tolist() == expected
    assert bool(answer["alignments"][0, 0]) == (attention != "none") and not answer["alignments"][1, 0]
    scored = ask("score", lines[:1], translation=["two cats"])  # an output of random weights may be read as too long
    [pair_score] = Scorer(*pair).score(lines[:1], ["two cats"])
    assert scored["log_probability"][0] == pytest.approx(pair_score.log_probability, abs=1e-3)
    ids, nothing = (list(map(int, line.split())) for line in ask("tokenize", lines)["ids"])
    assert ids == [*pair[1].encode(lines[0]), EOS] and not nothing
    explained = ask("explain", lines[:1])
    assert not any(explained["encoder_attention"]) and not any(explained["decoder_attention"])
    memory = [float(number) for number in explained["memory_attention"][0].split()]
    explanation = Explainer(*pair, OPTIONS).explain(lines[0])
    assert explanation.attention["encoder"] == explanation.attention["decoder"] == []
    assert memory == pytest.approx(np.ravel(explanation.attention["memory"]), abs=2e-3)
    pieces = (len(explanation.translations[0].pieces), len(explanation.source_pieces))
    assert np.shape(explanation.attention["memory"]) == ((1, 1, *pieces) if attention != "none" else (0,))


@pytest.mark.nightly
def test_a_saved_graph_needs_neither_xla_nor_a_new_tensorflow(run, tmp_path):
    pair = pair_of(run, "dot")
    write_saved_model(ServedGraph(*pair, OPTIONS, 40), pair[1], tmp_path, ("serving_default",))
    assert not xla_in(meta_graph(tmp_path))
    assert oldest_tensorflow(operations_in(meta_graph(tmp_path)), "another") == OLDEST


@pytest.mark.nightly
def test_a_model_for_ctranslate2_is_refused(run, tmp_path):
    pytest.importorskip("ctranslate2")
    with pytest.raises(ExportError, match="recurrent"):
        write_model(*pair_of(run, "dot"), tmp_path)
