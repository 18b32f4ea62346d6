"""A SentencePiece model with other special ids, such as Marian's vocab.spm, as a Tokenizer opens it."""

from keras_transformer.pieces.pair_tokenizer import SPECIAL_PIECES
from keras_transformer.pieces.tokenizer import SPECIAL_IDS, TokenizerError, model_proto, processor_of

NONE = -1  # in place of the id of a piece that the model did not have


def renumbered(spm: bytes) -> tuple[bytes, list[int]]:
    """Return the model with PAD, UNK, BOS and EOS first, the other pieces as they were; and the old id of each piece.

    A model that has no PAD or no BOS gets one, whose old id is NONE. One that has our ids already is returned as it is.
    Raises TokenizerError if it is damaged, has no UNK or EOS, or has a special piece as a piece of another kind.
    """
    old = processor_of(spm, "The vocabulary")
    special = [getattr(old, f"{name}_id")() for name in SPECIAL_IDS]
    order = [*special, *(number for number in range(old.get_piece_size()) if number not in special)]
    if order == list(range(len(order))):
        return spm, order
    for name, number in zip(SPECIAL_IDS, special, strict=True):
        if number == NONE and name in ("unk", "eos"):
            raise TokenizerError(f"The vocabulary has no {name} among its pieces: it is not of a translation model.")
    proto = model_proto(spm)
    pieces = list(proto.pieces)
    for number in order[len(special) :]:
        if pieces[number].piece in SPECIAL_PIECES.values():
            raise TokenizerError(f"The vocabulary has {pieces[number].piece} as a piece that texts have.")
    del proto.pieces[:]
    for new, number in enumerate(order):
        piece = proto.pieces.add()
        if number != NONE:
            piece.CopyFrom(pieces[number])
        if new in SPECIAL_PIECES:
            piece.piece = SPECIAL_PIECES[new]
        if number == NONE:
            piece.type, piece.score = proto.SentencePiece.CONTROL, 0.0
    for name, new in SPECIAL_IDS.items():
        setattr(proto.trainer_spec, f"{name}_id", new)
        setattr(proto.trainer_spec, f"{name}_piece", SPECIAL_PIECES[new])
    proto.trainer_spec.vocab_size = len(order)
    return proto.SerializeToString(), order
