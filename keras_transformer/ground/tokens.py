"""The ids of the special tokens, and the pieces that every tokenizer has.

The tokenizer is trained with them, so that ids in Python, in the graph and in the weights agree.
"""

import re

PAD = 0  # fills a row up to its length; it belongs to segment 0 and attends to nothing
UNK = 1  # SentencePiece requires the id; a tokenizer with byte fallback never produces it
BOS = 2  # first input of the decoder: "the outputs shifted right" (Vaswani et al. 2017, section 3)
EOS = 3  # last token of every source and of every target
SPECIAL = (PAD, UNK, BOS)  # no label is one of them, so no output has them
OWN_PIECE = re.compile(r"<(pad|unk|s|/s|0x[0-9A-F]{2})>")  # a special token, or a byte
NO_CLASS = -100.0  # the bias of a piece that is never written: exp(-100) vanishes beside any other in float32
