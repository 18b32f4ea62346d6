"""A search for sentences with those before them in their document, of which each sentence's translation is cut out."""

import logging
from collections.abc import Sequence
from typing import Any

from keras_transformer.ground.errors import ConfigError
from keras_transformer.pieces.context import BOTH, NO_CONTEXT, Context

log = logging.getLogger("keras_transformer")


def search_in_context(engine: Any, lines: Sequence[str], asks: Sequence[Any], first_line: int) -> list[Any]:
    """Return the candidates of each line, which the engine reads with the `context` that its Ask has.

    A line that is told how its translation begins, or what it has or lacks, is read alone by a model that writes all
    sentences: the others would have to obey too. So is a line whose output has not as many sentences as its text; a
    warning counts these. Raises ConfigError if a line has context, and the model knows none.
    """
    context = engine.context
    if context == NO_CONTEXT:
        if any(ask.context for ask in asks):
            raise ConfigError(
                f"{engine.name} reads single sentences: leave out the sentences before them, or translate with a model "
                "that was trained with data.context."
            )
        return engine.search(list(lines), asks, first_line)
    plain = [context.plain(line) for line in lines]
    alone = [ask._replace(context=()) for ask in asks]
    windows = windows_of(engine, plain, asks)
    texts = [context.joined(window) for window in windows]
    found = engine.search(texts, alone, first_line)
    results = [
        cut(context, window, candidates) if len(window) > 1 else candidates
        for window, candidates in zip(windows, found, strict=True)
    ]
    if lost := [number for number, candidates in enumerate(results) if not candidates.translations]:
        again = engine.search([plain[number] for number in lost], [alone[number] for number in lost], first_line)
        for number, candidates in zip(lost, again, strict=True):
            results[number] = candidates
        log.warning(
            "%d of %d sentences were translated without those before them, since the model wrote another number of "
            "sentences",
            *(len(lost), sum(len(window) > 1 for window in windows)),
        )
    return results


def windows_of(engine: Any, lines: Sequence[str], asks: Sequence[Any]) -> list[list[str]]:
    """Return each line behind as many of the sentences before it as the engine reads."""
    count, sides = engine.context.sentences, engine.context.sides
    windows = []
    for line, ask in zip(lines, asks, strict=True):
        is_alone = not line.strip() or (sides == BOTH and ask.is_constrained)
        windows.append([*(() if is_alone else ask.context[-count:]), line])
    waiting = [number for number, window in enumerate(windows) if len(window) > 1]
    while waiting:
        too_long = engine.are_too_long([engine.context.joined(windows[number]) for number in waiting])
        shortened = [number for number, is_long in zip(waiting, too_long, strict=True) if is_long]
        for number in shortened:
            del windows[number][0]
        waiting = [number for number in shortened if len(windows[number]) > 1]
    return windows


def cut(context: Context, window: Sequence[str], candidates: Any) -> Any:
    """Return the candidates of the last sentence of a window; none if no output has as many sentences.

    Alignments, whose words are those of the window, become those of the words of the line, or are left out.
    """
    if context.sides != BOTH:
        words = len(context.joined([*window[:-1], ""]).split())
        alignments = [[(s - words, t) for s, t in each if s >= words] for each in candidates.alignments]
        return candidates._replace(alignments=alignments)
    translations: dict[str, Any] = {}
    for each in candidates.translations:
        if (text := context.last(each.text, len(window))) is not None and text not in translations:
            translations[text] = each._replace(text=text, ids=())
    return candidates._replace(translations=list(translations.values()), alignments=())
