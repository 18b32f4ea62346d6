"""The families of models that are imported from Hugging Face's format: what their config.json calls them, and files.

Nothing here needs NumPy or Keras. What reads them is in folder.py.
"""

from typing import NamedTuple


class Family(NamedTuple):
    """name: of its class in transformers, in short.

    needed, either, optional: the files of its tokenizer; of `either` at least one is there.
    """

    name: str
    needed: tuple[str, ...]
    optional: tuple[str, ...] = ()
    either: tuple[str, ...] = ()


WEIGHTS = "model.safetensors", "pytorch_model.bin"  # the best first, as in transformers: the second is a pickle
INDEX = ".index.json"  # behind the name of what would be one file of weights
SPM = "sentencepiece.bpe.model"
ADDED = ("special_tokens_map.json", "added_tokens.json", "tokenizer.json")  # files that name pieces of languages
FAMILIES = {  # by model_type
    "marian": Family("MarianMT", ("vocab.json", "source.spm", "target.spm"), ("target_vocab.json",)),
    "m2m_100": Family("M2M100", (), ("vocab.json", *ADDED), either=(SPM, "tokenizer.json")),
    "mbart": Family("MBart", (SPM,), ADDED),
    "bart": Family("Bart", (SPM,), ADDED),
    "t5": Family("T5", (), ("spiece.model", *ADDED)),
    "mt5": Family("MT5", ("spiece.model",), ADDED),
}
NAMES = ", ".join(family.name for family in FAMILIES.values())
RELATIVES = {  # by model_type: why a model that is much like one of FAMILIES is none
    "umt5": "UMT5 has a table of distances in each layer, where T5 and models here have one on each side",
    "switch_transformers": "Switch Transformers have a choice of experts in place of a feed-forward network",
    "nllb-moe": "this NLLB has a choice of experts in place of a feed-forward network",
    "longt5": "LongT5 attends to the neighbourhood of a token alone",
}


def why_not(model_type: object) -> str:
    """Return a sentence, after a space, on why a relative of FAMILIES cannot be imported; "" for other models."""
    reason = RELATIVES.get(model_type, "") if isinstance(model_type, str) else ""
    return f" {reason[0].upper()}{reason[1:]}." if reason else ""
