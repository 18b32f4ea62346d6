"""The road of a line, whatever searches: protect, search, restore, check.

Translator, LiteTranslator, exports, the server, its client and the workers of Spark are Engines: they search, and say
what a line may ask of them (text/asks.py). All else is here. It needs neither TensorFlow nor Keras, as some of them
have neither.
"""

import abc
import functools
import logging
from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Self

from keras_transformer.ground.errors import ConfigError, InputError
from keras_transformer.pieces.batching import list_of_lines
from keras_transformer.pieces.language_marks import NO_LANGUAGES, SOURCE, TARGET, Languages
from keras_transformer.pieces.languages import short_code
from keras_transformer.pieces.normalization import has_letter, is_blank
from keras_transformer.pieces.translation import Translation
from keras_transformer.search.options import LONGEST_OUTPUT, OPTIONS
from keras_transformer.text.asks import NOTHING, SPANS, Ask, asks_of, of_lines
from keras_transformer.text.documents import Document, DocumentTranslator
from keras_transformer.text.live import LiveText
from keras_transformer.text.messages import is_sentence, joined, pieces_of
from keras_transformer.text.placeholders import OPENING
from keras_transformer.text.placing import Alignment
from keras_transformer.text.protected import ProtectedLine
from keras_transformer.text.required import FROM_SOURCE, check_not_forbidden, is_missing
from keras_transformer.text.spans import LEFT, MARK, Protection, bare

log = logging.getLogger("keras_transformer")

KEEP_LETTERLESS = "keep_letterless"  # an option of a search
MOST_NAMED = 3  # in a refusal
LONGEST_LINE = 10_000  # characters, without signs of marks, of a line that asks for something: a model reads some 2,000


class Candidates(NamedTuple):
    """What a search finds for a line: its translations, best first.

    alignments: of each translation, if the search tells them. truncated: whether the line is longer than the engine
    reads; None if it does not tell.
    """

    translations: Sequence[Translation]
    alignments: Sequence[Alignment] = ()
    truncated: bool | None = None


