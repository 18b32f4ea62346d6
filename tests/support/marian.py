"""A small model that Marian itself trained, its tokenizer and its outputs, if this machine has them."""

import json

import pytest

from keras_transformer.pair_tokenizer import SPECIAL_PIECES, PairTokenizer, pair_model_bytes

from .places import ROOT

MARIAN = ROOT.parent / "shared" / "marian_fixture"
TAGS = (">>deu<<", ">>nld<<")  # which a multilingual model has

needs_marian = pytest.mark.skipif(not MARIAN.is_dir(), reason=f"there is no {MARIAN}")


def lines(name: str) -> list[str]:
    """The lines of a text of the fixture."""
    return (MARIAN / name).read_text(encoding="utf-8").removesuffix("\n").split("\n")


def marian_pieces() -> list[str]:
    """The pieces of vocab.yml in Marian's order: </s>, <unk>, and the rest."""
    names = [line.rpartition(": ")[0] for line in lines("vocab.yml")]
    return [json.loads(name) if name.startswith('"') else name for name in names]


def pair_bytes(tags: tuple[str, ...] = ()) -> bytes:
    """The file of the fixture's PairTokenizer, with `tags` among its pieces."""
    source, target = ((MARIAN / f"{side}.spm").read_bytes() for side in ("source", "target"))
    special = list(SPECIAL_PIECES.values())
    return pair_model_bytes(source, target, [*special, *(p for p in marian_pieces() if p not in special), *tags])


def pair_tokenizer(tags: tuple[str, ...] = ()) -> PairTokenizer:
    return PairTokenizer.of_bytes(pair_bytes(tags))
