"""`python -m benchmarks.recipes.race`: this project and JoeyNMT train on the same pairs for the same time, in turns.

A race that was stopped goes on where it was: run the same command again.
"""

import contextlib
import json
import pathlib
import signal
import sys
from typing import Annotated

import typer

from benchmarks.multi30k import text_of
from benchmarks.recipes.race_table import MARK_SECONDS, Race, draw, table
from benchmarks.recipes.racing.joeynmt import JoeyNMT
from benchmarks.recipes.racing.ours import TOKENS_PER_BATCH, Ours
from benchmarks.recipes.racing.racer import Contestant, Runner, Task
from benchmarks.recipes.racing.record import Record, at_marks
from benchmarks.result_files import RESULTS, command_line, write_result
from keras_transformer.commands.console import exit_codes
from keras_transformer.ground.files import write_atomically
from keras_transformer.pieces.tokenizer import train_tokenizer

VOCAB_SIZE = 6_000  # of configs/multi30k.toml

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    minutes: Annotated[float, typer.Option(min=0.1, help="For which each contestant trains.")] = 60.0,
    turn: Annotated[float, typer.Option(min=1.0, help="Seconds of a turn.")] = 60.0,
    folder: Annotated[
        pathlib.Path, typer.Option(help="Folder of the race; a race that is there goes on.")
    ] = pathlib.Path("races/multi30k_en_de"),
    data: Annotated[pathlib.Path, typer.Option(help="The folder of Multi30k.")] = pathlib.Path("data/multi30k"),
    peer: Annotated[pathlib.Path, typer.Option(help="Path of the Python that has JoeyNMT.")] = pathlib.Path(
        ".race/bin/python"
    ),
    peer_batch: Annotated[int, typer.Option(min=1, help="Tokens of a batch of JoeyNMT, padding included.")] = 2048,
    peer_workers: Annotated[int, typer.Option(min=0, help="Processes in which JoeyNMT reads text.")] = 2,
    peer_marks: Annotated[float, typer.Option(min=5.0, help="Minutes between two scores of JoeyNMT.")] = 5.0,
    train: Annotated[bool, typer.Option(" /--no-train", help="Only score what is there.")] = True,
    results: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for race.md and race.png; benchmarks/results after a whole race."),
    ] = None,
) -> None:
    """Train both on Multi30k, English to German, and compare their BLEU on val against the minutes of training."""
    with exit_codes():
        task = prepare(folder, data)
        theirs = JoeyNMT(folder.absolute() / "joeynmt", task, peer, peer_batch, peer_workers)
        contestants = [Ours(folder.absolute() / "ours", task), theirs]
        record = Record(folder / "race.jsonl")
        shared = {key: value for key, value in task._asdict().items() if key not in ("text", "tokenizer")}
        record.begin({"our batch": TOKENS_PER_BATCH, "peer batch": peer_batch, "peer workers": peer_workers, **shared})
        if train:
            run(contestants, record, 60 * minutes, turn)
        every = {"ours": MARK_SECONDS, "joeynmt": 60 * peer_marks}
        race = score(contestants, record, folder, 60 * minutes, every)
        text = table(race, command_line("recipes.race"), TOKENS_PER_BATCH, peer_batch)
        is_whole = minutes >= 60 and all(60 * minutes in contestant.scores for contestant in race.values())
        if place := results or (RESULTS if is_whole else None):
            write_result(place / "race.md", text)
            draw(race, place / "race.png")
    print(text)


def prepare(folder: pathlib.Path, data: pathlib.Path) -> Task:
    """Unpack the text and learn the tokenizer that both use, once. Neither counts as time of a contestant."""
    text, tokenizer = folder.absolute() / "text", folder.absolute() / "tokenizer.model"
    for split in ("train", "val"):
        for language in ("en", "de"):
            path = text / f"{split}.{language}"
            if not path.exists():
                unpacked = text_of(data, path.name)
                path.parent.mkdir(parents=True, exist_ok=True)
                write_atomically(path, unpacked)
    task = Task(text, tokenizer)
    if not tokenizer.exists():
        train_tokenizer([*task.lines("train", "en"), *task.lines("train", "de")], tokenizer, VOCAB_SIZE)
    return task


def run(contestants: list[Contestant], record: Record, seconds: float, turn: float) -> None:
    """Let the contestants train in turns until each has had its time. Ctrl-C and SIGTERM end both with a checkpoint."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    before = {contestant.name: record.seconds(contestant.name) for contestant in contestants}
    runners: dict[str, Runner] = {}

    def clock(name: str) -> float:
        return before[name] + runners[name].seconds

    def recorder(name: str):
        return lambda step, path, passed: record.add_checkpoint(name, step, before[name] + passed, path)

    with contextlib.ExitStack() as ends:
        for contestant in contestants:
            if before[contestant.name] < seconds:
                runners[contestant.name] = Runner(contestant)
                ends.callback(runners[contestant.name].end, recorder(contestant.name))
        while waiting := [name for name in runners if clock(name) < seconds]:
            for name in waiting:
                runners[name].run_for(min(turn, seconds - clock(name) + 1), recorder(name))
                record.add_turn(name, clock(name), runners[name].memory_bytes)
                print(f"{name}: {clock(name) / 60:.1f} of {seconds / 60:.0f} minutes", file=sys.stderr, flush=True)


def score(
    contestants: list[Contestant], record: Record, folder: pathlib.Path, seconds: float, every: dict[str, float]
) -> dict[str, Race]:
    """Translate val with the newest checkpoint at each mark, unless that was done before, and score it.

    every: the seconds between two marks of each contestant, by name. A checkpoint that a program has removed since, as
    this project does with one that was written because the race was stopped, counts for no mark.
    """
    from keras_transformer.inspection.bleu import RAW_BLEU
    from keras_transformer.inspection.bleu import score as bleu_of

    races = {}
    for contestant in contestants:
        scores, signature, last = {}, "", None
        checkpoints = record.checkpoints(contestant.name)
        kept = [reached for reached in checkpoints if reached.path.exists()]
        for mark, reached in at_marks(kept, every[contestant.name], seconds).items():
            path = folder / "translations" / f"{contestant.name}_{reached.step}.json"
            if not path.exists():
                print(f"{contestant.name}: translating at {mark / 60:.0f} minutes", file=sys.stderr, flush=True)
                path.parent.mkdir(exist_ok=True)
                write_atomically(path, json.dumps(contestant.translate(reached.path, "val"), ensure_ascii=False))
            references = contestant.task.lines("val", "de")
            measured = bleu_of(json.loads(path.read_text("utf-8")), references, [RAW_BLEU]).first("BLEU")
            scores[mark], signature, last = measured.value, measured.signature, reached
        rate = contestant.tokens(last.path) / last.seconds if last else 0.0
        between = checkpoints[-1].seconds / len(checkpoints) if checkpoints else 0.0
        races[contestant.name] = Race(
            contestant.label, scores, signature, rate, between, record.memory_bytes(contestant.name)
        )
    return races


if __name__ == "__main__":
    app()
