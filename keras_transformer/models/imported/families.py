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
