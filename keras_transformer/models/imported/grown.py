"""A language that an imported model does not know yet: a piece, and the row that a related language has."""

import functools

import numpy as np

from keras_transformer.ground.errors import ConfigError
from keras_transformer.models.imported.arrays import StoredArrays
from keras_transformer.models.imported.fairseq import LANGUAGE
from keras_transformer.models.imported.model import ImportedModel
from keras_transformer.models.imported.names import weights_of_tokens
from keras_transformer.pieces.language_marks import TARGET
from keras_transformer.pieces.pair_tokenizer import PairTokenizer


def with_language(model: ImportedModel, code: str, like: str) -> ImportedModel:
    """Return a model that is told one language more, which begins as a copy of `like`, one that it has.

    Its piece is the last one; every other piece keeps its id and its weights. Raises ConfigError if the model is not
    told its languages as M2M-100, NLLB-200 and mBART-50 are, has the language already or lacks `like`, or if its
    codes have another form.
    """
    languages, tokenizer = model.languages, model.tokenizer
    if languages.target_first != TARGET or not isinstance(tokenizer, PairTokenizer):
        raise ConfigError(f"A language can be added to M2M-100, NLLB-200 and mBART-50, and this is {model.kind}.")
    if code in languages.target:
        raise ConfigError(f"The language {code} is one that this model has already.")
    like = languages.code_of(TARGET, like)
    piece = f"__{code}__" if languages.target[like] == f"__{like}__" else code
    forms = [match and match.lastgroup for match in map(LANGUAGE.fullmatch, (piece, languages.target[like]))]
    if forms[0] is None or forms[0] != forms[1]:
        examples = ", ".join(list(languages.target)[:3])
        raise ConfigError(
            f"The language is {code!r:.60}, but the codes of this model are as {examples}: give one of that form."
        )
    row = tokenizer.pieces().index(languages.target[like])
    tables = [weight.ours for weight in weights_of_tokens(model.config) if weight.ours in model.values]
    values = {path: functools.partial(model.values.__getitem__, path) for path in model.values}
    values |= {path: functools.partial(with_copy_of_row, model, path, row) for path in tables}
    return model._replace(
        config=model.config.replace(vocab_size=model.config.vocab_size + 1),
        values=StoredArrays(values),
        tokenizer=tokenizer.with_controls([piece]),
        languages=languages._replace(
            source={**languages.source, code: piece}, target={**languages.target, code: piece}
        ),
        notes=(*model.notes, f"the language {code} has the piece {piece}, whose weights are those of {like}"),
    )


def with_copy_of_row(model: ImportedModel, path: str, row: int) -> np.ndarray:
    """Return a table of a model with one row more, a copy of this one."""
    table = model.values[path]
    return np.concatenate([table, table[row : row + 1]])
