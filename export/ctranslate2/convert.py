"""Write a trained Transformer as a CTranslate2 model folder, and compare its scores.

FOLDER itself is the model, as `ctranslate2.Translator(FOLDER)` expects and as CTranslate2's own converters write it:
numbered versions belong to TensorFlow Serving.
"""

import importlib.util
import pathlib

import keras

from keras_transformer.config import ADDED_POSITIONS, TransformerConfig
from keras_transformer.ground.tokens import EOS
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.search.options import SearchOptions
from keras_transformer.search.scores import length_penalty
from keras_transformer.shortlist.shortlist import Shortlist
from keras_transformer.translation.translator import Translator

from ..certificate.agreement import ScoreComparison
from ..expressible import expressible
from ..versions import ExportError
from .readme import SHORTLIST, readme

PACKAGE = "ctranslate2==4.8.5"
VOCABULARY_MAP = "vmap.txt"


def require(quantization: str | None) -> None:
    """Raise ExportError if CTranslate2 is not installed, or has no such quantization."""
    if importlib.util.find_spec("ctranslate2") is None:
        raise ExportError(
            f"--format ctranslate2 needs CTranslate2, which is not installed: run `pip install {PACKAGE}`."
        )
    from ctranslate2.specs.model_spec import ACCEPTED_MODEL_TYPES

    if quantization not in (None, *ACCEPTED_MODEL_TYPES):
        raise ExportError(
            f"--quantization {quantization} does not exist; CTranslate2 has {', '.join(ACCEPTED_MODEL_TYPES)}."
        )


def write_model(
    transformer: keras.Model, tokenizer: Tokenizer, folder: pathlib.Path, quantization: str | None = None
) -> None:
    """Write the model with its vocabulary, and the tokenizer, into an existing folder.

    `quantization` is one of CTranslate2's, such as "int8"; None means float32.
    Raises ExportError for a model that CTranslate2 cannot express.
    """
    from .spec import HAS, model_spec

    expressible(transformer.model_config, "CTranslate2", HAS)
    spec = model_spec(transformer, tokenizer.pieces())
    spec.optimize(quantization=quantization)
    spec.save(str(folder))
    for file, content in tokenizer.sentencepiece_models.items():
        (folder / file).write_bytes(content)


def write_vocabulary_map(shortlist: Shortlist, tokenizer: Tokenizer, folder: pathlib.Path) -> None:
    """Write the shortlist as vmap.txt: `source piece<TAB>target pieces`, after an empty source those of all sentences.

    CTranslate2 reads it if `translate_batch` has `use_vmap=True`. Raises ConfigError if it is of another tokenizer.
    """
    shortlist.check_tokenizer(tokenizer)
    pieces = tokenizer.pieces()
    lists = [("", shortlist.always.tolist())]
    lists += [(pieces[number], shortlist.list_of(number)) for number in range(EOS + 1, len(pieces))]
    lines = (f"{source}\t{' '.join(pieces[number] for number in targets)}\n" for source, targets in lists)
    (folder / VOCABULARY_MAP).write_text("".join(lines), encoding="utf-8")


def write_readme(folder: pathlib.Path, name: str, translator: Translator, config: TransformerConfig) -> None:
    """Write README.md into `folder`: how to translate with the model `name` as the Translator does."""
    import ctranslate2

    from .spec import SINUSOIDS

    positions = config.position_limit or (SINUSOIDS if config.positions in ADDED_POSITIONS else None)
    models = list(translator.tokenizer.sentencepiece_models)
    text = readme(name, ctranslate2.__version__, models, translator.options, translator.max_source_tokens, positions)
    if (folder / VOCABULARY_MAP).exists():
        text += SHORTLIST
    (folder / "README.md").write_text(text, encoding="utf-8")


def compare_scores(folder: pathlib.Path, translator: Translator, lines: list[str]) -> ScoreComparison:
    """Let an exported model score the Translator's translations of `lines`, and compare the scores.

    The two searches differ (see readme.py), so their outputs would not show whether the weights are right.
    """
    import ctranslate2

    tokenizer = translator.tokenizer
    pieces, longest = tokenizer.pieces(), translator.max_source_tokens - 1  # without EOS
    translations = zip(lines, translator.translate(lines), strict=True)
    pairs = [(line, translation) for line, translation in translations if translation.ids]
    scored = ctranslate2.Translator(str(folder)).score_batch(
        [[pieces[i] for i in tokenizer.encode(line)[:longest]] for line, _ in pairs],
        [[pieces[i] for i in translation.ids if i != EOS] for _, translation in pairs],
        max_batch_size=32,
        max_input_length=0,  # no limit, which would cut the translations too
    )
    return ScoreComparison.of(
        [line for line, _ in pairs],
        (score(result.log_probs, translator.options) for result in scored),
        (translation.score for _, translation in pairs),
    )


def score(log_probs: list[float], options: SearchOptions) -> float:
    """Return the Translator's score of an output whose tokens, EOS included, have these log-probabilities."""
    return sum(log_probs) / float(length_penalty(len(log_probs), options.length_penalty, options.length_normalization))
