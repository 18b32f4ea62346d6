"""ICU messages with branches, such as {n, plural, one {# dog} other {# dogs}}: their texts are translated one by one.

Of `I see {n, plural, one {# dog} other {# dogs}}.` each branch becomes a whole sentence first, since a model translates
`I see # dogs.` better than its parts: {n, plural, one {I see # dog.} other {I see # dogs.}}. Names, keywords, selectors
and braces stay. https://unicode-org.github.io/icu/userguide/format_parse/messages/
"""

import collections
import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keras_transformer.text.spans import LEFT, PLACEHOLDERS, Protection

HEAD = re.compile(r"\{\s*+([\w.-]++)\s*+,\s*+(plural|selectordinal|select)\s*+,\s*+(offset:\d++\s*+)?+")
SELECTOR = re.compile(r"\s*+(?:=\d++|[\w-]++)\s*+\{")
BRACE = re.compile(r"''|'[{}][^']*+'?+|[{}]")  # quoted braces are text
DEEPEST, MOST_SENTENCES = 8, 64  # messages in messages; sentences that branches become: beyond, their parts stay parts
LONGEST_WHOLE = 2_000  # characters of a line whose text comes into each branch; a model reads about as many
ARGUMENTS = Protection((PLACEHOLDERS,), is_branch=True)
QUOTED = re.compile(r"'(?=[{}#])")


class Branch(NamedTuple):
    """A branch of a message: what is written up to its text, such as "one {", and its parts."""

    opening: str
    parts: "Parts"

    @property
    def selector(self) -> str:
        return self.opening[:-1].strip()


class Message(NamedTuple):
    """A message: how it begins, the name of its argument, its kind, its branches, and how it ends."""

    head: str
    name: str
    kind: str  # "plural", "selectordinal" or "select"
    has_offset: bool
    branches: tuple[Branch, ...]
    tail: str

    @property
    def is_plural(self) -> bool:
        """Whether # is its number."""
        return self.kind != "select"


class Sentence(str):
    """A text among the pieces of a message that is to be translated."""


def sentences_of_line(line: str) -> int:
    """Return how many sentences a line is to a model: one, or those of its message."""
    pieces = pieces_of(line)
    return 1 if pieces is None else sum(map(is_sentence, pieces))


def is_sentence(piece: str) -> bool:
    return isinstance(piece, Sentence)


Parts = tuple[str | Message, ...]
Pieces = list[str]  # a line; those that are a Sentence are translated, the others stay


def pieces_of(line: str) -> Pieces | None:
    """Return a line with messages in pieces; None for a line without one."""
    parts = parts_of_line(line)
    if len(parts) == 1:
        return None
    is_whole = len(line) <= LONGEST_WHOLE and can_be_whole(parts)
    return list(written(whole_sentences(parts) if is_whole else parts))


def without_messages(text: str) -> str:
    """Return a text of the same length in which each message is one word, so that it is inside of one sentence."""
    return "".join(part if isinstance(part, str) else "m" * length_of((part,)) for part in parts_of_line(text))


def length_of(parts: "Parts") -> int:
    """Return how many characters parts have as they are written."""
    return sum(map(len, written(parts)))


def parts_of_line(line: str) -> Parts:
    """Return the texts and messages of a line; it alone if it has no message, or one that is too deep."""
    if "{" not in line or not HEAD.search(line):
        return (line,)
    return parts_of(line, 0, len(line), pairs_of(line), DEEPEST) or (line,)


def pairs_of(line: str) -> dict[int, int]:
    """Return the place of the brace that closes each one that is closed."""
    pairs, waiting = {}, []
    for found in BRACE.finditer(line):
        if found[0] == "{":
            waiting.append(found.start())
        elif found[0] == "}" and waiting:
            pairs[waiting.pop()] = found.start()
    return pairs


def parts_of(line: str, start: int, end: int, pairs: dict[int, int], depth: int) -> Parts | None:
    """Return line[start:end] as texts and messages; None if a message is none, or deeper than `depth`."""
    parts: list[str | Message] = []
    reached = place = start
    while head := HEAD.search(line, place, end):
        place = head.end()
        if head.start() in pairs:
            message = message_of(line, head, pairs, depth)
            if message is None:
                return None
            parts += [line[reached : head.start()], message]
            reached = place = pairs[head.start()] + 1
    return (*parts, line[reached:end])


