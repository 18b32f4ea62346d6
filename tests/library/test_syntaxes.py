"""Placeholder syntaxes and numbers: whole ones alone, and in time that grows with the line."""

import re
import time

import pytest

from keras_transformer.text.placeholders import symbol_of
from keras_transformer.text.protected import ProtectedLine
from keras_transformer.text.spans import KINDS, PATTERNS, PLACEHOLDERS, Protection
from keras_transformer.text.syntaxes import PLACEHOLDER, SYNTAXES
from keras_transformer.text.whole_numbers import NUMBER, whole_numbers

WRITTEN = {  # placeholders of each row of the table, as its libraries write them
    "Jinja": ["{% if x %}", "{% set a = {'b': 1} %}", "{%- endif -%}", "{# comment #}"],
    "ERB": ["<%= x %>", "<%- y.z(1) %>", "<% if a > b %>", "<?= $x ?>"],
    "Laravel: {!!": ["{!! $x !!}"],
    "Handlebars": [
        "{{ x }}",
        "{{x}}",
        "{{{raw}}}",
        "{{count, number}}",
        "{{ a.b | upper: 'x' }}",
        "{{#each xs}}",
        "{{{{raw}}}}",
    ],
    "JavaScript": ["${name}", "${a.b(c, d)}", "${f({a: 1})}", '${x ? "a" : "b"}', "#{x}", "#{a[0]}", "%{name}", "@{x}"],
    "i18next": ["$t(key)", '$t(key, {"count": 3})', "$t(a, f(b))", "$(NAME)"],
    "ICU": [
        "{0,number}",
        "{0, number, #,##0.00}",
        "{d, date, short}",
        "{0,date,yyyy-MM-dd}",
        "{0,-10:N2}",
        "{0,choice,0#no}",
    ],
    "Python format": ["{}", "{0}", "{name}", "{ name }", "{user.age!r:>3}", "{a[0]}", "{a['b c']}", "{x:{w}.{p}f}"]
    + [
        "{d:%Y-%m-%d %H:%M}",
        "{0:N2}",
        "{0:C}",
        "{price:,.2f}",
        "{$x}",
        "{$user->name}",
        "{len(x)}",
        "{@User}",
        "{a-b}",
    ],
    "Windows": ["%name%", "%user.name%", "%PATH%", "%count%", "%1%", "%%name%%"],
    "iOS": ["%#@count@", "%<name>s", "%<price>.2f", "%username"],
    "printf": [
        "%s",
        "%(name)s",
        "%(count)d",
        "%1$s",
        "%2$d",
        "%.2f",
        "%-5d",
        "%05.1f",
        "%@",
        "%1$@",
        "%lld",
        "%n",
        "%%",
    ],
    "Qt": ["%1", "%2", "%L1", "%1%2", "%n"],
    "Chrome": ["$NAME$", "$NAME", "$name", "$user_name"],
    "Laravel, Rails": [":name", ":Name", ":attribute", ":first_name", ":userName", ":NAME", "@:common.hello", "{'@'}"],
    "Mozilla": ["&brandShortName;", "&nbsp;", "&#160;", "&#xA0;"],
    "wikis": ["[[name]]", "[[Page|text]]"],
    "React-Intl": ["<0>", "</0>", "<1/>", "<12 />"],
    "escapes": [r"\n", r"\t", r"\u00a0"],
}
PROSE = [
    "50 % discount",
    "50% discount",
    "50%discount",
    "a 5 %ige and 50-%ige",
    "10%-20%, 5% and 6%.",
    "100 % sure, 5 % of",
]
PROSE += [
    "Cost: $5, US$ 5 and $5.00.",
    "note :smile",
    "note :smile: ok :) :D",
    "10:30",
    "3 < 4 > 2",
    "I <3 you",
    "AT&T; R&D; a & b; Q&A",
    "a { b",
]
PROSE += [
    "f(x) [1] [a]",
    "#1 of #tags, @user",
    "see: this, http://x",
    "{two words} {1, 2, 3} {note: see below}",
    r"a \ b",
]
# Beginnings and parts of placeholders and numbers: repeated, they match again and again almost
PARTS = ["{", "{%", "{%%", "<%", "<?", "{{", "{{{", "${", "${{", "#{}", "%(", "%0", "%1", "%", "$", "$a", ":a", ":A"]
PARTS += [
    "[[",
    "[[a",
    "\\",
    "<0",
    "{a",
    "{a[",
    "{a(",
    "{a:",
    "{a:{",
    "{ ",
    "{a,",
    "{0,number{",
    "{0,number{a}",
    "${{a}",
]
PARTS += [
    "{{a}",
    "$t(",
    "$t((",
    "@:",
    "@:a.",
    "%<a",
    "{!!",
    "{#",
    "{a->",
    "$(",
    "%.1",
    "a",
    "aB",
    "1",
    "1 ",
    "1 000",
    "1.",
]
PARTS += ["1-", "1%-", "-", "A", "1e-", "1T", "..", "</1", "1x", "\u00b0 ", "A$", "-$", "- "]


