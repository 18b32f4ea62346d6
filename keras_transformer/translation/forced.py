"""The log-probability of given outputs: the decoder once over all their positions (teacher forcing)."""

from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.ground.tokens import BOS, PAD
from keras_transformer.runs.kinds import with_attention
from keras_transformer.search.scores import log_coverage

ATTENTIONS = {  # kind: the blocks that attend, and the name of their weights
    "memory": ("decoder", "memory"),  # the decoder to the source
    "encoder": ("encoder", "self"),
    "decoder": ("decoder", "self"),
}


class Forced(NamedTuple):
    """What a model computes for given outputs."""

    log_probs: Any  # float32 (B, T): natural log-probability of each token, 0 where the output has none
    attention: dict[str, Any]  # weights by "decoder_block_N/memory", (B, h, T, S), and so on: see `with_attention`

    def weights_of(self, kind: str) -> list:
        """Return the weights of each block, first to last, of one kind of ATTENTIONS; [] if the model has none."""
        side, name = ATTENTIONS[kind]
        names = (f"{side}_block_{number}/{name}" for number in range(1, len(self.attention) + 1))
        return [self.attention[name] for name in names if name in self.attention]

    def log_coverage(self, source_ids):
        """Return the coverage of the source by each output: source_ids int (B, S) -> float32 (B,)."""
        weights = ops.cast(self.weights_of("memory")[-1], "float32")  # of the last block
        return log_coverage(ops.sum(ops.mean(weights, axis=1), axis=1), source_ids != PAD)


class ForcedDecoder:
    """A model that computes the log-probability of given outputs, all positions at once."""

    def __init__(self, transformer: keras.Model):
        self.model = with_attention(transformer)

    def __call__(self, source_ids, target_ids) -> Forced:
        """Compute the log-probability of each token of given outputs, and the attention of every block.

        Shapes: source_ids int (B, S), pieces and EOS, then PAD; target_ids int (B, T), T at least 1, tokens and EOS,
        then PAD.
        """
        source_ids, target_ids = (ops.convert_to_tensor(ids, dtype="int32") for ids in (source_ids, target_ids))
        is_token = target_ids != PAD
        bos = ops.full_like(target_ids[:, :1], BOS)
        outputs = self.model(
            {
                "source_ids": source_ids,
                "source_segments": ops.cast(source_ids != PAD, "int32"),
                "target_ids": ops.concatenate([bos, target_ids[:, :-1]], axis=1),
                "target_segments": ops.cast(is_token, "int32"),
            },
            training=False,
        )
        logits = ops.cast(outputs.pop("logits"), "float32")
        chosen = ops.take_along_axis(logits, ops.expand_dims(target_ids, 2), axis=2)[..., 0]
        return Forced(ops.where(is_token, chosen - ops.logsumexp(logits, axis=-1), 0.0), outputs)
