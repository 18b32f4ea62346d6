"""The tokenizers of imported models: one SentencePiece model for each side, and one vocabulary of pieces.

Marian's models are made so (Junczys-Dowmunt et al. 2018), among them those of OPUS-MT. Older ones of these have codes
of byte-pair encoding, and words of Moses, in place of SentencePiece models: see moses.py.
"""

import functools
import io
import json
import os
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from keras_transformer.ground.errors import first_line_of
from keras_transformer.ground.files import DAMAGED_ARCHIVE
from keras_transformer.ground.notations import json_of
from keras_transformer.ground.tokens import BOS, EOS, PAD, UNK
from keras_transformer.pieces.batching import SURROGATE, list_of_lines
from keras_transformer.pieces.moses import MosesSide
from keras_transformer.pieces.normalization import IDENTITY, NFC, NFKC, SPACE
from keras_transformer.pieces.tokenizer import Tokenizer, TokenizerError, no_such_id, processor_of, whole_numbers

SIGNATURE = b"PK\x03\x04"  # the first bytes of a zip file
SOURCE, TARGET, VOCABULARY = MEMBERS = ("source.spm", "target.spm", "vocabulary.json")
SOURCE_CODES, TARGET_CODES, LANGUAGES = ("source.bpe", "target.bpe", "languages.json")  # of a model with words of Moses
MOSES_MEMBERS = (SOURCE_CODES, TARGET_CODES, LANGUAGES, VOCABULARY)
CONTROLS = "controls.json"  # one more member, of models whose texts have no tags
SPECIAL_PIECES = {PAD: "<pad>", UNK: "<unk>", BOS: "<s>", EOS: "</s>"}
TAG = "^>>(?s:.*?)<<"  # >>deu<<: the language that a multilingual model is to write; for re and for RE2
BLANKS = "\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"  # what str.strip takes off
ENDS = f"^[{BLANKS}]+|[{BLANKS}]+$"  # for re and for RE2
_TAG, _ENDS = re.compile(TAG), re.compile(ENDS)


def pair_model_bytes(
    source_spm: bytes, target_spm: bytes, pieces: Sequence[str], controls: Iterable[str] | None = None
) -> bytes:
    """Return the one file of a PairTokenizer: a zip of both SentencePiece models and the vocabulary.

    pieces: by id, beginning with <pad>, <unk>, <s>, </s>. controls: those among them that no text has, of a model whose
    texts do not begin with a tag either; None: a text may begin with one. The same parts give the same bytes.
    Raises TokenizerError if they begin otherwise, one is there twice, or a model is damaged.
    """
    members = dict(zip(MEMBERS, (source_spm, target_spm, json.dumps(list(pieces)).encode()), strict=True))
    return _zip_of(members if controls is None else members | {CONTROLS: json.dumps(list(controls)).encode()})


def moses_model_bytes(
    source_codes: bytes, target_codes: bytes, languages: tuple[str, str], pieces: Sequence[str]
) -> bytes:
    """Return the one file of a PairTokenizer with words of Moses: its codes of byte-pair encoding by subword-nmt.

    languages: of both sides, by whose rules Moses divides words. For all else see `pair_model_bytes`.
    """
    contents = source_codes, target_codes, json.dumps(languages).encode(), json.dumps(list(pieces)).encode()
    return _zip_of(dict(zip(MOSES_MEMBERS, contents, strict=True)))


