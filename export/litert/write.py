"""Write a trained model as a LiteRT folder, and compare its translations with the Translator's."""

import hashlib
import json
import pathlib
from typing import NamedTuple

import keras

from keras_transformer.ground.files import write_atomically
from keras_transformer.ground.machine import package_versions
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.runs.kinds import config_of
from keras_transformer.runs.lite_folder import Description, LiteFolder
from keras_transformer.runs.versions import CERTIFICATE
from keras_transformer.search.options import RUN_OPTIONS
from keras_transformer.text.placeholders import placeholders_in
from keras_transformer.text.required import PhraseReader
from keras_transformer.translation.compiled_search import table_for
from keras_transformer.translation.translator import Translator

from ..certificate.agreement import Agreement, agreement, plural
from ..versions import ExportError
from .convert import LiteHow, lite_model, rooms_up_to, takes_any_length
from .readme import readme

PACKAGES = ("tensorflow", "keras", "ai-edge-litert", "sentencepiece")


def write_model(
    transformer: keras.Model,
    translator: Translator,
    folder: pathlib.Path,
    name: str,
    quantization: str | None,
    constraints: bool = False,
    aligns: bool = True,
) -> None:
    """Write the model `name`, its tokenizer and README.md into `folder`; it searches as `translator` does.

    constraints: whether a translation may have a given beginning and phrases, for which the file has more signatures.
    aligns: whether it aligns words, as `translator` does; a file of a RecurrentModel does not.
    """
    folder.mkdir(parents=True, exist_ok=True)
    files, options = LiteFolder(folder), translator.options
    table = table_for(options, translator.shortlist, translator.tokenizer)
    rooms = rooms_up_to(translator.max_source_tokens, options.extra_length, constraints)
    placeholders = placeholders_in(translator.tokenizer.pieces())
    edges = PhraseReader(translator.tokenizer).word_edges if constraints else None
    how = LiteHow(options, placeholders, edges, bool(translator.languages.target_first))
    aligns = aligns and translator.aligns and takes_any_length(config_of(transformer))
    alignment = translator.alignment.in_model(translator.attentions) if aligns else None
    model = lite_model(transformer, how, rooms, quantization, table, alignment)
    write_atomically(files.model, model)
    write_atomically(files.tokenizer, translator.tokenizer.model_bytes)
    write_atomically(folder / "README.md", readme(name, options, rooms, quantization, alignment))
    search = {option: getattr(options, option) for option in RUN_OPTIONS}
    checksum, of_tokenizer = (hashlib.sha256(file).hexdigest() for file in (model, translator.tokenizer.model_bytes))
    of_model = translator.languages, of_tokenizer, alignment
    Description(search, rooms, quantization, checksum, *of_model).save(files.description)
    if translator.calibration:
        translator.calibration.save(files.calibration)


class LiteComparison(NamedTuple):
    """On how many of `lines` lines a LiteRT model translates as the Translator does."""

    lines: int
    agreement: Agreement

    def __str__(self):
        same, ties, disagreements = self.agreement
        return (
            f"compared {self.lines} {plural(self.lines, 'line')}: {same} translations with the same text and score, "
            f"{ties} {plural(ties, 'tie')}, {len(disagreements)} with another score, "
            f"{sum(one.exported.text != one.expected.text for one in disagreements)} of them with another text"
        )


def compare(exported: LiteTranslator, translator: Translator, lines: list[str]) -> LiteComparison:
    """Translate `lines` with both, and write the comparison into the folder of the LiteRT model as certificate.json."""
    agreed = agreement(exported.translate(lines), translator.translate(lines), lines)
    texts = sum(one.exported.text == one.expected.text for one in agreed.disagreements)
    content = {
        "made_with": package_versions(PACKAGES),
        "quantization": exported.description.quantization,
        "lines": len(lines),
        "same": agreed.same,
        "ties": agreed.ties,
        "same_text_with_another_score": texts,
        "another_text": len(agreed.disagreements) - texts,
    }
    write_atomically(exported.folder / CERTIFICATE, json.dumps(content, indent=1) + "\n")
    return LiteComparison(len(lines), agreed)


def refuse_disagreement(comparison: LiteComparison) -> None:
    """Raise ExportError if a score differs by more than rounding."""
    if disagreements := comparison.agreement.disagreements:
        raise ExportError(
            f"The LiteRT model does not translate as the run does: first in {disagreements[0]}. Nothing was published."
        )
