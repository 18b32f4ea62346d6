"""Sample translations as Markdown: fixed sentences, the worst and the best one, and what changed."""

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import sacrebleu

from keras_transformer.inspection.markdown import escaped, table_of
from keras_transformer.pieces.language_marks import Codes
from keras_transformer.pieces.translation import Translation

if TYPE_CHECKING:  # it imports TensorFlow
    from keras_transformer.translation.translator import Translator

SHOWN = 5  # fixed sentences: the first ones


class Sample(NamedTuple):
    """One sentence, its reference, and what the model makes of it."""

    source: str
    reference: str
    translation: str


def translate_pairs(translator: "Translator", pairs: Sequence[tuple[str, str]], codes: Sequence[Codes]) -> list[Sample]:
    """Translate the source of each (source, reference). Returns one Sample per pair. codes: the languages of each."""
    return samples_of(pairs, translate_sources(translator, pairs, codes))


def translate_sources(
    translator: "Translator", pairs: Sequence[tuple[str, str]], codes: Sequence[Codes]
) -> list[Translation]:
    """Translate the source of each (source, reference): see `translate_pairs`."""
    return translator.translate([source for source, _ in pairs], **translator.languages.of_lines(codes))


def samples_of(pairs: Sequence[tuple[str, str]], translations: Sequence[Translation]) -> list[Sample]:
    """Return a Sample of each (source, reference) and the translation of its source."""
    return [Sample(*pair, translation.text) for pair, translation in zip(pairs, translations, strict=True)]


def inspected_table(samples: Sequence[Sample], before: Sequence[Sample] | None, shown: int) -> str:
    """Return the first samples, and the worst and the best one of all, as a Markdown table, each with its chrF.

    before: earlier translations of the same sentences; None: no word is marked. The worst and the best sample are
    those with the lowest and the highest chrF; of equal ones, the first.
    """
    chrf = sacrebleu.metrics.CHRF()
    scores = [chrf.sentence_score(sample.translation, [sample.reference]).score for sample in samples]
    places = range(len(samples))
    chosen = [("", place) for place in places[:shown]]
    chosen += [("worst: ", min(places, key=scores.__getitem__)), ("best: ", max(places, key=scores.__getitem__))]
    rows = []
    for name, place in chosen:
        source, reference, translation = samples[place]
        marked = escaped(translation) if before is None else changes(before[place].translation, translation)
        rows.append((f"{name}{scores[place]:.1f}", escaped(source), escaped(reference), marked))
    return table_of(("chrF", "source", "reference", "translation"), rows)


def changes(before: str, now: str) -> str:
    """Return the text `now` as Markdown: words that are new are bold, words that were left out stand in brackets.

    changes("a red dog runs", "a dog ran")  ->  "a *[−red]* dog **ran**"
    """
    old, new = before.split(), now.split()
    parts = []
    for kind, start, end, new_start, new_end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        words = escaped(" ".join(new[new_start:new_end]))
        if kind == "delete":
            parts.append(f"*[−{escaped(' '.join(old[start:end]))}]*")
        else:
            parts.append(words if kind == "equal" else f"**{words}**")
    return " ".join(parts)
