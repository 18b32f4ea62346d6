"""The section `translation` of a run configuration: how validation and `report.md` translate."""

from typing import Annotated, Any

import pydantic

from keras_transformer.pieces.batching import BATCH_SIZE
from keras_transformer.search.options import OPTIONS, RUN_OPTIONS, SearchOptions

from .section import OneOf, Section


def search_option(name: str, default: int | float | str | None = None) -> Any:
    """A field with the limits of that field of SearchOptions, and with its default unless another one is given."""
    option = OPTIONS[name]
    default = option.default if default is None else default
    return pydantic.Field(default) if option.choices else pydantic.Field(default, ge=option.lowest, le=option.highest)


class TranslationConfig(Section):
    """How validation and `report.md` translate."""

    beam_size: int = search_option("beam_size")  # of report.md
    length_penalty: float = search_option("length_penalty")  # the exponent alpha; 0 is none
    length_normalization: Annotated[str, OneOf(OPTIONS["length_normalization"].choices)] = search_option(
        "length_normalization"
    )
    coverage_penalty: float = search_option("coverage_penalty")  # beta; 0 is none
    extra_length: int = search_option("extra_length")  # tokens that an output may have more than its source
    keep_letterless: int = search_option("keep_letterless")  # 0: the model reads lines of digits alone
    batch_size: int = pydantic.Field(BATCH_SIZE, ge=1)  # sentences
    validation_beam_size: int = search_option("beam_size", 1)  # of the BLEU curve
    validation_sentences: int = pydantic.Field(1_000, ge=1)  # of the BLEU curve: at equal distances

    def search_options(self, beam_size: int) -> SearchOptions:
        """How to search with so many hypotheses."""
        own = {name: getattr(self, name) for name in RUN_OPTIONS if name in type(self).model_fields}
        return SearchOptions(**own | {"beam_size": beam_size})
