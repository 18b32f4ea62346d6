"""How long requests of one sentence take, by the length of the sentence, and percentiles of measured times."""

import time
from collections.abc import Callable
from typing import Any

from keras_transformer.pieces.normalization import is_blank
from keras_transformer.pieces.tokenizer import Tokenizer

LENGTHS = (8, 16, 32, 64, 512)  # tokens of a sentence, EOS included: the upper ends of the classes of latency
MOST_REQUESTS, MOST_SECONDS = 100, 3.0  # in a class of latency


def latencies(translate: Callable[[list[str]], Any], tokenizer: Tokenizer, lines: list[str]) -> list[dict[str, Any]]:
    """Measure requests of one sentence, by the length of the sentence."""
    classes = {longest: [] for longest in LENGTHS}
    for line, ids in zip(lines, tokenizer.encode_batch(lines), strict=True):
        if not is_blank(line):
            classes[next((longest for longest in LENGTHS if len(ids) < longest), LENGTHS[-1])].append(line)
    results, shortest = [], 1
    for longest, sentences in classes.items():
        times, until = [], time.monotonic() + MOST_SECONDS
        while sentences and len(times) < MOST_REQUESTS and time.monotonic() < until:
            start = time.perf_counter()
            translate([sentences[len(times) % len(sentences)]])
            times.append(1_000 * (time.perf_counter() - start))
        if times:
            percentiles = {f"p{percent}": round(percentile(times, percent), 1) for percent in (50, 95, 99)}
            results.append({"source_tokens": f"{shortest}-{longest}", "requests": len(times), **percentiles})
        shortest = longest + 1
    return results


def percentile(times: list[float], percent: int) -> float:
    """Return the smallest of the times that so many per cent of them do not exceed. `times` must not be empty."""
    return sorted(times)[max(0, -(-len(times) * percent // 100) - 1)]
