"""How long the texts of a request may be: checked as soon as it is read, before any work is done for it."""

from typing import NamedTuple

from .errors import invalid
from .paragraphs import FORMAT, LANGUAGE, OUTPUT_LANGUAGE, PARAGRAPHS
from .protection import GLOSSARY, INPUTS, KEEP, PROTECT, is_asked
from .signature import Arrays


class Bound(NamedTuple):
    """each: bytes of one value. together: bytes of the different values of a request; None: those of its body."""

    each: int
    together: int | None = None


# By the name of an input. A line of text has the bound of its request, since the graph and the road cut or refuse it
BOUNDS = {
    "target_prefix": Bound(1 << 14),
    "required": Bound(1 << 13),
    "forbidden": Bound(1 << 13),
    PROTECT.name: Bound(1 << 10, 1 << 12),
    KEEP.name: Bound(1 << 16, 1 << 16),
    GLOSSARY.name: Bound(1 << 16, 1 << 16),
    LANGUAGE: Bound(1 << 6, 1 << 12),
    FORMAT: Bound(1 << 6, 1 << 12),
    OUTPUT_LANGUAGE: Bound(1 << 6, 1 << 12),
}
LINES_WITH_SPANS = Bound(1 << 16, 1 << 18)  # of `text`, if spans or terms are asked for: 0.6 s for 32 KiB
WHOLE_TEXTS = Bound(1 << 18, 1 << 18)  # of `text`, if `paragraphs` is true: it may have a sentence per three bytes


def check_bounds(inputs: Arrays) -> None:
    """Raise RequestError if a text of a request is longer than it may be, or all values of an input together are."""
    bounds = dict(BOUNDS)
    if is_asked(inputs, *(each.name for each in INPUTS)):
        bounds["text"] = LINES_WITH_SPANS
    if PARAGRAPHS in inputs and inputs[PARAGRAPHS].any():
        bounds["text"] = WHOLE_TEXTS
    for name, bound in bounds.items():
        if name not in inputs:
            continue
        values = inputs[name].ravel().tolist()
        if (longest := max(map(len, values), default=0)) > bound.each:
            raise invalid(f"A value of {name} has {longest} bytes; it may have {bound.each}: give less of it.")
        if bound.together is not None and (size := sum(map(len, set(values)))) > bound.together:
            raise invalid(
                f"The values of {name} have {size} bytes together; a request may have {bound.together}: send several."
            )
