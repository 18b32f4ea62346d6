"""A folder of Hugging Face's M2M100ForConditionalGeneration, as M2M-100 and NLLB-200 are: its parts as those of ours.

Both were trained with fairseq (Fan et al. 2020; NLLB Team 2022), whose dictionary begins with <s>, <pad>, </s> and
<unk>, and goes on with the pieces of one SentencePiece model; the pieces of languages come after them. M2M-100 has this
dictionary in vocab.json, NLLB-200 in the SentencePiece model alone.
"""

import collections
import itertools
import pathlib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from keras_transformer.models.imported.arrays import read_json
from keras_transformer.models.imported.errors import ImportedModelError, refusing_damage
from keras_transformer.models.imported.huggingface import (
    check_settings,
    config_of,
    read_settings,
    read_weights,
    search_of,
    sinusoids_in,
    special_ids,
    take_tied,
)
from keras_transformer.models.imported.marian_files import read_spm
from keras_transformer.models.imported.marian_yaml import read_vocabulary
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.vocabulary import Vocabulary, renamed
from keras_transformer.models.imported.weights import Arrays, Tokens, values_of_blocks
from keras_transformer.pieces.language_marks import Languages
from keras_transformer.pieces.pair_tokenizer import PairTokenizer, pair_model_bytes
from keras_transformer.pieces.tokenizer import model_proto

