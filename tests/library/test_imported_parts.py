"""How imported models are read and written, part by part, without the packages of others."""

import json
import re

import numpy as np
import pytest

from keras_transformer.ground.errors import UserError
from keras_transformer.layers.embedding import sinusoidal_encoding
from keras_transformer.models.imported import huggingface
from keras_transformer.models.imported.arrays import read_safetensors
from keras_transformer.models.imported.folder import import_folder, refuse_existing
from keras_transformer.models.imported.generation import read_by_generate, search_of
from keras_transformer.models.imported.huggingface import (
    POSITION_TABLES,
    drop_if_equal,
    sinusoids_in,
    sinusoids_of,
    take_tied,
    tokenizer_of,
    tokens_of,
    vocabularies_in,
)
from keras_transformer.models.imported.vocabulary import Vocabulary
from keras_transformer.models.imported.weight_files import read_weights
from keras_transformer.models.imported.weights import Arrays
from keras_transformer.pieces.pair_tokenizer import PairTokenizer
from keras_transformer.pieces.tokenizer import Tokenizer, model_proto
from tests.support.marian import huggingface_folder
from tests.support.marian_files import safetensors
from tests.support.runs import tokenizer_bytes


def table(sinusoids, positions=5, d_model=8):
    """All sines before all cosines, as Marian and Hugging Face have them."""
    encoding = np.asarray(sinusoidal_encoding(np.arange(positions), d_model, sinusoids))
    return np.concatenate([encoding[:, ::2], encoding[:, 1::2]], axis=1)


@pytest.mark.parametrize("sinusoids", ["paper", "tensor2tensor"])
def test_a_table_is_known_by_its_numbers_although_they_are_rounded(sinusoids):
    exact = table(sinusoids)
    assert sinusoids_of(exact, "t") == sinusoids_of(exact + 0.009, "t") == sinusoids
    exact[3, 2] += 0.02
    with pytest.raises(UserError, match="^The array t is not a table of sinusoids."):
        sinusoids_of(exact, "The array t")
    assert sinusoids_of(table("paper", d_model=2), "t") == "paper"


def test_both_sides_have_the_same_sinusoids_or_the_computed_ones():
    one, other = POSITION_TABLES
    assert sinusoids_in(Arrays({}, "m"), 8) is None
    arrays = Arrays({one: table("tensor2tensor")}, "m")
    assert sinusoids_in(arrays, 8) == "tensor2tensor" and one not in arrays
    with pytest.raises(UserError, match="^m has other sinusoids for its encoder than for its decoder."):
        sinusoids_in(Arrays({one: table("paper"), other: table("tensor2tensor")}, "m"), 8)


A, B = np.ones((2, 3), np.float32), np.zeros((2, 3), np.float32)


def test_tied_arrays_are_one_or_refused_by_the_name_that_differs():
    arrays = Arrays({"x": A, "y": A.copy()}, "m")
    assert take_tied(arrays, ("w", "x", "y"), (2, 3)) is A and not arrays.rest
    with pytest.raises(UserError, match="^m has a z that is not x, although both are shared."):
        take_tied(Arrays({"x": A, "z": B}, "m"), ("w", "x", "y", "z"), (2, 3))
    with pytest.raises(UserError, match="^m has no array w,"):
        take_tied(Arrays({}, "m"), ("w", "x"), (2, 3))
    for others, is_left in (({"x": B, "y": A}, False), ({"x": B}, True), ({}, True)):
        arrays = Arrays({"w": A, **others}, "m")
        drop_if_equal(arrays, "w", ("x", "y"))
        assert ("w" in arrays) == is_left