@pytest.mark.parametrize("row", SYNTAXES)
def test_each_syntax_is_protected_whole_wherever_it_stands(row):
    [placeholders] = [written for name, written in WRITTEN.items() if row.startswith(name)]
    for one in placeholders:
        for line in (one, f"Hi {one}, you", f"a ({one}).", f"{one}/{one}", f"日本{one}語", f"5, {one} {one} 7"):
            spans = Protection("placeholders").spans(line)
            assert "".join(span.target for span in spans) == one * line.count(one), line
            spans = Protection(KINDS).spans(line)
            for found in re.finditer(re.escape(one), line):
                assert any(span.start <= found.start() and found.end() <= span.end for span in spans), line


def test_the_table_has_no_row_without_a_test():
    assert len(WRITTEN) == len(SYNTAXES)


@pytest.mark.parametrize("line", PROSE)
def test_prose_has_no_placeholders(line):
    assert not Protection("placeholders").spans(line)


@pytest.mark.parametrize(
    "kinds, line, spans",
    [
        ("numbers", "%1$s of {0} and <0>2</0> %(n)03d {n:>4} ${a[5]} <h1 width='7'> https://x.org/8", ["2"]),
        ("numbers", "Page %1, $1 and 3", ["%1", "$1", "3"]),
        ("numbers,placeholders", "-%1$s, Page 1 %(name)s, 50%% of", ["%1$s", "%(name)s", "50%%"]),
        ("placeholders", "<0>here</0>", ["<0>", "</0>"]),
        ("numbers", "in (2024), [1] and (see 5)", ["(2024)", "[1]", "5"]),
    ],
)
def test_a_number_is_no_part_of_a_placeholder_and_has_the_brackets_around_it(kinds, line, spans):
    assert [span.target for span in Protection(kinds).spans(line)] == spans


def test_numbered_tags_are_tags_if_these_are_asked_for_and_stay_a_pair():
    line = ProtectedLine.of("Click <0>here</0> now", Protection("placeholders,tags"))
    assert [span.kind for span in line.spans] == ["tags", "tags"] and line.searched == "Click here now"
    assert line.restored("Jetzt hier klicken", [(0, 2), (1, 1), (2, 0)])[0] == "Jetzt <0>hier</0> klicken"


def test_a_sign_of_a_model_is_a_placeholder():
    assert PATTERNS[PLACEHOLDERS].fullmatch(symbol_of(3)) and not PLACEHOLDER.fullmatch(symbol_of(3))


def seconds(find, text):
    """The processor time of the faster of two walks over a text."""

    def once():
        begin = time.process_time()
        for _ in find(text):
            pass
        return time.process_time() - begin

    return min(once(), once())


@pytest.mark.parametrize("find", [PLACEHOLDER.finditer, NUMBER.finditer, whole_numbers, Protection(KINDS).spans])
def test_four_times_the_line_takes_no_more_than_four_times_the_time_or_little(find):
    for part in PARTS:
        for first in ("", "{", "${", "%(", "a %", "{0,number ", "1"):
            line = first + part * (1_000 // len(part))
            if (took := seconds(find, line + part * (3_000 // len(part)))) > 0.05:
                assert took < 8 * seconds(find, line), (first, part)


@pytest.mark.parametrize(
    "placeholders",
    [["%s", "%%"], ["%d", "%%"], ["%lld", "%%"], ["%.1f", "%%"], ["%1$s", "%2$s"]],
)
def test_placeholders_that_touch_are_each_whole(placeholders):
    assert [found[0] for found in PLACEHOLDER.finditer(f"up to {''.join(placeholders)} of it")] == placeholders
