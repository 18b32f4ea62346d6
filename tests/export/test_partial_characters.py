"""Bytes that are no whole character, as where a limit ends a translation of ByT5, are in no text of any engine."""

import functools

import numpy as np
import pytest
import tensorflow as tf

import keras_transformer as kt
from export import __main__ as command
from export.graph.served_graph import ServedGraph
from keras_transformer.models.imported.folder import import_folder, write_run
from keras_transformer.pieces.graph_tokenizer import graph_tokenizer
from keras_transformer.runs.saved_run import load_run
from keras_transformer.translation.translator import Translator
from tests.support.commands import invoke
from tests.support.exports import asker
from tests.support.peers import Peer, needs
from tests.support.runs import SENTENCES
from tests.support.t5 import BYT5, MADLAD, MT5, t5_folder

transformers = Peer("transformers")
WHOLE = ["caf\u00e9", "\u732b", "\U0001f600", "\ufffd", "a\u0301", "x y", "\u2581", "\ufeffb"]
ENDS = [text.encode()[:-1] for text in WHOLE] + [b"\xe4\xb8A", b"\xc3\xc3\xa9", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
ENDS += [b"\xc0\xaf", b"\x80", b"\xff", b"\xf0\x9f\x98\xe4\xb8\xad", b"\xe4" * 4]
BY_CHANCE = [bytes(row) for row in np.random.default_rng(1).choice([65, 195, 169, 226, 130, 172, 240, 159], (100, 9))]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    return functools.cache(lambda kind: import_folder(t5_folder(tmp_path_factory.mktemp(kind) / "there", kind, 8.0)))


@pytest.mark.parametrize("kind", [BYT5, MADLAD, MT5])
def test_bytes_of_no_character_are_left_out_in_python_and_in_the_graph(imported, kind):
    tokenizer = imported(kind).tokenizer
    number_of = {piece: number for number, piece in enumerate(tokenizer.pieces())}
    rows = [text.encode() for text in WHOLE] + ENDS + BY_CHANCE
    ids = [[number_of[f"<0x{byte:02X}>"] for byte in row] for row in rows]
    expected = [row.decode("utf-8", "ignore").replace("\u2581", " ").strip() for row in rows]
    assert [tokenizer.decode(row) for row in ids] == expected
    graph = graph_tokenizer(tokenizer.model_bytes)
    assert [text.decode() for text in graph.decode(tf.ragged.constant(ids, tf.int32)).numpy()] == expected
    assert [text.decode() for text in graph.decode(tf.constant([ids[-1], ids[-2]])).numpy()] == expected[:-3:-1]


def test_pieces_of_text_between_bytes_stay(imported):
    tokenizer = imported(MADLAD).tokenizer
    text = tokenizer.encode("two dogs")
    half = [tokenizer.pieces().index(piece) for piece in ("<0xE7>", "<0x8C>")]
    assert tokenizer.decode([*half, *text, *half]) == "two dogs"
    assert tokenizer.decode([*text, *half, tokenizer.pieces().index("<0xAB>"), *text]) == "two dogs\u732b two dogs"


@pytest.mark.release
@needs("transformers")
def test_the_text_of_bytes_is_that_of_the_real_tokenizer(imported):
    ours, theirs = imported(BYT5).tokenizer, transformers.ByT5Tokenizer()
    for row in ENDS + BY_CHANCE:
        ids = [byte + theirs.offset for byte in row]
        assert ours.decode([number + 1 for number in ids]) == theirs.decode(ids).replace("\u2581", " ").strip()


@pytest.mark.nightly
def test_every_engine_leaves_them_out_of_its_translations(imported, tmp_path):
    """Of a model with random weights, most bytes are of no character."""
    write_run(imported(BYT5), tmp_path / "run", SENTENCES[:3])
    options = kt.SearchOptions(2, 1.0, extra_length=6, length_normalization="tokens")
    found = Translator.load(tmp_path / "run", options, max_source_tokens=60).translate(SENTENCES[:6])
    surfaces = imported(BYT5).tokenizer.surfaces()
    written = [b"".join(surfaces[number] for number in each.ids) for each in found]
    assert any(len(row) > len(row.decode("utf-8", "ignore").encode()) for row in written)
    expected = [row.decode("utf-8", "ignore").strip() for row in written]
    assert [each.text for each in found] == expected
    ask = asker(ServedGraph(*load_run(tmp_path / "run"), options, 60))
    served = ask("translate", SENTENCES[:6])["translations"][:, 0]
    assert [text.decode() for text in served] == expected
    how = "--max-source-tokens", 60, "--extra-length", 6, "--beam-size", 2
    result = invoke(command.app, tmp_path / "run", "--to", tmp_path / "lite", "--format", "litert", *how)
    assert result.exit_code == 0, result.output
    assert [each.text for each in kt.LiteTranslator(tmp_path / "lite").translate(SENTENCES[:6])] == expected