class Engine(abc.ABC):
    """What searches for translations of lines.

    name: of it, at the beginning of a sentence. abilities: names of what a line may ask of it, those of text/asks.py
    and of options. placeholders: how many of them its model knows (text/placeholders.py). aligns: whether it aligns
    words; if not, placeholders stand for terms too. beam_size: the most candidates of a line. options: of its search,
    if it has any. languages: which its model reads and writes. takes_limits: whether a line that asks for nothing else
    may have one.
    """

    name = "This engine"
    abilities = SPANS
    placeholders = 0
    aligns = True
    beam_size = 1
    options: Any = None  # SearchOptions, or values by name
    languages: Languages = NO_LANGUAGES
    takes_limits = False

    def option(self, name: str, default: Any) -> Any:
        """Return an option that its search has for every line, or its default."""
        of = self.options.get if isinstance(self.options, Mapping) else functools.partial(getattr, self.options)
        return of(name, default)

    def own_option(self, name: str) -> Any:
        """Return the value that an option of its search has unless a line asks otherwise; None if it does not tell."""
        return self.option(name, None)

    @property
    def searches(self) -> frozenset[str]:
        """The options of a search that `with_options` takes."""
        return frozenset(self.abilities & OPTIONS.keys())

    @property
    def from_source(self) -> frozenset[str]:
        """The options of FROM_SOURCE that its search has for every line."""
        return frozenset(name for name in FROM_SOURCE if self.option(name, 0))

    @property
    def keeps_letterless(self) -> bool:
        """Whether a line without a letter comes back as it is."""
        return bool(self.option(KEEP_LETTERLESS, 1))

    def told(self, ask: Ask) -> Ask:
        """Return what a line asks, with languages as the model calls them. Raises ConfigError if it lacks one."""
        source, target = self.languages.chosen(ask.source_language, ask.target_language)
        return ask._replace(source_language=source, target_language=target)

    @abc.abstractmethod
    def search(self, lines: list[str], asks: Sequence[Ask], first_line: int) -> list[Candidates]:
        """Return the candidates of each line, at least one; the first line has this number in warnings.

        Of what is asked, it sees to what must begin a translation, be in it, and not be in it.
        """

    def align(self, pairs: Sequence[tuple[str, Translation]], asks: Sequence[Ask]) -> Sequence[Alignment]:
        """Return the alignment of each line with a translation of it, if the candidates come without; () for none.

        asks: what each line asked.
        """
        return [()] * len(pairs)

    def with_options(self, options: Mapping[str, Any]) -> Self:
        """Return an engine that searches with these options. Raises ConfigError if one is not among its abilities."""
        refuse_beyond(self, options)
        return self

    def check_prefix(self, text: str) -> None:
        """Raises InputError if it is known before the search that no translation can begin with a text."""
        return

    @abc.abstractmethod
    def are_too_long(self, lines: list[str]) -> Sequence[bool]:
        """Return of each line whether it is longer than the engine reads."""

    def translate(
        self,
        lines: Iterable[str],
        first_line: int = 1,
        prefixes: Iterable[str] | None = None,
        protect: Protection | str = "",
        required: Iterable[Iterable[str]] | None = None,
        source_language: str | Sequence[str] = "",
        target_language: str | Sequence[str] = "",
    ) -> list[Translation]:
        """Return the best translation of each line, in the order of the lines.

        `first_line` is the number of the first line in warnings, for lines that are part of a longer text. `prefixes`
        are the texts with which the translations must begin, one per line; "" for none. `protect` is what must come
        through: a Protection, or kinds of spans such as "urls,numbers"; what does not is in `unplaced`. `required`
        are the phrases that the translations must have, a list per line; one that does not fit is in `unplaced` too.
        `source_language` and `target_language` are codes such as "de", for a model that knows several: one, or one per
        line.

        Raises ConfigError for what is not among its abilities, if there is not one prefix, list or language per line,
        and for an unknown kind or a language that the model lacks; and InputError for a prefix or phrases that no
        translation can have.
        """
        found = self.translate_n_best(lines, first_line, prefixes, protect, required, source_language, target_language)
        return [best for best, *_ in found]

    def translate_n_best(
        self,
        lines: Iterable[str],
        first_line: int = 1,
        prefixes: Iterable[str] | None = None,
        protect: Protection | str = "",
        required: Iterable[Iterable[str]] | None = None,
        source_language: str | Sequence[str] = "",
        target_language: str | Sequence[str] = "",
    ) -> list[list[Translation]]:
        """Return up to `n_best` different translations of each line, best first: see `translate`.

        Raises UserError if a line has none, since the model's probabilities are NaN.
        """
        lines = list_of_lines(lines)
        asks = asks_of(len(lines), prefixes, Protection.of(protect), required)
        codes = zip(asks, of_lines(source_language, len(lines)), of_lines(target_language, len(lines)), strict=True)
        asks = [self.in_languages(*of_line) for of_line in codes]
        return [list(found.translations) for found in translate(self, lines, asks, first_line)]

    def translate_live(
        self,
        line: str,
        first_line: int = 1,
        prefix: str = "",
        protect: Protection | str = "",
        required: Iterable[str] = (),
        source_language: str = "",
        target_language: str = "",
    ) -> Generator[str, None, Translation]:
        """Yield the translation of a line in pieces, while greedy search writes it, and return it: see `translate`.

        Joined, the pieces are its text. There is one piece if there is more than one hypothesis (a beam), if tokens are
        drawn, if the engine does not take limits, and if the line asks for more than languages, is longer than the
        engine reads, or is an ICU message or has placeholders.
        """
        [ask] = asks_of(1, [prefix], Protection.of(protect), [required])
        ask = self.in_languages(ask, source_language, target_language)
        live = LiveText(*self.limits(line, ask))
        while True:
            now = ask._replace(limit=live.limit, prefix=live.prefix or prefix)
            [found] = translate(self, [line], [now], first_line)
            best = found.translations[0]
            if piece := live.piece(best.text, best.is_cut):
                yield piece
            if live.has_ended:
                return best

    def in_languages(self, ask: Ask, source: str, target: str) -> Ask:
        """Return an ask in two languages. Raises ConfigError for one that is not one text."""
        self.languages.check_text(SOURCE, source)
        self.languages.check_text(TARGET, target)
        return ask._replace(source_language=source, target_language=target)

    def limits(self, line: str, ask: Ask) -> tuple[int, int]:
        """Return the fewest and the most tokens of a line that is stopped on its way; 0 and 0 if it may not be.

        It may not if its first tokens would then be others, and if there would be several warnings of it.
        """
        is_greedy = self.takes_limits and self.own_option("beam_size") == 1 and not self.own_option("temperature")
        if not is_greedy or ask.names or self.from_source or not is_one_search(line) or any(self.are_too_long([line])):
            return 0, 0
        return self.own_option("min_length") or 1, self.own_option("max_length") or LONGEST_OUTPUT

    def translate_document(
        self,
        text: str,
        language: str = "",
        protect: Protection | str = "",
        prefix: str = "",
        source_language: str = "",
        target_language: str = "",
    ) -> Document:
        """Return the translation of a text of many sentences, with its own spaces, line breaks and empty lines.

        `language` is the code of the text's language, such as "de", by which its sentences are found; without it, that
        of `source_language`, else "en". `protect` and languages as for `translate`; `prefix` begins the translation of
        the first sentence. A sentence that is longer than the model takes is translated in parts. Raises UserError if
        the package sentencex is not installed.
        """
        self.in_languages(NOTHING, source_language, target_language)
        language = language or short_code(source_language) or "en"
        of_sentences = functools.partial(
            self.translate, protect=protect, source_language=source_language, target_language=target_language
        )
        return DocumentTranslator(of_sentences, language, self.are_too_long).document(text, prefix)


