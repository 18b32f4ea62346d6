"""`python -m benchmarks.speed.pipeline FOLDER --lines FILE`: kt.pipeline beside transformers on the same model.

FOLDER is of MarianMT; `keras-transformer export RUN --to FOLDER --format huggingface` makes one of a run. Both
translate the same lines on one core with the same beam, in turns: one line at a time, and all lines at once. It needs
PyTorch and transformers (`make peers`).
"""

import os
import pathlib
import resource
import statistics
import time
from typing import Annotated, Any, NamedTuple

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.speed.processes import ContestantProcess, peak_bytes, prepare_for_cpu
from benchmarks.speed.translators import in_batches
from keras_transformer.commands.console import exit_codes
from keras_transformer.ground.machine import processor_and_cores

BATCH_SIZE = 32  # of transformers, if there are many lines: they are sorted by length before, as here
MODES = ("one", "many")
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    folder: Annotated[pathlib.Path, typer.Argument(help="A folder of MarianMT.")],
    lines: Annotated[pathlib.Path, typer.Option(help="A file of sentences.")],
    one: Annotated[int, typer.Option(min=1, help="Lines that are translated one at a time.")] = 100,
    many: Annotated[int, typer.Option(min=1, help="Lines in one call.")] = 1000,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses of a line.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each; the median counts.")] = 3,
) -> None:
    """Print how many lines are translated alike, milliseconds per line, and the largest memory."""
    with exit_codes():
        texts = lines.read_text(encoding="utf-8").splitlines()[: max(one, many)]
        found = measured(folder, {"one": texts[:one], "many": texts[:many]}, beam, rounds)
    print(f"{processor_and_cores()}; one core, beam {beam}, {len(texts[:one])} and {len(texts[:many])} lines\n")
    print("\n".join(table(found)))


class Measured(NamedTuple):
    """A contestant: its translations, seconds per line of each turn by mode, and its largest memory in bytes."""

    texts: list[str]
    seconds: dict[str, list[float]]
    memory: int


def measured(folder: pathlib.Path, lines: dict[str, list[str]], beam: int, rounds: int) -> dict[str, Measured]:
    """Let both translate in turns. Raises BenchmarkError if one of them fails."""
    with (
        ContestantProcess(Ours, "kt.pipeline", folder, beam) as ours,
        ContestantProcess(Theirs, "transformers", folder, beam) as theirs,
    ):
        found = {}
        for process in (ours, theirs):
            process.wait_until_ready()
            texts, _ = process.ask("translate", lines["many"], False)  # which compiles a search, too
            process.ask("translate", lines["one"][:8], True)
            found[process.name] = Measured(texts, {mode: [] for mode in MODES}, 0)
        for _ in range(rounds):
            for mode in MODES:
                for process in (ours, theirs):
                    _, seconds = process.ask("translate", lines[mode], mode == "one")
                    found[process.name].seconds[mode].append(seconds / len(lines[mode]))
        return {process.name: found[process.name]._replace(memory=process.ask("peak")) for process in (ours, theirs)}


def table(found: dict[str, Measured]) -> list[str]:
    """Return the lines of a table of Markdown."""
    ours, theirs = found.values()
    equal = sum(one == other for one, other in zip(ours.texts, theirs.texts, strict=True))
    rows = ["| | one line at a time, ms | many lines, ms per line | largest memory, MB |", "|---|---|---|---|"]
    for name, of_one in found.items():
        times = (f"{1000 * statistics.median(of_one.seconds[mode]):.1f}" for mode in MODES)
        rows.append(f"| {name} | {' | '.join(times)} | {of_one.memory / 1e6:.0f} |")
    ratios = (statistics.median(theirs.seconds[mode]) / statistics.median(ours.seconds[mode]) for mode in MODES)
    rows.append(f"| times as fast | {' | '.join(f'{ratio:.2f}' for ratio in ratios)} | |")
    return [*rows, "", f"{equal} of {len(ours.texts)} lines are translated alike."]


class Contestant:
    """What translates in a process that has one core."""

    def __init__(self) -> None:
        prepare_for_cpu()
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    def translate(self, lines: list[str], is_one_by_one: bool) -> tuple[list[str], float]:
        """Return the translations, and the seconds that they took."""
        started = time.perf_counter()
        texts = [text for line in lines for text in self.texts([line])] if is_one_by_one else self.texts(lines)
        return texts, time.perf_counter() - started

    def texts(self, lines: list[str]) -> list[str]:
        raise NotImplementedError

    def peak(self) -> int:
        return peak_bytes(resource.getrusage(resource.RUSAGE_SELF))


class Ours(Contestant):
    """kt.pipeline."""

    def __init__(self, name: str, folder: pathlib.Path, beam: int):
        super().__init__()
        from keras_transformer.translation.parallel import tune_for_translation
        from keras_transformer.translation.pipeline import pipeline

        tune_for_translation()
        self.pipeline, self.beam = pipeline("translation", model=folder), beam

    def texts(self, lines: list[str]) -> list[str]:
        found: Any = self.pipeline(lines, num_beams=self.beam)
        return [each["translation_text"] for each in found]


class Theirs(Contestant):
    """`generate` of transformers, since its version 5 has no pipeline."""

    def __init__(self, name: str, folder: pathlib.Path, beam: int):
        super().__init__()
        try:
            import torch
            from transformers import AutoModelForSeq2SeqLM, AutoTokenizer
        except ImportError:
            raise BenchmarkError("PyTorch and transformers are not installed: run `make peers`.") from None
        torch.set_num_threads(1)
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model, self.beam, self.torch = AutoModelForSeq2SeqLM.from_pretrained(folder).eval(), beam, torch

    def texts(self, lines: list[str]) -> list[str]:
        return in_batches(lines, BATCH_SIZE, self.generated)

    def generated(self, lines: list[str]) -> list[str]:
        with self.torch.inference_mode():
            ids = self.model.generate(
                **self.tokenizer(lines, return_tensors="pt", padding=True), num_beams=self.beam, do_sample=False
            )
        return self.tokenizer.batch_decode(ids, skip_special_tokens=True)


if __name__ == "__main__":
    app()
