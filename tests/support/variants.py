"""Variants of the Transformer's block: changes of a configuration in which every kind of each part is somewhere."""

import pytest

VARIANTS = {
    "modern": dict(norm="pre", norm_kind="rms", activation="swiglu", positions="rotary"),
    "t5": dict(
        **dict(norm="pre", norm_kind="rms", activation="geglu_tanh", scale_scores=False),
        **dict(positions="relative", relative_buckets=8, relative_distance=6),
    ),
    "alibi": dict(activation="geglu", positions="alibi", embedding_norm=True, attention_bias=True),
    "ssru": dict(decoder_layer="ssru"),
    "ssru, pre-norm": dict(decoder_layer="ssru", norm="pre", positions="learned", attention_bias=True),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)
