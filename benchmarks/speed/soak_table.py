"""The table and the picture of `benchmarks/speed/soak.py`, and what of it is a fault."""

import collections
import json
import pathlib
from collections.abc import Iterator
from typing import Any

from benchmarks.result_files import write_result
from benchmarks.speed.serve_table import PACKAGES, milliseconds, percentiles
from keras_transformer.ground.machine import package_versions, processor, processor_cores

BINS = 60  # of the time axis, at most
BIN_SECONDS = 5  # at least
NOTES = """
Clients, server and whatever else the machine did share the cores. Each answer was compared with the one that the idle
server gave to the same question before: outputs, texts and scores; a tie is another text whose score is equal to 1e-4.
`slow` sends its body over 2 seconds and reads in parts; dying clients leave in the middle of headers, bodies and
answers. Refused is 503 or RESOURCE_EXHAUSTED with a sentence; unannounced is any other 5xx. Versions are links to one
export, so that every one has the same answers; each third one is damaged and must not be served. Memory is what the
server's process holds, weights included."""


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """Replace single latencies by percentiles, of each kind and over time."""
    kinds = collections.defaultdict(list)
    for kind, _, seconds in results["answers"]:
        kinds[kind].append(seconds)
    width = max(BIN_SECONDS, results["seconds"] / BINS)
    bins = collections.defaultdict(list)
    for _, when, seconds in results["answers"]:
        bins[int(when / width)].append(seconds)
    return results | {
        "versions_of_packages": package_versions(PACKAGES),
        "processor": processor(),
        "cores": processor_cores(),
        "answers": {kind: {"count": len(times), **percentiles(times)} for kind, times in sorted(kinds.items())},
        "over_time": [{"at": (number + 0.5) * width, **percentiles(bins[number])} for number in sorted(bins)],
        **{name: len(results[name]) for name in ("refused", "ties")},
    }


def faults(results: dict[str, Any]) -> list[str]:
    """Return what a server must not do, with the first example of each."""
    found = []
    for name in ("wrong", "unannounced", "errors"):
        if results[name]:
            found.append(f"{len(results[name])} {name}, the first: {results[name][0]}")
    if results["served"] != [results["newest"]]:
        found.append(f"at the end {results['served']} was served, not {results['newest']}")
    if results["code"] != 0:
        found.append(f"the server ended with {results['code']}")
    return found


def as_markdown(results: dict[str, Any]) -> str:
    return "\n".join(
        ["# The local server in a soak", "", *heading(results), *table(results), *rest(results), NOTES, ""]
    )


def heading(results: dict[str, Any]) -> Iterator[str]:
    yield f"`{results['command'].strip()}` on {results['processor']}, {results['cores']} cores."
    behaviours = collections.Counter(results["behaviours"])
    yield f"{results['clients']} clients: " + ", ".join(f"{count} {name}" for name, count in behaviours.items()) + "."
    yield ", ".join(f"{name} {version}" for name, version in results["versions_of_packages"].items()) + "."
    yield ""


def table(results: dict[str, Any]) -> Iterator[str]:
    yield "| question | answers | p50 (ms) | p95 | p99 | slowest |"
    yield "|---|---:|---:|---:|---:|---:|"
    for kind, answers in results["answers"].items():
        times = [milliseconds(answers[name]) for name in ("p50", "p95", "p99", "max")]
        yield f"| {kind} | {answers['count']:,} | {' | '.join(times)} |"
    yield ""


def rest(results: dict[str, Any]) -> Iterator[str]:
    sizes = [(when, size / 2**20) for when, size in results["memory"]]
    settled = [size for when, size in sizes if when >= results["seconds"] / 3] or [sizes[-1][1]]
    good = sum(not each["is_bad"] for each in results["versions"])
    yield "| what | number |"
    yield "|---|---:|"
    yield f"| minutes | {results['seconds'] / 60:.1f} |"
    yield f"| wrong answers | {len(results['wrong'])} |"
    yield f"| ties | {results['ties']} |"
    yield f"| 5xx that were not announced | {len(results['unannounced'])} |"
    yield f"| other errors | {len(results['errors'])} |"
    yield f"| refused | {results['refused']} |"
    yield f"| connections of clients that died | {results['died'][0]} |"
    yield f"| new versions, and damaged ones | {good}, {len(results['versions']) - good} |"
    yield f"| memory at the start (MiB) | {sizes[0][1]:,.0f} |"
    yield f"| memory from a third on, least to most (MiB) | {min(settled):,.0f} to {max(settled):,.0f} |"
    yield f"| memory at the end (MiB) | {sizes[-1][1]:,.0f} |"
    yield ""
    yield "Faults: " + ("; ".join(faults(results)) or "none") + "."


def write_results(results: dict[str, Any], folder: pathlib.Path) -> str:
    """Write soak.md, soak.json and soak.png into `folder`. Returns the page."""
    page = as_markdown(results)
    write_result(folder / "soak.md", page)
    write_result(folder / "soak.json", json.dumps(results) + "\n")
    draw(results, folder / "soak.png")
    return page


def draw(results: dict[str, Any], path: pathlib.Path) -> None:
    """Memory over time, and latency over time; a line per new version, dashed if it was damaged."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    upper.plot([when / 60 for when, _ in results["memory"]], [size / 2**20 for _, size in results["memory"]])
    upper.set(ylabel="MiB held by the server", ylim=(0, None))
    for name in ("p50", "p99"):
        times = [part["at"] / 60 for part in results["over_time"]]
        lower.plot(times, [part[name] * 1e3 for part in results["over_time"]], marker=".", label=name)
    lower.set(
        xlabel="minutes; a line is a new version, a dashed one was damaged", ylabel="milliseconds", ylim=(0, None)
    )
    for plot in (upper, lower):
        for version in results["versions"]:
            plot.axvline(version["at"] / 60, color="0.8", zorder=0, linestyle="--" if version["is_bad"] else "-")
    lower.legend()
    figure.savefig(path, dpi=120)
