"""The SentencePiece model that a tokenizer.json of Hugging Face's tokenizers was made from, as that of NLLB-200 was.

A SentencePiece model of byte-pair encoding joins the pair whose piece comes first in its list. A tokenizer.json has the
pieces by id and every such pair in that order, so the pieces alone are the model, if the pairs are those of the pieces.
"""

import base64
import itertools
import pathlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keras_transformer.models.imported.arrays import read_json
from keras_transformer.models.imported.errors import ImportedModelError, refusing_damage
from keras_transformer.pieces.normalization import SPACE
from keras_transformer.pieces.tokenizer import model_proto

NEEDED = {  # of its model: what SentencePiece does, and what stands for a key that is left out
    "type": ("BPE", None),
    "dropout": (None, None),
    "unk_token": ("<unk>", None),
    "continuing_subword_prefix": (None, None),
    "end_of_word_suffix": (None, None),
    "fuse_unk": (True, False),
    "byte_fallback": (False, False),
    "ignore_merges": (False, False),
}
SPACES = {"Regex": " {2,}"}  # SentencePiece takes them as one
OF_SPM = {"<unk>": 2, "<s>": 3, "</s>": 3}  # its first pieces, with their types: unknown, and control
BYTE_PAIRS = 2  # a type of model


def spm_of_tokenizer_json(path: pathlib.Path, first: Sequence[str]) -> bytes:
    """Return the SentencePiece model whose pieces, after those of `first`, a tokenizer.json has in the same order.

    first: the pieces with the first ids, which no text has. Raises ImportedModelError for a tokenizer that divides text
    otherwise than a SentencePiece model of byte-pair encoding does.
    """
    values = read_json(path)
    with refusing_damage(path, "a tokenizer of Hugging Face"):
        model, added = values["model"], {token["content"] for token in values.get("added_tokens", ())}
        for key, (needed, default) in NEEDED.items():
            if (found := model.get(key, default)) != needed:
                raise otherwise(path, f"model.{key} is {found!r:.60}")
        if not is_metaspace(values.get("pre_tokenizer")):
            raise otherwise(path, "its pre_tokenizer is not one Metaspace")
        charsmap = charsmap_of(path, values.get("normalizer"))
        in_order = sorted(model["vocab"], key=model["vocab"].__getitem__)
        pieces = [piece for piece in in_order if piece not in {*first, *added}]
        if [model["vocab"].get(piece) for piece in pieces] != list(range(len(first), len(first) + len(pieces))):
            raise otherwise(path, "the ids of its pieces have gaps")
        merges = [tuple(merge.split(" ")) if isinstance(merge, str) else tuple(merge) for merge in model["merges"]]
        if not are_all_in_order(merges, pieces):
            raise otherwise(path, "its merges are not those of its pieces in their order")
        return written(pieces, charsmap)


def otherwise(path: pathlib.Path, why: str) -> ImportedModelError:
    return ImportedModelError(f"{path} is of no SentencePiece model of byte-pair encoding: {why}.")


def is_metaspace(part: Any) -> bool:
    """Return whether a pre-tokenizer puts SPACE before a text and in place of each space, and divides there."""
    parts = part.get("pretokenizers", [part]) if isinstance(part, Mapping) else []
    *before, last = parts or [{}]
    return (
        all(each.get("type") == "WhitespaceSplit" for each in before)
        and last.get("type") == "Metaspace"
        and last.get("replacement") == SPACE
        and last.get("prepend_scheme", "always") == "always"
        and last.get("add_prefix_space", True) is True
        and last.get("split", True) is True
    )


def charsmap_of(path: pathlib.Path, part: Any) -> bytes:
    """Return SentencePiece's compiled rules for characters that a normalizer has, b"" if it has none.

    Raises ImportedModelError if it does more than these and SentencePiece's own rules for spaces.
    """
    parts = [] if part is None else part.get("normalizers", [part])
    charsmap = b""
    for number, each in enumerate(parts):
        kind = each["type"]
        if kind == "Precompiled" and number == 0:
            charsmap = base64.b64decode(each["precompiled_charsmap"] or "", validate=True)
        elif not (kind == "Replace" and each["pattern"] == SPACES and each["content"] in (" ", SPACE)) and not (
            kind == "Strip" and not each["strip_left"]
        ):
            raise otherwise(path, f"its normalizer has a {kind!r:.60}")
    return charsmap


def are_all_in_order(merges: Sequence[tuple[str, ...]], pieces: Sequence[str]) -> bool:
    """Return whether these are all pairs of pieces that make a piece, in the order of what they make."""
    numbers = {piece: number for number, piece in enumerate(pieces)}
    made = [numbers.get("".join(merge), -1) for merge in merges]
    in_order = all(one <= other for one, other in itertools.pairwise([0, *made]))
    return in_order and len(set(merges)) == len(merges) and set(merges) == set(pairs_of(numbers))


def pairs_of(pieces: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each pair of pieces that makes a piece."""
    for piece in pieces:
        for end in range(1, len(piece)):
            if piece[:end] in pieces and piece[end:] in pieces:
                yield piece[:end], piece[end:]


def written(pieces: Sequence[str], charsmap: bytes) -> bytes:
    """Return the SentencePiece model of these pieces and rules."""
    proto = model_proto(b"")
    for piece, kind in OF_SPM.items():
        proto.pieces.add(piece=piece, score=0.0, type=kind)
    for number, piece in enumerate(pieces):
        proto.pieces.add(piece=piece, score=-float(number))
    proto.trainer_spec.model_type = BYTE_PAIRS
    proto.trainer_spec.vocab_size = len(proto.pieces)
    proto.normalizer_spec.name = "nmt_nfkc"
    proto.normalizer_spec.precompiled_charsmap = charsmap
    proto.normalizer_spec.add_dummy_prefix = proto.normalizer_spec.remove_extra_whitespaces = True
    proto.normalizer_spec.escape_whitespaces = True
    return proto.SerializeToString()
