"""How pieces are translated: p(target piece | source piece), from pairs of sentences or from a file of Marian."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.ground.errors import InputError
from keras_transformer.ground.files import unpacked_lines

ITERATIONS = 5
CHUNK = 4_000_000  # links that are looked at together
NULL = "NULL"  # in a file of Marian, the word that stands for none


class Lexicon(NamedTuple):
    """Entry i: piece targets[i] translates piece sources[i] with this probability. No pair of pieces comes twice."""

    sources: np.ndarray  # int64 (N,)
    targets: np.ndarray  # int64 (N,)
    probabilities: np.ndarray  # float64 (N,)


class Links(NamedTuple):
    """For each of T target tokens, one after the other, every source token that may have produced it."""

    entries: np.ndarray  # int32 (L,): the entry of the lexicon that a link stands for
    counts: np.ndarray  # int64 (T,): links of each target token


def learned_lexicon(
    sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], vocab_size: int, iterations: int = ITERATIONS
) -> Lexicon:
    """Estimate IBM Model 1 by expectation maximisation (Brown et al. 1993, section 4.2).

        p(t | s) proportional to sum over pairs of sentences, and over their tokens s and t, of
        p(t | s) / (p(t | NULL) + sum_s' p(t | s'))

    beginning with probabilities that are all the same. NULL stands in every source sentence for target tokens that
    translate none of its words; it has no entries in the result.

    sources, targets: the ids of each pair, below vocab_size. A pair with an empty side says nothing.
    """
    nothing = np.zeros(0, np.int64)
    pairs = [(source, target) for source, target in zip(sources, targets, strict=True) if len(source) and len(target)]
    if not pairs:
        return Lexicon(nothing, nothing, np.zeros(0))
    null = vocab_size
    chunks = [keys_of(chunk, vocab_size) for chunk in in_chunks(pairs)]
    keys = np.unique(np.concatenate([np.unique(keys) for keys, _ in chunks]))
    links = [Links(np.searchsorted(keys, of_chunk).astype(np.int32), counts) for of_chunk, counts in chunks]
    entry_sources, entry_targets = np.divmod(keys, vocab_size)
    probabilities = np.ones(len(keys))
    for _ in range(iterations):
        expected = sum(expected_counts(of_chunk, probabilities) for of_chunk in links)
        totals = np.bincount(entry_sources, expected, minlength=null + 1)
        probabilities = expected / totals[entry_sources]
    is_word = entry_sources != null
    return Lexicon(entry_sources[is_word], entry_targets[is_word], probabilities[is_word])


def in_chunks(pairs: Iterable[tuple[Sequence[int], Sequence[int]]]) -> Iterator[list]:
    """Yield lists of pairs with some CHUNK links each."""
    chunk, links = [], 0
    for source, target in pairs:
        chunk.append((source, target))
        links += (len(source) + 1) * len(target)
        if links >= CHUNK:
            yield chunk
            chunk, links = [], 0
    if chunk:
        yield chunk


def keys_of(pairs: list, vocab_size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return source * vocab_size + target of each link, and the number of links of each target token.

    The links of a target token are to all source tokens of its pair, and to NULL, which is number vocab_size.
    """
    source_lengths = np.array([len(source) + 1 for source, _ in pairs])
    target_lengths = np.array([len(target) for _, target in pairs])
    source_ids = np.concatenate([np.append(source, vocab_size) for source, _ in pairs]).astype(np.int64)
    target_ids = np.concatenate([np.asarray(target) for _, target in pairs]).astype(np.int64)
    first_sources = np.cumsum(source_lengths) - source_lengths
    counts = np.repeat(source_lengths, target_lengths)
    within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    link_sources = source_ids[np.repeat(np.repeat(first_sources, target_lengths), counts) + within]
    return link_sources * vocab_size + np.repeat(target_ids, counts), counts


def expected_counts(links: Links, probabilities: np.ndarray) -> np.ndarray:
    """Return how often each entry produces a target token, under these probabilities: float64 (N,)."""
    of_links = probabilities[links.entries]
    sums = np.add.reduceat(of_links, np.cumsum(links.counts) - links.counts)
    return np.bincount(links.entries, of_links / np.repeat(sums, links.counts), minlength=len(probabilities))


def read_lexicon(path: str | os.PathLike, ids: Mapping[str, int]) -> tuple[Lexicon, int]:
    """Read a file of Marian: `target source probability` per line, as lex.s2t has it, gzip-compressed or not.

    ids: the number of each piece by its written form. Returns the lexicon, and how many lines have a word that is no
    piece. Lines with NULL are left out; of two lines with the same words, the last one counts.
    Raises InputError, naming the line, for one that is not two words and a probability, and if no word is a piece.
    """
    entries, unknown = {}, 0
    for number, line in enumerate(unpacked_lines(path), 1):
        words = line.split()
        probability = probability_of(words)
        if probability is None:
            raise InputError(f"{path}, line {number:,} is not `target source probability`: {line[:60]!r}.")
        target, source = words[:2]
        if NULL in (target, source):
            continue
        if target in ids and source in ids:
            entries[ids[source], ids[target]] = probability
        else:
            unknown += 1
    if not entries:
        raise InputError(
            f"{path} has no words that are pieces of this run: make the file from text in pieces of its tokenizer."
        )
    pairs = np.array(list(entries), np.int64)
    return Lexicon(pairs[:, 0], pairs[:, 1], np.array(list(entries.values()))), unknown


def probability_of(words: list[str]) -> float | None:
    """Return the probability at the end of a line of three words; None if it is no such line."""
    try:
        probability = float(words[2]) if len(words) == 3 else -1.0
    except ValueError:
        return None
    return probability if 0 <= probability <= 1 else None
