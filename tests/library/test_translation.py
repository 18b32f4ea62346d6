"""A translation of an export or a server: what its outputs say, by name."""

import numpy as np

from keras_transformer.pieces.translation import OUTPUTS, Translation, translations_of

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
