"""T5 is a Transformer of this configuration: random weights of Hugging Face's give the same logits here."""

import numpy as np
import pytest

from keras_transformer.config import TransformerConfig
from keras_transformer.model import Transformer
from tests.support.models import as_numpy, assert_close, batch_of
from tests.support.peers import needs

pytestmark = [pytest.mark.slow, needs("transformers", "torch")]

PAIRS = [([5, 6, 7, 8, 9, 10, 11, 12, 13, 3], [0, 9, 10, 4, 5, 6, 7]), ([11, 12, 3], [0, 13])]
T5 = TransformerConfig(
    **dict(vocab_size=20, encoder_layers=2, decoder_layers=2, d_model=12, d_ff=16, num_heads=2, key_dim=8, value_dim=8),
    **dict(norm="pre", norm_kind="rms", scale_scores=False),
    **dict(positions="relative", relative_buckets=8, relative_distance=6),
)
KINDS = {
    "v1.0": T5,
    "v1.1": T5.replace(activation="geglu_tanh", shared_embeddings=False),
}


def theirs_of(config):
    """A T5ForConditionalGeneration with random weights."""
    import torch
    from transformers import T5Config, T5ForConditionalGeneration

    torch.manual_seed(0)
    theirs = T5ForConditionalGeneration(
        T5Config(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            d_kv=config.d_k,
            d_ff=config.d_ff,
            num_layers=config.encoder_layers,
            num_decoder_layers=config.decoder_layers,
            num_heads=config.num_heads,
            relative_attention_num_buckets=config.relative_buckets,
            relative_attention_max_distance=config.relative_distance,
            feed_forward_proj="relu" if config.activation == "relu" else "gated-gelu",
            tie_word_embeddings=config.shared_embeddings,
        )
    ).eval()
    for weight in theirs.parameters():
        torch.nn.init.normal_(weight, mean=1.0 if weight.ndim == 1 else 0.0, std=0.3)
    return theirs


def name_there(path):
    """The name of a weight of ours in a T5 of Hugging Face."""
    layer, *parts = path.split("/")
    if layer.endswith("_norm"):
        return f"{layer.removesuffix('_norm')}.final_layer_norm.weight"
    if layer.endswith("_positions"):
        side = {"source": "encoder", "target": "decoder"}[layer.removesuffix("_positions")]
        return f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
    if layer in ("embedding", "source_embedding", "target_embedding", "logits"):
        return "lm_head.weight" if layer == "logits" else "shared.weight"
    side, _, number = layer.split("_")
    place = {"self_attention": 0, "memory_attention": 1, "feed_forward": 2 if side == "decoder" else 1}
    block = f"{side}.block.{int(number) - 1}.layer.{place[parts[0].removesuffix('_residual')]}"
    if parts[0].endswith("_residual"):
        return f"{block}.layer_norm.weight"
    if parts[0] == "feed_forward":
        return f"{block}.DenseReluDense.{parts[1]}"
    return f"{block}.{'SelfAttention' if parts[0] == 'self_attention' else 'EncDecAttention'}.{parts[1][0]}.weight"


def copy_to_ours(theirs, ours):
    """T5 multiplies no embedding by sqrt(d_model), and tied logits by d_model^-0.5: it is in the matrix here."""
    config, arrays = (
        ours.transformer_config,
        {name: as_numpy(x.detach().numpy()) for name, x in theirs.state_dict().items()},
    )
    inner = (
        {"inner": "wi", "outer": "wo"}
        if config.activation == "relu"
        else {"inner": "wi_0", "linear": "wi_1", "outer": "wo"}
    )
    for weight in ours.weights:
        name = name_there(weight.path)
        if ".DenseReluDense." in name:
            if weight.name == "bias":
                continue  # zeros, as they begin
            before, _, part = name.rpartition(".")
            name = f"{before}.{inner[part]}.weight"
        array = arrays[name]
        if name == "shared.weight":
            array = array / config.d_model**0.5
        weight.assign(array.T if weight.name == "kernel" else array)


@pytest.mark.parametrize("kind", KINDS)
def test_the_logits_are_those_of_t5(kind):
    import torch

    config = KINDS[kind]
    theirs, ours = theirs_of(config), Transformer(config)
    copy_to_ours(theirs, ours)
    batch = batch_of([[pair] for pair in PAIRS], 10, 7)
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(batch["source_ids"]).long(),
            attention_mask=torch.tensor(batch["source_segments"]),
            decoder_input_ids=torch.tensor(batch["target_ids"]).long(),
        ).logits.numpy()
    is_real = batch["target_segments"] > 0
    found = as_numpy(ours(batch))[is_real]
    assert found.std() > 0.1
    assert_close(found, expected[is_real], atol=1e-4)
    assert np.isfinite(expected).all()
