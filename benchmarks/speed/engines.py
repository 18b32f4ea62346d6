"""`python -m benchmarks.speed.engines`: a model in every engine, one line at a time and many, on one core and on all.

Translates the same lines with the Translator, the exported graph, LiteRT and CTranslate2, in turns, with a beam of 4.
With `--student` there are more models: their BLEU and speed stand in the same tables and in one picture. If pymarian is
installed, Marian itself stands beside them, on a small model that it trained.
"""

import contextlib
import os
import pathlib
import shutil
import time
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.errors import BenchmarkError, names_in
from benchmarks.result_files import RESULTS, command_line, row_names
from benchmarks.speed.engines_table import write_results
from benchmarks.speed.processes import ContestantProcess
from benchmarks.speed.translate import exports_for, note, works_folder
from benchmarks.speed.translate_work import Work, export, python, test_lines
from benchmarks.speed.translate_worker import Translating, available
from benchmarks.speed.translators import BFLOAT16, MARIAN, Setting
from keras_transformer.commands.console import exit_codes
from keras_transformer.ground.machine import package_versions, processor_and_cores, processor_cores

ENGINES = ("ours", "saved_model", "litert_float32", "litert_int8", "ctranslate2_float32", "ctranslate2_int8")
EVERY = (*ENGINES, *BFLOAT16, *MARIAN)
MARIAN_MODEL = pathlib.Path(__file__).parents[2] / "tests/data/marian"
PACKAGES = "tensorflow", "keras", "ai-edge-litert", "ctranslate2", "numpy"
BEAM = 4
MODES = {"one": 1, "many": None}  # lines per call
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    run: Annotated[pathlib.Path, typer.Option(help="The run folder of Multi30k.")] = pathlib.Path(
        "runs/multi30k_en_de"
    ),
    student: Annotated[list[pathlib.Path] | None, typer.Option(help="Another run folder of the same pair.")] = None,
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k.")] = pathlib.Path("data/multi30k"),
    engines: Annotated[str, typer.Option(help="Separated by commas.")] = ",".join(EVERY),
    one: Annotated[int, typer.Option(min=1, help="Lines that are translated one at a time.")] = 100,
    many: Annotated[int, typer.Option(min=1, help="Lines of test_2016 in one call; 1,000 are all.")] = 1000,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each engine; the median counts.")] = 5,
    cores: Annotated[
        list[int] | None, typer.Option(min=1, help="Cores of an engine; one, then all if left out.")
    ] = None,
    results: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for engines.md, .json and .png; benchmarks/results if everything was run."),
    ] = None,
) -> None:
    """Print milliseconds per sentence of each engine, by the clock and of the processor, and how they compare."""
    with exit_codes():
        names, numbers = names_in(engines, EVERY, "engine"), {"missing": {}, "points": []}
        numbers |= {"command": command_line("speed.engines"), "rounds": rounds, "lines": {"one": one, "many": many}}
        numbers |= {"machine": processor_and_cores(), "versions": package_versions(PACKAGES)}
        names = available(names, numbers["missing"])
        effort = Effort({"one": one, "many": many}, rounds, cores or sorted({1, processor_cores()}))
        ours = [name for name in names if name not in MARIAN]
        runs = (run, *(student or ())) if ours else ()
        for folder in runs:
            if not (folder / "model.weights.h5").is_file():
                raise BenchmarkError(f"There is no trained run in {folder}: name one with --run or --student.")
        for name, folder in zip(row_names(runs), runs, strict=True):
            with works_folder() as place:
                work = prepared(place, name, folder, texts_of_test(data, max(one, many)))
                numbers["points"] += measure(work, ours, effort, numbers["missing"])
        if ours != names:
            with works_folder() as place:
                numbers["points"] += measure(prepared_marian(place), names, effort, numbers["missing"])
        is_whole = set(ENGINES) <= set(names) and many >= 1000 and cores is None
    print(write_results(numbers, results or (RESULTS if is_whole else None)))


class Effort(NamedTuple):
    """How much is measured."""

    lines: Mapping[str, int]  # by mode
    rounds: int
    cores: list[int]


def measure(work: Work, names: list[str], effort: Effort, missing: dict[str, str]) -> list[dict[str, Any]]:
    """Let the engines translate with a model. Returns a row for each number of cores, engine and mode: see `row`."""
    note(f"{work.name}: exporting for {', '.join(names)}")
    missing |= {f"{work.name}, {name}": reason for name, reason in export(work, exports_of(names)).items()}
    rows = []
    for cores in effort.cores:
        with engines_on(cores, names, work, missing) as workers:
            rows += take_turns(workers, work, cores, effort)
    return rows


