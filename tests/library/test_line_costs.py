"""What is done for a line costs time in proportion to the line: of four times the text, not much more than four times.

Each case makes a text of about n characters that is as bad as we know, and what is done with it.
"""

import collections
import contextlib
import importlib
import pathlib
import pkgutil
import re
import time

import pytest

from keras_transformer import text
from keras_transformer.ground.errors import InputError
from keras_transformer.text.documents import DocumentTranslator
from keras_transformer.text.glossary import Glossary, Term
from keras_transformer.text.messages import pieces_of
from keras_transformer.text.numbers import numbers_in
from keras_transformer.text.protected import ProtectedLine
from keras_transformer.text.required import has_phrase, is_missing
from keras_transformer.text.sentences import sentences_of
from keras_transformer.text.spans import KINDS, Protection
from keras_transformer.text.survival import survival
from tests.support.growth import LITTLE, MOST_GROWTH, growth_of

ADVERSARIAL = {  # text of n characters
    "digits": lambda n: "a %" + "0" * n,
    "numbers": lambda n: "dog " + "1 " * (n // 2),
    "numbers with signs": lambda n: "-1,5." * (n // 5),
    "brackets": lambda n: "http://a" + ")" * n,
    "URLs": lambda n: "http://" * (n // 7),
    "addresses": lambda n: "a.b@c.d-" * (n // 8),
    "one address": lambda n: "a@" + "a." * (n // 2),
    "comments": lambda n: "<!--" * (n // 4),
    "open tags": lambda n: "<a " * (n // 3),
    "quotes": lambda n: "<a \"<a '" * (n // 8),
    "braces": lambda n: "{" * n,
    "double braces": lambda n: "{{a" * (n // 3),
    "dollars": lambda n: "${" * (n // 2),
    "per cent": lambda n: "%(" * (n // 2),
    "colons": lambda n: ":a" * (n // 2),
    "ICU": lambda n: "{a, plural, " * (n // 12),
    "messages": lambda n: "{n, plural, one {#} other {a}} " * (n // 31),
    "branches": lambda n: "dog {n, select, " + " ".join(f"b{k} {{x}}" for k in range(n // 9)) + "} cat",
    "messages in messages": lambda n: "{n, plural, other {" * (n // 21) + "}}" * (n // 21),
    "spaces": lambda n: "a" + " " * n,
    "line breaks": lambda n: "a\n" * (n // 2),
    "letters": lambda n: "a" * n,
    "capitals": lambda n: "A" * n,
    "words": lambda n: "a " * (n // 2),
    "stops": lambda n: "a" + "." * n,
    "hyphens": lambda n: "- " * (n // 2),
    "one hyphen": lambda n: "-" * n,
    "signs of marks": lambda n: "\ue000" + "1 " * (n // 2),
    "backslashes": lambda n: "\\" * n,
    "ampersands": lambda n: "&" * n,
    "entities": lambda n: "&#" + "0" * n,
    "Han": lambda n: "\u72ac" * n,
    "marks": lambda n: "e" + "\u0301" * n,
    "pairs": lambda n: "<b>a</b> " * (n // 9),
    "pairs of a word": lambda n: "<b>a</b>" * (n // 8),
    "nested": lambda n: "<b>" * (n // 7) + "a" + "</b>" * (n // 7),
    "crossed": lambda n: "".join(f"<a{k}>" for k in range(n // 10)) + "</a0>" * (n // 10),
    "closing": lambda n: "<p><i>" * (n // 12) + "</b>" * (n // 8),
    "tags and signs": lambda n: "(<b>(" * (n // 5) + "a" + ")</b>" * (n // 5),
    "breaks": lambda n: "a<br>" * (n // 5),
    "placeholders": lambda n: " ".join(f"{{a{k}}} x" for k in range(n // 8)),
    "placeholders of a word": lambda n: "".join(f"{{a{k}}}" for k in range(n // 6)),
    "the same": lambda n: "{a} " * (n // 4),
    "the same of a word": lambda n: "{a}" * (n // 3) + " b",
    "tags and placeholders": lambda n: "<b>{a} " * (n // 7),
}


EVERY_KIND = Protection(KINDS, has_marks=True)
DIAGONAL = [(number, number) for number in range(200)]
ONE_TO_MANY = [(0, number) for number in range(200)]
TERMS = Glossary(
    [*(Term("a" * k, "b") for k in range(1, 999)), *(Term("a " * k + "b", "c", ("part",)) for k in range(300))]
)


def protect(line):
    ProtectedLine.of(line, EVERY_KIND)


def restore(line):
    """A translation that has lost all spans, one that copied the line, and one of one word."""
    for placeholders in (0, 100):
        protected = ProtectedLine.of(line, EVERY_KIND, placeholders)
        for alignment in (DIAGONAL, ONE_TO_MANY, []):
            protected.restored("ein Hund l\u00e4uft (schnell)." * 20, alignment)
            protected.restored(protected.source.text, alignment)
        protected.needs_alignment(protected.source.text)


def document(text):
    """A document whose sentences are too long for a model that reads 60 characters."""

    def translate(lines):
        from keras_transformer.pieces.translation import Translation

        return [Translation(line, 0.0) for line in lines]

    DocumentTranslator(translate, "en", lambda lines: [len(line) > 60 for line in lines]).document(text)


WORK = {
    "protect": protect,
    "restore": restore,
    "glossary": lambda text: list(TERMS.matches(text)),
    "numbers": numbers_in,
    "messages": pieces_of,
    "required": lambda text: [has_phrase(text, phrase) for phrase in ("a" * 100 + "b", "a " * 50 + "b", ")" * 50)],
    "missing": lambda text: is_missing(text[:200] + "x", text),
    "survival": lambda text: survival([(text, text)]),
    "sentences": lambda text: sentences_of(text, "en"),
    "document": document,
}


@pytest.mark.nightly
@pytest.mark.parametrize("work", WORK)
@pytest.mark.parametrize("kind", ADVERSARIAL)
def test_four_times_the_line_takes_about_four_times_the_time(work, kind):
    assert growth_of(WORK[work], ADVERSARIAL[kind]) < MOST_GROWTH


MATCHED = "BULLET SRT VTT _ENDS_IN_WORD".split()  # at one place, which the source does not show: never searched for


def patterns_of(module):
    """Yield the compiled patterns of a module, those in its tables too: each, its name, and what is called of it."""
    source = pathlib.Path(module.__file__).read_text(encoding="utf-8")
    for name, value in vars(module).items():
        table = dict(enumerate(value)) if isinstance(value, tuple) else value if isinstance(value, dict) else {}
        called = {"match"} if name in MATCHED else set(re.findall(rf"\b{name}\.(\w+)\(", source))
        if isinstance(value, re.Pattern):
            yield value, f"{module.__name__}.{name}", called
        for key, each in table.items():
            if isinstance(each, re.Pattern):
                yield each, f"{module.__name__}.{name} {key}", called if name in MATCHED else {"search"}


def patterns(packages):
    """The name of each compiled pattern of packages, and whether it is ever searched for.

    A pattern that only `match` and `fullmatch` are called of reads a line from one place on.
    """
    names, methods = {}, collections.defaultdict(set)
    for package in packages:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__"):
                for pattern, name, called in patterns_of(importlib.import_module(found.name)):
                    names.setdefault(pattern, name)
                    methods[pattern] |= called
    at_one_place = {pattern for pattern, called in methods.items() if called and called <= {"match", "fullmatch"}}
    return {pattern: (name, pattern not in at_one_place) for pattern, name in names.items()}


def takes_time(read, line):
    """Whether 4,000 or, if they are read at once, 16,000 characters take time that is to be measured."""
    for length in (4000, 16_000):
        begin = time.process_time()
        read(line(length))
        if time.process_time() - begin > 4 * LITTLE:
            return True
    return False


def slow_patterns(packages):
    """The patterns that take more than about four times the time for four times a line, with the line's kind."""
    different, slow = patterns(packages), {}
    for pattern, (name, is_searched) in different.items():
        use = pattern.finditer if is_searched else pattern.match
        for kind, make in ADVERSARIAL.items():

            def line(n, make=make, pattern=pattern):
                return make(n) if isinstance(pattern.pattern, str) else make(n).encode("utf-8", "surrogatepass")

            def read(text, use=use):
                collections.deque(use(text) or (), maxlen=0) if use.__name__ == "finditer" else use(text)

            if takes_time(read, line) and (growth := growth_of(read, line, 1000)) > MOST_GROWTH:
                slow[name, kind] = growth
    return len(different), slow


def test_every_pattern_of_text_reads_a_line_in_time_that_grows_with_it():
    count, slow = slow_patterns([text])
    assert count > 30 and not slow


@pytest.mark.nightly
def test_so_does_every_pattern_of_the_project():
    packages = [importlib.import_module(name) for name in ("keras_transformer", "export", "train", "cluster")]
    count, slow = slow_patterns(packages)
    assert count > 60 and not slow


@pytest.mark.parametrize("depth", [10, 64, 65, 1400, 5000])
def test_pairs_of_any_depth_come_through(depth):
    line = "<b>" * depth + "dog" + "</b>" * depth
    text, unplaced = ProtectedLine.of(line, Protection(("tags",))).restored("Hund", [(0, 0)])
    assert not unplaced and text.count("<b>") == text.count("</b>") == depth and "Hund" in text
    assert depth > 64 or text == line.replace("dog", "Hund")


@pytest.mark.parametrize("pattern", ["(?R)", "a(?R)?b", "(a)(?1)", "(?P<x>a)(?&x)", "(?P<x>a)(?P>x)", "(a)(?-1)"])
def test_a_regular_expression_that_calls_a_group_once_more_is_refused(pattern):
    pytest.importorskip("regex")
    with pytest.raises(InputError, match="calls a group"):
        Glossary([Term(pattern, "x", ("regex",))])


def test_a_regular_expression_that_takes_too_long_for_an_empty_text_is_refused_or_ends():
    pytest.importorskip("regex")
    with contextlib.suppress(InputError):
        list(Glossary([Term("(?:(?:a?){50}){50}b", "x", ("regex",))]).matches(""))
