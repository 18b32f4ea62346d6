"""The files of a model in a folder that Marian wrote: which is the model, which are its vocabularies."""

import pathlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_transformer.ground.files import resolved
from keras_transformer.models.imported.errors import ImportedModelError
from keras_transformer.models.imported.marian_yaml import read_options, read_vocabulary
from keras_transformer.models.imported.vocabulary import Vocabulary
from keras_transformer.pieces.pair_tokenizer import SPECIAL_PIECES, PairTokenizer, moses_model_bytes, pair_model_bytes
from keras_transformer.pieces.tokenizer import SPECIAL_IDS, Tokenizer, TokenizerError, model_proto, processor_of

NONE = -1  # in place of the id of a piece that the model did not have

SPM, BPE = ".spm", ".bpe"
PAIR_OF_LANGUAGES = re.compile(r"(?:^|[-_.])([a-z]{2,3})-([a-z]{2,3})$")
VOCABULARIES = (("*.src.vocab.yml", "*.trg.vocab.yml"), ("*vocab.yml",) * 2, ("vocab*.spm",) * 2)  # without decoder.yml


class Vocabularies(NamedTuple):
    """The vocabularies of both sides, and the SentencePiece models that divide a text into their pieces.

    is_spm: whether these models are the vocabularies, and have the ids too. languages: of both sides, if Moses and
    codes of byte-pair encoding divide a text; the codes then are in place of the models.
    """

    source: Vocabulary
    target: Vocabulary
    source_spm: bytes
    target_spm: bytes
    is_spm: bool = False
    languages: tuple[str, str] | None = None

    def tokenizer(self, pieces: Sequence[str]) -> Tokenizer:
        """Return the tokenizer that has these pieces by their ids."""
        if self.is_spm and self.source_spm == self.target_spm:
            tokenizer = Tokenizer.of_bytes(renumbered(self.source_spm)[0])
            if tokenizer.pieces() == pieces:  # it has no <pad> or <s> of its own
                return tokenizer
        if self.languages:
            model = moses_model_bytes(self.source_spm, self.target_spm, self.languages, pieces)
        else:
            model = pair_model_bytes(self.source_spm, self.target_spm, pieces)
        return PairTokenizer.of_bytes(model, "The tokenizer")