def take_turns(workers: list[ContestantProcess], work: Work, cores: int, effort: Effort) -> list[dict[str, Any]]:
    """Let the engines that are ready translate in turns."""
    settings = {(worker.name, mode): chosen(worker, work, mode, cores) for worker in workers for mode in MODES}
    turns: dict[tuple[str, str], list[Turn]] = {key: [] for key in settings}
    for number in range(effort.rounds):
        note(f"{work.name} on {cores} core{'s' * (cores > 1)}, round {number + 1} of {effort.rounds}")
        for mode, size in MODES.items():
            for worker in workers:
                key = worker.name, mode
                turn = worker.ask("timed", work.lines[: effort.lines[mode]], settings[key], size)
                turns[key].append(Turn(*turn))
    return [row(work, cores, key, of_one, settings[key], turns) for key, of_one in turns.items()]


def texts_of_test(data: pathlib.Path, limit: int) -> tuple[list[str], list[str]]:
    """Return the first `limit` lines of test_2016, English and German."""
    return test_lines(data, "en")[:limit], test_lines(data, "de")[:limit]


def prepared(folder: pathlib.Path, name: str, run: pathlib.Path, texts: tuple[list[str], list[str]]) -> Work:
    """Return lines and their references as work with a trained run."""
    (folder / "run").symlink_to(run.absolute())
    return Work(name, folder, *texts)


def prepared_marian(folder: pathlib.Path) -> Work:
    """Return the test text of the model that Marian trained as work, with the run that is imported from it."""
    model = folder / "marian"
    model.mkdir()
    for name in ("vocab.yml", "source.spm", "target.spm"):
        shutil.copy(MARIAN_MODEL / name, model)
    shutil.copy(MARIAN_MODEL / "self-attention.npz", model / "model.npz")
    python("-m", "keras_transformer", "import", MARIAN_MODEL / "self-attention.npz", folder / "run")
    return Work(
        "Marian's", folder, *((MARIAN_MODEL / f"test.{side}").read_text("utf-8").splitlines() for side in ("en", "de"))
    )


def exports_of(names: list[str]) -> list[str]:
    return exports_for(names, (f"beam{BEAM}/all",))


class Turn(NamedTuple):
    """What an engine made of the lines, and what it took: seconds of the clock and of processors, all lines."""

    texts: list[str]
    seconds: float
    processor_seconds: float


class Engine(Translating):
    """An engine in its process, which may use so many cores."""

    def __init__(self, name: str, folder: pathlib.Path, cores: int):
        if hasattr(os, "sched_setaffinity"):  # before a library counts the cores
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cores:])
        super().__init__(name, folder)

    def timed(self, lines: list[str], setting: Setting, size: int | None) -> Turn:
        """Translate, and count the processor time of all threads of the process too."""
        used, started = time.process_time(), time.perf_counter()
        texts, _ = self.translate(lines, BEAM, None, setting, size)
        return Turn(texts, time.perf_counter() - started, time.process_time() - used)


@contextlib.contextmanager
def engines_on(cores: int, names: list[str], work: Work, missing: dict[str, str]) -> Iterator[list[ContestantProcess]]:
    """The engines that can translate this work, each in a process; why others cannot goes into `missing`."""
    with contextlib.ExitStack() as stack:
        workers = []
        for name in names:
            worker = stack.enter_context(ContestantProcess(Engine, name, work.folder, cores))
            try:
                worker.wait_until_ready()
                workers.append(worker)
            except BenchmarkError as error:
                missing.setdefault(f"{work.name}, {name}", str(error))
        yield workers


def chosen(worker: ContestantProcess, work: Work, mode: str, cores: int) -> Setting:
    """Return the fastest of the engine's settings on 128 lines, or on 8 that come one at a time."""
    size = MODES[mode]
    lines = work.lines[: 128 if size is None else 8]
    tried = []
    for setting in worker.ask("settings", cores, size):
        worker.ask("timed", lines[:2], setting, size)  # loads
        tried.append((worker.ask("timed", lines, setting, size)[1], len(tried), setting))
    return min(tried)[2]


def row(
    work: Work,
    cores: int,
    key: tuple[str, str],
    turns: list[Turn],
    setting: Setting,
    others: Mapping[tuple, list[Turn]],
) -> dict[str, Any]:
    """Return what an engine took per line, all turns, its BLEU, and the share of lines with the Translator's text."""
    import sacrebleu

    engine, mode = key
    texts = turns[-1].texts
    ours = others.get(("ours", mode))
    return {
        "model": work.name,
        "engine": engine,
        "cores": cores,
        "mode": mode,
        "setting": setting,
        "seconds": [turn.seconds / len(texts) for turn in turns],
        "processor_seconds": [turn.processor_seconds / len(texts) for turn in turns],
        "bleu": sacrebleu.corpus_bleu(texts, [work.references[: len(texts)]]).score,
        "same": sum(map(str.__eq__, texts, ours[-1].texts)) / len(texts) if ours else None,
    }


if __name__ == "__main__":
    app()
