"""The LiteRT model inside a version: it answers requests of few sentences sooner than the graph does."""

import logging
import pathlib

import numpy as np

from keras_transformer.ground.errors import UserError
from keras_transformer.lite.translator import LiteTranslator
from keras_transformer.runs.lite_folder import is_lite_folder

from .signature import SERVING_DEFAULT, Arrays, Signature

FEW = 2  # sentences; the graph translates more of them together in less time than LiteRT one by one

log = logging.getLogger("export.server")


class FewSentences:
    """Translates one or two sentences with a LiteRT model, one after the other, in the thread that asks.

    Raises UserError if the model is damaged, and if the package ai-edge-litert is not installed.
    """

    def __init__(self, folder: pathlib.Path):
        self._translator = LiteTranslator(folder)
        self._never_long = self._translator.description.max_source_tokens  # bytes: a piece is a byte or more

    def can_run(self, signature: Signature, inputs: Arrays) -> bool:
        """Return whether these inputs of a signature are few texts, none of which has to be cut."""
        if signature.name != SERVING_DEFAULT or list(inputs) != ["text"] or not 1 <= len(inputs["text"]) <= FEW:
            return False
        return all(b"\n" not in text and self._is_read_whole(text) for text in inputs["text"])

    def _is_read_whole(self, text: bytes) -> bool:
        """Return whether a text is UTF-8 and has no more tokens than the model reads."""
        if len(text) < self._never_long:
            return True
        try:
            return self._translator.are_too_long([text.decode("utf-8")]) == [False]
        except UnicodeDecodeError:
            return False

    def run(self, outputs: tuple[str, ...], inputs: Arrays) -> Arrays:
        """Return `outputs` of the signature serving_default. Raises UnicodeError for a text that is not UTF-8."""
        translations = [self._translator.translate([text.decode("utf-8")])[0] for text in inputs["text"]]
        columns = {
            "translation": np.array([translation.text.encode("utf-8") for translation in translations], object),
            "score": np.array([translation.score for translation in translations], np.float32),
            "is_cut": np.array([translation.is_cut for translation in translations], bool),
            "truncated": np.zeros(len(translations), bool),  # `can_run` sees to it
            "confidence": np.array([translation.confidence for translation in translations], np.float32),
        }
        return {name: columns[name] for name in outputs}


def few_sentences_of(folder: pathlib.Path) -> FewSentences | None:
    """Return what translates few sentences, if `folder` holds a LiteRT model that can be opened.

    If it cannot be opened, this is logged: then the graph translates them.
    """
    if not is_lite_folder(folder):
        return None
    try:
        return FewSentences(folder)
    except UserError as error:
        log.warning("requests of few sentences are answered by the graph, which takes longer: %s", error)
        return None
