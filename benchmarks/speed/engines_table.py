"""The results of the benchmark of engines: medians and ratios, as JSON, tables and a picture."""

import json
import pathlib
from collections.abc import Iterator
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.result_files import write_result
from benchmarks.speed.translators import ALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PEERS = {"float32": "ctranslate2_float32", "int8": "ctranslate2_int8"}
TITLES = {"one": "one line at a time", "many": "many lines in one call"}
MARKERS = dict(zip(ALL, "osDvP^X*<>h", strict=True))
NOTES = """\
The lines are the first of test_2016, the beam is 4, and an engine is a process that may use so many cores. The engines
take turns; a number is the median of its turns. "ms" is milliseconds per sentence by the clock, "processor" those of
all its threads. "CTranslate2 : engine" is how much faster than CTranslate2 of the same precision the engine is, by
processor time and by the clock: above 1 it is faster; bfloat16, which CTranslate2 has on no x86 processor, stands
beside its float32. On a machine that others use too, only processor time counts.
Each engine has the fastest of its settings, tried in this run. "same" is the share of lines with the Translator's text:
CTranslate2 divides by another length penalty and stops as it does by default. Marian, pymarian's decoder in the same
process, has a model of numbers in words that it trained (tests/data/marian): the others have it imported.
It has no BLEU, since a number is one word in German."""


def write_results(numbers: dict[str, Any], folder: pathlib.Path | None) -> str:
    """Write engines.md, engines.json and, with matplotlib, engines.png into `folder`, if given. Returns the page."""
    page = as_markdown(numbers)
    if folder:
        write_result(folder / "engines.md", page)
        write_result(folder / "engines.json", json.dumps(numbers) + "\n")
        draw(numbers, folder / "engines.png")
    return page


def as_markdown(numbers: dict[str, Any]) -> str:
    return "\n".join(["# Engines", "", *heading(numbers), *tables(numbers), NOTES, ""])


def heading(numbers: dict[str, Any]) -> Iterator[str]:
    lines = numbers["lines"]
    yield f"`{numbers['command']}` on {numbers['machine']}; rounds: {numbers['rounds']}."
    yield f"{lines['one']} lines one at a time, {lines['many']} in one call."
    yield ", ".join(f"{package} {version}" for package, version in numbers["versions"].items()) + "."
    yield ""
    yield from (f"- Not measured: {name}: {reason}" for name, reason in numbers["missing"].items())
    yield ""


def tables(numbers: dict[str, Any]) -> Iterator[str]:
    """A table for each number of cores and mode, with a row for each model and engine."""
    places = dict.fromkeys((point["cores"], point["mode"]) for point in numbers["points"])
    for cores, mode in sorted(places, key=lambda place: (place[0], list(TITLES).index(place[1]))):
        points = [point for point in numbers["points"] if (point["cores"], point["mode"]) == (cores, mode)]
        yield f"## {TITLES[mode].capitalize()}, {cores} core{'s' * (cores > 1)}"
        yield from ("", "| | ms | processor | CTranslate2 : engine, by processor, by clock | BLEU | same | setting |")
        yield "|---|---:|---:|---:|---:|---:|---|"
        yield from (table_row(point, peer_of(point, points)) for point in points)
        yield ""


def table_row(point: dict[str, Any], peer: dict[str, Any] | None) -> str:
    clock, used = (f"{1e3 * median(point[name]):.2f}" for name in ("seconds", "processor_seconds"))
    ratios = [median(peer[name]) / median(point[name]) for name in ("processor_seconds", "seconds")] if peer else []
    same = "" if point["same"] is None else f"{point['same']:.1%}"
    setting = ", ".join(f"{name} {value}" for name, value in point["setting"].items())
    title = f"{point['model']}, {ALL[point['engine']].title}"
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    bleu = f"{point['bleu']:.2f}" if point["bleu"] else ""
    return f"| {title} | {clock} | {used} | {shown} | {bleu} | {same} | {setting} |"


def peer_of(point: dict[str, Any], points: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return CTranslate2 with the same model and precision: float32 for what has none of its precisions."""
    name = PEERS["int8" if point["engine"].endswith("int8") else "float32"]
    same_model = (other for other in points if other["model"] == point["model"] and other["engine"] == name)
    return next(same_model, None)


def draw(numbers: dict[str, Any], path: pathlib.Path) -> None:
    """Write the picture, if matplotlib is installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return
    figure = Figure(figsize=(11, 4.5), layout="constrained")
    draw_points(figure, [point for point in numbers["points"] if point["cores"] == 1] or numbers["points"])
    write_result(path, lambda file: figure.savefig(file, dpi=120, format="png"))


def draw_points(figure: "Figure", points: list[dict[str, Any]]) -> None:
    """Draw BLEU against what a sentence takes one at a time, and against sentences per second of many.

    Both are by processor time. A colour is a model, a marker an engine. A model without BLEU is left out.
    """
    points = [point for point in points if point["bleu"]]
    left = figure.add_subplot(1, 2, 1, xlabel="milliseconds per sentence, one at a time", ylabel="BLEU")
    right = figure.add_subplot(1, 2, 2, xlabel="sentences per second and core, many lines", ylabel="BLEU")
    bleu = {(point["model"], point["engine"]): point["bleu"] for point in points if point["mode"] == "many"}
    models = list(dict.fromkeys(point["model"] for point in points))
    for point in points:
        model, engine = point["model"], point["engine"]
        used = median(point["processor_seconds"])
        axes, speed = (left, 1e3 * used) if point["mode"] == "one" else (right, 1 / used)
        label = f"{model}, {ALL[engine].title}" if axes is right else None
        quality = bleu.get((model, engine), point["bleu"])  # of as many lines as there are
        axes.plot([speed], [quality], MARKERS[engine], color=f"C{models.index(model)}", label=label, linestyle="")
    for axes, steps in ((left, (2, 3, 5, 7, 10, 15, 20, 30)), (right, (100, 150, 200, 300, 400, 500, 700, 1000))):
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        axes.set_xticks([step for step in steps if low <= step <= high])
        axes.minorticks_off()
        axes.xaxis.set_major_formatter("{x:g}")
    figure.legend(loc="outside right upper", fontsize="x-small")
