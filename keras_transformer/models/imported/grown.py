"""Languages that an imported model does not know yet: a piece, and the row that a related language has."""

import functools
from collections.abc import Iterable, Sequence

import numpy as np

from keras_transformer.ground.errors import ConfigError
from keras_transformer.models.imported.arrays import StoredArrays
from keras_transformer.models.imported.fairseq import LANGUAGE
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.names import weights_of_tokens
from keras_transformer.pieces.language_marks import TARGET, Languages
from keras_transformer.pieces.languages import short_code
from keras_transformer.pieces.pair_tokenizer import PairTokenizer


def with_language(model: ImportedModel, code: str, like: str) -> ImportedModel:
    """Return `with_languages` for one language."""
    return with_languages(model, [(code, like)])


def with_languages(model: ImportedModel, additions: Iterable[tuple[str, str]]) -> ImportedModel:
    """Return a model that is told more languages, each of which begins as a copy of one that it has, or has by then.

    additions: the code of each, and that of the one it is like. Their pieces are the last ones; every other piece keeps
    its id and its weights. Raises ConfigError if the model is not told its languages as M2M-100, NLLB-200 and mBART-50
    are, has a language already or lacks the one it is like, or if its codes have another form.
    """
    languages, tokenizer = model.languages, model.tokenizer
    if languages.target_first != TARGET or not isinstance(tokenizer, PairTokenizer):
        raise ConfigError(f"A language can be added to M2M-100, NLLB-200 and mBART-50, and this is {model.kind}.")
    numbers = {piece: number for number, piece in enumerate(tokenizer.pieces())}
    rows, notes = {}, []  # by new piece: of the language that it is like
    for code, other in additions:
        like = languages.code_of(TARGET, other)
        piece, of_like = new_piece(languages, code, like), languages.target[like]
        rows[piece] = rows[of_like] if of_like in rows else numbers[of_like]
        languages = languages._replace(
            source={**languages.source, code: piece}, target={**languages.target, code: piece}
        )
        notes.append(f"the language {code} has the piece {piece}, whose weights are those of {like}")
    tables = [weight.ours for weight in weights_of_tokens(model.config) if weight.ours in model.values]
    values = {path: functools.partial(model.values.__getitem__, path) for path in model.values}
    values |= {path: functools.partial(with_copies, model, path, list(rows.values())) for path in tables}
    return model._replace(
        config=model.config.replace(vocab_size=model.config.vocab_size + len(rows)),
        values=StoredArrays(values),
        tokenizer=tokenizer.with_controls(rows),
        languages=languages,
        notes=(*model.notes, *notes),
    )


def new_piece(languages: Languages, code: str, like: str) -> str:
    """Return the piece of a language that these lack, in the form of that of `like`, which they have.

    Raises ConfigError if they have it, under this code or another one of the same meaning, or the form is another.
    """
    of_like = languages.target[like]
    is_m2m = of_like == f"__{like}__"
    means = [each for each in languages.target if code == each or (is_m2m and short_code(code) == short_code(each))]
    if means:
        there = "" if code in means else f", as {means[0]}"
        raise ConfigError(f"The language {code} is one that this model has already{there}.")
    piece = f"__{code}__" if is_m2m else code
    forms = [match and match.lastgroup for match in map(LANGUAGE.fullmatch, (piece, of_like))]
    if forms[0] is None or forms[0] != forms[1]:
        examples = ", ".join(list(languages.target)[:3])
        raise ConfigError(
            f"The language is {code!r:.60}, but the codes of this model are as {examples}: give one of that form."
        )
    return piece


def with_copies(model: ImportedModel, path: str, rows: Sequence[int]) -> np.ndarray:
    """Return a table of a model with copies of these rows behind its own."""
    table = model.values[path]
    return np.concatenate([table, table[rows]])
