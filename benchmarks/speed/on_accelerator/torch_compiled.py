"""The other contestant: torch.nn.Transformer with torch.compile; bfloat16 is that of autocast.

It has the same shapes, dropout places, loss and optimizer. Its weights are its own: it has biases in attention and one
more LayerNorm at the end of encoder and decoder. It attends over whole rows with nothing but a causal mask, so that
PyTorch can use its fastest kernel. That is easier work than ours, which keeps the sentences of a row apart.
"""

import itertools
import math
import time

import torch
from torch.nn import functional

from benchmarks.speed.on_accelerator.task import WARMUP_STEPS, Contestant, Round, Task
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.tokens import PAD


class TorchTransformer(torch.nn.Module):
    """ids (B, S) and (B, T) -> logits (B, T, vocab_size); one matrix for source, target and logits."""

    def __init__(self, config: TransformerConfig, length: int):
        super().__init__()
        self.d_model, self.dropout = config.d_model, config.dropout
        self.matrix = torch.nn.Parameter(torch.randn(config.vocab_size, config.d_model) * config.d_model**-0.5)
        self.transformer = torch.nn.Transformer(
            config.d_model,
            config.num_heads,
            config.encoder_layers,
            config.decoder_layers,
            config.d_ff,
            config.dropout,
            config.activation,
            batch_first=True,
        )
        for layer in (*self.transformer.encoder.layers, *self.transformer.decoder.layers):
            layer.dropout.p = 0.0  # inside the feed-forward network, where the paper has none
        for module in self.transformer.modules():
            if isinstance(module, torch.nn.MultiheadAttention):
                module.dropout = 0.0  # of attention weights
        self.register_buffer("positions", sinusoids(length, config.d_model))
        self.register_buffer("causal", torch.nn.Transformer.generate_square_subsequent_mask(length))

    def forward(self, source_ids, target_ids):
        source, target = (self.embedded(ids) for ids in (source_ids, target_ids))
        states = self.transformer(source, target, tgt_mask=self.causal, tgt_is_causal=True)
        return functional.linear(states, self.matrix)

    def embedded(self, ids):
        states = functional.embedding(ids, self.matrix) * math.sqrt(self.d_model) + self.positions
        return functional.dropout(states, self.dropout, self.training)


def sinusoids(length: int, d_model: int) -> torch.Tensor:
    """Section 3.5 of the paper: float32 (length, d_model)."""
    wavelengths = 10000.0 ** (torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(length)[:, None] / wavelengths
    return torch.stack([angles.sin(), angles.cos()], -1).reshape(length, d_model)


class TorchCompiled:
    """Builds the model on creation; each `round` trains it. The first one compiles."""

    def __init__(self, task: Task, contestant: Contestant):
        torch.manual_seed(0)
        torch.set_float32_matmul_precision("highest" if contestant.products == "float32" else "high")
        self.config, self.is_bfloat16 = task.config, contestant.precision == "bfloat16"
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        length = task.batches[0]["labels"].shape[1]
        self.model = TorchTransformer(self.config, length).to(self.device)
        self.loss = torch.compile(self.mean_loss, dynamic=False)
        self.optimizer = torch.optim.Adam(self.model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.steps_done = 0
        self.batches = itertools.cycle([self._tensors(batch) for batch in task.batches])

    def mean_loss(self, batch):
        with torch.autocast(self.device, torch.bfloat16, enabled=self.is_bfloat16):
            logits = self.model(batch["source_ids"], batch["target_ids"])
            return functional.cross_entropy(
                logits.flatten(0, 1),
                batch["labels"].flatten(),
                ignore_index=PAD,
                label_smoothing=self.config.label_smoothing,
            )

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.loss(next(self.batches))
        loss.backward()
        self.steps_done += 1
        for group in self.optimizer.param_groups:
            group["lr"] = self.learning_rate(self.steps_done)
        self.optimizer.step()
        return loss.detach()

    def learning_rate(self, step: int) -> float:
        """Section 5.3 of the paper, without tensors."""
        return self.config.d_model**-0.5 * min(step**-0.5, step * WARMUP_STEPS**-1.5)

    def round(self, steps: int) -> Round:
        """Train for that number of steps, after one that gets back the memory that the last round gave away."""
        self.step().item()
        started = time.perf_counter()
        losses = [self.step() for _ in range(steps)]
        loss = torch.stack(losses).mean().item()  # waits for the end of the last step
        seconds = time.perf_counter() - started
        if self.device == "cpu":
            return Round(steps, seconds, loss, None)
        torch.cuda.empty_cache()  # for other processes
        return Round(steps, seconds, loss, torch.cuda.max_memory_allocated())

    def _tensors(self, batch):
        return {name: torch.as_tensor(ids, dtype=torch.long, device=self.device) for name, ids in batch.items()}
