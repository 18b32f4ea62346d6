"""An export as Python opens it: each line has its own translation, and what does not translate is refused."""

import contextlib
import types

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from export.versions import ExportError
from keras_transformer.ground.errors import InputError
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.pieces.sources import encoded_lines
from keras_transformer.pieces.translation import OUTPUTS, Translation, translations_of
from keras_transformer.runs.lite_folder import PREFIX_TOKENS
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.translation.exported import ExportedTranslator, defaults_in
from tests.support.echo import write_echo


def tell(translator, **functions):
    """Let the export have functions of texts as signatures."""

    class Signature:
        structured_input_signature = (), {"text": tf.TensorSpec([None], tf.string, "text")}

        def __init__(self, function):
            self.function, self.structured_outputs = function, function(text=tf.constant([""]))

        def __call__(self, text):
            return self.function(text=text)

    signatures = {name: Signature(function) for name, function in functions.items()}
    translator._loaded = types.SimpleNamespace(signatures={**translator._loaded.signatures, **signatures})


@pytest.mark.parametrize("batch_size", [1, 2, 100])
def test_each_line_has_its_own_translation_in_the_order_of_the_lines(batch_size, tmp_path):
    write_echo(tmp_path / "1")
    translator = ExportedTranslator(tmp_path, batch_size)
    lines = ["a dog", "a", "", "a very long line", "b"]
    found = translator.translate(lines)
    assert [(each.text, each.score) for each in found] == [(line, -len(line)) for line in lines]
    assert translator.translate([]) == [] and translator.path == tmp_path / "1"


def test_an_export_that_says_how_many_sentences_before_one_its_model_reads_translates_sentences(tmp_path):
    (tmp_path / "1" / "assets.extra").mkdir(parents=True)
    (tmp_path / "1" / "assets.extra" / "context.json").write_text('{"sentences": 2, "sides": "both"}')
    write_echo(tmp_path / "1")
    assert [each.text for each in ExportedTranslator(tmp_path).translate(["a dog", "b"])] == ["a dog", "b"]


def test_a_batch_has_a_line_at_least(tmp_path):
    with pytest.raises(ExportError, match="batch_size is 0; it must be at least 1"):
        ExportedTranslator(tmp_path, 0)


@pytest.mark.parametrize("first_line", [1, 40])
def test_lines_of_which_the_beginning_alone_is_read_are_named_in_their_order_and_others_are_not(
    first_line, tmp_path, caplog
):
    """An export of the first versions does not say which they are."""
    write_echo(tmp_path / "1")
    translator, lines = ExportedTranslator(tmp_path, batch_size=2), ["b", "cc cc", "a", "dd dd d", ""]
    echo = translator._loaded.signatures["serving_default"]
    translator.translate(lines)
    assert not caplog.records
    tell(translator, serving_default=lambda text: echo(text=text) | {"truncated": tf.strings.length(text) > 3})
    assert [each.text for each in translator.translate(lines, first_line)] == lines
    named = [record.getMessage().partition(" is longer")[0] for record in caplog.records]
    assert named == [f"line {first_line + 1}", f"line {first_line + 3}"]


@pytest.mark.parametrize("names", [None, ["translation"], ["score"], ["other"]])
def test_a_saved_model_that_does_not_translate_is_told_so(names, tmp_path):
    module = tf.Module()
    module.serve = tf.function(lambda text: dict.fromkeys(names or ["translation", "score"], text), autograph=False)
    signature = module.serve.get_concrete_function(tf.TensorSpec([None], tf.string, name="text"))
    tf.saved_model.save(module, str(tmp_path / "1"), {"serving_default" if names else "other": signature})
    with pytest.raises(ExportError, match="does not translate text: it has no signature serving_default with"):
        ExportedTranslator(tmp_path)


@pytest.mark.parametrize(
    "error", [OSError, ValueError, KeyError, lambda message: tf.errors.DataLossError(None, None, message)]
)
def test_a_version_that_cannot_be_loaded_is_named_with_the_first_line_of_the_reason(error, tmp_path, monkeypatch):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "saved_model.pb").write_bytes(b"x")
    with pytest.raises(ExportError, match=f"^{tmp_path}/1 cannot be loaded: "):
        ExportedTranslator(tmp_path)

    def load(path):
        raise error("the reason")

    monkeypatch.setattr(tf.saved_model, "load", load)
    with pytest.raises(ExportError, match=f"^{tmp_path}/1 cannot be loaded: '?the reason'?\\.$"):
        ExportedTranslator(tmp_path)


