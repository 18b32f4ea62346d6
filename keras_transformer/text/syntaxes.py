"""Placeholder syntaxes: how libraries and platforms that people translate for mark what a program fills in.

Each pattern is linear: it is possessive, and no part of it reads beyond the next sign with which a placeholder opens.
Alternatives are tried in their order at each place, so the longer form stands before the shorter one.
"""

import re

from keras_transformer.pieces.scripts import UNSPACED

# Words after a colon that Laravel and its users fill in. Any other needs a "_" or a capital, since ":smile" is prose
_COLON_WORDS = (
    "name|count|attribute|other|values?|min|max|size|digits|decimal|date|format|seconds|minutes|hours|days|user|email|"
    "url|link|time|number|num|total|amount|price|currency|app|first|last|page|pages|from|to|key|id|index|position|"
    "input|type|title|subject|year|month|day|status|role|code|file|filename|field|model|resource|item|items|quantity|"
    "product|order|company|team|owner|author|address|phone|password|token|action|message|error|reason|ip|version|"
    "results?|limit|age|city|country|site|host|provider|expire|length"
)
_WORD = "A-Za-z0-9_"
_NO_WORD_BEFORE = rf"(?<![^\W{UNSPACED}])"  # a letter of a script without spaces may touch
_NO_DIGIT_BEFORE = r"(?<![\d%])(?<!\d[ \u00a0\u202f-])"  # 50 %ige
_INDEX = r"\[[^\[\]{}\n]*+\]|\([^(){}\n]*+\)"  # [0] or (a, b) behind a name
_ICU_TYPE = r"(?:number|date|time|spellout|ordinal|duration|list|relativetime|plural|selectordinal|select|choice)"
_CONVERSION = r"(?:hh|ll|[hlLqjzt])?[diouxXeEfFgGaAcCsSpnbB@]"
_PRINTF = rf"%(?:\([^()\s]{{1,100}}+\))?+(?:\d++\$)?+[-+#0']*+(?:\d++|\*)?+(?:\.(?:\d++|\*))?+{_CONVERSION}"

SYNTAXES = {
    "Jinja, Twig, Django, Liquid: {% if %}, {# comment #}": (
        r"\{%(?:[^%{\n]|%(?!\})|\{(?!%))*+%\}|\{#(?:[^#{\n]|#(?!\})|\{(?!#))*+#\}"
    ),
    "ERB, EJS, JSP: <%= x %>; PHP: <?= $x ?>": (r"<%(?:[^%<\n]|%(?!>)|<(?!%))*+%>|<\?(?:[^?<\n]|\?(?!>)|<(?!\?))*+\?>"),
    "Laravel: {!! $x !!}": r"\{!![^{}!\n]++!!\}",
    "Handlebars, Mustache, Vue, Angular, i18next, Jinja: {{ x }}, {{{x}}}, {{{{x}}}}": (
        r"\{\{\{\{[^{}\n]++\}\}\}\}|\{\{\{[^{}\n]++\}\}\}|\{\{(?:[^{}\n]|\{[^{}\n]*+\})++\}\}"
    ),
    "JavaScript, shell: ${a.b(c, d)}; Ruby: #{x}, %{x}; Less: @{x}": r"[$#%@]\{(?:[^{}\n]|\{[^{}\n]*+\})*+\}",
    "i18next: $t(key); make, MSBuild: $(NAME)": r"\$(?:t\((?:[^()\n]|\([^()\n]*+\))*+\)|\(\w[\w.:-]*+\))",
    "ICU MessageFormat, Java, .NET: {0,number}, {d, date, short}, {0,-10:N2}": (
        rf"\{{\s*+[\w.-]++\s*+,\s*+(?:{_ICU_TYPE}\b(?:[^{{}}\n]|\{{[^{{}}\n]*+\}})*+|-?\d++\s*+(?::[^{{}}\n]*+)?+)\}}"
    ),
    "Python format, .NET, Java, Fluent, PHP, React: {}, {0}, { name }, {a.b[0]!r:>3}, {0:N2}, {$x}": (
        rf"\{{[ \t]*+(?:[\w.$@-](?:->|[\w.$@-]|\?\.|{_INDEX})*+)?(?:![rsa])?+"
        r"(?::(?:[^{}\s](?:[^{}\n]|\{\w*+\})*+|\{\w*+\}(?:[^{}\n]|\{\w*+\})*+)?+)?+[ \t]*+\}"
    ),
    "Windows, Symfony: %NAME%, %user.name%; Boost: %1%; %%name%%": (
        rf"(?<!%){_NO_WORD_BEFORE}(?:%%\w++%%|%(?!{_CONVERSION}%%)[A-Za-z_][\w.-]*+%(?![{_WORD}])|%[1-9]\d?%(?![{_WORD}%]))"
    ),
    "iOS: %#@name@; Ruby: %<name>.2f; Drupal: %name": (
        rf"%#@\w++@|%<\w++>[-+ #0]*+\d*+(?:\.\d++)?+{_CONVERSION}|{_NO_DIGIT_BEFORE}%(?=[A-Za-z_]{{4}})[{_WORD}]++"
    ),
    "printf, Python, Android, iOS: %s, %(name)d, %1$s, %.2f, %@, %lld, %n, %%": (
        rf"{_NO_DIGIT_BEFORE}{_PRINTF}|(?<![\d%]){_PRINTF}(?![{_WORD}])|(?<!%)%%(?!%)"
    ),
    "Qt: %1, %L1, %n": r"(?<![\d%])(?:%L?[1-9]\d?(?!\d|[.,]\d))++(?!%)",
    "Chrome: $NAME$; shell, Python Template, PHP: $name": (
        rf"(?<!\$){_NO_WORD_BEFORE}\$[A-Za-z_][{_WORD}]*+\$(?![{_WORD}])|\$[A-Za-z_][{_WORD}]*+"
    ),
    "Laravel, Rails routes: :name; Vue: @:key, {'@'}": (
        rf"(?<!:){_NO_WORD_BEFORE}(?::(?:(?i:{_COLON_WORDS})(?![{_WORD}:])"
        rf"|(?=[A-Za-z]+(?:_|[a-z][A-Z])|[A-Z]{{2,}}(?![{_WORD}]))[A-Za-z][{_WORD}]*+(?!:))"
        rf"|@(?:\.[{_WORD}]++)?+:(?:\([{_WORD}.]++\)|[{_WORD}]++(?:\.[{_WORD}]++)*+))|\{{'[^'{{}}\n]++'\}}"
    ),
    "Mozilla's DTD, entities: &brand.name;, &#160;": (
        rf"(?<!&){_NO_WORD_BEFORE}&(?:[A-Za-z][\w.-]{{0,99}}+|#\d{{1,7}}+|#[xX][0-9A-Fa-f]{{1,6}}+);"
    ),
    "wikis: [[name]], [[page|text]]": r"\[\[[^\[\]\n]++\]\]",
    "React-Intl, Lingui, react-i18next: <0>, </0>, <1/>": r"</?\d{1,3}\s?/?>",
    "escapes in files of texts: \\n, \\t, \\u00a0": r"(?<![A-Za-z]:)(?<!\\)\\(?:u[0-9A-Fa-f]{4}|[nrt])",
}
PLACEHOLDER = re.compile("|".join(SYNTAXES.values()))
