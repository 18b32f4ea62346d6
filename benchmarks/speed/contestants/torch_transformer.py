"""`torch.nn.Transformer` with tied embeddings, trained as PyTorch's documentation advises; eager or compiled."""

import math
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.speed.contestants import Contestant, Lane
from benchmarks.speed.contestants.workload import BETA_1, BETA_2, EPSILON, Workload, blocks
from keras_transformer.ground.machine import processor_cores


class TorchTransformer(nn.Module):
    """The workload's model. Its encoder and decoder end without a LayerNorm of their own, as the paper's do.

    As torch.nn.Transformer is shipped, its attention projections have biases (the paper has none), and `dropout` also
    acts on attention weights and inside the feed-forward network.
    """

    def __init__(self, workload: Workload):
        super().__init__()
        config = workload.config
        sizes = {"d_model": config.d_model, "nhead": config.num_heads, "dim_feedforward": config.d_ff}
        options = {"dropout": config.dropout, "batch_first": True, "layer_norm_eps": config.norm_epsilon}
        encoder_layer = nn.TransformerEncoderLayer(**sizes, **options)
        decoder_layer = nn.TransformerDecoderLayer(**sizes, **options)
        encoder = nn.TransformerEncoder(encoder_layer, config.encoder_layers, enable_nested_tensor=False)
        decoder = nn.TransformerDecoder(decoder_layer, config.decoder_layers)
        self.transformer = nn.Transformer(
            config.d_model, config.num_heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
        )
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        self.dropout = nn.Dropout(config.dropout)
        self.smoothing = config.label_smoothing
        self.register_buffer("positions", sinusoids(workload.length, config.d_model))
        self.register_buffer("causal", nn.Transformer.generate_square_subsequent_mask(workload.length))

    def embed(self, ids):
        return self.dropout(self.embedding(ids) * math.sqrt(self.embedding.embedding_dim) + self.positions)

    def forward(self, source_ids, target_ids, source_padding, target_padding, labels):
        """The label-smoothed cross-entropy, averaged over real tokens. In the paddings, True means no token."""
        source_scores, target_scores = as_scores(source_padding), as_scores(target_padding)
        states = self.transformer(
            self.embed(source_ids),
            self.embed(target_ids),
            tgt_mask=self.causal,
            tgt_is_causal=True,
            src_key_padding_mask=source_scores,
            tgt_key_padding_mask=target_scores,
            memory_key_padding_mask=source_scores,
        )
        logits = F.linear(states, self.embedding.weight)
        labels = labels.masked_fill(target_padding, -100)  # -100 is what cross_entropy ignores
        return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), label_smoothing=self.smoothing)


def as_scores(padding):
    """A padding mask as a term of the attention scores, made once for all layers."""
    return torch.zeros(padding.shape, device=padding.device).masked_fill(padding, float("-inf"))


def sinusoids(length: int, d_model: int) -> torch.Tensor:
    """Section 3.5: float32 (length, d_model)."""
    angles = torch.arange(length)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


def prepare_eager(workload: Workload) -> Contestant:
    return prepare("torch_eager", workload, TorchTransformer(workload), eager)


def prepare_compiled(workload: Workload) -> Contestant:
    return prepare("torch_compile", workload, TorchTransformer(workload), compiled)


def prepare_compiled_bfloat16(workload: Workload) -> Contestant:
    """Its loss is not compared: bfloat16 has another one than float32."""
    return prepare("torch_compile_bfloat16", workload, TorchTransformer(workload), in_bfloat16)._replace(loss=None)


def prepare_eager_paper_dropout(workload: Workload) -> Contestant:
    return prepare("torch_eager_paper_dropout", workload, with_paper_dropout(workload), eager)


def prepare_compiled_paper_dropout(workload: Workload) -> Contestant:
    return prepare("torch_compile_paper_dropout", workload, with_paper_dropout(workload), compiled)


def eager(model: nn.Module) -> nn.Module:
    return model


def compiled(model: nn.Module) -> nn.Module:
    return torch.compile(model, dynamic=False)  # the module contains the loss, so that both can be fused


def in_bfloat16(model: nn.Module) -> Callable[..., torch.Tensor]:
    """Compiled, with matrix products in bfloat16 as `torch.autocast` chooses them."""
    program = compiled(model)

    def loss_of(**batch: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return program(**batch)

    return loss_of


def with_paper_dropout(workload: Workload) -> TorchTransformer:
    """A model with dropout only on embeddings and sublayer outputs (section 5.4); torch's attention is faster then."""
    model = TorchTransformer(workload)
    for layer in (*model.transformer.encoder.layers, *model.transformer.decoder.layers):
        layer.dropout.p = 0.0  # inside the feed-forward network
        for attention in ("self_attn", "multihead_attn"):
            if hasattr(layer, attention):
                getattr(layer, attention).dropout = 0.0  # on its weights
    return model


def prepare(
    name: str, workload: Workload, model: TorchTransformer, ready: Callable[[nn.Module], Callable]
) -> Contestant:
    """One lane. `ready` is `eager`, `compiled` or `in_bfloat16`."""
    torch.set_num_threads(processor_cores())
    load(model, workload)
    batch = tensors(workload.batch())
    with torch.no_grad():
        loss = float(model.eval()(**batch))
    model.train()
    lanes = {name: Lane(trainer(model, ready(model), batch, workload), workload.tokens)}
    return Contestant(lanes, sum(weight.numel() for weight in model.parameters()), loss)


def trainer(
    model: nn.Module, loss_of: Callable[..., torch.Tensor], batch: dict[str, torch.Tensor], workload: Workload
) -> Callable[[int], float]:
    """A function that trains for a number of steps and returns the loss of the last one."""
    factor, warmup_steps = workload.config.d_model**-0.5, workload.warmup_steps
    adam = torch.optim.Adam(model.parameters(), lr=factor, betas=(BETA_1, BETA_2), eps=EPSILON, fused=True)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        adam, lambda done: min((done + 1) ** -0.5, (done + 1) * warmup_steps**-1.5)
    )

    def run(steps: int) -> float:
        for _ in range(steps):
            adam.zero_grad(set_to_none=True)
            loss = loss_of(**batch)
            loss.backward()
            adam.step()
            schedule.step()
        return loss.item()

    return run


def tensors(batch: dict[str, np.ndarray]) -> dict[str, torch.Tensor]:
    """A Batch as the arguments of TorchTransformer."""
    ids = {name: torch.tensor(batch[name], dtype=torch.long) for name in ("source_ids", "target_ids", "labels")}
    return ids | {f"{side}_padding": torch.tensor(batch[f"{side}_segments"] == 0) for side in ("source", "target")}


@torch.no_grad()
def load(model: TorchTransformer, workload: Workload) -> None:
    weights = {name: torch.tensor(matrix) for name, matrix in workload.weights().items()}
    model.embedding.weight.copy_(weights["embedding"])
    layers = [*model.transformer.encoder.layers, *model.transformer.decoder.layers]
    for layer, (block, attentions) in zip(layers, blocks(workload.config), strict=True):
        for attention, theirs in zip(attentions, ("self_attn", "multihead_attn"), strict=False):
            of = f"{block}.{attention}"
            module = getattr(layer, theirs)
            inputs = [weights[f"{of}.{projection}"].T for projection in ("query", "key", "value")]
            module.in_proj_weight.copy_(torch.cat(inputs))
            module.out_proj.weight.copy_(weights[f"{of}.output"].T)
        for name, linear in (("inner", layer.linear1), ("outer", layer.linear2)):
            linear.weight.copy_(weights[f"{block}.{name}"].T)
            linear.bias.zero_()
