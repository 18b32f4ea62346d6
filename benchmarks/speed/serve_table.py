"""The tables and the picture of `benchmarks/speed/serve.py`."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

from benchmarks.result_files import write_result
from export.certificate.certificate import percentile
from keras_transformer.ground.machine import package_versions, processor, processor_cores

PACKAGES = ("tensorflow", "starlette", "uvicorn", "grpcio")
NOTES = """
Each client has one connection and asks for one sentence after the other. Clients and server share the cores. Every
answer was compared with the one that its sentence gets when it is asked alone: the score must be equal to 1e-4; a tie
is another text with an equal score. A refused client waits a tenth of a second. Memory is what the server's process
holds, weights included. The share is of what the engine does with requests of 500 lines by gRPC, as many at once as
there are cores."""


def summary(results: dict[str, Any]) -> dict[str, Any]:
    """Replace single latencies by their number, rate and percentiles."""
    results = results | {"versions": package_versions(PACKAGES), "processor": processor(), "cores": processor_cores()}
    return results | {"loads": [condensed(load) for load in results["loads"]], "beyond": condensed(results["beyond"])}


def condensed(load: dict[str, Any]) -> dict[str, Any]:
    answers, refusals = load["latencies"], load["refusals"]
    return load | {
        "latencies": {"count": len(answers), "per_second": len(answers) / load["seconds"], **percentiles(answers)},
        "refusals": {"count": len(refusals), **percentiles(refusals)},
    }


def percentiles(values: list[float]) -> dict[str, float | None]:
    """Return the median, two more percentiles and the largest; None for each if there are no values."""
    results = {f"p{percent}": percentile(values, percent) if values else None for percent in (50, 95, 99)}
    return results | {"max": max(values, default=None)}


def as_markdown(results: dict[str, Any]) -> str:
    return "\n".join(
        ["# The local server under load", "", *heading(results), *table(results), *beyond(results), NOTES, ""]
    )


def heading(results: dict[str, Any]) -> Iterator[str]:
    yield f"`{results['command'].strip()}` on {results['processor']}, {results['cores']} cores."
    yield f"{results['sentences']} sentences, {results['seconds']:g} seconds per number of clients."
    yield ", ".join(f"{package} {version}" for package, version in results["versions"].items()) + "."
    if results["load_before"] is not None:
        yield f"Load of the machine in the minute before: {results['load_before']:.2f}."
    yield ""


def table(results: dict[str, Any]) -> Iterator[str]:
    yield (
        "| engine | protocol | clients | requests | requests/s | share | p50 (ms) | p95 | p99 | ties | wrong | errors "
        "| refused | memory (MiB) | CPU s |"
    )
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
    for load in results["loads"]:
        answers, memory = load["latencies"], [size / 2**20 for _, size in load["memory"]]
        cells = [
            load["engine"],
            load["protocol"],
            load["clients"],
            answers["count"],
            f"{answers['per_second']:.1f}",
            share_of_many(load, results["many"]),
            *map(milliseconds, times(answers)),
            load["ties"],
            len(load["wrong"]),
            len(load["errors"]),
            load["refusals"]["count"],
            f"{memory[0]:,.0f} to {max(memory):,.0f}",
            f"{load['cpu']:.1f}",
        ]
        yield f"| {' | '.join(map(str, cells))} |"
    yield ""
    for engine, pace in results["many"].items():
        yield f"- {engine}, many lines in a request: {pace:.0f} lines/s"
    yield ""


def share_of_many(load: dict[str, Any], many: dict[str, float]) -> str:
    """The requests per second of a load as a part of the lines per second of its engine; empty if not measured."""
    pace = many.get(load["engine"])
    return f"{load['latencies']['per_second'] / pace:.2f}" if pace else ""


def beyond(results: dict[str, Any]) -> Iterator[str]:
    load = results["beyond"]
    answers, refusals = load["latencies"], load["refusals"]
    yield f"## {load['clients']} clients on a queue of {results['small_queue']} lines"
    yield ""
    yield "| | requests | p50 (ms) | p95 | p99 | slowest |"
    yield "|---|---:|---:|---:|---:|---:|"
    for name, group in (("answered", answers), ("refused with 503", refusals)):
        yield f"| {name} | {group['count']} | {' | '.join(map(milliseconds, (*times(group), group['max'])))} |"
    yield ""
    yield f"Wrong answers: {len(load['wrong'])}; other errors: {len(load['errors'])}."


def times(group: dict[str, Any]) -> tuple[float | None, ...]:
    return group["p50"], group["p95"], group["p99"]


def milliseconds(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds * 1e3:,.0f}" if seconds >= 0.01 else f"{seconds * 1e3:.1f}"


def write_results(results: dict[str, Any], folder: pathlib.Path) -> str:
    """Write serve_load.md, serve_load.json and serve_load.png into `folder`. Returns the page."""
    page = as_markdown(results)
    write_result(folder / "serve_load.md", page)
    write_result(folder / "serve_load.json", json.dumps(results) + "\n")
    draw(results, folder / "serve_load.png")
    return page


def series_of(load: dict[str, Any]) -> str:
    return f"{load['engine']}, {load['protocol']}"


def draw(results: dict[str, Any], path: pathlib.Path) -> None:
    """The median of latency and requests per second by clients, a line per engine and protocol."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name in dict.fromkeys(map(series_of, results["loads"])):
        loads = [load for load in results["loads"] if series_of(load) == name]
        clients = [load["clients"] for load in loads]
        left.plot(clients, [(load["latencies"]["p50"] or 0) * 1e3 for load in loads], marker="o", label=name)
        right.plot(clients, [load["latencies"]["per_second"] for load in loads], marker="o", label=name)
    left.set(xlabel="clients", ylabel="milliseconds, median", xscale="log", yscale="log")
    right.set(xlabel="clients", ylabel="requests per second", xscale="log", ylim=(0, None))
    left.legend()
    figure.savefig(path, dpi=120)
