"""Text to ids and back: SentencePiece byte-pair encoding.

`pair_tokenizer.py` has the tokenizers of imported models, which have a SentencePiece model for each side, and
`graph_tokenizer.py` both kinds as part of a TensorFlow graph.
"""

import contextlib
import functools
import io
import numbers
import os
import pathlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import sentencepiece

from keras_transformer.ground.errors import UserError
from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.tokens import BOS, EOS, OWN_PIECE, PAD, UNK
from keras_transformer.pieces.batching import encoded_by, refuse_no_list, why_no_text
from keras_transformer.pieces.normalization import (
    IDENTITY,
    NFC,
    NFKC,
    SPACE,
    file_of_rules,
    lower_case,
    normalization_rules,
)

MOST_PIECES = 2**31 - 1  # that SentencePiece counts

SPECIAL_IDS = {"pad": PAD, "unk": UNK, "bos": BOS, "eos": EOS}
CHARACTER_COVERAGE = 0.9999  # share of the characters that get a piece of their own; the others become bytes
TRAINING_CHARACTERS = 4_000  # longest text passed to the trainer, which silently drops longer ones
TRAINING_SENTENCES = 5_000_000  # sampled from a larger corpus, to limit memory


def train_tokenizer(
    sentences: Iterable[str],
    path: str | os.PathLike,
    vocab_size: int,
    symbols: Sequence[str] = (),
    lowercase: bool = False,
    dummy_prefix: bool = False,
    normalization: str = NFC,
    split_digits: bool = False,
) -> None:
    """Learn one joint vocabulary from all `sentences` (Vaswani et al. 2017, section 5.1) and write it to `path`.

    Byte-pair encoding (Sennrich et al. 2016) with byte fallback: decoding its ids restores any Unicode string, even if
    its characters were not in the training text, but for what `normalization` makes the same.

    symbols: texts that are always one piece, such as the tag <2de>, or " (NP" with the space before it; they are among
    the `vocab_size` pieces.
    lowercase: whether the tokenizer makes all text lower case, character by character, so that "Dog" and "dog" are the
    same pieces, and translations are in lower case.
    dummy_prefix: whether a text is read as if a space stood before it (SentencePiece's add_dummy_prefix), so that its
    first word has the same pieces as further on. Decoding leaves that space out; in a graph, where tensorflow-text has
    an older SentencePiece, it leaves out all spaces that a text begins with.
    normalization: "nfc" reads every space of Unicode as a space, several as one, those at both ends not at all; leaves
    out invisible characters; and composes letters and their accents. "nfkc" also reads full-width letters, ligatures
    and the like as the plain ones. "identity" leaves text as it is; only U+2581, SentencePiece's own sign for a space,
    becomes a space. `normalization.py` has the rules.
    split_digits: whether each digit is a piece of its own (SentencePiece's split_digits).

    The same sentences in the same order give the same file.
    Raises TokenizerError if the sentences have too few pieces for `vocab_size`, need more, or have a lone surrogate,
    and if a symbol cannot be kept. Raises TypeError if `sentences` is one string, or a sentence is not a string, and
    ValueError for another normalization.
    """
    refuse_no_list(sentences, "Sentence")
    check_vocab_size(vocab_size)
    check_symbols(symbols)
    rules = normalization_rules(normalization, lowercase)
    for symbol in symbols:
        if " " in symbol and (read := next((sequence for sequence in rules if sequence in symbol), "")):
            raise TokenizerError(
                f"The symbol {symbol!r} has a space, so the tokenizer reads its {read!r} as {rules[read]!r}: write the "
                "symbol so, or train the tokenizer without lowercase or normalization."
            )
    more: dict[str, Any] = {f"{name}_id": special_id for name, special_id in SPECIAL_IDS.items()}
    more |= {"user_defined_symbols": [symbol.replace(" ", SPACE) for symbol in symbols]} if symbols else {}
    model, texts = io.BytesIO(), _Parts(sentences)
    sentencepiece.set_random_generator_seed(1)
    with file_of_rules(rules) if rules else contextlib.nullcontext() as file, _explained(vocab_size, texts):
        more |= {"normalization_rule_tsv": file} if file else {}
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts),
            model_writer=model,
            model_type="bpe",
            vocab_size=vocab_size,
            byte_fallback=True,
            character_coverage=CHARACTER_COVERAGE,
            normalization_rule_name="identity",
            add_dummy_prefix=dummy_prefix,
            split_digits=split_digits,
            remove_extra_whitespaces=normalization != IDENTITY,
            max_sentence_length=4 * TRAINING_CHARACTERS,  # in bytes; a character has at most four in UTF-8
            input_sentence_size=TRAINING_SENTENCES,
            minloglevel=2,
            **more,
        )
    write_atomically(path, without_path_of_rules(model.getvalue()) if rules else model.getvalue())


