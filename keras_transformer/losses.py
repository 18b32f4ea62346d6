"""Label-smoothed cross-entropy over real tokens (Vaswani et al. 2017, section 5.4; Szegedy et al. 2015)."""

import math
import numbers
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_transformer.ground.replicas import replica_count, sum_over_replicas
from keras_transformer.ground.tokens import NO_CLASS, PAD


class TokenSums(NamedTuple):
    """What a batch, a replica, a micro-batch or a row adds: float32. Means are taken once, at the very end."""

    loss: Any  # label-smoothed cross-entropy, nats
    nll: Any  # negative log-likelihood of the labels, nats: exp(nll / tokens) is the perplexity
    correct: Any  # labels that have the highest logit
    tokens: Any  # real target tokens, end of sentence included


def token_sums(logits, labels, segments, smoothing=0.1, by_row=False):
    """Sum the loss, the negative log-likelihood and the hits over the tokens whose segment is not 0.

    Shapes: logits (B, T, V), labels int (B, T), segments int (B, T) -> scalars, or (B,) each if `by_row`. Formula: see
    `token_losses`.
    """
    axis = 1 if by_row else None
    is_real = ops.cast(ops.not_equal(segments, 0), "float32")  # (B, T)
    loss, nll, hits = (ops.sum(values * is_real, axis=axis) for values in token_losses(logits, labels, smoothing))
    return TokenSums(loss=loss, nll=nll, correct=hits, tokens=ops.sum(is_real, axis=axis))


class AlignmentSums(NamedTuple):
    """What guided alignment adds, of a batch, a replica or a micro-batch: float32."""

    loss: Any  # negative logarithm of the attention to the linked source tokens, nats
    links: Any  # target tokens that have a link


def alignment_sums(attention, links):
    """Sum the cross-entropy of links and the mean of the heads over the linked tokens (Garg et al. 2019, section 4.2).

        loss = -sum_t log mean_h attention[h, t, links[t]]

    Shapes: attention (B, h, T, S), links int (B, T): the place of a source token, below 0 for none -> scalars.
    """
    attention, links = ops.mean(ops.cast(attention, "float32"), axis=1), ops.expand_dims(links, -1)
    is_linked = ops.equal(links, ops.arange(attention.shape[-1], dtype="int32"))  # (B, T, S)
    linked = ops.sum(ops.where(is_linked, attention, 0.0), axis=-1)
    has_link = ops.cast(ops.any(is_linked, axis=-1), "float32")  # (B, T)
    return AlignmentSums(loss=-ops.sum(has_link * ops.log(linked + 1e-9)), links=ops.sum(has_link))


def shares(smoothing, logits_bias):
    """The share of label smoothing that each class gets: `smoothing`, or float32 (V,).

    Models that were imported have pieces that they do not write, such as BOS: the bias of these is NO_CLASS. They get
    none, or the loss would be larger by that bias, and its gradient would teach a model to write them.
    """
    if not smoothing or logits_bias is None:
        return smoothing
    is_class = ops.cast(ops.convert_to_tensor(logits_bias) > NO_CLASS / 2, "float32")
    return smoothing * is_class / ops.sum(is_class)


def token_losses(logits, labels, smoothing=0.1):
    """The label-smoothed cross-entropy of each token, its negative log-likelihood, and whether it is a hit.

        q = (1 - smoothing) onehot(label) + smoothing / V
        loss = -sum_v q_v log p_v = logsumexp(z) - (1 - smoothing) z_label - smoothing mean(z)
        nll = logsumexp(z) - z_label        hit = 1 if no logit is higher than z_label, else 0

    The gradient of `loss` with respect to the logits z is softmax(z) - q, written out: one pass over the logits, which
    are all that the backward pass keeps. Shapes: logits (B, T, V), labels int (B, T) -> three float32 (B, T). A label
    outside [0, V) is an error that not every backend reports: -1 and -100 do not mean padding.

    smoothing: epsilon_ls, which all V classes share alike, or the share of each class, float32 (V,): see `shares`.
    """
    labels, of_classes = ops.convert_to_tensor(labels), None
    if not isinstance(smoothing, numbers.Real):
        of_classes, smoothing = smoothing, ops.sum(smoothing)

    @ops.custom_gradient
    def losses(logits):
        logits_dtype, logits = logits.dtype, ops.cast(logits, "float32")
        label_logit = ops.squeeze(ops.take_along_axis(logits, ops.expand_dims(labels, -1), axis=-1), -1)  # (B, T)
        highest = ops.max(logits, axis=-1, initial=-math.inf)  # Keras refuses an empty batch without `initial`
        log_total = highest + ops.log(ops.sum(ops.exp(logits - ops.expand_dims(highest, -1)), axis=-1))
        nll = log_total - label_logit
        spread = smoothing * ops.mean(logits, axis=-1) if of_classes is None else ops.sum(of_classes * logits, axis=-1)
        loss = log_total - (1.0 - smoothing) * label_logit - spread
        hits = ops.cast(label_logit >= highest, "float32")

        def gradient(*args, upstream=None):
            if upstream is None:  # TensorFlow and JAX pass it by place, PyTorch by name
                (upstream,) = args
            for_loss, for_nll = upstream[0], upstream[1]  # (B, T) each; a hit has no gradient
            of_softmax = for_loss + for_nll
            of_label = (1.0 - smoothing) * for_loss + for_nll
            share = smoothing / logits.shape[-1] if of_classes is None else of_classes
            probabilities = ops.exp(logits - ops.expand_dims(log_total, -1))
            is_label = ops.equal(ops.expand_dims(labels, -1), ops.arange(logits.shape[-1], dtype=labels.dtype))
            pulled = share * ops.expand_dims(for_loss, -1) + ops.where(is_label, ops.expand_dims(of_label, -1), 0.0)
            return ops.cast(ops.expand_dims(of_softmax, -1) * probabilities - pulled, logits_dtype)

        # One tensor (3, B, T) and not three: of several outputs PyTorch's form of `custom_gradient` has no gradient
        return ops.stack([loss, nll, hits]), gradient

    loss, nll, hits = ops.unstack(losses(ops.convert_to_tensor(logits)), 3)
    return loss, nll, hits


