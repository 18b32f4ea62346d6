"""What the code of a language tells about its text: how BLEU finds words in it."""

import logging
import re
from collections.abc import Iterable

log = logging.getLogger("keras_transformer")

USUAL_TOKENIZER = "13a"  # of sacreBLEU: words between spaces, punctuation alone
CHINESE, CHARACTERS = "zh", "char"  # of sacreBLEU
# Codes of ISO 639-1, 639-2 and 639-3. Of Japanese, sacreBLEU's own choice, "ja-mecab", needs further packages.
LANGUAGES = dict.fromkeys("zh zho chi cmn yue wuu hak gan hsn cdo cjy czh lzh nan".split(), CHINESE) | dict.fromkeys(
    "ja jpn th tha nod lo lao km khm my mya bur shn mnw bo bod tib dz dzo".split(), CHARACTERS
)
# Codes of ISO 15924. A script decides before the language: zh-Latn, which is Pinyin, has spaces.
SCRIPTS = dict.fromkeys("hans hant hani".split(), CHINESE) | dict.fromkeys(
    "jpan hira kana hrkt thai laoo khmr mymr tibt lana".split(), CHARACTERS
)
JAPANESE = ("ja", "jpn")  # by characters, in any script but Latin
# Thai and Lao, Tibetan, Myanmar, Khmer, kana, Han
UNSPACED_CHARACTER = re.compile(
    "[\u0e01-\u0e4e\u0e81-\u0ecd\u0f40-\u0fbc\u1000-\u109f\u1780-\u17d3\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\U00020000-\U0003ffff]"
)
MOSES_CODES = {  # those of three letters, by the code that Moses has rules for
    code: moses
    for moses, codes in {
        "as": "asm", "bn": "ben", "ca": "cat", "cs": "ces cze", "de": "deu ger", "el": "ell gre", "en": "eng",
        "es": "spa", "et": "est", "fi": "fin", "fr": "fra fre", "ga": "gle", "gu": "guj", "hi": "hin", "hu": "hun",
        "is": "isl ice", "it": "ita", "kn": "kan", "lt": "lit", "lv": "lav lvs", "ml": "mal", "mni": "mni",
        "mr": "mar", "nl": "nld dut", "or": "ori ory", "pa": "pan", "pl": "pol", "pt": "por", "ro": "ron rum",
        "ru": "rus", "sk": "slk slo", "sl": "slv", "sv": "swe", "ta": "tam", "te": "tel", "tdt": "tet",
    }.items()
    for code in codes.split()
}  # fmt: skip
FEWEST_UNSPACED = 0.5  # of the characters of a text that is warned of


def tokenizer_of(language: str) -> str:
    """Return how sacreBLEU finds the words of a language: "zh", "char" or "13a".

    `language` is a code of two or three letters, which a script and a country may follow: "de", "zh-TW", "cmn_Hans".
    """
    code, *subtags = re.split("[-_]", language.lower())
    scripts = [subtag for subtag in subtags if len(subtag) == 4 and subtag.isalpha()]
    if not scripts:
        return LANGUAGES.get(code, USUAL_TOKENIZER)
    tokenizer = SCRIPTS.get(scripts[0], USUAL_TOKENIZER)
    return CHARACTERS if tokenizer == CHINESE and code in JAPANESE else tokenizer


def moses_code(language: str) -> str:
    """Return the code by which Moses knows a language: "de" for "deu", "ger", "de-AT" and "deu_Latn"."""
    code = re.split("[-_]", language.lower())[0]
    return MOSES_CODES.get(code, code)


def warn_of_unspaced(references: Iterable[str], language: str) -> None:
    """Log a warning if the references are in a script without spaces and the language's code does not tell."""
    if tokenizer_of(language) != USUAL_TOKENIZER:
        return
    text = "".join("".join(references).split())
    share = len(UNSPACED_CHARACTER.findall(text)) / max(len(text), 1)
    if share >= FEWEST_UNSPACED:
        log.warning(
            "%.0f per cent of the references' characters are of a script without spaces, but BLEU takes what stands "
            "between spaces as words, since the target language is %r: give its code, such as zh, ja or tha, as "
            "data.target_language",
            100 * share, language,
        )  # fmt: skip
