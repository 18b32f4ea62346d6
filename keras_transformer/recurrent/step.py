"""The recurrent decoder as a function of (state, token) to (logits, state): what every search calls."""

from typing import Any, NamedTuple

from keras import ops

from keras_transformer.ground.tokens import PAD
from keras_transformer.layers.embedding import OutputWeights, logits_by
from keras_transformer.masks import segment_mask
from keras_transformer.model import target_layers
from keras_transformer.recurrent.decoder import Memory, RecurrentState, in_a_row, in_layers
from keras_transformer.recurrent.model import RecurrentModel, encoder
from keras_transformer.search.state import AttendedSource, PerSentence


class RecurrentDecoderState(NamedTuple):
    """What the decoder remembers of K hypotheses per sentence: a few vectors each."""

    parts: Any  # per part of the state of each layer, (B, K, d_model)
    read: Any  # (B, K, d_model): the attentional state
    memory: PerSentence  # of Memory
    attended: AttendedSource | tuple[()] = ()  # nothing if no score needs it


class RecurrentIncrementalDecoder:
    """The decoder of a RecurrentModel, run one position at a time: what IncrementalDecoder is for a Transformer."""

    def __init__(self, model: RecurrentModel):
        config = model.model_config
        self.config = config
        self.encoder = encoder(model)
        self.embedding, self.logits = target_layers(model)
        self.decoder = model.get_layer("decoder")

    def step_weights(self, tokens=None) -> OutputWeights:
        """Return the weights of the logits, of all tokens or of `tokens` int (C,), computed once per search."""
        return self.logits.output_weights(tokens)

    def start(self, source_ids, hypotheses: int, counts_attention: bool = False) -> RecurrentDecoderState:
        """Run the encoder. Arguments and shapes: as of IncrementalDecoder."""
        source_ids = ops.convert_to_tensor(source_ids, dtype="int32")
        source_ids = ops.pad(source_ids, ((0, 0), (0, 1)), constant_values=PAD)  # a loop has at least one position
        segments = ops.cast(source_ids != PAD, "int32")
        first_position = ops.ones_like(segments[:, :1])
        inputs = {"source_ids": source_ids, "source_segments": segments, "target_segments": first_position}
        values, *parts = self.encoder(inputs, training=False)
        memory = Memory(self.decoder.keys(values), values, segment_mask(first_position, segments))
        parts = tuple(ops.tile(ops.reshape(part, (-1, 1, part.shape[-1])), (1, hypotheses, 1)) for part in parts)
        sentences, length = ops.shape(source_ids)
        state = RecurrentDecoderState(parts, ops.zeros_like(parts[0]), PerSentence(memory))
        if not counts_attention:
            return state
        sums = ops.zeros((sentences, hypotheses, length))
        return state._replace(attended=AttendedSource(sums, PerSentence(memory.mask)))

    def step(self, weights, state: RecurrentDecoderState, tokens, position, has_room: bool = False):
        """Feed one token per hypothesis: tokens int (B, K). Return logits and the new state.

        `position` and `has_room` change nothing. Shapes: logits float32 (B * K, C), of all tokens or of those of
        `weights`; hypothesis k of sentence b is row b * K + k.
        """
        hypotheses, width, cell = state.read.shape[1], state.read.shape[2], self.decoder.cells[0]

        def of_hypotheses(part):  # (N, d_model) -> (B, K, d_model)
            return ops.reshape(part, (-1, hypotheses, width))

        rows = [ops.reshape(part, (-1, width)) for part in (*state.parts, state.read)]
        layers = in_layers(rows[:-1], cell.parts)
        projected = cell.project(self.embedding(ops.reshape(tokens, (-1,))))
        after = self.decoder.step(RecurrentState(layers, rows[-1], None), projected, state.memory.shared)
        logits = ops.cast(logits_by(weights, after.read), "float32")
        parts = tuple(map(of_hypotheses, in_a_row(after.layers)))
        state = state._replace(parts=parts, read=of_hypotheses(after.read))
        if not isinstance(state.attended, AttendedSource):
            return logits, state
        sums = state.attended.sums
        sums = sums + ops.cast(ops.reshape(after.distribution, ops.shape(sums)), sums.dtype)
        return logits, state._replace(attended=state.attended._replace(sums=sums))
