"""Every value of every field of TransformerConfig computes the same wherever it is computed, or is refused by name."""

import dataclasses
import functools
import sys

import numpy as np
import pytest
import tensorflow as tf
from ai_edge_litert.interpreter import Interpreter
from keras import ops

import keras_transformer as kt
from export.expressible import SIZES, expressible
from export.graph.served_graph import ServedGraph
from export.graph.version_folder import write_saved_model
from export.huggingface.settings import Languages, config_json, generation_json, write_json, write_tokenizer
from export.huggingface.weights import arrays_of, refuse_other_models, write_safetensors
from export.litert.convert import LiteHow, lite_model, takes_any_length
from export.versions import ExportError
from keras_transformer.config import ACTIVATIONS, GATED_ACTIVATIONS, TransformerConfig
from keras_transformer.ground.tokens import BOS, EOS
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.models.imported.folder import import_folder
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.lite_folder import ALIGN, Room
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.plan import SearchPlan
from keras_transformer.search.search import search
from keras_transformer.search.step import IncrementalDecoder
from keras_transformer.translation.aligner import attention_by
from keras_transformer.translation.translator import Translator
from tests.support.ctranslate2_models import exported
from tests.support.fields import VALUES, every_graph, every_value
from tests.support.models import as_numpy, assert_close, batch_of, normal
from tests.support.peers import needs
from tests.support.runs import RUN_MODEL, SENTENCES, decisive, tokenizer_bytes
from train.cost.cost import parameter_count

OPTIONS = SearchOptions(beam_size=2, extra_length=2)
TOKENIZER = Tokenizer.of_bytes(tokenizer_bytes())
SOURCE, TARGET = ([*TOKENIZER.encode(SENTENCES[number]), EOS] for number in (0, 1))


@functools.cache
def model_of(config):
    return decisive(kt.Transformer(config), end=0.0)


def log_probs(logits):
    """Log-probability of each token of TARGET, from logits (T, V)."""
    logits = as_numpy(logits)
    return (logits - np.log(np.exp(logits).sum(-1, keepdims=True)))[np.arange(len(TARGET)), TARGET]


def whole(model):
    """The log-probability of each token of TARGET after SOURCE, from all positions at once."""
    return log_probs(model(batch_of([[(SOURCE, [BOS, *TARGET[:-1]])]], len(SOURCE), len(TARGET)), training=False)[0])


def test_the_table_of_values_has_every_field():
    assert list(VALUES) == [field.name for field in dataclasses.fields(TransformerConfig)]


@every_value
def test_a_step_from_a_cache_and_the_whole_model_give_a_token_the_same_probability(config):
    decoder = IncrementalDecoder(model_of(config))
    weights, state, logits = decoder.step_weights(), decoder.start(np.array([SOURCE], "int32"), 1), []
    for position, token in enumerate([BOS, *TARGET[:-1]]):
        of_step, state = decoder.step(weights, state, ops.convert_to_tensor([[token]]), ops.convert_to_tensor(position))
        logits.append(as_numpy(of_step)[0])
    assert_close(log_probs(logits), whole(model_of(config)), atol=1e-4)


@every_value
def test_the_cost_counts_the_weights_that_there_are(config):
    assert parameter_count(config) == model_of(config).count_params()


