"""The exported graph translates as the Translator does, in any batch, and needs neither Python nor XLA."""

import sys

import keras
import pytest
import tensorflow as tf
from tensorflow_serving.apis.prediction_log_pb2 import PredictionLog

from export.certificate.agreement import TIES, agreement
from export.graph.operations import meta_graph, refuse_xla, xla_in
from export.graph.served_graph import ServedGraph
from export.graph.version_folder import WARM_UP_ROWS, write_saved_model
from export.versions import ExportError
from keras_transformer.model import Transformer
from keras_transformer.pieces.normalization import BLANK, is_blank
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.saved_run import load_run
from keras_transformer.runs.versions import WARM_UP_REQUESTS
from keras_transformer.search.options import SearchOptions
from keras_transformer.translation.exported import ExportedTranslator
from keras_transformer.translation.precision import in_precision
from keras_transformer.translation.translator import Translator
from tests.support.exports import OPTIONS, asker, write_version
from tests.support.runs import RUN_MODEL, SENTENCES, random_run, tokenizer_bytes

MAX_SOURCE_TOKENS = 60
STRANGE = ["", " ", " \t\u3000\x1f", "x" * 10_000, "🙂 한국어", "▁", "\u200b", "a\x00b", "the cat\nsat"]
VARIANTS = {
    "separate embeddings": {"shared_embeddings": False},
    "pre-norm": {"norm": "pre", "attention_bias": True},
    "learned positions": {"positions": "learned", "max_positions": 24},
}


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """The Translator of a run, and its exported version, which was moved after it was written."""
    folder = tmp_path_factory.mktemp("export")
    translator = write_version(random_run(folder / "run"), folder / "1", max_source_tokens=MAX_SOURCE_TOKENS)
    (folder / "elsewhere").mkdir()
    version = (folder / "1").rename(folder / "elsewhere" / "1")
    return translator, ExportedTranslator(version)


@pytest.fixture(scope="module")
def graph(both):
    return meta_graph(both[1].path)


def assert_same(found, expected):
    assert [translation.text for translation in found] == [translation.text for translation in expected]
    assert [translation.score for translation in found] == pytest.approx([t.score for t in expected], abs=1e-4)


def test_exported_equals_in_process(both):
    translator, exported = both
    expected = translator.translate(SENTENCES)
    assert len({len(translation.ids) for translation in expected}) > 5  # some end early, some at their limit
    assert_same(exported.translate(SENTENCES), expected)


@pytest.mark.nightly
def test_both_translate_unusual_lines_alike(both):
    translator, exported = both
    expected = translator.translate(STRANGE)
    found = exported.translate(STRANGE)
    assert_same(found, expected)
    assert found[:3] == [Translation("", 0.0)] * 3
    assert len(expected[3].ids) <= MAX_SOURCE_TOKENS + OPTIONS.extra_length


@pytest.mark.release
@pytest.mark.parametrize("variant", VARIANTS)
def test_every_kind_of_transformer_is_exported(tmp_path, variant):
    run = random_run(tmp_path / "run", **VARIANTS[variant])
    translator = write_version(run, tmp_path / "1", max_source_tokens=MAX_SOURCE_TOKENS)
    lines = [*SENTENCES, "x" * 10_000, ""]
    assert_same(ExportedTranslator(tmp_path / "1").translate(lines), translator.translate(lines))


@pytest.mark.nightly
def test_an_export_in_bfloat16_has_half_the_size_and_translates_as_the_translator_in_bfloat16(tmp_path, both):
    transformer, tokenizer = load_run(random_run(tmp_path / "run"))
    transformer = in_precision(transformer, "bfloat16")
    served = ServedGraph(transformer, tokenizer, OPTIONS, MAX_SOURCE_TOKENS)
    write_saved_model(served, tokenizer, tmp_path / "1", ("serving_default",))
    translator = Translator(transformer, tokenizer, OPTIONS, precision="bfloat16")
    found = ExportedTranslator(tmp_path / "1").translate(SENTENCES)
    assert not agreement(found, translator.translate(SENTENCES), SENTENCES, TIES["bfloat16"]).disagreements
    sizes = [
        sum(file.stat().st_size for file in (path / "variables").iterdir()) for path in (tmp_path / "1", both[1].path)
    ]
    assert sizes[0] < 0.6 * sizes[1]


@pytest.mark.nightly
def test_a_beam_of_one_is_exported(tmp_path):
    translator = write_version(random_run(tmp_path / "run"), tmp_path / "1", SearchOptions(beam_size=1, extra_length=5))
    assert_same(ExportedTranslator(tmp_path / "1").translate(SENTENCES), translator.translate(SENTENCES))


def test_neither_order_nor_batch_changes_a_translation(both):
    _, exported = both
    lines = [*SENTENCES, *STRANGE]
    together = exported.translate(lines)
    assert_same(exported.translate(lines[::-1])[::-1], together)
    exported = ExportedTranslator(exported.path, batch_size=1)
    assert_same(exported.translate(lines), together)


