"""The alignment of words by attention, against the one of the served graph."""

import numpy as np
import pytest
import tensorflow as tf

from export.graph.text_outputs import alignments
from keras_transformer.ground.tokens import EOS
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.runs.aligned_by import LAST_BUT_ONE
from keras_transformer.translation.aligner import Aligner
from keras_transformer.translation.forced import ForcedDecoder
from tests.support.models import LIVELY
from tests.support.runs import SENTENCES


@pytest.mark.parametrize(
    ("config", "is_able"),
    [
        (RecurrentConfig(vocab_size=14, attention="none"), False),
        (RecurrentConfig(vocab_size=14), True),
        *((LIVELY.replace(decoder_layers=layers), True) for layers in (1, 2, 6)),
    ],
)
def test_every_model_aligns_that_attends_to_its_source_however_few_blocks_it_has(config, is_able, monkeypatch):
    monkeypatch.setattr("keras_transformer.translation.aligner.config_of", lambda config: config)  # without a model
    aligner = Aligner(config, None, 512)
    assert aligner.aligns is is_able
    assert is_able or aligner.align([[5, EOS], [6, 7, EOS]], [[8, EOS], [EOS]]) == [[], []]


def test_words_are_aligned_as_in_the_served_graph(pair):
    transformer, tokenizer = pair
    pieces = tokenizer.pieces()
    sources = [[*tokenizer.encode(line), EOS] for line in SENTENCES[:3]]
    outputs = [[*tokenizer.encode(line), EOS] for line in SENTENCES[3:6]]
    aligner = Aligner(transformer, tokenizer, 512)
    found = aligner.align(sources, outputs)
    assert aligner.align([], []) == []
    assert aligner.align([[EOS], sources[0], sources[0]], [outputs[0], [EOS], outputs[0]]) == [[], [], found[0]]
    for source, output, pairs in zip(sources, outputs, found, strict=True):
        forced = ForcedDecoder(transformer)(np.array([source]), np.array([output]))
        layer = LAST_BUT_ONE.in_model(transformer.transformer_config.decoder_layers).block
        attention = tf.reduce_mean(forced.attention[f"decoder_block_{layer}/memory"], axis=1)
        of_sides = (tf.constant([[pieces[number] for number in ids]]) for ids in (source, output))
        assert " ".join(f"{s}-{t}" for s, t in pairs) == alignments(attention, *of_sides).numpy()[0].decode()
        assert [t for _, t in pairs] == list(range(len(tokenizer.decode(output).split())))