def message_of(line: str, head: re.Match, pairs: dict[int, int], depth: int) -> Message | None:
    """Return the message that begins with a head; None if its branches are none."""
    place, end, branches = head.end(), pairs[head.start()], []
    while (selector := SELECTOR.match(line, place, end)) and depth:
        close = pairs[selector.end() - 1]
        parts = parts_of(line, selector.end(), close, pairs, depth - 1)
        if parts is None:
            return None
        branches.append(Branch(selector[0], parts))
        place = close + 1
    if not branches or line[place:end].strip():
        return None
    return Message(head[0], head[1], head[2], head[3] is not None, tuple(branches), line[place : end + 1])


def sentences_in(parts: Parts) -> int:
    """Return how many sentences the branches of parts become."""
    count = 1
    for part in parts:
        if isinstance(part, Message):
            count *= min(sum(sentences_in(branch.parts) for branch in part.branches), MOST_SENTENCES + 1)
    return count


def messages_in(parts: Parts) -> Iterator[Message]:
    """Yield the messages of parts, those inside of branches too."""
    for part in parts:
        if isinstance(part, Message):
            yield part
            for branch in part.branches:
                yield from messages_in(branch.parts)


def can_be_whole(parts: Parts) -> bool:
    """Return whether the text around branches may be written into each: not if there are signs that come once alone."""
    messages = list(itertools.islice(messages_in(parts), DEEPEST + 1))
    if len(messages) > DEEPEST or sentences_in(parts) > MOST_SENTENCES:
        return False
    if len(messages) == 1:
        return not any(LEFT in part for part in parts if isinstance(part, str))
    has_signs = any(LEFT in piece for piece in written(parts))
    return not has_signs and not any(message.has_offset for message in messages)


def whole_sentences(parts: Parts) -> Parts:
    """Return parts as one message without text around it, whose branches are such parts or a text."""
    for place, part in enumerate(parts):
        if isinstance(part, Message):
            before, after = parts[:place], parts[place + 1 :]
            wholes = (whole_sentences((*before, *numbered(part, inside, after), *after)) for _, inside in part.branches)
            branches = (branch._replace(parts=whole) for branch, whole in zip(part.branches, wholes, strict=True))
            return (part._replace(branches=tuple(branches)),)
    return ("".join(map(str, parts)),)


def numbered(message: Message, inside: Parts, after: Parts) -> Parts:
    """Return a branch with the number of its message for #, if it comes into another message, whose number # is."""
    if not (message.is_plural and any(other.is_plural for other in messages_in((*inside, *after)))):
        return inside
    return tuple(part.replace("#", f"{{{message.name}, number}}") if isinstance(part, str) else part for part in inside)


def written(parts: Parts) -> Iterator[str]:
    """Yield the pieces of parts, with white space at the ends of a Sentence apart from it."""
    for part in parts:
        if isinstance(part, Message):
            yield part.head
            for opening, inside in part.branches:
                yield opening
                yield from written(inside)
                yield "}"
            yield part.tail
        elif text := part.strip():
            begin = part.index(text)
            yield from (part[:begin], Sentence(text), part[begin + len(text) :])
        else:
            yield part


def joined(pieces: Sequence[str], translations: Sequence[str]) -> str:
    """Return pieces with a translation in place of each Sentence."""
    of_sentences = iter(translations)
    return "".join(quoted(piece, next(of_sentences)) if is_sentence(piece) else piece for piece in pieces)


def lost(sentence: str, translation: str) -> list[str]:
    """Return which numbers # and arguments {x} of a sentence its translation has not as often, each once."""
    has, had = (
        collections.Counter(span.target for span in ARGUMENTS.spans(text) if span.target[0] in "#{")
        for text in (translation, sentence)
    )
    return list((had - has) | (has - had))


def quoted(sentence: str, translation: str) -> str:
    """Return a translation as the text of a branch: an apostrophe before a brace or # is two unless it is to quote."""
    return translation if QUOTED.search(sentence) else QUOTED.sub("''", translation)