@pytest.mark.parametrize("tokenizer_tells", [True, False])  # older exports have no such output
def test_a_sentence_that_is_longer_than_the_export_reads_is_split_as_the_translator_splits_it(
    tokenizer_tells, tmp_path, caplog
):
    write_echo(tmp_path / "1")
    asked, longest = [], 12

    def graph(text):
        asked.extend(text.numpy().tolist())
        lengths = tf.strings.length(text)
        return {
            "translation": tf.strings.upper(text),
            "score": tf.zeros(tf.shape(text)),
            "truncated": lengths > longest,
        }

    text = "One dog, two cats and three hens. Four.\n\nfive six seven  eight nine"
    translator = ExportedTranslator(tmp_path, 2)
    tell(translator, serving_default=graph)
    if tokenizer_tells:
        tell(translator, tokenize=lambda text: {"truncated": tf.strings.length(text) > longest})
    asked.clear()
    document = DocumentTranslator(translator.translate, "en", translator.are_too_long).document(text)
    of_lengths = DocumentTranslator(
        lambda lines: [Translation(line.upper(), 0.0, is_cut=None) for line in lines],
        are_too_long=lambda lines: [len(line) > longest for line in lines],
    ).document(text)
    assert document == of_lengths and document.text == text.upper() and not caplog.records
    if tokenizer_tells:
        assert sorted(asked) == sorted(text[slice(*each[:2])].encode() for each in document.sentences)


@pytest.mark.parametrize("words", range(1, 12))
def test_a_litert_model_tells_what_it_does_not_read_as_a_whole(pair, words, caplog):
    translator = LiteTranslator.__new__(LiteTranslator)
    translator.tokenizer, translator.description = pair[1], types.SimpleNamespace(max_source_tokens=9)
    line = "fox " * words
    list(encoded_lines(pair[1], [line], 9))
    assert translator.are_too_long([line]) == [bool(caplog.records)]


@pytest.mark.parametrize(
    ("prefix", "sentence"),
    [
        ("a " * PREFIX_TOKENS, None),
        ("a " * (PREFIX_TOKENS + 1), "has 33 tokens; at most 32"),
        ("a " + "q" * 20, "a word of more than 8 tokens"),
    ],
)
def test_a_litert_model_tells_before_a_search_that_it_has_no_room_for_a_prefix(pair, prefix, sentence):
    translator = LiteTranslator.__new__(LiteTranslator)
    translator.tokenizer, translator.description = pair[1], types.SimpleNamespace(max_source_tokens=9)
    with pytest.raises(InputError, match=sentence) if sentence else contextlib.nullcontext():
        translator.check_prefix(prefix)


VALUES = (["the fox", "a hen"], [np.float32(-0.5), -2], [True, False], [np.float32(0.25), 0.75])


def test_every_output_is_told():
    assert translations_of(dict(zip(OUTPUTS, VALUES, strict=True))) == [
        Translation("the fox", -0.5, is_cut=True, confidence=0.25),
        Translation("a hen", -2.0, is_cut=False, confidence=0.75),
    ]


def test_what_an_older_export_does_not_tell_is_unknown():
    older = translations_of(dict(zip(OUTPUTS[:2], VALUES[:2], strict=True)))
    assert [(each.score, each.is_cut, each.confidence) for each in older] == [(-0.5, None, None), (-2.0, None, None)]
    assert translations_of(dict(zip(OUTPUTS, [[], [], [], []], strict=True))) == []


def test_the_defaults_of_each_signature_are_read_from_its_file(tmp_path):
    saved = saved_model_pb2.SavedModel()
    signatures = saved.meta_graphs.add().signature_def
    signatures["plain"].method_name = "a"
    signatures["with"].defaults["times"].CopyFrom(tf.make_tensor_proto([2]))
    (tmp_path / "saved_model.pb").write_bytes(saved.SerializeToString())
    found = defaults_in(tmp_path)
    assert found["plain"] == {} and found["with"]["times"] == 2
