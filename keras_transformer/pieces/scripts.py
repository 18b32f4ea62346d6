"""Scripts that put no spaces between words."""

import re

# Ranges of re and of RE2
HAN = "\u3005-\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
UNSPACED = (  # also Thai and Lao, Tibetan, Burmese, Khmer, Tai Le to Tai Tham, Bopomofo, Yi
    "\u0e00-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aad\u3100-\u312f\u31a0-\u31bf"
    f"\ua000-\ua4cf\ua9e0-\ua9fe\uaa60-\uaa7f{KANA}{HAN}"
)
UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
# Between any two of these a line may break, and then no space is meant: those of East Asia, and their punctuation
_WIDE = re.compile(f"[{HAN}{KANA}\u3001-\u303f\u3100-\u312f\u31a0-\u31bf\ua000-\ua4cf\uff01-\uff60]")


def breaks_anywhere(character: str) -> bool:
    """Return whether lines break beside a character without a space, as those of Han and kana do, but not Hangul."""
    return _WIDE.fullmatch(character) is not None
