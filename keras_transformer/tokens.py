"""The special token ids: the one place where they are written.

The tokenizer is trained with these ids, so that ids in Python, in the graph and in the weights agree.
"""

PAD = 0  # fills a row up to its length; belongs to segment 0, attends to nothing
UNK = 1  # never produced by a tokenizer with byte fallback; SentencePiece wants the id to exist
BOS = 2  # first input of the decoder: "the outputs shifted right" (Vaswani et al. 2017, section 3)
EOS = 3  # last piece of every source and of every target
