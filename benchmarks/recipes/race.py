"""`python -m benchmarks.recipes.race`: this project and another program train on the same pairs for the same time.

They train in turns. A race that was stopped goes on where it was: run the same command again.
"""

import contextlib
import json
import pathlib
import signal
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from benchmarks.errors import BenchmarkError
from benchmarks.recipes.race_table import Race, draw, table
from benchmarks.recipes.racing.joeynmt import JoeyNMT
from benchmarks.recipes.racing.marian import Marian
from benchmarks.recipes.racing.ours import Ours
from benchmarks.recipes.racing.racer import CONFIG, Contestant, Runner, Task
from benchmarks.recipes.racing.record import Reached, Record, at_marks
from benchmarks.result_files import RESULTS, command_line, write_result
from keras_transformer.commands.console import exit_codes
from keras_transformer.config import TransformerConfig
from keras_transformer.ground.files import write_atomically
from keras_transformer.model_config import BaseModelConfig

PEERS = {"joeynmt": pathlib.Path(".race/bin/python"), "marian": pathlib.Path(sys.executable)}  # with their Pythons

OF_MODEL = ("encoder_layers", "decoder_layers", "d_model", "d_ff", "num_heads", "norm", "dropout", "label_smoothing")
# the fields of a model that a task tells every contestant

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def main(
    config: Annotated[pathlib.Path, typer.Argument(help="What this project trains.")] = CONFIG,
    overrides: Annotated[
        list[str] | None, typer.Option("--set", metavar="SECTION.KEY=VALUE", help="Override a key of it.")
    ] = None,
    against: Annotated[str, typer.Option(help=f"The other program: {' or '.join(PEERS)}.")] = "joeynmt",
    minutes: Annotated[float, typer.Option(min=0.1, help="For which each contestant trains.")] = 60.0,
    turn: Annotated[float, typer.Option(min=1.0, help="Seconds of a turn.")] = 60.0,
    folder: Annotated[
        pathlib.Path | None, typer.Option(help="Folder of the race, by default in races; a race that is there goes on.")
    ] = None,
    peer: Annotated[pathlib.Path | None, typer.Option(help="Path of the Python that has the other program.")] = None,
    peer_batch: Annotated[int, typer.Option(min=1, help="Tokens of a batch of JoeyNMT, padding included.")] = 2048,
    peer_workers: Annotated[int, typer.Option(min=0, help="Processes in which JoeyNMT reads text.")] = 2,
    marks: Annotated[float, typer.Option(min=0.1, help="Minutes between two scores.")] = 5.0,
    steps: Annotated[int, typer.Option(min=100, help="Updates between two scores after the same updates.")] = 1_000,
    train: Annotated[bool, typer.Option(" /--no-train", help="Only score what is there.")] = True,
    results: Annotated[
        pathlib.Path | None,
        typer.Option(help="Folder for the table and the picture; benchmarks/results after a whole race."),
    ] = None,
) -> None:
    """Train both on the pairs of a configuration and compare their BLEU on its validation text."""
    with exit_codes():
        if against not in PEERS:
            raise BenchmarkError(f"--against is {against}: name {' or '.join(PEERS)}.")
        folder = folder or pathlib.Path("races") / f"{config.stem}_{against}"
        task = prepare(folder, config, overrides or [])
        python = peer or PEERS[against]
        theirs = (
            Marian(folder.absolute() / "marian", task, python)
            if against == "marian"
            else JoeyNMT(folder.absolute() / "joeynmt", task, python, peer_batch, peer_workers)
        )
        contestants: list[Contestant] = [Ours(folder.absolute() / "ours", task, theirs.length_normalization), theirs]
        record = Record(folder / "race.jsonl")
        shared = {key: str(value) for key, value in task._asdict().items() if key not in ("text", "tokenizer")}
        record.begin({"against": against, "peer batch": peer_batch, "peer workers": peer_workers, **shared})
        if train:
            run(contestants, record, 60 * minutes, turn)
        race = {
            contestant.name: score(contestant, record, folder, 60 * minutes, 60 * marks, steps)
            for contestant in contestants
        }
        text = table(race, command_line("recipes.race"), task)
        is_whole = minutes >= 60 and all(60 * minutes in contestant.scores for contestant in race.values())
        if place := results or (RESULTS if is_whole else None):
            name = "race" if against == "joeynmt" else f"race_{against}"
            write_result(place / f"{name}.md", text)
            draw(race, place / f"{name}.png")
    print(text)


