"""`python -m benchmarks.speed.translate`: translation beside CTranslate2, Marian in PyTorch, and the matrix product."""

import contextlib
import math
import os
import pathlib
import sys
import tempfile
from collections.abc import Iterator
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.errors import names_in
from benchmarks.result_files import RESULTS, command_line
from benchmarks.speed.first_translation import first_translations
from benchmarks.speed.translate_table import draw_lengths, summary, write_results
from benchmarks.speed.translate_work import EXPORTS, Work, export, multi30k, random_work
from benchmarks.speed.translate_worker import TranslateWorker, available, crew, machine_products
from benchmarks.speed.translators import CONTESTANTS, Setting
from keras_transformer.commands.console import exit_codes
from keras_transformer.ground.machine import processor_cores

BEAMS = {"beam4": 4, "greedy": 1}
MODES = {"all": None, "batch32": 32, "batch1": 1}  # lines per call
TRIAL_LINES = 128  # of "all" and "batch32", on which settings are tried
LONG_TURN = 60  # seconds: a contestant whose first turn takes longer has no other
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class Effort(NamedTuple):
    """How much is measured."""

    lines: int  # of test_2016
    works: dict[str, tuple[str, ...]]  # "beam/mode" of each piece of work
    one_by_one: int  # lines whose latency is measured
    lengths: tuple[int, ...]  # of outputs, for the cost per token


EVERYTHING = tuple(f"{beam}/{mode}" for beam in BEAMS for mode in MODES)
BEAM_ALONE = ("beam4/all", "beam4/batch1")
FULL = Effort(1000, {"multi30k": EVERYTHING, "base": BEAM_ALONE}, 24, (32, 64, 128, 256, 512, 1024))
QUICK = Effort(200, {"multi30k": BEAM_ALONE}, 8, (32, 128))


@app.command()
def main(
    quick: Annotated[
        bool, typer.Option("--quick", help="200 lines, beam 4, one round, no base size: less than six minutes.")
    ] = False,
    rounds: Annotated[int, typer.Option(min=1, help="Turns per contestant, without --quick; the median counts.")] = 3,
    contestants: Annotated[str, typer.Option(help="Separated by commas.")] = ",".join(CONTESTANTS),
    run: Annotated[pathlib.Path, typer.Option(help="The run folder of Multi30k.")] = pathlib.Path(
        "runs/multi30k_en_de"
    ),
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k.")] = pathlib.Path("data/multi30k"),
    results: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for translate_speed.md, .json and .png; benchmarks/results if everything was run."),
    ] = None,
) -> None:
    """Translate the same lines with each contestant, in turns, and print how much faster ours is."""
    with exit_codes():
        names = names_in(contestants, CONTESTANTS, "contestant")
        effort, rounds = (QUICK, 1) if quick else (FULL, rounds)
        numbers = {"command": command_line("speed.translate"), "rounds": rounds}
        numbers["load_before"] = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
        numbers |= measure_all(effort, names, rounds, run, data)
        numbers = summary(numbers)
        is_whole = not quick and set(names) == set(CONTESTANTS)
        folder = results or (RESULTS if is_whole else None)
    print(write_results(numbers, folder))
    if folder and numbers["lengths"]:
        draw_lengths(numbers, folder)


def measure_all(effort: Effort, names: list[str], rounds: int, run: pathlib.Path, data: pathlib.Path) -> dict[str, Any]:
    """Everything by key "work/...". `missing`: the reason by contestant."""
    numbers: dict[str, Any] = {"missing": {}, "works": {}, "first": {}, "lengths": {}}
    names = available(names, numbers["missing"])
    for number, (name, places) in enumerate(effort.works.items()):
        with works_folder() as folder:
            work = multi30k(folder, run, data, effort.lines) if name == "multi30k" else random_work(folder, name)
            note(f"{name}: exporting for {', '.join(names)}")
            failed = export(work, exports_for(names, places))
            numbers["missing"] |= failed
            with crew(names, work, numbers["missing"]) as workers:
                numbers["works"][name] = measure(workers, work, places, rounds, effort.one_by_one)
            if number == 0:
                numbers["first"] = first_translations([worker.name for worker in workers], work)
    if effort.lengths:
        with works_folder() as folder:
            numbers["lengths"] = measure_lengths(folder, names, effort.lengths, numbers["missing"])
    return numbers