class MarianFiles(NamedTuple):
    """The paths of a model: its .npz, and the decoder.yml beside it, if there is one."""

    model: pathlib.Path
    decoder: pathlib.Path | None

    @classmethod
    def of(cls, path: pathlib.Path) -> "MarianFiles":
        """Find the files of the model in a folder, or of a model.npz. Raises ImportedModelError if there is not one."""
        if path.is_file():
            beside = [path.with_name(f"{path.name}.decoder.yml"), path.with_name("decoder.yml")]
            return cls(path, next((file for file in beside if file.exists()), None))
        if (path / "decoder.yml").exists():
            named = named_in(path / "decoder.yml", "models")
            if len(named) != 1:
                raise ImportedModelError(
                    f"{path / 'decoder.yml'} names {len(named)} models: import each alone, by the path of its .npz."
                )
            models = [path / pathlib.PurePath(named[0]).name]
            if not models[0].exists() or models[0].suffix != ".npz":
                models = []
        else:
            models = [file for file in sorted(path.glob("*.npz")) if not file.name.endswith(".optimizer.npz")]
        if len(models) > 1:
            raise ImportedModelError(
                f"{path} has {len(models)} models, such as {models[0].name} and {models[1].name}: name one by its path."
            )
        if models:
            return cls(models[0], cls.of(models[0]).decoder)
        if binary := sorted(path.glob("*.bin")):
            raise ImportedModelError(
                f"{binary[0]} is in Marian's binary format, whose weights are mostly rounded to 8 bits: import the "
                "model.npz that it was made of."
            )
        raise ImportedModelError(f"{path} has no model: expected an .npz that Marian wrote, and its vocabulary.")

    def decoder_options(self) -> dict[str, Any]:
        """Return the options of decoder.yml; none if there is no such file."""
        return read_options(self.decoder.read_bytes(), self.decoder) if self.decoder else {}

    def vocabularies(self) -> Vocabularies:
        """Read the vocabularies. Raises ImportedModelError for one that is missing, damaged, or of another kind."""
        source, target = self.vocabulary_paths()
        if source.suffix == target.suffix == SPM:
            source_spm, target_spm = read_spm(source), read_spm(target)
            sides = vocabulary_in(source_spm, source), vocabulary_in(target_spm, target)
            return Vocabularies(*sides, source_spm, target_spm, is_spm=True)
        models, codes = (
            [self.model.with_name(f"{side}{kind}") for side in ("source", "target")] for kind in (SPM, BPE)
        )
        is_moses = not models[0].exists() and all(path.exists() for path in codes)
        models = codes if is_moses else models
        for path in models:
            if not path.exists():
                raise ImportedModelError(f"{self.model.parent} has no {path.name}. {self.why_without_spm()}")
        sides = (
            Vocabulary.of_pieces(read_vocabulary(source), source),
            Vocabulary.of_pieces(read_vocabulary(target), target),
        )
        if is_moses:
            source_codes, target_codes = (path.read_bytes() for path in codes)
            return Vocabularies(*sides, source_codes, target_codes, languages=self.languages()[0])
        source_spm, target_spm = map(read_spm, models)
        return Vocabularies(*sides, source_spm, target_spm)

    def languages(self) -> tuple[tuple[str, str], bool]:
        """Return the languages that the name of the folder ends in, as opus-mt-en-de, and whether it does.

        English ones if it does not: the rules of Moses differ little.
        """
        match = PAIR_OF_LANGUAGES.search(resolved(self.model.parent).name)
        return ((match[1], match[2]), True) if match else (("en", "en"), False)

    def vocabulary_paths(self) -> tuple[pathlib.Path, pathlib.Path]:
        """Return the vocabularies of both sides: those that decoder.yml names, or those that are called so."""
        folder = self.model.parent
        if self.decoder and (named := named_in(self.decoder, "vocabs")):
            paths = [folder / pathlib.PurePath(name).name for name in named]
            if len(paths) != 2:
                raise ImportedModelError(f"{self.decoder} names {len(paths)} vocabs, expected 2: source and target.")
        else:
            found = [[sorted(folder.glob(pattern)) for pattern in patterns] for patterns in VOCABULARIES]
            paths = next(([source[0], target[0]] for source, target in found if len(source) == len(target) == 1), [])
        if not paths:
            raise ImportedModelError(f"{folder} has no decoder.yml that names the vocabs, and not one vocab.yml.")
        for path in paths:
            if path.suffix not in (".yml", ".yaml", ".json", SPM):
                raise ImportedModelError(
                    f"{path.name} is a vocabulary of a kind that cannot be imported: a vocab.yml or vocab.spm can be; "
                    "factors cannot."
                )
            if not path.exists():
                raise ImportedModelError(f"{folder} has no {path.name}, which {self.decoder} names as its vocabulary.")
        return paths[0], paths[1]

    def why_without_spm(self) -> str:
        """Return a sentence about a folder without source.spm and target.spm."""
        if bpe := sorted(self.model.parent.glob("*.bpe")):
            return f"It has {bpe[0].name}: a model of byte-pair encoding needs source.bpe and target.bpe, so called."
        return "The SentencePiece models of both sides are needed, under these names."


def named_in(decoder: pathlib.Path, key: str) -> list[str]:
    """Return the names of files under a key of decoder.yml."""
    names = read_options(decoder.read_bytes(), decoder).get(key) or []
    return [str(name) for name in (names if isinstance(names, list) else [names])]


def read_spm(path: pathlib.Path) -> bytes:
    """Return a SentencePiece model. Raises TokenizerError if it is damaged, OSError if it cannot be read."""
    model = path.read_bytes()
    processor_of(model, path)
    return model


def vocabulary_in(model: bytes, path: pathlib.Path) -> Vocabulary:
    """Return the vocabulary that a SentencePiece model is."""
    processor = processor_of(model, path)
    pieces = processor.id_to_piece(list(range(processor.get_piece_size())))
    return Vocabulary.of_pieces(pieces, path, unk=processor.unk_id(), eos=processor.eos_id())


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
