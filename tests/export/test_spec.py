"""Weights in CTranslate2's names: it gives each token the probability that the model gives it."""

import sys

import numpy as np
import pytest

from export.ctranslate2.convert import write_model
from export.versions import ExportError
from keras_transformer.ground.tokens import BOS, EOS
from keras_transformer.model import Transformer
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.recurrent.config import RecurrentConfig
from keras_transformer.recurrent.model import RecurrentModel
from tests.support.ctranslate2_models import exported, pieces_of
from tests.support.models import batch_of, randomise
from tests.support.peers import needs
from tests.support.runs import RUN_MODEL, SENTENCES, tokenizer_bytes

pytestmark = needs("ctranslate2")

TOGETHER = {  # test_every_field.py has each alone
    "learned positions, pre-norm, separate embeddings, biases, wider values": {
        "norm": "pre",
        "norm_epsilon": 1e-2,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "shared_embeddings": False,
        "logits_bias": True,
        "positions": "learned",
        "max_positions": 40,
        "attention_bias": True,
        "key_dim": 4,
        "value_dim": 10,
        "activation": "gelu",
    },
    "post-norm, other sinusoids, wider keys": {
        "encoder_layers": 1,
        "decoder_layers": 2,
        "sinusoids": "tensor2tensor",
        "first_position": 2,
        "key_dim": 10,
        "value_dim": 4,
    },
    "rotary positions, narrow keys, RMSNorm, a gated network": {
        "positions": "rotary",
        "key_dim": 4,
        "value_dim": 10,
        "norm": "pre",
        "norm_kind": "rms",
        "activation": "swiglu",
        "embedding_norm": True,
    },
    "relative positions, undivided scores, two blocks": {
        "positions": "relative",
        "relative_buckets": 8,
        "relative_distance": 6,
        "scale_scores": False,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "norm": "pre",
        "norm_kind": "rms",
        "activation": "geglu_tanh",
    },
}
VARIANTS = {
    "separate logits with a bias": {"logits_bias": True, "shared_embeddings": False},
    "narrow keys, biases": {"key_dim": 4, "attention_bias": True},
    "wide keys, wider values, biases": {"key_dim": 10, "value_dim": 16, "attention_bias": True},
}


@pytest.fixture(scope="module", autouse=True)
def without_torch():
    """CTranslate2's specifications are imported without torch, which takes them seconds and nothing here needs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        yield


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.of_bytes(tokenizer_bytes())


def log_probs(transformer, source, target):
    """Return our log-probability of each token of `target` after `source`; both are ids with EOS."""
    batch = batch_of([[(source, [BOS, *target[:-1]])]], len(source), len(target))
    logits = np.array(transformer(batch, training=False)[0], "float64")
    return (logits - np.log(np.exp(logits).sum(-1, keepdims=True)))[np.arange(len(target)), target]


@pytest.mark.parametrize("variant", [*TOGETHER, *(pytest.param(name, marks=pytest.mark.release) for name in VARIANTS)])
def test_every_kind_of_transformer_gives_each_token_the_same_probability(variant, tokenizer, tmp_path):
    config = RUN_MODEL.replace(**(TOGETHER | VARIANTS)[variant])
    transformer = randomise(Transformer(config), scale=0.4)
    sources, targets = SENTENCES[:3], SENTENCES[3:6]
    model = exported(transformer, tokenizer, tmp_path / "model")
    found = model.score_batch(pieces_of(tokenizer, sources), pieces_of(tokenizer, targets))  # one batch with padding
    for source, target, result in zip(sources, targets, found, strict=True):
        expected = log_probs(transformer, [*tokenizer.encode(source), EOS], [*tokenizer.encode(target), EOS])
        assert result.log_probs == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("field", "value", "has"),
    [
        ("activation", "selu", "relu, gelu, silu, swish, tanh, sigmoid, geglu, geglu_tanh, swiglu"),
        ("positions", "alibi", "sinusoidal, learned, rotary, relative alone"),
        ("encoder_layer", "convolutional", "self_attention alone"),
        ("decoder_layer", "ssru", "self_attention alone"),
    ],
)
def test_what_ctranslate2_lacks_is_refused_by_name(field, value, has):
    with pytest.raises(ExportError, match=f"model.json has the {field} '{value}'; CTranslate2 has {has}"):
        write_model(Transformer(RUN_MODEL.replace(**{field: value})), None, None)


def test_a_recurrent_model_is_refused():
    model = RecurrentModel(RecurrentConfig(vocab_size=9, encoder_layers=1, decoder_layers=1, d_model=8))
    with pytest.raises(ExportError, match="model.json has the kind 'recurrent'; CTranslate2 has transformer alone"):
        write_model(model, None, None)