@keras.saving.register_keras_serializable("keras_transformer")
class LabelSmoothedCrossentropy(keras.losses.Loss):
    """The mean of `token_losses` over the real tokens of the global batch, for `model.compile`.

        model.compile(optimizer, loss=LabelSmoothedCrossentropy(smoothing=0.1))

    A label 0 (PAD) is padding and does not count. Value and gradient are those of the training step of `train`:
    `token_sums(...).loss / token_sums(...).tokens`.

    **On several replicas** (tf.distribute) they are the same as on one, also if the replicas hold different numbers of
    real tokens or of rows. A loss function of your own does not have that, for three reasons:

    - Keras sums gradients over replicas, but divides a loss by their number only if it reduces the loss itself. A
      function that returns a scalar, such as a mean over real tokens, therefore trains with twice the gradient on two
      replicas, and logs twice the loss.
    - The mean of the replicas' means is not the mean over all tokens. So the tokens are counted over all replicas.
    - Keras logs the mean of the replicas' values, weighted by their rows, but these values are parts of one sum.

    `fit` logs the mean over batches of this mean, weighted by rows, as it does for every loss; `Perplexity` and
    `TokenAccuracy` divide by tokens once, at the end of the epoch.

    Args:
        smoothing: epsilon_ls, in [0, 1).
        reduction: "sum_over_batch_size" for the mean above, "sum" for the sum, None for the losses (B, T).
        name: as for every Keras loss.

    It computes in float32 under every dtype policy: in bfloat16 the label 257 would be 256.

    Shapes: y_true int (B, T), y_pred logits (B, T, V), sample_weight (), (B,), (B, 1) or (B, T). A weight multiplies
    the loss of its tokens; it does not change what the sum is divided by. Raises ValueError for any other smoothing or
    reduction.
    """

    def __init__(
        self,
        smoothing: float = 0.1,
        reduction: str | None = "sum_over_batch_size",
        name: str = "label_smoothed_crossentropy",
    ):
        super().__init__(name=name, reduction=reduction, dtype="float32")  # Keras casts labels to it
        if not isinstance(smoothing, numbers.Real) or not 0 <= smoothing < 1:
            raise ValueError(f"smoothing must be in [0, 1). Received: smoothing={smoothing!r}")
        if reduction not in ("sum_over_batch_size", "sum", "none", None):
            raise ValueError(
                f'reduction must be "sum_over_batch_size", "sum" or None. Received: reduction={reduction!r}'
            )
        self.smoothing: float = smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        """The reduced loss. Labels decide what is padding: a mask that Keras carries with the logits is left out."""
        has_mask = getattr(y_pred, "_keras_mask", None) is not None
        if sample_weight is not None:
            sample_weight = by_token(sample_weight)
        return super().__call__(y_true, ops.copy(y_pred) if has_mask else y_pred, sample_weight)

    def call(self, y_true, y_pred):
        """The loss of each token (B, T), weighted so that the mean which Keras takes is the one over real tokens."""
        labels = ops.cast(y_true, "int32")
        losses, _, _ = token_losses(y_pred, labels, self.smoothing)
        is_real = ops.cast(ops.not_equal(labels, PAD), "float32")
        losses = losses * is_real
        if self.reduction != "sum_over_batch_size":
            return losses
        # Keras divides by this replica's places and by the number of replicas; the divisor must be all real tokens
        tokens = sum_over_replicas(ops.sum(is_real))
        places = ops.cast(ops.size(losses), "float32")
        return as_logged(losses * (places * replica_count() / ops.maximum(tokens, 1.0)))

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "smoothing": self.smoothing}


def by_token(sample_weight):
    """Return weights as a tensor that multiplies values of tokens (B, T): (B,) becomes (B, 1), others stay.

    Keras would take (B,) for weights of positions where B is T.
    """
    sample_weight = ops.convert_to_tensor(sample_weight)
    return ops.expand_dims(sample_weight, 1) if len(sample_weight.shape) == 1 else sample_weight


def as_logged(losses):
    """Return losses (B, T) whose mean, weighted by the rows of each replica, is the mean over replicas; same gradient.

    They differ if a batch does not divide evenly: then its replicas have different numbers of rows B.
    """
    if replica_count() == 1:
        return losses
    rows = ops.cast(ops.shape(losses)[0], "float32")
    share = rows * replica_count() / sum_over_replicas(rows)  # 1 if the batch divides evenly
    return losses + ops.stop_gradient(losses / ops.maximum(share, 1e-6) - losses)


def perplexity(nll: float) -> float:
    """exp(nll), nll in nats per token; finite also if a diverged model would overflow a float."""
    return math.exp(min(nll, 700.0))


def perplexity_text(value: float, digits: int) -> str:
    """Return a perplexity with so many decimal places, or as a power of ten if it is that of a diverged model."""
    return f"{value:.{digits}f}" if value < 1e6 else f"{value:.2e}"
