"""Chooses the attention that aligns the words of a model's translations best, by links that are certain."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from keras_transformer.pieces.language_marks import NO_CODES, Codes
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.shortlist.certain_links import CertainLinks, LinkedPair
from keras_transformer.text.asks import Ask
from keras_transformer.translation.translator import Translator

MOST_PAIRS = 50_000  # of which the dictionary is made
TRANSLATED, JUDGED = 600, 200  # sentences
FEWEST_LINKS = 100  # by fewer nothing is chosen


class Rate(NamedTuple):
    """The alignment error rate of an attention: the share of certain links whose target word is aligned otherwise.

    links: how many there are.
    """

    aligned_by: AlignedBy
    error: float
    links: int


def error_rates(translator: Translator, pairs: Sequence[tuple[str, str]], codes: Sequence[Codes] = ()) -> list[Rate]:
    """Return the Rate of each block that attends to the source, of the step that writes and of that which reads.

    A dictionary is made of `pairs`, of many the first ones. Of sentences at equal distances among them, which the
    translator translates, those are judged that have the most links. What it writes itself counts, since that is what
    it will align: it looks elsewhere where a reference surprises it. codes: the languages of each pair, if it is told
    them. Returns [] if there are too few links, and for a model that attends to no source.
    """
    pairs, codes = pairs[:MOST_PAIRS], codes[:MOST_PAIRS] or [NO_CODES] * len(pairs[:MOST_PAIRS])
    step = -(-len(pairs) // TRANSLATED) or 1
    lines, told = [source for source, _ in pairs[::step]], codes[::step]
    of_sources, of_targets = map(list, zip(*map(translator.languages.told, told), strict=True))
    found = translator.translate(lines, source_language=of_sources, target_language=of_targets)
    texts = [(line, translation.text) for line, translation in zip(lines, found, strict=True)]
    gold = CertainLinks(pairs).best_known(texts, JUDGED)
    links = sum(len(pair.links) for pair in gold)
    if links < FEWEST_LINKS or not translator.aligns:
        return []
    blocks = range(1, translator.attentions + 1)
    ways = [AlignedBy(block, reads) for block in blocks for reads in (False, True)]
    numbers = [pair.number for pair in gold]
    asks = [translator.told(Ask(source_language=of_sources[n], target_language=of_targets[n])) for n in numbers]
    aligned = translator.align_by(ways, [(lines[n], found[n]) for n in numbers], asks)
    return [Rate(way, error_rate(gold, of_way), links) for way, of_way in zip(ways, aligned, strict=True)]


def adopt_best(folder: RunFolder, rates: Sequence[Rate]) -> Rate:
    """Write into inference.json of a run by which of these its words are aligned. Returns that Rate."""
    best = min(rates, key=lambda rate: rate.error)
    folder.inference()._replace(alignment=best.aligned_by).save(folder.inference_file)
    return best


def error_rate(gold: Sequence[LinkedPair], alignments: Iterable[Iterable[tuple[int, int]]]) -> float:
    """Return the share of links whose target word is aligned with another word of the source, or with none."""
    wrong = total = 0
    for pair, alignment in zip(gold, alignments, strict=True):
        source_of = {target: source for source, target in alignment}
        wrong += sum(source_of.get(target) != source for source, target in pair.links)
        total += len(pair.links)
    return wrong / total