class _Parts:
    """Sentences in parts of TRAINING_CHARACTERS. `error`: the exception that ended them; the trainer garbles it."""

    def __init__(self, sentences: Iterable[str]):
        self.sentences = sentences
        self.error: Exception | None = None

    def __iter__(self) -> Iterator[str]:
        try:
            for number, sentence in enumerate(self.sentences, 1):
                if not isinstance(sentence, str):
                    raise TypeError(f"Sentence {number} must be a string. Received: {sentence!r:.60}")
                if why := why_no_text(sentence, f"Sentence {number}"):
                    raise TokenizerError(why)
                for start in range(0, len(sentence), TRAINING_CHARACTERS):
                    yield sentence[start : start + TRAINING_CHARACTERS]
        except Exception as error:
            self.error = error
            raise


def without_path_of_rules(model: bytes) -> bytes:
    """Remove the path of the temporary file of rules from a SentencePiece model, which holds the rules themselves."""
    proto = model_proto(model)
    proto.normalizer_spec.ClearField("normalization_rule_tsv")
    return proto.SerializeToString()


def model_proto(model: bytes):
    """The message of protobuf that a SentencePiece model file holds."""
    from sentencepiece import sentencepiece_model_pb2  # protobuf, which TensorFlow brings

    return sentencepiece_model_pb2.ModelProto.FromString(model)


@contextlib.contextmanager
def _explained(vocab_size: int, texts: _Parts) -> Iterator[None]:
    """Turn an error of SentencePiece's trainer into a TokenizerError, or into the one that ended the texts."""
    try:
        yield
    except RuntimeError as error:
        if texts.error:
            raise texts.error from None
        raise TokenizerError(explanation(str(error), vocab_size)) from None