def _zip_of(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of these files, which is a PairTokenizer. Raises TokenizerError if it is none."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            member = zipfile.ZipInfo(name)  # of 1980, so that the time changes nothing
            member.create_system, member.external_attr = 3, 0o644 << 16  # Unix, whichever system writes it
            archive.writestr(member, content)
    PairTokenizer.of_bytes(file.getvalue(), "The tokenizer")
    return file.getvalue()


def open_tokenizer(path: str | os.PathLike) -> Tokenizer:
    """Return the Tokenizer or PairTokenizer in a file. Raises TokenizerError if it is missing or damaged."""
    try:
        with open(path, "rb") as file:
            is_pair = file.read(len(SIGNATURE)) == SIGNATURE
    except OSError as error:
        raise TokenizerError(f"The tokenizer {path} cannot be read: {error.strerror}.") from None
    return PairTokenizer(path) if is_pair else Tokenizer(path)


class PairTokenizer(Tokenizer):
    """Divides a text into the pieces of its side's SentencePiece model, whose ids are those of one vocabulary.

    A piece that the vocabulary lacks is UNK. A tag such as >>deu<< that begins a text is one piece; elsewhere it is
    text, as are special pieces. Ids and texts are those of Hugging Face's MarianTokenizer, which reads </s> and <unk>
    in a text as special, however.

    If the file names controls, such as the pieces of the languages of M2M-100, they stand for no text, and a tag is
    text everywhere.

    Reads a file that `pair_model_bytes` made; raises TokenizerError if it is missing or damaged.
    """

    def _open(self, model_bytes: bytes, path: str | os.PathLike) -> None:
        self.model_bytes = model_bytes
        self._members, self._pieces = _parts(model_bytes, path)
        self._source, self._target = _sides(self._members, path)
        self.has_tags = CONTROLS not in self._members
        controls = set() if self.has_tags else {*json_of(self._members[CONTROLS])}
        self.silent = {
            number for number, piece in enumerate(self._pieces) if number in SPECIAL_PIECES or piece in controls
        }
        self.ids = {piece: number for number, piece in enumerate(self._pieces) if number not in self.silent}

    @property
    def vocab_size(self) -> int:
        return len(self._pieces)

    @property
    def sentencepiece_models(self) -> dict[str, bytes]:
        """The SentencePiece models of both sides, by the names of files that hold them.

        Raises TokenizerError if there are none, but words of Moses.
        """
        if not self.has_surfaces:
            raise TokenizerError(
                "This model divides text into words of Moses, and these by byte-pair encoding, which no graph and no "
                "other format here can do: translate with its run folder, or with a LiteRT model of it."
            )
        return {name: self._members[name] for name in (SOURCE, TARGET)}

    @property
    def source_spm(self) -> bytes:
        return self.sentencepiece_models[SOURCE]

    @property
    def target_spm(self) -> bytes:
        return self.sentencepiece_models[TARGET]

    @property
    def has_surfaces(self) -> bool:
        return SOURCE in self._members

    def pieces(self) -> list[str]:
        """Return the written form of every id, in order."""
        return list(self._pieces)

    def surfaces(self) -> list[bytes]:
        """Return what every id stands for in a text, in UTF-8, a space as SPACE; b"" of an id that no text has."""
        return [b"" if number in self.silent else self._surface(piece) for number, piece in enumerate(self._pieces)]

    def _surface(self, piece: str) -> bytes:
        return self._bytes.get(piece) or piece.encode()

    @functools.cached_property
    def _bytes(self) -> dict[str, bytes]:
        """The pieces of the target side that stand for a byte, with that byte."""
        pieces, target = {f"<0x{byte:02X}>": bytes([byte]) for byte in range(256)}, self._target
        return {piece: byte for piece, byte in pieces.items() if target.is_byte(target.piece_to_id(piece))}

    @property
    def is_bpe(self) -> bool:
        """False: the merges of two models are not those of one."""
        return False

    @property
    def _proto(self):
        raise TokenizerError("A tokenizer of two SentencePiece models has neither kinds nor scores of its pieces.")

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text of the source side, without BOS and EOS."""
        return self._encoded(self._source, [text])[0]

    def encode_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Return one list of ids per text of the source side. Raises TypeError if `texts` is one string."""
        return self._encoded(self._source, texts)

    def encode_target(self, text: str) -> list[int]:
        """Return the ids of a text of the target side, without BOS and EOS."""
        return self._encoded(self._target, [text])[0]

    def encode_target_batch(self, texts: Iterable[str]) -> list[list[int]]:
        """Return one list of ids per text of the target side. Raises TypeError if `texts` is one string."""
        return self._encoded(self._target, texts)

    def _encoded(self, processor, texts: Iterable[str]) -> list[list[int]]:
        texts = list_of_lines(texts, "Text")
        tags, words = zip(*map(self._divided, texts), strict=True) if texts else ((), ())
        return [
            [self.ids.get(piece, UNK) for piece in ([tag] if tag else []) + pieces]
            for tag, pieces in zip(tags, processor.encode(list(words), out_type=str), strict=True)
        ]

    def with_controls(self, pieces: Iterable[str]) -> "PairTokenizer":
        """Return the same tokenizer with more pieces, the last ones, that stand for no text. It must have controls.

        Raises TokenizerError if one is there already.
        """
        more = list(pieces)
        controls = [*json_of(self._members[CONTROLS]), *more]
        spms = self.source_spm, self.target_spm
        return PairTokenizer.of_bytes(pair_model_bytes(*spms, [*self._pieces, *more], controls), "The tokenizer")

    @functools.cached_property
    def tags(self) -> list[str]:
        """The tags of languages with which a text may begin, such as >>deu<<."""
        return [piece for piece in self.ids if self._divided(piece) == (piece, "")]

    def _divided(self, text: str) -> tuple[str, str]:
        tag, rest = divided(text) if self.has_tags else ("", text)
        return (tag, rest) if tag in self.ids else ("", text)

    def unknown_tag(self, text: str) -> str:
        """Return the tag of a language that the text begins with, if a model with tags has no piece for it, else ""."""
        tag, _ = divided(text) if self.tags else ("", text)
        return "" if tag in self.ids else tag

    @property
    def is_lowercase(self) -> bool:
        """Whether texts of the target side are made lower case."""
        return self._target.normalize("A").endswith("a")

    @property
    def normalization(self) -> str:
        """What the tokenizer makes the same on the source side, as in `train_tokenizer`."""
        normalized = self._source.normalize("f\xa0\ufb01").replace(SPACE, " ").strip(" ")
        return {"f \ufb01": NFC, "f fi": NFKC}.get(normalized, IDENTITY)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of `ids`, without white space at its ends; PAD, UNK, BOS, EOS and controls have none.

        Bytes of a character that lacks some, as at the end of a translation that was cut, are left out.

        Raises IndexError for an id that no piece has, and TypeError for what is no list of whole numbers.
        """
        numbers = [number for number in whole_numbers(ids) if number not in self.silent]
        if numbers and not 0 <= min(numbers) <= max(numbers) < self.vocab_size:
            raise no_such_id(numbers, self.vocab_size)
        pieces = [self._pieces[number] for number in numbers]
        if self.has_surfaces:
            text = b"".join(map(self._surface, pieces)).decode("utf-8", errors="ignore")
        else:
            text = self._target.decode_pieces(pieces)
        return _ENDS.sub("", text.replace(SPACE, " "))


def divided(text: str) -> tuple[str, str]:
    """Return the tag that a text begins with, "" if there is none, and the rest."""
    tag = match[0] if (match := _TAG.match(text)) else ""
    return tag, text[len(tag) :]


def _parts(model_bytes: bytes, name: str | os.PathLike) -> tuple[dict[str, bytes], list[str]]:
    """Return the files of a zip, and its vocabulary. Raises TokenizerError if it is damaged."""
    try:
        with zipfile.ZipFile(io.BytesIO(model_bytes)) as archive:
            if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
                raise ValueError("its parts are compressed")
            needed = MOSES_MEMBERS if SOURCE_CODES in archive.namelist() else MEMBERS
            more = {CONTROLS} & {*archive.namelist()}
            members = {member: archive.read(member) for member in (*needed, *more)}
        pieces = _strings(members, VOCABULARY)
        for member in more:
            _strings(members, member)
        _check_vocabulary(pieces)
    except DAMAGED_ARCHIVE as error:
        raise TokenizerError(
            f"{name} is not a pair of SentencePiece models with a vocabulary, or is damaged: {first_line_of(error)}"
        ) from None
    return members, pieces


def _strings(members: Mapping[str, bytes], name: str) -> list[str]:
    """Return the list in a file of the zip. Raises ValueError if it is none of strings."""
    strings = json_of(members[name])
    if not isinstance(strings, list) or not all(isinstance(string, str) for string in strings):
        raise ValueError(f"{name} is not a list of strings")
    return strings


def _sides(members: Mapping[str, bytes], name: str | os.PathLike) -> list[Any]:
    """Return what divides the text of each side. Raises TokenizerError if it is damaged."""
    if SOURCE in members:
        return [processor_of(members[side], f"{name}: {side}") for side in (SOURCE, TARGET)]
    sides = []
    try:
        languages = json_of(members[LANGUAGES])
        if not isinstance(languages, list) or [type(code) for code in languages] != [str, str]:
            raise ValueError(f"{LANGUAGES} is not a list of two codes")
        for side, language in zip((SOURCE_CODES, TARGET_CODES), languages, strict=True):
            sides.append(MosesSide(members[side], language))
    except ValueError as error:  # UnicodeDecodeError too
        file = (SOURCE_CODES, TARGET_CODES)[len(sides)]
        raise TokenizerError(f"{name}: {file} is no file of codes by subword-nmt: {first_line_of(error)}") from None
    return sides


def _check_vocabulary(pieces: list[str]) -> None:
    """Raises ValueError for pieces that do not begin with the special ones, or are not all different texts."""
    special = list(SPECIAL_PIECES.values())
    if pieces[: len(special)] != special:
        raise ValueError(f"its vocabulary does not begin with {', '.join(special)}")
    if len(set(pieces)) < len(pieces):
        twice = next(piece for number, piece in enumerate(pieces) if piece in pieces[:number])
        raise ValueError(f"its vocabulary has the piece {twice!r} twice")
    for piece in pieces:
        if SURROGATE.search(piece):
            raise ValueError(f"its vocabulary has the piece {piece!r}, which is no text")