def test_separate_sides_have_matrices_of_their_own_and_the_shared_one_is_one_of_them():
    names = {"model.encoder.embed_tokens.weight": A, "model.decoder.embed_tokens.weight": B}
    vocabulary = Vocabulary.of_pieces(["<unk>", "</s>"], "v")
    arrays = Arrays({**names, "model.shared.weight": B, "final_logits_bias": B[:, :1].T}, "m")
    settings = {"d_model": 3, "share_encoder_decoder_embeddings": False}
    tokens = tokens_of(arrays, vocabulary, vocabulary, settings)
    assert tokens.embed_source is A and tokens.embed_target is tokens.logits is B and not arrays.rest
    head = {"lm_head.weight": A, **names, "final_logits_bias": B[:, :1].T}
    assert tokens_of(Arrays(head, "m"), vocabulary, vocabulary, settings | {"tie_word_embeddings": False}).logits is A
    with pytest.raises(UserError, match="^m has a lm_head.weight that is not the embedding, although tie_word"):
        tokens_of(Arrays(head, "m"), vocabulary, vocabulary, settings)


@pytest.mark.parametrize(
    "settings, target, expected",
    [
        ({}, ["a"], [("s", 2, 2), ("s", 2, 2)]),
        ({"decoder_start_token_id": 3}, ["a"], [("s", 2, 3), ("s", 2, 3)]),
        ({"share_encoder_decoder_embeddings": True}, ["t"], [("s", 2, 2), ("s", 2, 2)]),
        ({"share_encoder_decoder_embeddings": False}, None, [("s", 2, 2), ("s", 2, 2)]),
        ({"share_encoder_decoder_embeddings": False}, ["t"], [("s", 2, None), ("t", 2, 2)]),
    ],
)
def test_both_sides_have_one_vocabulary_unless_the_target_has_a_file_of_its_own(tmp_path, settings, target, expected):
    def write(name, piece):
        pieces = ["</s>", "<unk>", "<pad>", piece]
        (tmp_path / name).write_text(json.dumps({piece: number for number, piece in enumerate(pieces)}))

    write("vocab.json", "s")
    if target:
        write("target_vocab.json", *target)
    sides = vocabularies_in(tmp_path, {"eos_token_id": 0, "pad_token_id": 2} | settings)
    assert [(side.pieces[3], side.pad, side.start) for side in sides] == expected
    with pytest.raises(UserError, match=re.escape("config.json has decoder_start_token_id: '2'; it must be an id.")):
        vocabularies_in(tmp_path, {"eos_token_id": 0, "pad_token_id": 2, "decoder_start_token_id": "2"})


def test_weights_are_those_of_safetensors_if_there_are_some(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"no weights")
    (tmp_path / "model.safetensors").write_bytes(safetensors({"a": A}))
    assert read_weights(tmp_path).path == tmp_path / "model.safetensors"


def write_parts(folder, weight_map, **parts):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": weight_map}))
    for name, arrays in parts.items():
        (folder / name).write_bytes(safetensors(arrays))


def test_weights_in_several_files_are_one_model_by_their_index(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"no weights")
    write_parts(tmp_path, {"a": "first", "b": "second", "c": "first"}, first={"a": A, "c": A + 1}, second={"b": A + 2})
    arrays = read_weights(tmp_path)
    for number, name in enumerate("acb"):
        np.testing.assert_array_equal(arrays.take(name, A.shape), A + number)
    arrays.refuse_rest()


@pytest.mark.parametrize(
    ("weight_map", "sentence"),
    [
        ({"a": "first", "b": "first"}, "index.json tells of an array b, which no file has"),
        ({"a": "../first"}, "index.json has no weight_map from arrays to names of files beside it"),
        ({"a": "*"}, "index.json has no weight_map from arrays to names of files beside it"),
        ({"a": 1}, "index.json has no weight_map from arrays to names of files beside it"),
        (["first"], "index.json has no weight_map from arrays to names of files beside it"),
        ({}, "index.json has no weight_map from arrays to names of files beside it"),
    ],
)
def test_an_index_tells_of_arrays_in_files_beside_it(tmp_path, weight_map, sentence):
    write_parts(tmp_path, weight_map, first={"a": A})
    with pytest.raises(UserError, match=re.escape(sentence)):
        read_weights(tmp_path)


def test_a_file_that_its_index_tells_of_is_missed_by_name(tmp_path):
    write_parts(tmp_path, {"a": "first", "b": "second"}, first={"a": A})
    with pytest.raises(FileNotFoundError) as raised:
        read_weights(tmp_path)
    assert raised.value.filename == str(tmp_path / "second")


