"""`python -m benchmarks.speed.pipeline FOLDER --lines FILE`: kt.pipeline beside transformers on the same model.

FOLDER is of MarianMT; `keras-transformer export RUN --to FOLDER --format huggingface` makes one of a run. Both
translate the same lines on one core with the same beam, in turns: one line at a time, and all lines at once. It needs
PyTorch and transformers (`make peers`). With `--arguments` it prints how many lines both translate alike with arguments
of `generate`, and no times.
"""

import abc
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
ARGUMENTS: tuple[dict[str, Any], ...] = (  # of a call, beside the size of the beam
    *({"num_beams": 1}, {}, {"num_beams": 6}, {"length_penalty": 0.0}, {"length_penalty": 2.0}),
    *({"no_repeat_ngram_size": 2}, {"repetition_penalty": 1.3}, {"num_beams": 1, "repetition_penalty": 1.3}),
    *({"max_new_tokens": 200}, {"max_new_tokens": 12}, {"min_length": 20}, {"num_return_sequences": 2}),
    *({"early_stopping": True}, {"num_beams": 1, "min_length": 20}),
)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    folder: Annotated[pathlib.Path, typer.Argument(help="A folder of MarianMT.")],
    lines: Annotated[pathlib.Path, typer.Option(help="A file of sentences.")],
    one: Annotated[int, typer.Option(min=1, help="Lines that are translated one at a time.")] = 100,
    many: Annotated[int, typer.Option(min=1, help="Lines in one call.")] = 1000,
    beam: Annotated[int, typer.Option(min=1, help="Hypotheses of a line.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each; the median counts.")] = 3,
    arguments: Annotated[bool, typer.Option("--arguments", help="Compare translations with each argument.")] = False,
) -> None:
    """Print how many lines are translated alike, milliseconds per line, and the largest memory."""
    with exit_codes():
        texts = lines.read_text(encoding="utf-8").splitlines()[: max(one, many)]
        if arguments:
            print("\n".join(compared(folder, texts[:one], beam)))
            return
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


def compared(folder: pathlib.Path, lines: list[str], beam: int) -> list[str]:
    """Return the lines of a table: how many texts both write alike, the best one and the one behind it."""
    rows = ["| arguments | the same best text | the same second text |", "|---|---|---|"]
    with (
        ContestantProcess(Ours, "kt.pipeline", folder, beam) as ours,
        ContestantProcess(Theirs, "transformers", folder, beam) as theirs,
    ):
        ours.wait_until_ready()
        theirs.wait_until_ready()
        for arguments in ARGUMENTS:
            asked = {"num_beams": beam, **arguments}
            found = [process.ask("answers", lines, asked) for process in (ours, theirs)]
            counts = [
                sum(one[rank : rank + 1] == other[rank : rank + 1] for one, other in zip(*found, strict=True))
                for rank in range(asked.get("num_return_sequences", 1))
            ]
            name = ", ".join(f"{key}={value}" for key, value in asked.items())
            rows.append(f"| `{name}` | {counts[0]} of {len(lines)} | {counts[1] if len(counts) > 1 else ''} |")
    return rows


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


class Contestant(abc.ABC):
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

    @abc.abstractmethod
    def texts(self, lines: list[str]) -> list[str]:
        """Return the best translation of each line."""

    @abc.abstractmethod
    def answers(self, lines: list[str], arguments: dict[str, Any]) -> list[list[str]]:
        """Return the translations of each line, best first."""

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
        return [best for best, *_ in self.answers(lines, {"num_beams": self.beam})]

    def answers(self, lines: list[str], arguments: dict[str, Any]) -> list[list[str]]:
        found = self.pipeline(iter(lines), batch_size=max(1, len(lines)), **arguments)
        return [[each["translation_text"] for each in of_line] for of_line in found]


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

    def answers(self, lines: list[str], arguments: dict[str, Any]) -> list[list[str]]:
        found = []
        for line in lines:
            with self.torch.inference_mode():
                ids = self.model.generate(**self.tokenizer([line], return_tensors="pt"), do_sample=False, **arguments)
            found.append(self.tokenizer.batch_decode(ids, skip_special_tokens=True))
        return found


if __name__ == "__main__":
    app()
