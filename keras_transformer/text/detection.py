"""Which language a text is in, among some: a small model in NumPy (py3langid), which an extra brings."""

import functools
from collections.abc import Iterable
from typing import Any, NamedTuple

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.languages import short_code

MOST_READ = 2000  # characters of a text: more of them change nothing, and each takes a microsecond


class Detected(NamedTuple):
    """A language, and the probability that a text is in it."""

    language: str
    confidence: float


def identifier(asked: str, advice: str = "") -> Any:
    """Return the model of py3langid. Raises ConfigError, in which `asked` needs it, if the package is not installed."""
    try:
        return _identifier()
    except ImportError:
        raise ConfigError(
            f"{asked} needs the package py3langid, which is not installed: pip install "
            f'"keras-transformer-mt[clean]"{advice}.'
        ) from None


@functools.cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


def detected(text: str, languages: Iterable[str]) -> list[Detected]:
    """Return how probable each of these languages is for a text, the most probable first.

    languages: codes such as "de" or "deu_Latn"; of those with one short code, the first one counts, and those that the
    model does not know are left out. The probabilities of the others add up to 1. A text without a letter is in none:
    all have 0. Raises ConfigError if py3langid is not installed, or knows none of the languages.
    """
    of_short = {short_code(code): code for code in reversed(list(languages))}
    model = identifier("Language detection")
    known = {short: of_short[short] for short in model.labels if short in of_short}
    if not known:
        raise ConfigError(f"No language can be detected among {', '.join(of_short.values()) or 'none'}: name it.")
    text = text[:MOST_READ]
    if not any(map(str.isalpha, text)):
        return [Detected(code, 0.0) for code in of_short.values() if code in known.values()][::-1]
    ranked = [(known[short], probability) for short, probability in model.rank(text) if short in known]
    total = sum(probability for _, probability in ranked)
    if not total:  # so far from all of them that each probability is 0 in float32
        return [Detected(code, 1 / len(ranked)) for code, _ in ranked]
    return [Detected(code, probability / total) for code, probability in ranked]