MODEL_TYPE = "m2m_100"
NEEDED = {
    "model_type": MODEL_TYPE,
    "is_encoder_decoder": True,
    "scale_embedding": True,
    "tie_word_embeddings": True,
}
FUNCTION = {"norm": "pre", "norm_epsilon": 1e-5, "sinusoids": "tensor2tensor"}
SHARED = ("model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
TABLES = tuple(f"model.{side}.embed_positions.weights" for side in ("encoder", "decoder"))  # of transformers 4
SPM = "sentencepiece.bpe.model"
FAIRSEQ = ["<s>", "<pad>", "</s>", "<unk>"]  # the first pieces
MASK = "<mask>"  # the last piece of NLLB-200
TOKENIZERS = ("M2M100Tokenizer", "NllbTokenizer", "NllbTokenizerFast")
LANGUAGE = re.compile(r"__(?P<m2m>[a-z]{2,3})__|(?P<nllb>[a-z]{3}_[A-Z][a-z]{3})")
# Of M2M100Tokenizer by its setting language_codes: the languages whose pieces follow vocab.json.
LANGUAGE_CODES = {
    "m2m100": "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr "
    "ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps "
    "pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu",
    "wmt21": "en ha is ja cs ru zh de",
}


def import_m2m(folder: pathlib.Path) -> ImportedModel:
    """Read a folder of Hugging Face's M2M100ForConditionalGeneration, with the function that Hugging Face computes.

    Raises ImportedModelError, with the name of the file, key or array, for what cannot be imported, and OSError if a
    file cannot be read.
    """
    path = folder / "config.json"
    settings = read_settings(path)
    check_settings(settings, path, NEEDED)
    of_tokenizer = tokenizer_settings(folder)
    arrays = read_weights(folder)
    ids = special_ids(settings, path)
    shape = settings.get("vocab_size"), settings.get("d_model")
    embedding = take_tied(arrays, (*SHARED, "lm_head.weight"), shape)
    text = pieces_of_text(folder)
    pieces = all_pieces(text, added_pieces(folder, len(text), of_tokenizer), len(embedding), folder)
    vocabulary = Vocabulary.of_pieces(pieces, folder, **ids)
    tokens = Tokens(vocabulary, vocabulary, embedding, embedding, embedding, np.zeros(len(pieces), np.float32))
    first_position = ids["pad"] + 1
    start = "eos" if ids["start"] == ids["eos"] else "bos"
    config = config_of(settings, tokens, path, **FUNCTION, first_position=first_position, decoder_start=start)
    check_tables(arrays, config.d_model, first_position)
    values = values_of_blocks(arrays, config, lambda weight: weight.huggingface, is_huggingface=True)
    arrays.refuse_rest()
    languages = languages_of(pieces[len(text) :], is_legacy=of_tokenizer.get("legacy_behaviour", False), folder=folder)
    spm, controls = read_spm(folder / SPM), map(renamed, (*FAIRSEQ, *pieces[len(text) :]))
    model = pair_model_bytes(spm, spm, tokens.pieces(), controls)
    return ImportedModel(
        config=config,
        values=values | tokens.values(config),
        tokenizer=PairTokenizer.of_bytes(model, "The tokenizer"),
        search=search_of(folder, settings),
        kind="Hugging Face M2M100",
        languages=languages,
    )


def tokenizer_settings(folder: pathlib.Path) -> dict[str, Any]:
    """Return the settings of tokenizer_config.json. Raises ImportedModelError for a tokenizer of another class."""
    path = folder / "tokenizer_config.json"
    settings = read_settings(path) if path.exists() else {}
    name, is_legacy = settings.get("tokenizer_class", TOKENIZERS[0]), settings.get("legacy_behaviour", False)
    if name not in TOKENIZERS:
        raise ImportedModelError(f"{path} has tokenizer_class: {name!r}; only {', '.join(TOKENIZERS)} can be imported.")
    if not isinstance(is_legacy, bool):
        raise ImportedModelError(f"{path} has legacy_behaviour: {is_legacy!r:.60}; it must be true or false.")
    return settings


def pieces_of_text(folder: pathlib.Path) -> list[str]:
    """Return the pieces by id that come before those of languages. Raises ImportedModelError if a file is missing."""
    if not (folder / SPM).exists():
        raise ImportedModelError(f"{folder} has no {SPM}, the SentencePiece model of both sides.")
    if (folder / "vocab.json").exists():
        return read_vocabulary(folder / "vocab.json")
    pieces = [piece.piece for piece in model_proto(read_spm(folder / SPM)).pieces]
    return [*FAIRSEQ, *(piece for piece in pieces if piece not in FAIRSEQ)]


def added_pieces(folder: pathlib.Path, first: int, of_tokenizer: Mapping[str, Any]) -> dict[int, str]:
    """Return the pieces by id that no text has: of languages, <mask>, and what others added.

    first: the id of the first of them, if no file says which ids they have.
    """
    given = {number: piece for number, piece in pieces_with_ids(folder, of_tokenizer) if number >= first}
    in_order: list[str] = []
    if (folder / "vocab.json").exists():
        codes = of_tokenizer.get("language_codes", "m2m100")
        if codes not in LANGUAGE_CODES:
            raise ImportedModelError(
                f"{folder / 'tokenizer_config.json'} has language_codes: {codes!r:.60}; only "
                f"{', '.join(LANGUAGE_CODES)} can be imported."
            )
        in_order = [f"__{code}__" for code in LANGUAGE_CODES[codes].split()]
    elif not any(map(LANGUAGE.fullmatch, given.values())):
        in_order = [*(piece for piece in pieces_in_order(folder, of_tokenizer) if piece not in FAIRSEQ), MASK]
    return dict(enumerate(dict.fromkeys(in_order), first)) | given


def pieces_with_ids(folder: pathlib.Path, of_tokenizer: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    """Yield the ids and names of added pieces in tokenizer.json, added_tokens.json and tokenizer_config.json."""
    path = folder / "tokenizer.json"
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
    if (most := max(len(text), *(number + 1 for number in added))) > rows:
        raise ImportedModelError(f"{folder} has {most:,} pieces, and the embedding of the model {rows:,} rows.")
    unnamed = (f"madeupword{number:04}" for number in itertools.count())
    pieces = [*text, *(added[number] if number in added else next(unnamed) for number in range(len(text), rows))]
    if len(set(pieces)) < len(pieces):
        twice = collections.Counter(pieces).most_common(1)[0][0]
        raise ImportedModelError(f"{folder} has the piece {twice!r:.60} twice: its files give it two ids.")
    return pieces


def languages_of(pieces: Iterable[str], is_legacy: bool, folder: pathlib.Path) -> Languages:
    """Return the languages among the added pieces. Raises ImportedModelError if there are none."""
    codes = {match["m2m"] or piece: piece for piece in pieces if (match := LANGUAGE.fullmatch(piece))}
    if not codes:
        raise ImportedModelError(
            f"{folder} names no languages: their pieces stand in tokenizer.json, added_tokens.json or "
            "special_tokens_map.json, as eng_Latn does."
        )
    place = "source_last" if is_legacy else "source_first"
    return Languages(codes, codes, target_first="target", **{place: "source"})


def check_tables(arrays: Arrays, d_model: int, first_position: int) -> None:
    """Take the tables of sinusoids that old files hold. Raises ImportedModelError if they have others."""
    if sinusoids_in(arrays, d_model, TABLES, first_position) not in (None, FUNCTION["sinusoids"]):
        raise ImportedModelError(f"{arrays.path} has the sinusoids of the paper; M2M100 has those of tensor2tensor.")