def prepare(folder: pathlib.Path, path: pathlib.Path, overrides: list[str]) -> Task:
    """Write the text and learn the tokenizer that both use, once. Neither counts as time of a contestant."""
    from train.config.run import load_config
    from train.data.prepare import load_corpus
    from train.data.vocabulary import prepare_tokenizer

    config = load_config(path, overrides)
    source, target = config.data.source_language, config.data.target_language
    if not source or not target:
        raise BenchmarkError(
            f"{path} does not say which languages it has: set data.source_language and target_language."
        )
    text, tokenizer = folder.absolute() / "text", folder.absolute() / "tokenizer.model"
    text.mkdir(parents=True, exist_ok=True)
    corpus = load_corpus(config.data)
    for split, pairs in (("train", corpus.train), ("val", corpus.validation)):
        if not (text / f"{split}.{target}").exists():
            for language, lines in zip((source, target), zip(*pairs, strict=True), strict=True):
                write_atomically(text / f"{split}.{language}", "".join(f"{line}\n" for line in lines))
    model = config.transformer_config(prepare_tokenizer(config.tokenizer, [corpus.train], tokenizer).vocab_size)
    check_paper(path, model)
    return Task(
        text,
        tokenizer,
        path.absolute(),
        tuple(overrides),
        (source, target),
        config.training.tokens_per_batch,
        warmup_steps=config.training.warmup_steps,
        learning_rate_factor=config.training.learning_rate_factor,
        **{key: getattr(model, key) for key in OF_MODEL},
    )


def check_paper(path: pathlib.Path, model: BaseModelConfig) -> None:
    """Raise BenchmarkError for a model that is not the paper's in all but its shape, which other programs have too."""
    if not isinstance(model, TransformerConfig):
        raise BenchmarkError(f"{path} has no Transformer: name another configuration.")
    paper = TransformerConfig().to_dict()
    changed = [key for key, value in model.to_dict().items() if value != paper[key]]
    settings = [
        f"--set model.{key}={json.dumps(paper[key])}" for key in changed if key not in ("vocab_size", *OF_MODEL)
    ]
    if settings:
        raise BenchmarkError(
            f"The model of {path} is not the paper's, which both programs have: add {' '.join(settings)}."
        )


def run(contestants: Sequence[Contestant], record: Record, seconds: float, turn: float) -> None:
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
    contestant: Contestant, record: Record, folder: pathlib.Path, seconds: float, every: float, steps: int
) -> Race:
    """Translate val with the newest checkpoint at each mark, unless that was done before, and score it.

    every: the seconds between two marks. steps: the updates between two marks after the same updates. A checkpoint that
    a program has removed since, as this project does with one that was written because the race was stopped, counts for
    no mark.
    """
    checkpoints = record.checkpoints(contestant.name)
    kept = [reached for reached in checkpoints if reached.path.exists()]
    by_time = at_marks(kept, every, seconds)
    by_step = {reached.step: reached for reached in kept if reached.step % steps == 0 and reached.seconds <= seconds}
    signature, last = "", max(by_time.values(), default=None)
    bleu: dict[int, float] = {}
    for reached in sorted({*by_time.values(), *by_step.values()}):
        bleu[reached.step], signature = bleu_on_val(contestant, reached, folder)
    return Race(
        contestant.label,
        {mark: bleu[reached.step] for mark, reached in by_time.items()},
        {step: bleu[step] for step in by_step},
        signature,
        contestant.tokens(last.path) / last.seconds if last else 0.0,
        checkpoints[-1].seconds / len(checkpoints) if checkpoints else 0.0,
        record.memory_bytes(contestant.name),
        contestant.note,
    )


def bleu_on_val(contestant: Contestant, reached: Reached, folder: pathlib.Path) -> tuple[float, str]:
    """BLEU of a checkpoint on val, and its signature. Translations that are there are not made again."""
    from keras_transformer.inspection.bleu import RAW_BLEU
    from keras_transformer.inspection.bleu import score as bleu_of

    path = folder / "translations" / f"{contestant.name}_{reached.step}.json"
    if not path.exists():
        print(f"{contestant.name}: translating at {reached.seconds / 60:.0f} minutes", file=sys.stderr, flush=True)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, json.dumps(contestant.translate(reached.path, "val"), ensure_ascii=False))
    references = contestant.task.lines("val", contestant.task.languages[1])
    measured = bleu_of(json.loads(path.read_text("utf-8")), references, [RAW_BLEU]).first("BLEU")
    return measured.value, measured.signature


if __name__ == "__main__":
    app()
