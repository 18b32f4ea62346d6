"""RecurrentConfig: what a recurrent sequence-to-sequence model is."""

import dataclasses

from keras_transformer.model_config import BaseModelConfig, is_number

CELLS = ("gru", "lstm")
ATTENTIONS = ("dot", "general", "additive", "none")
FED = ("dot", "general")  # the kinds of attention whose attentional state can be fed back


@dataclasses.dataclass(frozen=True)
class RecurrentConfig(BaseModelConfig):
    """Everything that decides the shape and the function of a recurrent encoder-decoder (docs/ancestors.md).

    `dropout` and `label_smoothing` do not change what the model computes in inference; training uses them unless its
    own configuration sets others.

    Raises ConfigError for a field that makes no sense.
    """

    kind = "recurrent"

    vocab_size: int = 37000  # joint source and target vocabulary
    cell: str = "gru"  # or "lstm"
    encoder_layers: int = 1
    decoder_layers: int = 1
    d_model: int = 512  # width of embeddings, of the encoder's output and of the decoder's states
    bidirectional: bool = True  # the encoder reads in both directions, each with a state of d_model / 2
    attention: str = "dot"  # "dot", "general" (Luong et al. 2015), "additive" (Bahdanau et al. 2015), or "none"
    input_feeding: bool | None = None  # feed the attentional state back; None: if attention is "dot" or "general"
    reverse_source: bool = False  # a unidirectional encoder reads from the last token to the first
    shared_embeddings: bool = True  # one matrix for source, target and logits
    dropout: float = 0.1  # of embeddings, between layers, and before the logits; not from position to position
    label_smoothing: float = 0.1  # epsilon_ls

    def __post_init__(self):
        self._use_python_numbers()
        for name in ("vocab_size", "encoder_layers", "decoder_layers", "d_model"):
            self._check_count(name)
        for name in ("bidirectional", "reverse_source", "shared_embeddings"):
            self._check(name, isinstance(getattr(self, name), bool), "true or false")
        for name in ("dropout", "label_smoothing"):
            self._check(name, is_number(getattr(self, name)) and 0 <= getattr(self, name) < 1, "in [0, 1)")
        for name, allowed in (("cell", CELLS), ("attention", ATTENTIONS)):
            self._check(name, getattr(self, name) in allowed, f"one of {', '.join(allowed)}")
        if self.bidirectional:
            self._check("d_model", self.d_model % 2 == 0, "even if the encoder is bidirectional: half per direction")
            expected = "false if the encoder is bidirectional: it reads in both directions (bidirectional = false)"
            self._check("reverse_source", not self.reverse_source, expected)
        is_given = self.input_feeding is not None
        self._check("input_feeding", not is_given or isinstance(self.input_feeding, bool), "true or false")
        expected = f"left out: attention {self.attention!r} has no attentional state to feed back"
        self._check("input_feeding", not is_given or self.attention in FED, expected)

    @property
    def feeds_input(self) -> bool:
        """Whether the attentional state is part of the decoder's next input."""
        return self.attention in FED and self.input_feeding is not False

    @property
    def direction(self) -> str:
        """In which direction the encoder reads: "forward", "backward" or "both"."""
        if self.bidirectional:
            return "both"
        return "backward" if self.reverse_source else "forward"

    @property
    def units(self) -> int:
        """Width of the encoder's state per direction."""
        return self.d_model // 2 if self.bidirectional else self.d_model

    @property
    def position_limit(self) -> None:
        """The largest number of tokens of a side that the model can read: there is none."""

    @property
    def memory_attentions(self) -> int:
        """Number of places in the decoder that attend to the source."""
        return 0 if self.attention == "none" else 1

    @property
    def num_heads(self) -> int:
        """Number of heads of each attention."""
        return 1
