"""Candidates of minimum risk training: translations of the training text and their scores, from `train.distil`."""

import dataclasses
import hashlib
import json
import logging
import math
import pathlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from keras_transformer.tokenizer import Tokenizer
from keras_transformer.tokens import EOS
from train.config import FilesData, RowLengths
from train.data.corpus import CorpusError
from train.data.encoding import NO_CANDIDATE, Candidates, EncodedPairs, Sentences, pair_keys
from train.data.files import file_stamp, lines_of

log = logging.getLogger("train")


class Scored(NamedTuple):
    """A translation of a sentence and how good it is, from 0 to 100: its sentence BLEU."""

    text: str
    score: float


def candidates_file(data: FilesData) -> pathlib.Path | None:
    """The file that `data.candidates` names, or None. Raises CorpusError if there is no such file."""
    if data.candidates is None:
        return None
    path = pathlib.Path(data.candidates)
    file_stamp(path, "candidates")
    return path


def line_of(source: str, reference: str, candidates: Sequence[Scored]) -> str:
    """Return one line of a file of candidates, without its end."""
    found = [{"text": text, "score": round(score, 2)} for text, score in candidates]
    return json.dumps({"source": source, "reference": reference, "candidates": found}, ensure_ascii=False)


def read_candidates(path: pathlib.Path) -> Iterator[tuple[str, str, list[Scored]]]:
    """Yield the source, the reference and the candidates of each line. Raises CorpusError for any other line."""
    for number, line in enumerate(lines_of(path), start=1):
        try:
            found = json.loads(line)
            source, reference = found["source"], found["reference"]
            candidates = [Scored(one["text"], float(one["score"])) for one in found["candidates"]]
            is_line = all(isinstance(text, str) for text in (source, reference, *(text for text, _ in candidates)))
        except (ValueError, KeyError, TypeError):
            is_line = False
        if not is_line or not all(0 <= score <= 100 for _, score in candidates):
            raise CorpusError(
                f"{path}, line {number:,} has no source, reference and candidates with scores from 0 to 100: let "
                "`python -m train.distil` write it with --every-candidate."
            )
        yield source, reference, candidates


def with_candidates(
    pairs: EncodedPairs, path: pathlib.Path, tokenizer: Tokenizer, row_lengths: RowLengths
) -> EncodedPairs:
    """The same pairs with their candidates in the file `path`, which are found by the text of a pair.

    Of equal candidates the first counts; one that is longer than a row is left out. Their text and scores are part of
    the pairs' `keys`. Raises CorpusError if a pair is not in the file, or if no pair has two candidates.
    """
    by_pair = {}
    for source, reference, candidates in read_candidates(path):
        (key,) = pair_keys([(source, reference)]).tolist()
        by_pair.setdefault(key, candidates)
    missing = sum(key not in by_pair for key in pairs.keys.tolist())
    if missing:
        raise CorpusError(
            f"{path} has candidates for {len(by_pair):,} pairs, and not for {missing:,} of the {len(pairs):,} training "
            "pairs: let `python -m train.distil` write it from the files of data.train, with --every-candidate."
        )
    encoded = {key: usable(found, tokenizer, row_lengths.target) for key, found in by_pair.items()}
    most = max(len(ids) for ids, _ in encoded.values())
    if most < 2:
        raise CorpusError(f"{path} has no pair with two candidates to choose between: raise --beam-size.")
    of_pairs = [encoded[key] for key in pairs.keys.tolist()]
    dtype = pairs.target.ids.dtype.type
    sentences = tuple(
        Sentences.of([ids[k] if k < len(ids) else [EOS] for ids, _ in of_pairs], dtype) for k in range(most)
    )
    costs = [[costs[k] if k < len(costs) else NO_CANDIDATE for _, costs in of_pairs] for k in range(most)]
    log.info(
        "%s: up to %d candidates per pair, %.1f on average; mean score %.1f",
        path, most, np.mean([len(ids) for ids, _ in of_pairs]), 100 * (1 - mean_cost(costs)),
    )  # fmt: skip
    keys = [key_with(key, by_pair[key]) for key in pairs.keys.tolist()]
    return dataclasses.replace(
        pairs, candidates=Candidates(sentences, np.array(costs, np.float32)), keys=np.array(keys, np.uint64)
    )


def usable(found: Sequence[Scored], tokenizer: Tokenizer, longest: int) -> tuple[list[list[int]], list[float]]:
    """The tokens, EOS included, and the costs of the different candidates that have at most `longest` tokens."""
    different = {}
    for text, score in found:
        different.setdefault(text, score)
    encoded = ([*ids, EOS] for ids in tokenizer.encode_batch(list(different)))
    with_scores = zip(encoded, different.values(), strict=True)
    fitting = [(ids, 1 - score / 100) for ids, score in with_scores if len(ids) <= longest]
    return [ids for ids, _ in fitting], [cost for _, cost in fitting]


def mean_cost(costs: Sequence[Sequence[float]]) -> float:
    """The mean of all costs that are those of candidates."""
    of_candidates = [cost for row in costs for cost in row if cost != NO_CANDIDATE]
    return math.fsum(of_candidates) / len(of_candidates)


def key_with(key: int, candidates: Sequence[Scored]) -> int:
    """A hash of a pair's key and its candidates."""
    digest = hashlib.blake2b(f"{key}\n{json.dumps(candidates)}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