class Tokenizer:
    """A SentencePiece model with the special ids of `tokens.py`, read from a .model file.

    tags: of languages, such as >>deu<<, with which a text may begin; see PairTokenizer.

    Raises TokenizerError if there is no such file, if it is damaged, or if its special ids differ.
    """

    @property
    def tags(self) -> Sequence[str]:
        return ()

    def __init__(self, path: str | os.PathLike):
        try:
            model_bytes = pathlib.Path(path).read_bytes()
        except OSError as error:
            raise TokenizerError(f"The tokenizer {path} cannot be read: {error.strerror}.") from None
        self._open(model_bytes, path)

    @classmethod
    def of_bytes(cls, model_bytes: bytes, name: str | os.PathLike = "The tokenizer") -> Self:
        """Return the tokenizer of a file's content; errors call the file `name`."""
        tokenizer = cls.__new__(cls)
        tokenizer._open(model_bytes, name)
        return tokenizer

    def _open(self, model_bytes: bytes, path: str | os.PathLike) -> None:
        if model_bytes.startswith(b"PK"):
            raise TokenizerError(
                f"{path} is a pair of SentencePiece models, as imported models have it: open it with open_tokenizer."
            )
        self.model_bytes = model_bytes
        self._processor = processor_of(model_bytes, path)
        special_ids = {name: getattr(self._processor, f"{name}_id")() for name in SPECIAL_IDS}
        if special_ids != SPECIAL_IDS:
            raise TokenizerError(
                f"{path} has the special ids {_listed(special_ids)}, but this model needs {_listed(SPECIAL_IDS)}: "
                "train it with these ids, or leave tokenizer.model out to have one trained."
            )

    @property
    def vocab_size(self) -> int:
        return self._processor.get_piece_size()

    @property
    def sentencepiece_models(self) -> dict[str, bytes]:
        """The SentencePiece models, by the names of files that hold them."""
        return {"tokenizer.model": self.model_bytes}

    def pieces(self) -> list[str]:
        """Return the written form of every id, in order: that of EOS is "</s>", that of byte 10 is "<0x0A>"."""
        return self._processor.id_to_piece(list(range(self.vocab_size)))

    @property
    def has_surfaces(self) -> bool:
        """Whether a text is what its ids stand for, one after the other: see `surfaces`. Words of Moses are not so."""
        return True

    def kinds(self) -> list[str]:
        """Return what every id is: "normal", "unknown", "control", "user_defined", "unused" or "byte"."""
        return [self._proto.SentencePiece.Type.Name(piece.type).lower() for piece in self._proto.pieces]

    def surfaces(self) -> list[bytes]:
        """Return what every id stands for in a text, in UTF-8, a space as SPACE; b"" of an id that no text has."""
        texts = {"normal": str.encode, "user_defined": str.encode, "byte": lambda piece: bytes([int(piece[1:-1], 16)])}
        written = zip(self.pieces(), self.kinds(), strict=True)
        return [texts[kind](piece) if kind in texts else b"" for piece, kind in written]

    def scores(self) -> list[float]:
        """Return the score of every id. In byte-pair encoding, pieces of higher scores are merged first."""
        return [piece.score for piece in self._proto.pieces]

    @property
    def is_bpe(self) -> bool:
        """Whether the model is one of byte-pair encoding (Sennrich et al. 2016)."""
        return self._proto.trainer_spec.model_type == self._proto.trainer_spec.BPE

    @functools.cached_property
    def _proto(self):
        """The SentencePiece model, as a message of protobuf."""
        return model_proto(self.model_bytes)

    def encode(self, text: str) -> list[int]:
        """Return the ids of `text`, without BOS and EOS."""
        return encoded_by(self._processor, text)

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Return one list of ids per text. Raises TypeError if `texts` is one string."""
        refuse_no_list(texts, "Text")
        return encoded_by(self._processor, list(texts))

    def encode_target(self, text: str) -> list[int]:
        """Return the ids of a text of the target side, which a pair of models divides into other pieces."""
        return self.encode(text)

    def encode_target_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Return one list of ids per text of the target side. Raises TypeError if `texts` is one string."""
        return self.encode_batch(texts)

    def unknown_tag(self, text: str) -> str:
        """Return the tag of a language that the text begins with, if there is no piece for it, else ""."""
        return ""

    @functools.cached_property
    def is_lowercase(self) -> bool:
        """Whether the tokenizer makes all text lower case."""
        return self.decode(self.encode("A")) == "a"

    @functools.cached_property
    def normalization(self) -> str:
        """What the tokenizer makes the same, as in `train_tokenizer`."""
        return {"f \ufb01": NFC, "f fi": NFKC}.get(self.decode(self.encode("f\xa0\ufb01")), IDENTITY)

    def restored(self, texts: Iterable[str]) -> list[str]:
        """Return each text in the case that its ids have: lower, character by character, if `is_lowercase`."""
        return [lower_case(text) for text in texts] if self.is_lowercase else list(texts)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`; PAD, BOS and EOS have none.

        Raises IndexError for an id that no piece has, and TypeError for what is no list of whole numbers.
        """
        pieces = [number for number in whole_numbers(ids) if number not in (PAD, BOS, EOS)]
        try:
            return self._processor.decode(pieces)
        except IndexError:
            raise no_such_id(pieces, self.vocab_size) from None


def whole_numbers(ids: Iterable[int]) -> list[int]:
    """Return ids, which may be floats of a whole value. Raises TypeError if they are no list of such, but a text."""
    if not isinstance(ids, str | bytes):
        with contextlib.suppress(TypeError, ValueError, OverflowError):  # no list, no number, NaN, infinity
            given = list(ids)
            numbers = [int(each) for each in given]
            if numbers == given:
                return numbers
    raise TypeError(f"ids must be a list of whole numbers. Received: {ids!r:.60}")


def no_such_id(ids: Iterable[int], vocab_size: int) -> IndexError:
    """Return the error that names the first of `ids` that no piece has."""
    wrong = next(number for number in ids if not 0 <= number < vocab_size)
    return IndexError(f"{wrong} is no id of this tokenizer, whose ids are 0 to {vocab_size - 1}.")


def processor_of(model: bytes, name: str | os.PathLike) -> sentencepiece.SentencePieceProcessor:
    """Open a SentencePiece model. Raises TokenizerError, with the name of its file, if it is damaged."""
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model or b"empty")
        processor.id_to_piece(list(range(processor.get_piece_size())))  # raises if a piece is not UTF-8
    except (RuntimeError, UnicodeDecodeError):
        raise TokenizerError(f"{name} is not a SentencePiece model, or is damaged.") from None
    return processor


def _listed(ids: dict[str, int]) -> str:
    return ", ".join(f"{name} {special_id}" for name, special_id in ids.items())


class TokenizerError(UserError):
    """A vocabulary that cannot be learned, or a model file that cannot be used; the message gives the reason."""


def check_vocab_size(vocab_size: int) -> None:
    """Raises TokenizerError for a number of pieces that is none."""
    is_whole = isinstance(vocab_size, numbers.Integral) and not isinstance(vocab_size, bool)
    if not is_whole or not 1 <= vocab_size <= MOST_PIECES:
        raise TokenizerError(
            f"tokenizer.vocab_size is {vocab_size!r:.60}; it must be a whole number from 1 to {MOST_PIECES:,}."
        )


def check_symbols(symbols: Sequence[str]) -> None:
    """Raises TokenizerError for a symbol that is empty, given twice, or a piece that every tokenizer has.

    Raises TypeError for one string, whose letters would become symbols.
    """
    if isinstance(symbols, str | bytes):
        raise TypeError(f"symbols must be a list of texts, not one string. Received: {symbols!r:.60}")
    for number, symbol in enumerate(symbols):
        if not symbol or symbol in symbols[:number] or OWN_PIECE.fullmatch(symbol):
            why = "is empty, is given twice, or is a piece that every tokenizer has"
            raise TokenizerError(f"{symbol!r} cannot be a symbol: it {why}.")


def explanation(error: str, vocab_size: int) -> str:
    """Return a sentence that explains an error of SentencePiece's trainer in terms of the configuration."""
    if largest := re.search(r"size too high .* <= (\d+)", error):
        return (
            f"tokenizer.vocab_size is {vocab_size}, but the training text is too small for so many pieces: "
            f"the largest possible size is {largest[1]}."
        )
    if smallest := re.search(r"smaller than required_chars. \d+ vs (\d+)", error):
        return (
            f"tokenizer.vocab_size is {vocab_size}, but the 4 special ids, the 256 bytes and the characters "
            f"of the training text alone need {smallest[1]}: ask for at least that."
        )
    if "sentences_.empty()" in error or "all_chars_count" in error:
        return "There is no text to train a tokenizer on: every sentence is empty."
    return f"SentencePiece could not train a vocabulary of {vocab_size} pieces: {error}"
