"""What Hugging Face's folders of models of several languages that fairseq trained have alike: pieces and languages.

These are M2M-100 (Fan et al. 2020), NLLB-200 (NLLB Team 2022) and mBART (Liu et al. 2020, Tang et al. 2020). The
dictionary of fairseq begins with <s>, <pad>, </s> and <unk>, and goes on with the pieces of one SentencePiece model;
the pieces of languages come after them. M2M-100 has this dictionary in vocab.json, the others in the SentencePiece
model alone, or in tokenizer.json.
"""

import collections
import itertools
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from keras_transformer.config import TransformerConfig
from keras_transformer.models.imported.arrays import StoredArrays, read_json, read_settings
from keras_transformer.models.imported.errors import ImportedModelError, refusing_damage
from keras_transformer.models.imported.families import SPM
from keras_transformer.models.imported.generation import FORCED_BOS, forced_bos, generation_of
from keras_transformer.models.imported.huggingface import check_settings, refuse, special_ids, take_tied
from keras_transformer.models.imported.marian_files import read_spm
from keras_transformer.models.imported.marian_yaml import read_vocabulary
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.tokenizer_json import spm_of_tokenizer_json
from keras_transformer.models.imported.vocabulary import Vocabulary, renamed
from keras_transformer.models.imported.weight_files import read_weights
from keras_transformer.models.imported.weights import Arrays, Tokens
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.pieces.pair_tokenizer import PairTokenizer, pair_model_bytes
from keras_transformer.pieces.tokenizer import model_proto