def is_one_search(line: str) -> bool:
    """Return whether what a search writes for a line is its translation: it is no ICU message, and hides nothing."""
    return OPENING not in line and pieces_of(line) is None


def refusal(name: str, asked: Iterable[str], abilities: Iterable[str]) -> str | None:
    """Return the sentence that refuses what somebody is not able to do; None if that is nothing."""
    unable = sorted(set(asked) - set(abilities))
    if not unable:
        return None
    able = ", ".join(sorted(abilities)) or "lines alone"
    return f"{name} does not take {', '.join(unable[:MOST_NAMED])}; it takes {able}."


def refuse_beyond(engine: Engine, asked: Iterable[str]) -> None:
    """Raises ConfigError if something that is asked is not among the abilities of an engine."""
    if (names := set(asked)) and (sentence := refusal(engine.name, names, engine.abilities)):
        raise ConfigError(sentence)


def translate(
    engine: Engine, lines: Sequence[str], asks: Sequence[Ask], first_line: int | None = 1
) -> list[Candidates]:
    """Return the candidates of lines; of an ICU message with branches, each of these is translated by itself.

    For arguments, errors and all else see `translate_sentences`.
    """
    pieces = {number: parts for number, line in enumerate(lines) if (parts := pieces_of(line))}
    if not pieces:
        return translate_sentences(engine, lines, asks, first_line)
    plain = ["" if number in pieces else line for number, line in enumerate(lines)]
    of_plain = [ask.of_languages() if number in pieces else ask for number, ask in enumerate(asks)]
    results = translate_sentences(engine, plain, of_plain, first_line)
    of_branches = {number: asks[number].of_branches() for number in pieces}
    sentences = [(piece, of_branches[n]) for n, of_line in pieces.items() for piece in of_line if is_sentence(piece)]
    texts, their_asks = [piece for piece, _ in sentences], [ask for _, ask in sentences]
    found = iter(translate_sentences(engine, texts, their_asks, first_line=None))
    for number, of_line in pieces.items():
        results[number] = with_branches(of_line, [next(found) for _ in filter(is_sentence, of_line)])
        if first_line is not None:
            warn(first_line + number, results[number].translations[0].unplaced, ())
    return results


def with_branches(pieces: Sequence[str], found: Sequence[Candidates]) -> Candidates:
    """Return the candidates of a message from those of its sentences; a score is that of the worst sentence."""
    if not found:
        return Candidates([Translation("".join(pieces), 0.0)])
    translations = []
    for rank in range(max(len(each.translations) for each in found)):
        ranked = [each.translations[min(rank, len(each.translations) - 1)] for each in found]
        confidences = [each.confidence for each in ranked if each.confidence is not None]
        worst = min(ranked, key=lambda each: each.score)
        translations.append(
            worst._replace(
                text=joined(pieces, [each.text.strip() for each in ranked]),
                ids=(),
                is_cut=any(each.is_cut for each in ranked),
                unplaced=tuple(dict.fromkeys(span for each in ranked for span in each.unplaced)),
                confidence=min(confidences, default=None),
                is_forced=any(each.is_forced for each in ranked),
            )
        )
    return Candidates(translations, (), any(each.truncated for each in found))


