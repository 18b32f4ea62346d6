"""The certificate of a version: that each runtime translates alike, how long requests take, and what it is made of."""

import datetime
import json
import pathlib
import random
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from keras_transformer.ground.files import sha256_of, write_atomically
from keras_transformer.ground.machine import package_versions, processor_and_cores
from keras_transformer.pieces.normalization import is_blank
from keras_transformer.pieces.tokenizer import Tokenizer
from keras_transformer.pieces.translation import Translation
from keras_transformer.runs.aligned_by import AlignedBy
from keras_transformer.runs.run_folder import RunFolder
from keras_transformer.runs.versions import CERTIFICATE, LITERT
from keras_transformer.search.options import RUN_OPTIONS
from keras_transformer.translation.exported import ExportedTranslator, open_quietly
from keras_transformer.translation.translator import Translator

from ..graph.operations import meta_graph, oldest_tensorflow, operations_in
from ..versions import ExportError
from .agreement import TIES, Agreement, agreement, plural
from .runtimes import CRuntime, c_library, local_clients, package

LENGTHS = (8, 16, 32, 64, 512)  # tokens of a sentence, EOS included: the upper ends of the classes of latency
MOST_REQUESTS, MOST_SECONDS = 100, 3.0  # in a class of latency

PACKAGES = ("tensorflow", "tensorflow-text", "keras", "sentencepiece")
SEED = 1  # of the shuffled orders
EXAMPLE_WORDS = 7

Translate = Callable[[list[str]], list[Translation]]


class RuntimeCheck(NamedTuple):
    """One way to translate the first `lines` sentences, with at most `rows` in a batch or request."""

    runtime: str
    rows: int
    order: str  # "given" or "shuffled"
    lines: int
    translate: Translate


def certify(
    version: pathlib.Path,
    run: RunFolder,
    translator: Translator,
    lines: list[str],
    precision: str,
    aligned_by: AlignedBy,
) -> dict[str, Any]:
    """Write certificate.json into a version, and return its content.

    Each runtime must translate as `translator` does, a Translator of the same run. Raises ExportError if a runtime
    gives a line another score. Another text with an equal score is a tie, which rounding decides.
    """
    expected = translator.translate(lines)
    exported = open_quietly(version)
    equality = [
        equality_in(check, lines, expected, TIES[precision]) for check in runtime_checks(version, exported, len(lines))
    ]
    files = [run.weights, run.tokenizer, run.model]
    if translator.shortlist is not None:
        files.append(run.shortlist)
    made_with = package_versions(PACKAGES)
    content = {
        "created": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "made_with": made_with,
        "oldest_tensorflow": oldest_tensorflow(operations_in(meta_graph(version)), made_with["tensorflow"]),
        "precision": precision,
        "alignment_layer": aligned_by.block,
        "alignment_reads": aligned_by.reads,
        "search": {name: getattr(translator.options, name) for name in RUN_OPTIONS},
        "sha256": {path.name: sha256_of(path) for path in files},
        "example": example_of(lines),
        "equality": equality,
        "latency": {
            "of": "requests of one sentence, one after the other, to the SavedModel in Python; milliseconds",
            "processor": processor_and_cores(),
            "by_source_tokens": latencies(exported.translate, translator.tokenizer, lines),
        },
    }
    write_atomically(version / CERTIFICATE, json.dumps(content, indent=1) + "\n")
    return content


def example_of(lines: list[str]) -> str:
    """Return the first line whose number of words is closest to EXAMPLE_WORDS; the page of a server shows it."""
    return min(lines, key=lambda line: abs(len(line.split()) - EXAMPLE_WORDS))


def runtime_checks(version: pathlib.Path, exported: ExportedTranslator, lines: int) -> Iterator[RuntimeCheck]:
    """Yield the ways to translate that are compared: each runtime, with large and small batches, in two orders."""
    many, few = min(lines, 200), min(lines, 50)
    yield RuntimeCheck("SavedModel in Python", exported.batch_size, "given", lines, exported.translate)
    yield RuntimeCheck("SavedModel in Python", 7, "shuffled", many, in_batches(exported.translate, 7))
    yield RuntimeCheck("SavedModel in Python", 1, "given", few, in_batches(exported.translate, 1))
    if c_library(package("tensorflow")) is not None:  # TensorFlow for Windows has no C API
        yield RuntimeCheck("C API", 32, "shuffled", many, CRuntime(version, 32).translate)
        yield RuntimeCheck("C API", 1, "given", few, CRuntime(version, 1).translate)
    with local_clients(version) as clients:
        for name, client in clients.items():
            yield RuntimeCheck(f"local server, {name}", client.rows_per_request, "shuffled", many, client.translate)
            if (version / LITERT).exists():
                one_by_one = in_batches(client.translate, 1)
                yield RuntimeCheck(f"local server, {name}, by LiteRT", 1, "given", few, one_by_one)


def equality_in(check: RuntimeCheck, lines: list[str], expected: list[Translation], tie: float) -> dict[str, Any]:
    """Return the entry of a check in the certificate. Raises ExportError if a line gets another score."""
    agreed = agreement_in(check, lines, expected, tie)
    if agreed.disagreements:
        raise ExportError(
            f"The export does not translate as the run does ({check.runtime}, {check.rows} lines together): "
            f"first in {agreed.disagreements[0]}. Nothing was published."
        )
    return {
        "runtime": check.runtime,
        "rows": check.rows,
        "order": check.order,
        "lines": check.lines,
        "same": agreed.same,
        "ties": agreed.ties,
        "different": 0,
    }


def in_batches(translate: Translate, rows: int) -> Translate:
    """Return a function that calls `translate` for so many lines at a time."""

    def translate_in_batches(lines: list[str]) -> list[Translation]:
        starts = range(0, len(lines), rows)
        return [translation for start in starts for translation in translate(lines[start : start + rows])]

    return translate_in_batches


def agreement_in(check: RuntimeCheck, lines: list[str], expected: list[Translation], tie: float) -> Agreement:
    """Translate as the check says and compare with the expected translations, in the order of the lines."""
    order = list(range(check.lines))
    if check.order == "shuffled":
        random.Random(SEED).shuffle(order)
    translations = dict(zip(order, check.translate([lines[index] for index in order]), strict=True))
    in_order = [translations[index] for index in range(check.lines)]
    return agreement(in_order, expected[: check.lines], lines[: check.lines], tie)


def summary(certificate: dict[str, Any]) -> str:
    """Return a certificate as a few lines for people."""
    lines = []
    for check in certificate["equality"]:
        lines.append(
            f"{check['runtime']}, {check['rows']} {plural(check['rows'], 'line')} together, {check['order']} order: "
            f"{check['same']} of {check['lines']} translations the same, {check['ties']} {plural(check['ties'], 'tie')}"
        )
    for latency in certificate["latency"]["by_source_tokens"]:
        lines.append(
            f"one sentence of {latency['source_tokens']} tokens takes {latency['p50']:.0f} ms (median), "
            f"{latency['p95']:.0f} ms (95th percentile), {latency['p99']:.0f} ms (99th)"
        )
    lines.append(f"runs in TensorFlow {certificate['oldest_tensorflow']} and later; all of this in {CERTIFICATE}")
    return "\n".join(lines)


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