JSON = "tokenizer.json"
AN_ORIGINAL = "facebook/nllb-200-distilled-600M"
FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]  # the first pieces
MASK = "<mask>"  # the last piece of NLLB-200 and mBART
SHARED = ("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
LANGUAGE = re.compile(r"__(?P<m2m>[a-z]{2,3})__|(?P<nllb>[a-z]{3}_[A-Z][a-z]{3})|(?P<mbart>[a-z]{2,3}_[A-Z]{2})")
# Of M2M100Tokenizer by its setting language_codes: the languages whose pieces follow vocab.json.
LANGUAGE_CODES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr "
    "ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps "
    "pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}


class FairseqFolder(NamedTuple):
    """What a folder of one of fairseq's models holds, whatever the function of the model.

    settings: of config.json. ids: of special pieces. of_tokenizer: of tokenizer_config.json. pieces: the name of every
    row of the embedding. texts: how many of them a text may have: the first ones. spm: the SentencePiece model.
    """

    path: pathlib.Path
    settings: dict[str, Any]
    ids: dict[str, int]
    of_tokenizer: dict[str, Any]
    arrays: Arrays
    embedding: np.ndarray
    pieces: list[str]
    texts: int
    spm: bytes

    @classmethod
    def read(
        cls, folder: pathlib.Path, needed: Mapping[str, Any], tokenizers: Mapping[str, Sequence[str]], unnamed: str
    ) -> "FairseqFolder":
        """Read what all of fairseq's models have.

        needed: see `check_settings`. tokenizers: by the classes that can be imported, the pieces of languages that
        follow those of text if no file names them. unnamed: the class of a tokenizer that names none.

        Raises ImportedModelError, with the name of the file, key or array, for what cannot be imported, and OSError if
        a file cannot be read.
        """
        path = folder / "config.json"
        settings = read_settings(path)
        check_settings(settings, path, needed)
        of_tokenizer = tokenizer_settings(folder, tokenizers, unnamed, settings)
        arrays, ids = read_weights(folder), special_ids(settings, path)
        shape = settings.get("vocab_size"), settings.get("d_model")
        embedding = take_tied(arrays, (*SHARED, "lm_head.weight"), shape)
        spm = spm_of(folder)
        text = pieces_of_text(folder, spm)
        usual = tokenizers[of_tokenizer["tokenizer_class"]]
        pieces = all_pieces(text, added_pieces(folder, len(text), of_tokenizer, usual), len(embedding), folder)
        return cls(folder, settings, ids, of_tokenizer, arrays, embedding, pieces, len(text), spm)

    def tokens(self, bias: np.ndarray | None = None) -> Tokens:
        """Return the embedding that does it all; without a bias of the logits that is zeros."""
        vocabulary = Vocabulary.of_pieces(self.pieces, self.path, **self.ids)
        bias = np.zeros(len(self.pieces), np.float32) if bias is None else bias
        return Tokens(vocabulary, vocabulary, self.embedding, self.embedding, self.embedding, bias)

    @property
    def start(self) -> str:
        """What the decoder begins with, as TransformerConfig calls it."""
        return "eos" if self.ids["start"] == self.ids["eos"] else "bos"

    def languages(self, place: str) -> Languages:
        """Return the languages among the pieces. place: of that of the source, "source_first" or "source_last".

        One with whose piece the decoder begins is the only one that the model writes, and nothing else tells it. Else
        `forced_bos_token_id` is the default. Raises ImportedModelError if there are none, or that is none of them.
        """
        codes = language_codes(self.pieces[self.texts :], self.path)
        forced, file = forced_bos(self.path, self.settings)
        of_piece = {piece: code for code, piece in codes.items()}
        of_id = {number: of_piece[piece] for number, piece in enumerate(self.pieces) if piece in of_piece}
        if only := of_id.get(self.ids["start"]):
            if forced is not None:
                refuse(FORCED_BOS, forced, file, "null, with that decoder_start_token_id,")
            return Languages(codes, {only: ""}, **{place: "source"})
        if forced is not None and (type(forced) is not int or forced not in of_id):
            refuse(FORCED_BOS, forced, file, "the id of a language's piece")
        default = "" if forced is None else of_id[forced]
        return Languages(codes, codes, target_first="target", default_target=default, **{place: "source"})

    def imported(
        self, config: TransformerConfig, values: StoredArrays, tokens: Tokens, place: str, kind: str
    ) -> ImportedModel:
        """Return the model with this function, and these values of its blocks."""
        self.arrays.refuse_rest()
        generation = generation_of(self.path, self.settings, tokens.target)
        controls = map(renamed, (*FAIRSEQ, *self.pieces[self.texts :]))
        model = pair_model_bytes(self.spm, self.spm, tokens.pieces(), controls)
        return ImportedModel(
            config=config,
            values=values | tokens.values(config),
            tokenizer=PairTokenizer.of_bytes(model, "The tokenizer"),
            search=generation.search,
            kind=kind,
            notes=generation.notes,
            languages=self.languages(place),
        )


def tokenizer_settings(
    folder: pathlib.Path, classes: Iterable[str], unnamed: str, of_model: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of tokenizer_config.json, with the class, which is `unnamed` if no file names one.

    of_model: of config.json, whose class is that of a tokenizer_config.json without one, as in AutoTokenizer.
    Raises ImportedModelError for a tokenizer of a class that is not among `classes`.
    """
    path = folder / "tokenizer_config.json"
    settings = read_settings(path) if path.exists() else {}
    files = {path: settings, folder / "config.json": of_model}
    file = next((each for each, values in files.items() if "tokenizer_class" in values), path)
    name, is_legacy = files[file].get("tokenizer_class", unnamed), settings.get("legacy_behaviour", False)
    if name not in list(classes):  # a list, since a stranger's value may have no hash
        refuse("tokenizer_class", name, file, ", ".join(classes))
    if not isinstance(is_legacy, bool):
        raise ImportedModelError(f"{path} has legacy_behaviour: {is_legacy!r:.60}; it must be true or false.")
    return {"tokenizer_class": name, **settings}


def spm_of(folder: pathlib.Path) -> bytes:
    """Return the SentencePiece model of both sides, from tokenizer.json if that is all there is.

    Raises ImportedModelError if neither is there, or no SentencePiece model divides text as tokenizer.json does.
    """
    if (folder / SPM).exists():
        return read_spm(folder / SPM)
    try:
        if (folder / JSON).exists() and not (folder / "vocab.json").exists():
            return spm_of_tokenizer_json(folder / JSON, FAIRSEQ)
        reason = f"{folder} has no {SPM}, the SentencePiece model of both sides."
    except ImportedModelError as error:
        reason = f"{error} There is no {SPM} either."
    raise ImportedModelError(f"{reason} Copy it from the model that this one was tuned from, such as {AN_ORIGINAL}.")


def pieces_of_text(folder: pathlib.Path, spm: bytes) -> list[str]:
    """Return the pieces by id that come before those of languages."""
    if (folder / "vocab.json").exists():
        return read_vocabulary(folder / "vocab.json")
    pieces = [piece.piece for piece in model_proto(spm).pieces]
    return [*FAIRSEQ, *(piece for piece in pieces if piece not in FAIRSEQ)]


def added_pieces(
    folder: pathlib.Path, first: int, of_tokenizer: Mapping[str, Any], usual: Sequence[str] = ()
) -> dict[int, str]:
    """Return the pieces by id that no text has: of languages, <mask>, and what others added.

    first: the id of the first of them, if no file says which ids they have. usual: those that a tokenizer of its class
    has, whatever its files say.
    """
    given = {number: piece for number, piece in pieces_with_ids(folder, of_tokenizer) if number >= first}
    in_order: list[str] = []
    if (folder / "vocab.json").exists():
        codes = of_tokenizer.get("language_codes", "m2m100")
        if codes not in list(LANGUAGE_CODES):
            raise ImportedModelError(
                f"{folder / 'tokenizer_config.json'} has language_codes: {codes!r:.60}; only "
                f"{', '.join(LANGUAGE_CODES)} can be imported."
            )
        in_order = [f"__{code}__" for code in LANGUAGE_CODES[codes].split()]
    elif usual:
        in_order = [] if {*usual} & {*given.values()} else [*usual, MASK]
    elif not any(map(LANGUAGE.fullmatch, given.values())):
        in_order = [*(piece for piece in pieces_in_order(folder, of_tokenizer) if piece not in FAIRSEQ), MASK]
    return dict(enumerate(dict.fromkeys(in_order), first)) | given


def pieces_with_ids(folder: pathlib.Path, of_tokenizer: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the ids and names of added pieces in tokenizer.json, added_tokens.json and tokenizer_config.json."""
    path = folder / JSON
    tokens = read_json(path).get("added_tokens", []) if path.exists() else []
    decoder = of_tokenizer.get("added_tokens_decoder", {})
    with refusing_damage(path if tokens else folder / "tokenizer_config.json", "a list of added tokens"):
        entries = [(token["id"], token) for token in tokens] + [(int(key), token) for key, token in decoder.items()]
        for number, token in entries:
            if not token.get("special", True):
                raise ImportedModelError(
                    f"{folder} has the added token {token['content']!r:.60}, which is not special: only pieces that "
                    "no text has can be imported."
                )
            yield number, str(token["content"])
    path = folder / "added_tokens.json"
    with refusing_damage(path, "a list of added tokens"):
        for piece, number in (read_json(path) if path.exists() else {}).items():
            yield int(number), piece


def pieces_in_order(folder: pathlib.Path, of_tokenizer: Mapping[str, Any]) -> list[str]:
    """Return the additional special tokens that special_tokens_map.json or tokenizer_config.json names."""
    path = folder / "special_tokens_map.json"
    for settings in (read_settings(path) if path.exists() else {}, of_tokenizer):
        for key in ("additional_special_tokens", "extra_special_tokens"):
            if isinstance(tokens := settings.get(key), list) and tokens:
                with refusing_damage(path, "a list of special tokens"):
                    return [token if isinstance(token, str) else token["content"] for token in tokens]
    return []


def all_pieces(text: list[str], added: Mapping[int, str], rows: int, folder: pathlib.Path) -> list[str]:
    """Return the name of every row of the embedding. Rows that no piece has get fairseq's names for those.

    Raises ImportedModelError if a piece has no row, or two.
    """
    if (most := max([len(text), *(number + 1 for number in added)])) > rows:
        raise ImportedModelError(f"{folder} has {most:,} pieces, and the embedding of the model {rows:,} rows.")
    unnamed = (f"madeupword{number:04}" for number in itertools.count())
    pieces = [*text, *(added[number] if number in added else next(unnamed) for number in range(len(text), rows))]
    if len(set(pieces)) < len(pieces):
        twice = collections.Counter(pieces).most_common(1)[0][0]
        raise ImportedModelError(f"{folder} has the piece {twice!r:.60} twice: its files give it two ids.")
    return pieces


def language_codes(pieces: Iterable[str], folder: pathlib.Path) -> dict[str, str]:
    """Return the languages among the added pieces, by their codes. Raises ImportedModelError if there are none."""
    codes = {match["m2m"] or piece: piece for piece in pieces if (match := LANGUAGE.fullmatch(piece))}
    if not codes:
        raise ImportedModelError(
            f"{folder} names no languages: their pieces stand in tokenizer.json, added_tokens.json or "
            "special_tokens_map.json, as eng_Latn does."
        )
    return codes