@contextlib.contextmanager
def works_folder() -> Iterator[pathlib.Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield pathlib.Path(folder)


def exports_for(names: list[str], places: tuple[str, ...]) -> list[str]:
    """The folders of EXPORTS that these contestants read, for these beams."""
    prefixes = {
        "saved_model": "saved_model_float32",
        "saved_model_bfloat16": "saved_model_bfloat16",
        **{name: name for name in ("litert_float32", "litert_int8", "ctranslate2_float32", "ctranslate2_int8")},
    }
    wanted = tuple(prefixes[name] for name in names if name in prefixes)
    beams = {place.partition("/")[0] for place in places}
    unused = tuple(f"_beam{size}" for beam, size in BEAMS.items() if beam not in beams)
    return [name for name in EXPORTS if wanted and name.startswith(wanted) and not name.endswith(unused)]


def measure(
    workers: list[TranslateWorker], work: Work, places: tuple[str, ...], rounds: int, one_by_one: int
) -> dict[str, Any]:
    """Let every contestant choose its setting at each place, "beam/mode", then let all take turns.

    Returns seconds per round, by "beam/mode/contestant"; seconds per line if lines are translated one by one.
    """
    numbers: dict[str, Any] = {
        "lines": len(work.lines),
        "settings": {},
        "seconds": {},
        "texts": {},
        "peak": {},
        "tried": {},
        "references": work.references,
        "config": work.config,
        "forced": work.forced,
        "source": work.lines,
        "tokenizer": (work.folder / "run" / "tokenizer.model").read_bytes(),
    }
    for place in places:
        beam, mode = place.split("/")
        beam_size, size = BEAMS[beam], MODES[mode]
        lines = work.lines[:one_by_one] if size == 1 else work.lines
        turns = {}
        note(f"{work.name}/{place}: finding the best settings")
        for worker in workers:
            key = f"{place}/{worker.name}"
            tried = try_settings(worker, lines[:TRIAL_LINES], beam_size, work.forced, size)
            setting, _ = min(tried, key=lambda one: one[1])
            turns[key] = worker, setting
            numbers["tried"][key], numbers["settings"][key], numbers["seconds"][key] = tried, setting, []
        for number in range(rounds):
            note(f"{work.name}/{place}, round {number + 1} of {rounds}")
            for key, (worker, setting) in list(turns.items()):
                texts, seconds = worker.translate(lines, beam_size, work.forced, setting, size)
                numbers["seconds"][key].append(seconds if size == 1 else sum(seconds))
                numbers["texts"][key] = texts
                if sum(seconds) > LONG_TURN:
                    del turns[key]
    numbers["peak"] = {worker.name: worker.peak_bytes() for worker in workers}
    numbers["product"] = machine_products() if workers else {}
    return numbers


def try_settings(
    worker: TranslateWorker, lines: list[str], beam_size: int, forced: int | None, size: int | None
) -> list[tuple[Setting, float]]:
    """Each of the contestant's settings with its seconds for `lines`. A few lines before let it load and compile."""
    tried = []
    for setting in worker.settings(processor_cores(), size):
        worker.translate(lines[:2], beam_size, forced, setting, size)
        _, seconds = worker.translate(lines, beam_size, forced, setting, size)
        tried.append((setting, sum(seconds)))
    return tried


def measure_lengths(
    folder: pathlib.Path, names: list[str], lengths: tuple[int, ...], missing: dict[str, str]
) -> dict[str, dict[int, float]]:
    """Seconds per output token with a beam of 4 and 8 sentences together, by contestant and length of the outputs.

    Each length has the fastest of the settings, with one batch of all sentences and with a batch per core.
    """
    chosen = [name for name in names if name in ("ours", "ours_bfloat16", "ctranslate2_float32")]
    work, numbers = random_work(folder, "small", sentences=8), {}
    missing |= export(work, exports_for(chosen, BEAM_ALONE))
    cores, count = processor_cores(), len(work.lines)
    with crew(chosen, work, missing) as workers:
        for worker in workers:
            sizes = count, math.ceil(count / cores)
            settings = [setting for size in sizes for setting in worker.settings(cores, size)]
            numbers[worker.name] = {}
            for length in lengths:
                note(f"outputs of {length} tokens: {worker.name}")
                seconds = []
                for setting in settings:
                    worker.translate(work.lines, 4, length, setting, None)  # loads and compiles
                    seconds += worker.translate(work.lines, 4, length, setting, None)[1]
                numbers[worker.name][length] = min(seconds) / (length * count)
    return numbers


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    app()