def test_a_batch_may_be_empty(both):
    _, exported = both
    assert exported.translate([]) == []
    output = tf.saved_model.load(str(exported.path)).signatures["serving_default"](tf.constant([], tf.string))
    assert output["translation"].shape == output["score"].shape == (0,)


def test_the_graph_and_python_agree_on_what_is_blank():
    characters = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    found = tf.strings.regex_full_match(tf.constant(characters), BLANK).numpy().tolist()
    assert found == [is_blank(character) for character in characters]


def test_the_signature_takes_text_and_returns_translation_score_and_whether_it_was_cut(graph):
    signature = graph.signature_def["serving_default"]
    described = {
        name: (tensor.dtype, [axis.size for axis in tensor.tensor_shape.dim])
        for name, tensor in (*signature.inputs.items(), *signature.outputs.items())
    }
    assert described == {
        "text": (tf.string.as_datatype_enum, [-1]),
        "translation": (tf.string.as_datatype_enum, [-1]),
        "score": (tf.float32.as_datatype_enum, [-1]),
        "is_cut": (tf.bool.as_datatype_enum, [-1]),
        "truncated": (tf.bool.as_datatype_enum, [-1]),
    }


def test_nothing_in_the_graph_needs_xla_or_draws_random_numbers(graph, both):
    assert xla_in(graph) == set()
    refuse_xla(both[1].path)
    operations = {node.op for function in graph.graph_def.library.function for node in function.node_def}
    assert "SentencepieceTokenizeOp" in operations  # the library of functions was searched, which holds all operations
    assert not {operation for operation in operations if "Random" in operation or "Dropout" in operation}


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (tf.function(lambda x: keras.ops.slice_update(x, (1,), tf.ones(2))), {"XlaDynamicUpdateSlice"}),
        (tf.function(lambda x: x + 1.0, jit_compile=True), {"_XlaMustCompile"}),
    ],
    ids=["slice_update", "jit_compile"],
)
def test_a_graph_that_needs_xla_is_caught(tmp_path, function, found):
    module = tf.Module()
    module.function = function
    signature = function.get_concrete_function(tf.TensorSpec([4]))
    tf.saved_model.save(module, str(tmp_path), signature)
    assert xla_in(meta_graph(tmp_path)) == found
    with pytest.raises(ExportError, match=next(iter(found))):
        refuse_xla(tmp_path)


def test_only_weights_are_saved(both):
    saved = tf.train.list_variables(str(both[1].path / "variables/variables"))
    shapes = [tuple(shape) for name, shape in saved if name != "_CHECKPOINTABLE_OBJECT_GRAPH"]
    assert sorted(shapes) == sorted(tuple(weight.shape) for weight in Transformer(RUN_MODEL).weights)


def test_a_model_of_another_precision_is_refused(tmp_path):
    (tmp_path / "tokenizer.model").write_bytes(tokenizer_bytes())
    tokenizer = Tokenizer(tmp_path / "tokenizer.model")
    with pytest.raises(ExportError, match="bfloat16, float32; float32 alone or bfloat16 alone"):
        ServedGraph(Transformer(RUN_MODEL, dtype="mixed_bfloat16"), tokenizer, OPTIONS, MAX_SOURCE_TOKENS)


@pytest.mark.nightly
def test_the_warm_up_requests_are_prediction_logs(both):
    records = tf.data.TFRecordDataset(str(both[1].path / WARM_UP_REQUESTS))
    requests = [PredictionLog.FromString(record.numpy()).predict_log.request for record in records]
    assert {request.model_spec.signature_name for request in requests} == {"serving_default"}
    assert {name for request in requests for name in request.inputs} == {"text"}
    texts = [[text.decode() for text in request.inputs["text"].string_val] for request in requests]
    assert [len(batch) for batch in texts] == [1, 1, 1, 3, WARM_UP_ROWS]
    assert texts[3] == [text for batch in texts[:3] for text in batch]
    assert set(texts[4]) == set(texts[0])
    lengths = [len(both[0].tokenizer.encode(text)) for text in texts[3]]
    assert 0 < lengths[0] < lengths[1] < lengths[2]


@pytest.mark.nightly
@pytest.mark.parametrize("option", [{"coverage_penalty": 0.7}, {"length_normalization": "tokens"}])
def test_what_an_export_has_in_its_scores_is_in_what_it_finds_and_in_what_it_scores(pair, option):
    options, lines = SearchOptions(extra_length=6, **option), SENTENCES[:6]
    ask = asker(ServedGraph(*pair, options, MAX_SOURCE_TOKENS))
    expected = Translator(*pair, options).translate(lines)
    found = ask("translate", lines)
    assert found["scores"][:, 0] == pytest.approx([one.score for one in expected], abs=1e-4)
    scored = ask("score", lines, translation=found["translations"][:, 0])
    same = scored["pieces"] == found["pieces"][:, 0]
    assert scored["score"][same] == pytest.approx(found["scores"][same, 0], abs=1e-4)
    assert same.sum() >= 2
