"""Scripts that put no spaces between words."""

import re

UNSPACED = (  # ranges of re and of RE2: Thai and Lao, Tibetan, Burmese, Khmer, the signs 々 to 〇, kana, Han
    "\u0e00-\u0eff\u0f40-\u0fbc\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
UNSPACED_CHARACTER = re.compile(f"[{UNSPACED}]")