@pytest.mark.nightly
@needs("ctranslate2")
@every_value
def test_ctranslate2_gives_a_token_the_same_probability_or_refuses_by_name(config, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # which its specifications would import for seconds
    try:
        translator = exported(model_of(config), TOKENIZER, tmp_path / "model")
    except ExportError as error:
        assert_names_what_differs(error, config)
        return
    pieces = TOKENIZER.pieces()
    [found] = translator.score_batch([[pieces[i] for i in SOURCE[:-1]]], [[pieces[i] for i in TARGET[:-1]]])
    assert_close(found.log_probs, whole(model_of(config)), atol=1e-3)


@pytest.mark.nightly
@every_value
def test_hugging_face_gives_a_token_the_same_probability_or_refuses_by_name(config, tmp_path):
    """An import of such a folder computes what MarianMTModel does (tests/library/test_huggingface.py)."""
    try:
        refuse_other_models(config)
    except ExportError as error:
        assert_names_what_differs(error, config)
        return
    write_safetensors(tmp_path / "model.safetensors", arrays_of(model_of(config)))
    write_json(tmp_path / "config.json", config_json(config))
    write_json(tmp_path / "generation_config.json", generation_json(OPTIONS, 40))
    write_tokenizer(TOKENIZER, Languages(), 40, tmp_path)
    assert_close(whole(import_folder(tmp_path).transformer()), whole(model_of(config)), atol=1e-2)  # another epsilon


@pytest.mark.release
@every_graph
def test_a_saved_model_translates_as_the_run_does(config, tmp_path):
    model = model_of(config)
    graph = ServedGraph(model, TOKENIZER, OPTIONS, 30)
    write_saved_model(graph, TOKENIZER, tmp_path, ("serving_default",))
    loaded = tf.saved_model.load(str(tmp_path))  # which owns what its signatures read
    found = loaded.signatures["serving_default"](tf.constant(SENTENCES[:2]))
    expected = Translator(model, TOKENIZER, OPTIONS, max_source_tokens=30).translate(SENTENCES[:2])
    assert [text.decode() for text in found["translation"].numpy()] == [translation.text for translation in expected]
    assert_close(found["score"], [translation.score for translation in expected], atol=1e-3)


@pytest.mark.release
@every_graph
def test_litert_finds_the_hypothesis_that_the_search_finds(config):
    room = Room(1, len(SOURCE))
    alignment = AlignedBy(config.decoder_layers, True) if takes_any_length(config) else None
    file = lite_model(model_of(config), LiteHow(OPTIONS), [room], None, alignment=alignment)
    source_ids, target_ids = np.array([SOURCE], "int32"), np.array([TARGET], "int32")
    opened = Interpreter(model_content=file)
    found = opened.get_signature_runner(room.signature)(source_ids=source_ids, n_best=np.array([1], "int32"))
    if alignment:
        attention = attention_by([alignment], model_of(config))(source_ids, target_ids)[:, 0]
        asked = {"source_ids": source_ids, "target_ids": target_ids}
        assert_close(opened.get_signature_runner(ALIGN)(**asked)["attention"], attention, atol=1e-4)
    expected = search(IncrementalDecoder(model_of(config)), source_ids, SearchPlan(OPTIONS))
    length = expected.ids.shape[-1]
    np.testing.assert_array_equal(found["ids"][:, 0, :length], as_numpy(expected.ids)[:, 0])
    assert_close(found["scores"][:, 0], as_numpy(expected.scores)[:, 0], atol=1e-3)


@pytest.mark.slow
def test_litert_computes_every_activation_as_keras_does(tmp_path):
    names = ACTIVATIONS + GATED_ACTIVATIONS
    networks = [FeedForward(6, activation) for activation in names]
    states = normal(2, 3, 4)
    expected = {name: as_numpy(network(states)) for name, network in zip(names, networks, strict=True)}

    def computed(states):
        return {name: network(states) for name, network in zip(names, networks, strict=True)}

    module = tf.Module()
    module.variables_of_networks = [weight.value for network in networks for weight in network.weights]
    function = tf.function(computed, [tf.TensorSpec(states.shape, name="states")])
    no_gradients = tf.saved_model.SaveOptions(experimental_custom_gradients=False)
    tf.saved_model.save(module, str(tmp_path), {"serving_default": function}, no_gradients)
    file = tf.lite.TFLiteConverter.from_saved_model(str(tmp_path)).convert()
    found = Interpreter(model_content=file).get_signature_runner()(states=states)
    for name in names:
        assert_close(found[name], expected[name], atol=1e-4)


def assert_names_what_differs(error, config):
    """An error names a field in which a configuration differs from RUN_MODEL, and its value."""
    differing = dataclasses.asdict(config).items() - dataclasses.asdict(RUN_MODEL).items()
    assert any(f"model.json has the {field} {value!r};" in str(error) for field, value in differing)


def test_a_field_that_an_exporter_does_not_know_is_refused_unless_it_has_its_default():
    @dataclasses.dataclass(frozen=True)
    class Later(TransformerConfig):
        gate: str = "none"

    assert expressible(Later(), "MarianMTModel", SIZES) == Later()
    with pytest.raises(ExportError, match="model.json has the gate 'sigmoid'; MarianMTModel has none alone"):
        expressible(Later(gate="sigmoid"), "MarianMTModel", SIZES)