def test_the_search_is_that_of_generation_config_or_without_it_of_config(tmp_path):
    def kept(settings):
        return search_of(*read_by_generate(tmp_path, settings))

    usual, settings = {"length_normalization": "tokens", "length_penalty": 1.0}, {"num_beams": 6, "length_penalty": 0.5}
    assert kept({}) == usual
    assert kept(settings) == usual | {"beam_size": 6, "length_penalty": 0.5}
    (tmp_path / "generation_config.json").write_text('{"num_beams": 3}')
    assert kept(settings) == usual | {"beam_size": 3}


def test_one_model_with_our_ids_for_both_sides_is_one_tokenizer_and_any_other_two(tmp_path, monkeypatch):
    model = tokenizer_bytes()
    (tmp_path / "source.spm").write_bytes(model)
    with pytest.raises(UserError, match="has no target.spm: the SentencePiece models of both sides are needed."):
        tokenizer_of(tmp_path, [])
    (tmp_path / "target.spm").write_bytes(model)
    pieces = Tokenizer.of_bytes(model).pieces()
    assert type(tokenizer_of(tmp_path, pieces)) is Tokenizer
    assert type(tokenizer_of(tmp_path, [*pieces, "more"])) is PairTokenizer
    proto = model_proto(model)
    proto.trainer_spec.vocab_size += 1  # other bytes, the same pieces
    (tmp_path / "target.spm").write_bytes(proto.SerializeToString())
    assert type(tokenizer_of(tmp_path, pieces)) is PairTokenizer
    assert not huggingface.has_own_ids(b"no model", pieces)


@pytest.mark.parametrize(
    "array, shape, sentence",
    [
        (A, (3,), "The array a of m has the shape (2, 3); its options ask for (3)."),
        (A, (None, 4), "The array a of m has the shape (2, 3); its options ask for (any, 4)."),
        (A * np.inf, (2, 3), "The array a of m has values that are NaN or infinite."),
        (A.astype(int), (2, 3), "The array a of m is of type int64: only floats can be imported."),
    ],
)
def test_an_array_that_does_not_fit_is_refused_with_what_it_has(array, shape, sentence):
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}"):
        Arrays({"a": array}, "m").take("a", shape)


def test_a_matrix_of_one_row_is_a_vector_and_what_nobody_takes_is_named():
    arrays = Arrays({"a": A[:1], "e": A, "d": A, "c": A, "b": A}, "m")
    assert arrays.take("a", (3,)).shape == (3,)
    with pytest.raises(
        UserError, match="^m has 4 arrays that a model of its options has no place for, such as b, c, d:"
    ):
        arrays.refuse_rest()


# the run folder


@pytest.mark.parametrize("kind", ["file", "folder", "link"])
def test_nothing_is_written_over(tmp_path, kind):
    run = tmp_path / "run"
    if kind == "link":
        run.symlink_to("nowhere")
    elif kind == "file":
        run.touch()
    else:
        run.mkdir()
        (run / "x").touch()
    with pytest.raises(UserError, match=f"^{run} exists already: name a folder that does not."):
        refuse_existing(run)


@pytest.mark.parametrize("sinusoids, note", [("tensor2tensor", huggingface.OF_TABLE), ("paper", None)])
def test_sinusoids_that_a_file_holds_are_those_of_the_model(tmp_path, sinusoids, note):
    folder = huggingface_folder(tmp_path / "opus-mt")
    arrays = dict(read_safetensors(folder / "model.safetensors"))
    held = dict.fromkeys(POSITION_TABLES, table(sinusoids, 9, 48).astype(np.float32))
    (folder / "model.safetensors").write_bytes(safetensors(arrays | held))
    for positions in huggingface.POSITIONS:
        model = import_folder(folder, positions)
        is_of_table = note and positions == huggingface.HUGGINGFACE
        assert model.config.sinusoids == (sinusoids if is_of_table else huggingface.SINUSOIDS[positions])
        assert model.notes == ((note,) if is_of_table else (huggingface.NOTES[positions],))