def translate_sentences(
    engine: Engine, lines: Sequence[str], asks: Sequence[Ask], first_line: int | None = 1
) -> list[Candidates]:
    """Return the candidates of lines, with every protected span, and with what they lack among their `unplaced`.

    first_line: the number of the first one in warnings, which the best translations cause; None: of no line.

    Lines without spans are translated as they are, and those without a letter are kept, unless the engine's option
    KEEP_LETTERLESS is 0. The engine gets the lines without tags, with placeholders as far as its model knows them, and
    "" for a line in which nothing is to be translated. Raises ConfigError for what is not among its abilities, and
    InputError if a phrase must come and must not, and for a line that is too long for what it asks.
    """
    if not lines:
        return []
    asks = told_asks(engine, lines, asks)
    asked: set[str] = set()
    for ask in dict.fromkeys(asks):
        asked |= ask.names
        check_not_forbidden(ask.required, ask.protection.forbidden)
    refuse_beyond(engine, asked)
    check_length(lines, asks, first_line)
    are_hidden = bool(asked & SPANS) or any(OPENING in line for line in lines)
    are_sentences = all(has_letter(line) or is_blank(line) for line in lines)
    if not asked and not are_hidden and (are_sentences or not engine.keeps_letterless):  # a client asks its server
        return engine.search(list(lines), asks, first_line or 1)
    placeholders, hides_terms = (engine.placeholders, not engine.aligns) if are_hidden else (0, False)  # may take time
    hidden = [
        ProtectedLine.of(line, ask.protection, placeholders, hides_terms, engine.keeps_letterless)
        for line, ask in zip(lines, asks, strict=True)
    ]
    texts = [of_line.searched for of_line in hidden]
    asks = [ask.of_source(text) for ask, text in zip(asks, texts, strict=True)]
    found = engine.search(texts, asks, first_line or 1)
    alignments = alignments_of(engine, hidden, asks, found)
    results = []
    for number, (line, ask, candidates) in enumerate(zip(hidden, asks, found, strict=True)):
        translations = []
        for rank, translation in enumerate(candidates.translations):
            text, spans = line.through(translation.text, alignments.get((number, rank)), ask.required)
            missing = tuple(phrase for phrase in ask.required if is_missing(phrase, text))
            translations.append(translation._replace(text=text, unplaced=spans + missing))
            if rank == 0 and first_line is not None:
                warn(first_line + number, spans, missing)
        texts_found = [text for each in translations for text in dict.fromkeys([each.text, bare(each.text)])]
        if first_line is not None and any(map(ask.protection.forbidden.found, texts_found)):
            log.warning("line %d: its translation has a phrase that is forbidden", first_line + number)
        results.append(candidates._replace(translations=translations))
    return results


def told_asks(engine: Engine, lines: Sequence[str], asks: Sequence[Ask]) -> list[Ask]:
    """Return what lines ask: with the engine's codes of languages, and with what its search asks of every line.

    If no line has the signs of text/marks.py, none asks for them.
    """
    are_marked, of_all, told = any(LEFT in line for line in lines), engine.from_source, {}
    for ask in dict.fromkeys(asks):
        now = engine.told(ask) if are_marked else engine.told(ask).without_marks()
        told[ask] = now._replace(from_source=now.from_source | of_all)
    return [told[ask] for ask in asks]


def check_length(lines: Sequence[str], asks: Sequence[Ask], first_line: int | None) -> None:
    """Raises InputError if a line that asks for something, but for its marks, is longer than LONGEST_LINE."""
    for number, (line, ask) in enumerate(zip(lines, asks, strict=True), first_line or 1):
        if len(line) <= LONGEST_LINE or not (asked := ask.without_marks().names):
            continue
        if (length := len(MARK.sub("", line))) > LONGEST_LINE:
            name = "A line" if first_line is None else f"Line {number:,}"
            raise InputError(
                f"{name} has {length:,} characters and asks for {', '.join(sorted(asked)[:MOST_NAMED])}; such a line "
                f"may have {LONGEST_LINE:,}: divide it into sentences."
            )


def alignments_of(
    engine: Engine, hidden: Sequence[ProtectedLine], asks: Sequence[Ask], found: Sequence[Candidates]
) -> dict[tuple[int, int], Alignment]:
    """Return the alignment of each translation that needs one, by the number of its line and its rank."""
    waiting = [
        (number, rank)
        for number, (line, candidates) in enumerate(zip(hidden, found, strict=True))
        for rank, translation in enumerate(candidates.translations)
        if line.needs_alignment(translation.text)
    ]
    known = {(n, rank): found[n].alignments[rank] for n, rank in waiting if found[n].alignments}
    unknown = [place for place in waiting if place not in known]
    if unknown:
        pairs = [(hidden[number].searched, found[number].translations[rank]) for number, rank in unknown]
        known |= dict(zip(unknown, engine.align(pairs, [asks[number] for number, _ in unknown]), strict=True))
    if any(not alignment and MARK.search(hidden[number].line) for (number, _), alignment in known.items()):
        warn_of_proportion()
    return known


def warn(number: int, spans: Sequence[str], missing: Sequence[str]) -> None:
    """Log what the best translation of a line lacks."""
    if spans:
        log.warning(
            "line %d: %s has no place in its translation, since the model does not align words",
            number,
            ", ".join(spans),
        )
    if missing:
        log.warning("line %d: %s did not fit into its translation", number, ", ".join(missing))


@functools.cache
def warn_of_proportion() -> None:
    """Warn, once in a process, that tags of a file are not placed by words."""
    log.warning("tags inside of sentences keep their place in proportion, since the model does not align words")
