"""`python -m benchmarks.speed.accelerator_translate --to FOLDER`: how fast the search translates on JAX.

It needs jax, keras, and what benchmarks/speed/accelerator.py needs, ctranslate2 for its contestants; it does not need
TensorFlow.
"""

import dataclasses
import json
import pathlib
import statistics
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from benchmarks.errors import BenchmarkError, names_in
from benchmarks.result_files import command_line, write_result
from benchmarks.speed.accelerator import measured_chip
from benchmarks.speed.on_accelerator.chip import Chip
from benchmarks.speed.on_accelerator.report import NO_ACCELERATOR, chip_lines, markdown
from benchmarks.speed.on_accelerator.translation import CONTESTANTS, Case, Round, Translation, needed_bytes
from benchmarks.speed.on_accelerator.turns import answers_in_turns
from benchmarks.speed.processes import ContestantProcess
from benchmarks.speed.translate_work import SOURCE_TOKENS, TARGET_TOKENS
from keras_transformer.commands.console import exit_codes
from keras_transformer.config import TransformerConfig, preset

HEAD = (
    "model",
    "contestant",
    "precision",
    "beam",
    "rows",
    "tokens/s",
    "ms per token",
    "GB/s needed",
    "share of copies",
)
ROWS, BEAMS = (32, 128, 512), (4, 1)

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclasses.dataclass(frozen=True)
class Translated:
    """A case of one contestant: its rounds, or why there are none."""

    size: str  # the name of a preset
    name: str  # of the contestant
    case: Case
    rounds: tuple[Round, ...] = ()
    failure: str | None = None

    @property
    def seconds(self) -> float:
        """The median over rounds."""
        return statistics.median(round.seconds for round in self.rounds)

    @property
    def tokens_per_second(self) -> float:
        return self.case.rows * TARGET_TOKENS / self.seconds

    def row(self, chip: Chip) -> tuple[str, ...]:
        contestant = CONTESTANTS[self.name]
        start, case = (self.size, contestant.label), (str(self.case.beam_size), str(self.case.rows))
        if not self.rounds:
            return (*start, contestant.precision, *case, f"not measured: {self.failure}", "", "", "")
        precision = self.rounds[0].precision
        rate = needed_bytes(preset(self.size), self.case, precision) / self.seconds
        return (
            *(*start, precision, *case),
            f"{self.tokens_per_second:,.0f}",
            f"{1000 * self.seconds / TARGET_TOKENS:.2f}",
            f"{rate / 1e9:,.1f}",
            f"{rate / chip.bandwidth:.1%}",
        )


@app.command()
def main(
    to: Annotated[
        pathlib.Path, typer.Option(help="A folder for accelerator_translate.md and accelerator_translate.json.")
    ],
    sizes: Annotated[str, typer.Option(help="Presets, separated by commas: tiny, base, big.")] = "base,big",
    contestants: Annotated[str, typer.Option(help=f"Separated by commas, of {', '.join(CONTESTANTS)}.")] = ",".join(
        CONTESTANTS
    ),
    rows: Annotated[list[int] | None, typer.Option(min=1, help="Sentences at once: 32, 128 and 512.")] = None,
    beams: Annotated[list[int] | None, typer.Option(min=1, help="Hypotheses per sentence: 4, and 1: greedy.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds per contestant, in turn; the median counts.")] = 5,
    minutes: Annotated[float, typer.Option(min=0.1, help="Whoever has not answered by then is not waited for.")] = 8,
) -> None:
    """Measure how fast random models of the paper's sizes translate on this machine's accelerator, or on its CPU."""
    deadline = time.monotonic() + 60 * minutes
    with exit_codes():
        names = names_in(contestants, CONTESTANTS, "contestant")
        configs = {size: preset(size) for size in sizes.split(",")}
        cases = [Case(beam_size, count) for beam_size in beams or BEAMS for count in rows or ROWS]
        chip = measured_chip(deadline)
        typer.echo(chip_lines(chip))
        results: list[Translated] = []
        for size, config in configs.items():
            results += compare(size, config, names, cases, rounds, deadline)
            heading = {"command": command_line("speed.accelerator_translate"), "rounds": rounds, "chip": chip._asdict()}
            write_result(to / "accelerator_translate.md", page(chip, results, heading["command"], rounds))
            write_result(to / "accelerator_translate.json", json.dumps(heading | {"results": as_json(results)}) + "\n")
        typer.echo(table(results, chip))
    if not any(result.rounds for result in results):
        raise typer.Exit(1)


def compare(
    size: str, config: TransformerConfig, names: Sequence[str], cases: list[Case], rounds: int, deadline: float
) -> list[Translated]:
    """Measure every case with these contestants, in turns. One that fails goes no further; the others do."""
    results = {(name, case): Translated(size, name, case) for case in cases for name in names}
    questions = [case for case in cases for _ in range(rounds)]
    for name, question, answer in answers_in_turns(
        lambda name: ContestantProcess(Translation, name, config, cases), names, questions, deadline
    ):
        if isinstance(answer, BenchmarkError):
            typer.echo(f"{size}: {answer}")
            for case in cases:
                results[name, case] = dataclasses.replace(results[name, case], failure=str(answer))
        elif question is None:
            typer.echo(f"{size}: {name} is ready after {answer:.0f} s")
        else:
            results[name, question] = with_round(results[name, question], answer)
    return list(results.values())


def with_round(result: Translated, round: Round | str) -> Translated:
    if isinstance(round, str):
        return dataclasses.replace(result, failure=round)
    return dataclasses.replace(result, rounds=(*result.rounds, round))


def table(results: Sequence[Translated], chip: Chip) -> str:
    return markdown(HEAD, [result.row(chip) for result in results])


def as_json(results: Sequence[Translated]) -> list[dict]:
    return [
        vars(result)
        | {"case": result.case._asdict(), "rounds": [round._asdict() for round in result.rounds]}
        | {"contestant": CONTESTANTS[result.name]._asdict()}
        | ({"tokens_per_second": result.tokens_per_second} if result.rounds else {})
        for result in results
    ]


def page(chip: Chip, results: Sequence[Translated], command: str, rounds: int) -> str:
    """The page in Markdown."""
    parts = ["# Translation on an accelerator"] + [NO_ACCELERATOR] * (chip.platform == "cpu")
    return "\n\n".join([*parts, f"`{command}`", chip_lines(chip), table(results, chip), explanation(rounds)])


def explanation(rounds: int) -> str:
    return f"""\
Random weights; every source has {SOURCE_TOKENS} tokens and every output {TARGET_TOKENS}, EOS included, which a search
of static shapes likes: with outputs of many lengths all rows wait for the longest. The project's search runs with
`KERAS_BACKEND=jax`, compiled as a whole, its weights and products in the precision; float32 matrices are multiplied in
TF32 on a GPU that has it. CTranslate2 has the same weights, from `export/ctranslate2`; "auto" is the type that it
chooses itself. A contestant has a process of its own; {rounds} rounds alternate, and the median counts, from ids on the
host to ids on the host, encoder included. What was compiled before is not in it.

"GB/s needed" is what a translation must read, however it is computed: the weights of the decoder and of the vocabulary
once a token, those of the encoder once, keys and values of the source once a sentence and token, and of the past once a
hypothesis and token. The share is of what a copy reads and writes on the same device. Close to 1, nothing but fewer
bytes would help; if rows are many, the products are the limit and not the memory.
"""


if __name__ == "__main__":
    app()
